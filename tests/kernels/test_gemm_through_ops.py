"""ops.gemm with epilogues against NumPy, from the arrays a person has.

Runs on the emulator; `--backend cuda` and `--backend both` run the same tests on a GPU, with torch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from machines import ARRAYS, Runner

import runtime
from ptxgen.isa.dtypes import dtype
from runtime.ops import gemm

pytestmark = pytest.mark.emu

M, N, K = 72, 80, 144
BF16, E4M3, E5M2 = (dtype(name).np_dtype for name in ("bf16", "e4m3", "e5m2"))


def integers(*shape: int, kind: Any = BF16, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(kind)


def powers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.exp2(np.random.default_rng(seed).integers(-2, 3, shape)).astype(np.float32)


def each(runner: Runner, *arrays: np.ndarray, **options: Any) -> list[list[np.ndarray]]:
    """[D, amax] of `gemm` on every backend. The second array is given as w [N, K]."""
    results = []
    for backend in runner.backends:
        put, get = ARRAYS[backend].put, ARRAYS[backend].get
        a, w = map(put, arrays)
        given = {k: put(x.copy()) if isinstance(x, np.ndarray) else x for k, x in options.items()}
        d = gemm(a, w.T, backend=backend, **given)
        runtime.wait(d, backend=backend)
        results.append([get(d), get(given["amax"]) if "amax" in given else np.zeros(1)])
    return results


def sums(a: np.ndarray, w: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ w.astype(np.float64).T


def assert_equal(got: np.ndarray, want: np.ndarray) -> None:
    assert np.array_equal(got.astype(np.float64), want.astype(got.dtype).astype(np.float64))


@pytest.mark.parametrize("column", [False, True])
def test_everything_that_adds(column: bool, runner: Runner) -> None:
    a, w, c = integers(M, K), integers(N, K, seed=1), integers(M, N, seed=2)
    bias = integers(*((M, 1) if column else (N,)), kind=np.float32, seed=3)
    for d, _ in each(runner, a, w, c=c, bias=bias, alpha=2, beta=-1.0, activation="relu"):
        want = 2 * sums(a, w) - c.astype(np.float64) + bias
        assert_equal(d, np.maximum(want, 0))


def test_a_residual_needs_no_beta(runner: Runner) -> None:
    a, w, c = integers(M, K), integers(N, K, seed=1), integers(M, N, seed=2)
    for d, _ in each(runner, a, w, c=c):
        assert_equal(d, sums(a, w) + c.astype(np.float64))


def test_c_is_not_read_where_beta_is_0(runner: Runner) -> None:
    a, w = integers(M, K), integers(N, K, seed=1)
    for d, _ in each(runner, a, w, c=np.full((M, N), np.nan, np.float32).astype(BF16), beta=0.0):
        assert_equal(d, sums(a, w))


@pytest.mark.parametrize("kinds", [(E4M3, E4M3), (E4M3, E5M2), (E5M2, E4M3)])
def test_fp8_with_a_scale_a_row(kinds: tuple[Any, Any], runner: Runner) -> None:
    a, w = integers(M, K, kind=kinds[0]), integers(N, K, kind=kinds[1], seed=1)
    scale_a, scale_b = powers(M, 1), powers(1, N, seed=1)
    for d, _ in each(runner, a, w, scale_a=scale_a, scale_b=scale_b, out_dtype="f32"):
        assert_equal(d, sums(a, w) * scale_a * scale_b)


def test_fp8_in_and_out(runner: Runner) -> None:
    """What a training step asks for: scales in, a scale out, and the amax for the next one."""
    a, w = integers(M, K, kind=E4M3), integers(N, K, kind=E4M3, seed=1)
    scale_a, scale_b, out_scale = powers(1), powers(1, seed=1), powers(1, seed=2) / 64
    amax = np.zeros(1, np.float32)
    for d, largest in each(
        runner, a, w, scale_a=scale_a, scale_b=scale_b, out_scale=out_scale, amax=amax,
        out_dtype="e4m3", accumulate="promoted",
    ):  # fmt: skip
        y = sums(a, w) * scale_a * scale_b
        assert d.dtype == E4M3
        assert_equal(d, np.clip(y * out_scale, -448, 448))
        assert largest[0] == np.abs(y).max()


def test_swiglu(runner: Runner) -> None:
    """silu(a w0') (a w1') of a weight [2 N, K]; within what bf16 rounds."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((M, K)).astype(BF16)
    w = (rng.standard_normal((2 * N, K)) / math.sqrt(K)).astype(BF16)
    x = sums(a, w)
    want = x[:, :N] / (1 + np.exp(-x[:, :N])) * x[:, N:]
    for d, _ in each(runner, a, w, gated=True, activation="silu"):
        assert d.shape == (M, N)
        error = np.abs(d.astype(np.float64) - want)
        assert (error <= 2.0**-8 * np.abs(want) + 1e-4).all()
