"""Scales, amax, output scale, gated products and promoted sums: the rules that they are told by.

Their numbers on integers and random inputs stand in test_gemm_epilogue. Runs on the emulator;
`--backend cuda` and `--backend both` run the same tests on a GPU.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from machines import Runner

import ptxgen
import runtime
from ptxgen.app import reference
from ptxgen.errors import ArgumentError
from ptxgen.isa.dtypes import dtype

pytestmark = pytest.mark.emu

E4M3 = dtype("e4m3").np_dtype
ONE = np.ones(1, np.float32)


def fp8(*shape: int, seed: int = 0) -> np.ndarray:
    """Small integers: sums are exact."""
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(E4M3)


def scaled(runner: Runner, kernel: Any, amax: float = 0.0, **arrays: np.ndarray) -> tuple[Any, Any]:
    """D and amax of a kernel with per-tensor scales."""
    m, n = arrays["a"].shape[0], arrays["b"].shape[-2]
    out = {"d": ((m, n), kernel.source.problem.output.np_dtype)}
    updated = {"amax": np.array([amax], np.float32)}
    got = runner.run(kernel, arrays, out, updated=updated)
    return got["d"].astype(np.float64), got["amax"][0]


@pytest.fixture(scope="module")
def per_tensor() -> Any:
    return ptxgen.kernel(
        "gemm", dtype="e4m3", tile=(64, 64), cluster=(1, 1), stages=2, scales="tensor", amax=1,
        out_scale=1, out_dtype="e4m3",
    )  # fmt: skip


def test_amax_is_taken_before_the_output_scale(per_tensor: Any, runner: Runner) -> None:
    a, b = fp8(100, 64), fp8(80, 64, seed=1)
    sums = a.astype(np.float64) @ b.astype(np.float64).T
    scale = np.array([2.0**-6], np.float32)
    d, amax = scaled(runner, per_tensor, a=a, b=b, scale_a=4 * ONE, scale_b=ONE, out_scale=scale)
    assert amax == 4 * np.abs(sums).max()
    assert np.array_equal(d, (4 * sums / 64).astype(E4M3).astype(np.float64))


def test_amax_keeps_what_was_larger(per_tensor: Any, runner: Runner) -> None:
    """So that several launches may report into one number."""
    a, b = fp8(64, 32), fp8(64, 32, seed=1)
    for before in (1e6, math.inf):
        _, amax = scaled(runner, per_tensor, before, a=a, b=b, scale_a=ONE, scale_b=ONE,
                         out_scale=ONE)  # fmt: skip
        assert amax == np.float32(before)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_amax_of_special_values(value: float, per_tensor: Any, runner: Runner) -> None:
    """NaN wins over everything. D of e4m3 saturates, and NaN stays NaN."""
    a, b = np.ones((64, 32), E4M3), np.ones((64, 32), E4M3)
    scale = np.array([value], np.float32)
    d, amax = scaled(runner, per_tensor, 5.0, a=a, b=b, scale_a=scale, scale_b=ONE, out_scale=ONE)
    want = np.float32(value)
    assert np.array_equal(amax, want, equal_nan=True)
    assert np.array_equal(d, np.full((64, 64), min(value, 448.0)), equal_nan=True)


def test_one_nan_in_a_corner_reaches_amax(per_tensor: Any, runner: Runner) -> None:
    """The last element of a ragged D, whose lane is alone in its row and column."""
    a, b = fp8(65, 32), fp8(80, 32)
    a[64, 3] = np.float32(math.nan).astype(E4M3)
    d, amax = scaled(runner, per_tensor, a=a, b=b, scale_a=ONE, scale_b=ONE, out_scale=ONE)
    assert math.isnan(amax)
    assert np.isnan(d[64]).all()
    assert not np.isnan(d[:64]).any()


@pytest.mark.parametrize(
    "fields",
    [
        {}, {"swap_ab": 1}, {"split_k": 2}, {"schedule": "pingpong", "stages": 3},
        {"schedule": "stream_k", "stages": 3}, {"tile": (128, 56), "consumers": 1},
    ],
    ids=str,
)  # fmt: skip
def test_amax_counts_nothing_outside_d(fields: dict[str, Any], runner: Runner) -> None:
    """Beyond the edges the sums are 0, and what is made of them is not: here a bias, that all of D
    cancels, and the NaN of 0 times infinity."""
    m, n = 65, 72  # both ways a little more than a tile
    fields = {"tile": (64, 64), "cluster": (1, 1), "stages": 2, "amax": 1} | fields
    bf16 = dtype("bf16").np_dtype
    a, b = np.ones((m, 32), bf16), np.ones((n, 32), bf16)
    out, largest = {"d": ((m, n), bf16)}, {"amax": np.zeros(1, np.float32)}
    for bias, length in (("row", n), ("column", m)):
        kernel = ptxgen.kernel("gemm", bias=bias, **fields)
        given = {"a": a, "b": b, "bias": np.full(length, -32, np.float32)}
        got = runner.run(kernel, given, out, updated=largest)
        assert got["amax"][0] == 0 == np.abs(got["d"].astype(np.float32)).max()
    kernel = ptxgen.kernel("gemm", **fields)
    for name, x in (("a", a), ("b", b)):
        spoiled = x.copy()
        spoiled[-1, 5] = np.inf
        given = {"a": a, "b": b} | {name: spoiled}
        assert runner.run(kernel, given, out, updated=largest)["amax"][0] == np.inf


@pytest.mark.parametrize("swap", [0, 1])
def test_scales_belong_to_rows_of_a_and_columns_of_d(swap: int, runner: Runner) -> None:
    """One row and one column stand out by a scale of their own, however tiles lie."""
    kernel = ptxgen.kernel(
        "gemm", dtype="e4m3", scales="row", swap_ab=swap, tile=(64, 16), cluster=(1, 1), stages=2
    )
    a, b = fp8(70, 48), fp8(88, 48, seed=1)
    scale_a, scale_b = np.ones(70, np.float32), np.ones(88, np.float32)
    scale_a[69], scale_b[1] = 8, 0.25
    arrays = {"a": a, "b": b, "scale_a": scale_a, "scale_b": scale_b}
    d = runner.run(kernel, arrays, {"d": ((70, 88), kernel.source.problem.output.np_dtype)})["d"]
    want = a.astype(np.float64) @ b.astype(np.float64).T
    want[69] *= 8
    want[:, 1] /= 4
    assert np.array_equal(d.astype(np.float64), want.astype(d.dtype).astype(np.float64))


@pytest.mark.parametrize("n", [71, 72])
def test_scales_of_both_halves_at_an_odd_n(n: int) -> None:
    """N of 71: the scales of the second half begin 4 bytes off a pair's boundary."""
    kernel = ptxgen.kernel("gemm", dtype="e4m3", scales="row", gated=1, tile=(64, 64), stages=2)
    problem = kernel.source.problem
    a, b = reference.inputs("integers", problem, 40, n, 80, seed=1)
    given = reference.epilogue("integers", problem, 40, n, seed=1)
    wide = np.full((40, 80), 1, problem.output.np_dtype)
    runtime.launch(kernel, a=a, b=b, d=runtime.padded(wide[:, :n]), **given.arrays())
    runtime.wait(wide)
    assert reference.compare(a, b, wide[:, :n], problem, exact=True, given=given).ok
    assert (wide[:, 72:] == 1).all()  # TMA writes whole 16 bytes


