"""Rings of stages: how deep wgmma may run ahead, when a stage is free, and who arrives where.

A consumer that allows `wait_depth` wgmma groups in flight knows only that the group `wait_depth`
k-tiles back has finished, so it releases a stage that many k-tiles after it issued its wgmmas. The
ring must hold those stages and one more to work on, or the producer and the consumer wait for each
other.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """A ring of `stages` with at most `wait_depth` wgmma groups in flight."""

    stages: int
    wait_depth: int

    @property
    def release_distance(self) -> int:
        """K-tiles between issuing the wgmmas of a stage and releasing it."""
        return self.wait_depth

    @property
    def least_stages(self) -> int:
        """The smallest ring that makes progress at this wait depth."""
        return self.release_distance + 1

    @property
    def loads_in_flight(self) -> int:
        """Stages that TMA may fill while the consumers work on theirs."""
        return self.stages - self.least_stages


@dataclass(frozen=True, slots=True, kw_only=True)
class RingBarriers:
    """Arrivals and bytes that complete a phase of full[s] and empty[s].

    full:  the producer lane arrives once with expect_tx; the phase ends when its bytes have landed.
           Where threads copy, each arrives behind its copies, and there are no bytes.
    empty: one thread of every consumer warpgroup of every CTA that this CTA's loads write into.
    """

    consumers: int
    destinations: int  # CTAs that receive what one producer loads
    tx_bytes: int
    full_arrivals: int = 1

    @property
    def empty_arrivals(self) -> int:
        return self.consumers * self.destinations
