"""Experts, waves with clusters, TMA boxes and latencies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxgen.errors import ConfigError, TensorMapError
from ptxgen.models.concurrency import concurrency
from ptxgen.models.moe import Place, moe_rows, spread
from ptxgen.models.tma_box import tma_box
from ptxgen.models.waves import wave_count

pytestmark = pytest.mark.unit


# -- experts ---------------------------------------------------------------------------------------


def test_heads_divide_the_rows_of_an_expert() -> None:
    """16 heads with experts of their own: a sixteenth of the rows each."""
    whole = moe_rows(tokens=4096, experts=8, top_k=1)
    heads = moe_rows(tokens=4096, experts=8, top_k=1, heads=16)
    assert whole.mean_rows == 512
    assert heads.mean_rows == 32 == whole.mean_rows / 16
    assert (whole.u_shape, heads.u_shape) == (1, 0.25)
    assert (whole.bound, heads.bound) == ("tensor core", "HBM")


def test_tiles_against_sms() -> None:
    few = moe_rows(tokens=64, experts=8, top_k=2, n=1024)
    assert few.tiles == 8 * 8
    assert few.waves.waves == 1
    assert few.waves.grid_ctas == 64


def test_uneven_experts() -> None:
    work = moe_rows(rows="300, 0, 1", tile_m=128, n=256, tile_n=128)
    assert work.m_tiles == 3 + 0 + 1
    assert work.tiles == 8
    assert work.u_shape == 301 / (4 * 128)
    assert work.intensity == 301 / 2  # the expert without rows is not read


@given(st.lists(st.integers(0, 400), min_size=1, max_size=6), st.integers(1, 3))
def test_every_tile_has_one_place(rows: list[int], n_tiles: int) -> None:
    work = moe_rows(rows=",".join(map(str, rows)), tile_m=64, n=64 * n_tiles, tile_n=64)
    places = [work.locate(tile) for tile in range(work.tiles)]
    expected = [
        Place(expert, m, n)
        for expert, count in enumerate(rows)
        for n in range(n_tiles)
        for m in range(-(-count // 64))
    ]
    assert places == expected
    with pytest.raises(IndexError):
        work.locate(work.tiles)


@given(st.integers(0, 10_000), st.integers(1, 64))
def test_an_even_spread(total: int, parts: int) -> None:
    counts = spread(total, parts)
    assert (sum(counts), len(counts)) == (total, parts)
    assert max(counts) - min(counts) <= 1


def test_no_tokens() -> None:
    work = moe_rows(tokens=0)
    assert (work.tiles, work.u_shape, work.intensity) == (0, 1, 0)


def test_rows_that_cannot_be_read() -> None:
    with pytest.raises(ConfigError, match="whole numbers joined by commas"):
        moe_rows(rows="1,x")


# -- waves -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cluster", "waves", "tail"),
    # 4096 x 4096 in 128 x 256: 512 tiles over 132 SMs
    [((1, 1), 4, 116), ((2, 1), 4, 58), ((2, 2), 4, 29)],
)
def test_waves_and_tail(cluster: tuple[int, int], waves: int, tail: int) -> None:
    grid = wave_count(cluster_m=cluster[0], cluster_n=cluster[1])
    assert (grid.waves, grid.tail_tiles) == (waves, tail)
    assert grid.efficiency == pytest.approx(512 / (4 * 132))


def test_gpcs_hold_whole_clusters() -> None:
    """Seven GPCs of 16 SMs and one of 18, sum 130: clusters of 4 leave the last two SMs idle."""
    gpcs = "16,16,16,16,16,16,16,18"
    alone = wave_count(gpcs=gpcs)
    fours = wave_count(gpcs=gpcs, cluster_m=2, cluster_n=2)
    sixteens = wave_count(gpcs="18,18,18,18,18,18,18", cluster_m=4, cluster_n=4)
    assert (alone.clusters, fours.clusters, sixteens.clusters) == (130, 32, 7)
    assert sixteens.grid_ctas == 112


def test_the_driver_knows_best() -> None:
    assert wave_count(cluster_m=2, max_clusters=60).clusters == 60


def test_bigger_clusters_fill_the_tail_worse() -> None:
    """65 x 16 tiles are 8 waves of 132 CTAs; clusters of 8 along M make them 72 x 16, 9 waves."""
    one, eight = (wave_count(m=65 * 128, n=16 * 256, cluster_m=c) for c in (1, 8))
    assert (one.waves, one.tiles) == (8, 1040)
    assert (eight.waves, eight.tiles * 8) == (9, 1152)
    assert 1040 / (9 * eight.grid_ctas) < 1040 / (8 * one.grid_ctas)


def test_an_empty_grid() -> None:
    grid = wave_count(m=0)
    assert (grid.waves, grid.tail_tiles, grid.efficiency) == (0, 0, 1)
    assert "cluster tiles" in str(grid)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"cluster_m": 5, "cluster_n": 4}, "cluster_m x cluster_n=20"),
        ({"gpcs": "a"}, "whole numbers"),
        ({"tile_m": 0}, "must be at least 1"),
    ],
)
def test_no_such_grid(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        wave_count(**fields)  # type: ignore[arg-type]


# -- TMA -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("box", "swizzle", "used"),
    # f32 boxes of 16 KB: published bandwidths are 1,822, 1,428 and 602 GB/s
    [("64x64", 0, 1.0), ("256x16", 0, 1.0), ("256x4x4", 0, 0.5)],
)
def test_narrow_rows_waste_sectors(box: str, swizzle: int, used: float) -> None:
    copy = tma_box(box=box, dtype="f32", swizzle=swizzle)
    assert copy.bytes == 16_384
    assert copy.sector_efficiency == used


def test_bytes_in_flight() -> None:
    """H100: 13.9 B a clock and SM over 761 cycles of latency are 10.6 KB; H200: 15.1 KB."""
    assert tma_box(chip="h100_sxm").needed_bytes == pytest.approx(10_554, abs=1)
    assert tma_box(chip="h200").needed_bytes == pytest.approx(15_122, abs=1)
    small = tma_box(box="8x64", in_flight=4)
    assert (small.bytes, small.needed_boxes) == (1024, 15)
    assert small.hbm_share == pytest.approx(4 * 1024 / 15_122, rel=1e-3)
    assert tma_box(box="128x64", in_flight=1).hbm_share == 1


def test_boxes_over_the_edge() -> None:
    assert tma_box(box="128x64", shape="256x128").useful == 1
    assert tma_box(box="128x64", shape="129x64").useful == 129 / 256


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"box": "128x65"}, TensorMapError, "no tensor map has this box"),
        ({"box": "257x64"}, TensorMapError, "no tensor map has this box"),
        ({"box": "128x4", "swizzle": 0}, TensorMapError, "no tensor map has this box"),
        ({"box": "1x2x3x4x5x64"}, TensorMapError, "no tensor map has this box"),
        ({"box": "128"}, TensorMapError, "no tensor map has this box"),
        ({"box": "axb"}, ConfigError, "positive integers joined by x"),
        ({"box": "128x64", "shape": "128"}, ConfigError, "the box's 2 axes"),
    ],
)
def test_no_such_box(fields: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tma_box(**fields)  # type: ignore[arg-type]


# -- latency ---------------------------------------------------------------------------------------


def test_littles_law() -> None:
    assert concurrency(warps=4, latency=32, interval=8, independent=1).busy == 1
    half = concurrency(warps=2, latency=32, interval=8, independent=1)
    assert (half.busy, half.needed) == (0.5, 4)
    assert concurrency(warps=2, latency=32, interval=8, independent=2).busy == 1


def test_more_than_enough_gains_nothing() -> None:
    busy = [concurrency(warps=w, latency=656, interval=8, independent=4).busy for w in (21, 64)]
    assert busy == [1, 1]
    assert np.isclose(concurrency(warps=20, latency=656, interval=8, independent=4).busy, 640 / 656)
    with pytest.raises(ConfigError, match=r"must be 1\.\.64"):
        concurrency(warps=65)