def test_halves_do_not_mix(runner: Runner) -> None:
    """The gate of column j is row j of B[0]; what multiplies it is row j of B[1]."""
    kernel = ptxgen.kernel("gemm", gated=1, activation="relu", tile=(64, 128), stages=2)
    problem = kernel.source.problem
    a, b = reference.inputs("integers", problem, 8, 200, 16, seed=0)
    a[...], b[...] = 0, 0
    a[:, 0] = 1
    b[0, :, 0] = np.arange(200) % 16 - 8  # negative ones are shut
    b[1, :, 0] = np.arange(200) % 13
    d = runner.run(kernel, {"a": a, "b": b}, {"d": ((8, 200), a.dtype)})["d"]
    want = np.maximum(np.arange(200) % 16 - 8, 0) * (np.arange(200) % 13)
    assert np.array_equal(d.astype(np.float64), np.broadcast_to(want, (8, 200)))


@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("k", [1, 128, 129, 256, 384, 1000])
def test_promoted_sums_of_any_depth(k: int, stages: int, runner: Runner) -> None:
    """K of one element; one, two and three stages; one element more: where sums leave, and wrap."""
    kernel = ptxgen.kernel(
        "gemm", dtype="e4m3", accumulate="promoted", wait_depth=0, tile=(64, 64), cluster=(1, 1),
        stages=stages, out_dtype="f32",
    )  # fmt: skip
    problem = kernel.source.problem
    pitch = -(-k // 16) * 16  # rows may be padded
    a, b = (x[:, :k] for x in reference.inputs("integers", problem, 72, 80, pitch, seed=k))
    if "cuda" in runner.backends and pitch != k:
        pytest.skip("views are made by NumPy here")
    got = runner.run(kernel, {"a": a, "b": b}, {"d": ((72, 80), np.float32)})["d"]
    assert reference.compare(a, b, got, problem, exact=True).ok


@pytest.mark.parametrize(
    "text",
    [
        "gemm:dtype=e4m3,scales=row,amax=1,accumulate=promoted,wait_depth=0,tile=64x64,stages=2",
        "gemm:dtype=e4m3,scales=tensor,out_scale=1,out_dtype=e4m3,amax=1,tile=128x64,cluster=2x2,stages=2",
        "gemm:gated=1,activation=silu,amax=1,tile=64x64,stages=2",
        "gemm:gated=1,activation=silu,dtype=e5m2,scales=row,tile=128x128,cluster=1x2,stages=2,batched=1",
    ],
)
def test_the_same_bits_on_any_grid(text: str, runner: Runner) -> None:
    """Random numbers, several tiles a CTA, copies at once or late: D and amax do not change."""
    kernel = ptxgen.kernel_from(text)
    problem, size = kernel.source.problem, kernel.spec.cluster.size
    a, b = reference.inputs("random", problem, 150, 208, 304, seed=5)
    given = reference.epilogue("random", problem, 150, 208, seed=5)
    d = reference.poisoned(problem, 150, 208)
    arrays = given.arrays()
    largest = {"amax": arrays.pop("amax")} if problem.amax else {}
    first, *others = (
        runner.run(
            kernel, {"a": a, "b": b, **arrays}, {"d": (d.shape, d.dtype)}, close=2e-2,
            updated=largest, emulator={"sms": sms, "schedule": "random", "seed": sms, "mode": mode},
        )
        for sms, mode in ((size, "eager"), (2 * size, "latest"), (64, "random"))
    )  # fmt: skip
    for other in others:
        for name, value in first.items():
            assert np.array_equal(value.view(np.uint8), other[name].view(np.uint8))


def refused(kernel: Any, **arrays: Any) -> str:
    with pytest.raises(ArgumentError) as caught:
        runtime.launch(kernel, **arrays, backend="emulator")
    return str(caught.value)


def test_refusals_name_the_array_and_the_cure() -> None:
    a, b, d = fp8(64, 32), fp8(64, 32), np.zeros((64, 64), dtype("bf16").np_dtype)
    row = ptxgen.kernel("gemm", dtype="e4m3", scales="row", tile=(64, 64))
    vectors = {"scale_a": np.ones(63, np.float32), "scale_b": np.ones(64, np.float64)}
    text = refused(row, a=a, b=b, d=d, **vectors)
    assert "M of scale_a" in text
    assert "scale_b" in text
    assert "must be f32" in text
    tensor = ptxgen.kernel("gemm", dtype="e4m3", scales="tensor", tile=(64, 64))
    text = refused(tensor, a=a, b=b, d=d, scale_a=np.ones(64, np.float32), scale_b=ONE)
    assert "must have one element" in text
    assert "scales=row" in text
    gated = ptxgen.kernel("gemm", dtype="e4m3", gated=1, tile=(64, 64))
    assert "must have rank 3: [2, N, K]" in refused(gated, a=a, b=b, d=d)
    text = refused(gated, a=a, b=np.stack([b] * 3), d=d)
    assert "w.reshape(2, N, K)" in text
    several = np.ones((2, 64, 64), np.float32)[:, :, :1].swapaxes(0, 2)[0].T
    both = ptxgen.kernel("gemm", dtype="e4m3", gated=1, scales="row", tile=(64, 64))
    text = refused(both, a=a, b=np.stack([b, b]), d=d, scale_a=np.ones(64, np.float32),
                   scale_b=several)  # fmt: skip
    assert "pass a contiguous copy" in text
