"""Waves: how many clusters run, how often, and which rows they share."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxgen.models.waves import Waves

pytestmark = pytest.mark.unit

grids = st.builds(
    Waves,
    m_tiles=st.integers(0, 60),
    n_tiles=st.integers(0, 60),
    cluster_size=st.sampled_from([1, 2]),
    resident_ctas=st.integers(0, 140),
)


@pytest.mark.parametrize(
    ("m", "n", "cluster", "resident", "clusters", "waves"),
    [
        (1, 1, 1, 132, 1, 1),  # fewer tiles than SMs
        (11, 12, 1, 132, 132, 1),  # exactly one wave
        (12, 12, 1, 132, 132, 2),  # 12 tiles too many
        (16, 16, 2, 132, 66, 4),
        (4, 4, 2, 3, 1, 16),  # an odd count: the last CTA finds no partner
        (4, 4, 2, 1, 1, 16),  # one cluster is always tried: whether it fits is the driver's word
    ],
)
def test_counts(m: int, n: int, cluster: int, resident: int, clusters: int, waves: int) -> None:
    w = Waves(m_tiles=m, n_tiles=n, cluster_size=cluster, resident_ctas=resident)
    assert (w.clusters, w.waves, w.grid_ctas) == (clusters, waves, clusters * cluster)


@given(grids)
def test_invariants(w: Waves) -> None:
    assert w.clusters <= w.tiles
    assert w.tiles == 0 or w.clusters >= 1
    assert 0 < w.efficiency <= 1
    assert w.waves * w.clusters >= w.tiles
    assert w.tiles == 0 or (w.waves - 1) * w.clusters < w.tiles


@given(grids, st.sampled_from([64, 128, 256, 512]), st.sampled_from([64, 128, 256, 512]))
def test_the_raster_group_reads_least(w: Waves, tile_m: int, tile_n: int) -> None:
    """Against every other group, counted out: rows and columns that a wave touches."""
    group = w.raster_group(tile_m, tile_n)
    assert 1 <= group <= max(w.m_tiles, 1)

    def touched(rows: int) -> int:
        return rows * tile_m + min(ceil(w.clusters / rows), w.n_tiles) * tile_n

    if w.tiles:
        assert touched(group) == min(map(touched, range(1, min(w.m_tiles, w.clusters) + 1)))


def test_a_square_wave_of_a_large_square() -> None:
    """66 clusters of 256 x 256: 6 x 11 touches 17 rows and columns of tiles, 2 x 33 would 35."""
    w = Waves(m_tiles=32, n_tiles=32, cluster_size=2, resident_ctas=132)
    assert w.raster_group(256, 256) in range(6, 12)
