"""Rooflines, the least time, and the work of a GEMM."""

import pytest

from ptxgen.errors import ConfigError
from ptxgen.models.gemm_work import gemm_work
from ptxgen.models.rates import rates
from ptxgen.models.roofline import roofline, time_bound

pytestmark = pytest.mark.unit


def test_useful_throughput_is_the_lowest_ceiling() -> None:
    """One row of 64 and one FLOP a byte: HBM's 4.8 TFLOP/s lies below U_shape's 15.5."""
    decode = roofline(hbm=1, u_shape=1 / 64)
    assert decode.bound == "HBM"
    assert decode.useful_flop_per_s == 4.8e12
    assert {c.name: round(c.flop_per_s / 1e12, 1) for c in decode.ceilings} == {
        "tensor cores": 15.5, "HBM": 4.8,
    }  # fmt: skip


def test_fp8_doubles_the_intensity_of_a_gemv() -> None:
    assert gemm_work(m=1, n=8192, k=8192).intensity == pytest.approx(1, abs=1e-3)
    assert gemm_work(m=1, n=8192, k=8192, dtype="e4m3", out_dtype="bf16").intensity == (
        pytest.approx(2, abs=1e-3)
    )


@pytest.mark.parametrize("level", ["hbm", "l2", "smem"])
def test_at_its_ridge_a_level_meets_the_peak(level: str) -> None:
    name = {"hbm": "HBM", "l2": "L2", "smem": "shared memory"}[level]
    ridge = rates().level(name).ridge
    at, below = (roofline(**{level: factor * ridge}) for factor in (1.0001, 0.5))  # type: ignore[arg-type]
    assert (at.bound, below.bound) == ("tensor cores", name)
    assert below.of_peak == pytest.approx(0.5)


def test_scalar_work_has_a_ceiling_too() -> None:
    """One CUDA-core FLOP for 8 useful tensor FLOP: 256 of 4,096 a clock, so half of peak."""
    assert roofline(scalar_ratio=1 / 8).of_peak == pytest.approx(0.5)
    assert roofline(scalar_ratio=1 / 8).bound == "CUDA cores"


def test_time_is_the_longest_term_plus_what_nothing_overlaps() -> None:
    bound = time_bound(
        flop=2 * 4096**3, hbm_bytes=4.8e9, l2_bytes=1e6, smem_bytes=1e6, scalar_flop=1e6,
        sync_us=2, launch_us=5,
    )  # fmt: skip
    assert [t.name for t in bound.terms] == [
        "HBM", "L2", "shared memory", "tensor cores", "CUDA cores",
    ]  # fmt: skip
    assert bound.bound == "HBM"
    assert bound.seconds == pytest.approx(1e-3 + 7e-6)


def test_padding_costs_time() -> None:
    whole = time_bound(hbm_bytes=0)
    half = time_bound(hbm_bytes=0, u_shape=0.5)
    assert half.seconds == 2 * whole.seconds
    assert half.useful_flop_per_s == whole.useful_flop_per_s / 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: roofline(u_shape=0), "u_shape"),
        (lambda: roofline(hbm=-1), "must be at least 0"),
        (lambda: roofline(l2=1, chip="rtx_4090"), "must have a known L2 rate"),
        (lambda: time_bound(flop=0, hbm_bytes=0), "all amounts"),
        (lambda: time_bound(l2_bytes=1, chip="rtx_4090"), "must have a known L2 rate"),
        (lambda: gemm_work(m=0), "m=0  must be at least 1"),
        (lambda: gemm_work(tile_m=96), "tile_m % 64"),
        (lambda: gemm_work(tile_k=8), "tile_k=8  must be at least 16"),
    ],
)
def test_refusals(call: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        call()  # type: ignore[operator]


# -- GEMM ------------------------------------------------------------------------------------------


def test_ideal_bytes_count_each_matrix_once() -> None:
    work = gemm_work(m=300, n=520, k=200)
    assert work.ideal_bytes == 2 * (300 * 200 + 200 * 520 + 300 * 520)
    f32 = gemm_work(m=300, n=520, k=200, out_dtype="f32")
    assert f32.ideal_bytes - work.ideal_bytes == 2 * 300 * 520


@pytest.mark.parametrize("side", [64, 128, 256])
def test_square_tiles_divide_the_traffic_by_their_side(side: int) -> None:
    """Without tiles A is read N times and B M times: 2 M N K elements."""
    work = gemm_work(m=1024, n=1024, k=1024, tile_m=side, tile_n=side)
    stores = 1024 * 1024 * 2
    assert work.naive_bytes == 2 * 1024**3 * 2
    assert work.naive_bytes / (work.l2_bytes - stores) == side


@pytest.mark.parametrize(
    ("tile", "cluster", "intensity"),
    [((128, 128), (1, 1), 64), ((128, 256), (1, 1), 256 / 3), ((128, 256), (2, 1), 128)],
)
def test_reuse_of_a_tile(tile: tuple[int, int], cluster: tuple[int, int], intensity: float) -> None:
    work = gemm_work(tile_m=tile[0], tile_n=tile[1], cluster_m=cluster[0], cluster_n=cluster[1])
    assert work.tile_intensity == pytest.approx(intensity)


def test_u_shape_of_ragged_sizes() -> None:
    assert gemm_work(m=128, n=256, k=64).u_shape == 1
    assert gemm_work(m=1, n=256, k=64, tile_m=64).u_shape == 1 / 64
    assert gemm_work(m=129, n=256, k=64).u_shape == 129 / 256
    assert gemm_work(m=128, n=256, k=65).u_shape == 65 / 128


def test_shared_memory_reads() -> None:
    """128x256x64 alone: 2 x 4 wgmmas, each 2,048 B of A and 8,192 B of B."""
    assert gemm_work(m=128, n=256, k=64).smem_bytes == 8 * (2048 + 8192)


def test_a_large_gemm_is_bound_by_the_tensor_cores_once_b_is_shared() -> None:
    alone, shared = gemm_work(), gemm_work(cluster_m=2)
    assert (alone.bound, shared.bound) == ("L2", "tensor cores")
    assert shared.of_peak == pytest.approx(shared.waves.efficiency)


def test_a_small_grid_leaves_sms_idle() -> None:
    work = gemm_work(m=256, n=512, k=4096)
    assert work.tiles == 4
    assert work.of_peak == pytest.approx(4 / 132)
