"""The ring: how deep it must be, and who arrives at its barriers."""

from __future__ import annotations

import pytest

from ptxgen.models.pipeline import Ring, RingBarriers

pytestmark = pytest.mark.unit


def makes_progress(stages: int, wait_depth: int, k_tiles: int = 12) -> bool:
    """Producer and consumer step by step: can every k-tile be filled and multiplied?

    The consumer issues k-tile i once its stage is full, then releases that of k-tile
    i - wait_depth. The producer refills a stage once it was released.
    """
    filled = issued = released = 0
    while issued < k_tiles:
        before = (filled, issued, released)
        if filled < k_tiles and filled < released + stages:
            filled += 1
        if issued < filled:
            issued += 1
            released = max(released, issued - wait_depth)
        if (filled, issued, released) == before:
            return False
    return True


@pytest.mark.parametrize("wait_depth", [0, 1, 2])
@pytest.mark.parametrize("stages", range(1, 6))
def test_least_stages_is_where_progress_begins(stages: int, wait_depth: int) -> None:
    """Against a simulation: one stage less than the least waits for ever."""
    ring = Ring(stages=stages, wait_depth=wait_depth)
    assert makes_progress(stages, wait_depth) == (stages >= ring.least_stages)


def test_numbers_of_a_ring() -> None:
    ring = Ring(stages=4, wait_depth=1)
    assert (ring.release_distance, ring.least_stages, ring.loads_in_flight) == (1, 2, 2)


@pytest.mark.parametrize(
    ("consumers", "destinations", "empty"),
    [(1, 1, 1), (2, 1, 2), (3, 1, 3), (2, 2, 4), (3, 2, 6)],
)
def test_arrivals(consumers: int, destinations: int, empty: int) -> None:
    """One of every consumer of every CTA that a load reaches; the producer arrives once."""
    barriers = RingBarriers(consumers=consumers, destinations=destinations, tx_bytes=1)
    assert (barriers.full_arrivals, barriers.empty_arrivals) == (1, empty)
