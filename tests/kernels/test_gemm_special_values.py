"""NaN, infinities and what is too large: the rules that README states, on every schedule and type.

Backends are held to `close=0.0`: the same numbers, and NaN at the same places, whatever its bits.
Runs on the emulator; `--backend cuda` runs the same tests on a GPU, `--backend both` on the two.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from machines import Runner

import ptxgen
from ptxgen.app import reference
from ptxgen.isa.dtypes import dtype

pytestmark = pytest.mark.emu

M, N, K = 72, 80, 208  # edge tiles both ways, K that ends inside a stage
FAMILY = (
    "tile=64x64,cluster=2x2,stages=2",
    "tile=64x64,cluster=1x1,stages=2,dtype=f16,acc_dtype=f16",
    "tile=64x64,cluster=1x1,dtype=tf32",
    "tile=64x64,cluster=1x1,dtype=e5m2,out_dtype=f32",
    "tile=64x64,cluster=1x1,dtype=e4m3,out_dtype=f16",  # which has no infinity: they are NaN
    "tile=64x64,cluster=1x1,dtype=e5m2,out_dtype=e4m3",  # D saturates
    "tile=64x64,cluster=1x1,dtype=e5m2,accumulate=promoted,wait_depth=0,out_dtype=e5m2",
    "tile=64x64,cluster=1x1,batched=1,a_major=mn,b_major=mn",
    "tile=64x16,cluster=1x1,swap_ab=1,out_dtype=f32",
    "tile=64x64,cluster=1x1,stages=3,schedule=pingpong",
    "tile=64x64,cluster=1x1,stages=3,schedule=stream_k",
    "tile=64x64,cluster=1x1,split_k=2",
    "tile=64x64,cluster=1x1,a_source=registers,wait_depth=0",
    "tile=64x56,cluster=1x1",  # boxes that no swizzle spans
)


def spoil(x: np.ndarray, **values: tuple[int, int]) -> None:
    """Put nan, inf and lowest (-inf) at places, in the nearest that the type has."""
    for name, at in values.items():
        number = {"nan": math.nan, "inf": math.inf, "lowest": -math.inf}[name]
        x[..., at[0], at[1]] = np.float32(number).astype(x.dtype)


@pytest.mark.parametrize("fields", FAMILY)
def test_they_stay_in_their_rows_and_columns(fields: str, runner: Runner) -> None:
    """As float64 has them: infinity times 0 is NaN, and what TMA fills beyond the edges is nowhere.

    They stand in the last row, column and k too, beside which zeros are filled in.
    """
    kernel = ptxgen.kernel_from(f"gemm:{fields}")
    problem = kernel.source.problem
    a, b = reference.inputs("integers", problem, M, N, K, seed=1)
    spoil(a, nan=(M - 1, 3), inf=(2, K - 1), lowest=(40, 0))
    spoil(b, nan=(5, 7), inf=(N - 1, K - 1), lowest=(33, 100))
    d = reference.poisoned(problem, M, N)
    got = runner.run(kernel, {"a": a, "b": b}, {"d": (d.shape, d.dtype)}, close=0.0)["d"]
    with np.errstate(invalid="ignore"):
        sums = a.astype(np.float64) @ b.astype(np.float64).swapaxes(-1, -2)
    want = reference.rounded(sums, problem.output.name)
    assert np.array_equal(got.astype(np.float64), want, equal_nan=True)
    assert np.isnan(want[..., M - 1, :]).all()
    assert not np.isnan(np.delete(want[..., 0, :], (5, 33, N - 1), axis=-1)).any()
    if dtype(problem.output.name).bits == 8:
        assert not np.isinf(want).any()


@pytest.mark.parametrize(
    ("fields", "x", "y", "result"),
    [
        ("dtype=bf16,out_dtype=f32", 3e38, 1.0, math.inf),  # two of them are beyond f32
        ("dtype=bf16", 3e38, -1.0, -math.inf),
        ("dtype=f16,acc_dtype=f16", 256.0, 128.0, math.inf),  # 65,536: a sum is too large for f16
        ("dtype=f16", 256.0, 128.0, math.inf),  # it is fine in f32, but not D
        ("dtype=f16,out_dtype=bf16", 256.0, 128.0, 65536.0),
        ("dtype=e4m3,out_dtype=e4m3", 448.0, -2.0, -448.0),  # fp8 saturates
        ("dtype=e5m2,out_dtype=e5m2", 57344.0, 2.0, 57344.0),
    ],
)
def test_what_is_too_large(fields: str, x: float, y: float, result: float, runner: Runner) -> None:
    """Sums of two equal products, each of which its own type holds."""
    kernel = ptxgen.kernel_from(f"gemm:tile=64x64,cluster=1x1,{fields}")
    problem = kernel.source.problem
    a = np.zeros((M, 32), np.float32)
    b = np.zeros((N, 32), np.float32)
    a[:, :2], b[:, :2] = x, y
    a, b = (v.astype(dtype(t.storage).np_dtype) for v, t in ((a, problem.a), (b, problem.b)))
    got = runner.run(kernel, {"a": a, "b": b}, {"d": ((M, N), problem.output.np_dtype)})["d"]
    assert (got.astype(np.float64) == result).all()


def test_integer_sums_wrap(runner: Runner) -> None:
    """255 * 255 * 33,152 is beyond 2^31: what is left is the sum modulo 2^32."""
    kernel = ptxgen.kernel("gemm", dtype="u8", tile=(64, 8), cluster=(1, 1))
    a, b = np.full((16, 33_152), 255, np.uint8), np.full((8, 33_152), 255, np.uint8)
    got = runner.run(kernel, {"a": a, "b": b}, {"d": ((16, 8), np.int32)})["d"]
    assert (got == 255 * 255 * 33_152 - 2**32).all()


# ------------------------------------------------------------------ epilogues


def finished(runner: Runner, fields: str, spoiled: dict[str, Any], **scalars: float) -> np.ndarray:
    """D of small integers A and B, C of ones and a bias of zeros, but for what is spoiled."""
    kernel = ptxgen.kernel_from(f"gemm:{fields}")
    problem = kernel.source.problem
    a, b = reference.inputs("integers", problem, M, N, K, seed=1)
    given: dict[str, Any] = {"a": a, "b": b}
    if problem.beta:
        given["c"] = np.ones((M, N), problem.output.np_dtype)
    if problem.bias == "row":
        given["bias"] = np.zeros(N, np.float32)
    for name, change in spoiled.items():
        change(given[name])
    out = {"d": ((M, N), problem.output.np_dtype)}
    return runner.run(kernel, given, out, args=scalars, close=0.0)["d"].astype(np.float64)


EPILOGUE = "tile=64x64,cluster=1x1,out_dtype=f32,alpha=1,beta=1,bias=row"


def test_what_is_added_stays_in_its_elements(runner: Runner) -> None:
    """A NaN of C in one element, an infinity of the bias in one column."""
    plain = finished(runner, EPILOGUE, {}, alpha=1.0, beta=2.0)

    def change_c(c: np.ndarray) -> None:
        c[M - 1, N - 1], c[3, 4] = math.nan, -math.inf

    def change_bias(bias: np.ndarray) -> None:
        bias[7] = math.inf

    got = finished(
        runner, EPILOGUE, {"c": change_c, "bias": change_bias}, alpha=1.0, beta=2.0
    )  # fmt: skip
    want = plain.copy()
    want[M - 1, N - 1], want[3, 4], want[:, 7] = math.nan, -math.inf, math.inf
    assert np.array_equal(got, want, equal_nan=True)


def test_alpha_of_0_multiplies(runner: Runner) -> None:
    """Unlike beta: A and B are read, and 0 times NaN or infinity is NaN."""

    def change(a: np.ndarray) -> None:
        spoil(a, nan=(1, 1), inf=(M - 1, 0))

    got = finished(runner, EPILOGUE, {"a": change}, alpha=0.0, beta=1.0)
    want = np.ones((M, N))
    want[[1, M - 1]] = math.nan
    assert np.array_equal(got, want, equal_nan=True)


# Whole tiles and edges, each schedule and each way to read C.
NAN_C = (
    "tile=64x64,cluster=2x2,stages=2,beta=1",
    "tile=64x64,cluster=1x1,beta=1,out_dtype=f32,bias=row",
    "tile=64x64,cluster=1x1,beta=1,dtype=e4m3,out_dtype=e4m3",
    "tile=64x64,cluster=1x1,stages=3,schedule=pingpong,beta=1",
    "tile=64x64,cluster=1x1,stages=3,schedule=stream_k,beta=1",
    "tile=64x64,cluster=1x1,split_k=2,beta=1",
    "tile=64x64,cluster=1x1,batched=1,beta=1,alpha=1",
    "tile=64x64,cluster=1x1,a_source=registers,wait_depth=0,beta=1",
    "tile=64x56,cluster=1x1,beta=1",
    "tile=64x16,cluster=1x1,swap_ab=1,beta=1,dtype=e4m3,scales=row",
)


@pytest.mark.parametrize("fields", NAN_C)
def test_beta_of_0_does_not_read_c(fields: str, runner: Runner) -> None:
    kernel = ptxgen.kernel_from(f"gemm:{fields}")
    problem = kernel.source.problem
    a, b = reference.inputs("integers", problem, M, N, K, seed=2)
    given = reference.epilogue("integers", problem, M, N, seed=2)
    d = reference.poisoned(problem, M, N)
    arrays = given.arrays() | {"c": np.full_like(d, math.nan)}
    for beta in (0.0, -0.0):
        scalars = given.scalars(problem) | {"beta": beta}
        got = runner.run(
            kernel, {"a": a, "b": b, **arrays}, {"d": (d.shape, d.dtype)}, args=scalars
        )["d"]
        plain = replace(given, beta=0.0)
        result = reference.compare(a, b, got, problem, exact=True, given=plain)
        assert result.ok, result.verdict()
