"""Epilogues of the GEMM: exact on integers, within their stated bounds elsewhere.

Runs on the emulator; `--backend cuda` and `--backend both` run the same tests on a GPU.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from gemm_check import check
from gemm_epilogues import EXACT, ROUNDED
from machines import Runner

import ptxgen
import runtime
from ptxgen.app import reference
from ptxgen.app.reference_epilogue import ACTIVATIONS
from ptxgen.isa.dtypes import dtype

pytestmark = pytest.mark.emu

# Less than a tile; ragged everywhere, with an odd M, and K that ends inside a stage.
SHAPES = ((16, 16, 16), (81, 144, 208))


@pytest.mark.parametrize("text", EXACT)
def test_integers_are_exact(text: str, runner: Runner) -> None:
    """alpha is 2, beta -1, C and bias are integers: nothing is rounded before D is."""
    for shape in SHAPES:
        check(text, shape, "integers", runner)


@pytest.mark.parametrize("text", [*EXACT[:4], *ROUNDED])
def test_random_numbers_are_within_the_bound(text: str, runner: Runner) -> None:
    check(text, SHAPES[1], "random", runner)


@pytest.mark.parametrize("text", [EXACT[3], EXACT[6], EXACT[7]])
def test_no_k_leaves_what_is_added(text: str, runner: Runner) -> None:
    check(text, (80, 144, 0), "integers", runner)


@pytest.mark.parametrize("beta", [0.0, -0.0])
@pytest.mark.parametrize("swap", [0, 1])
def test_c_is_not_read_where_beta_is_0(beta: float, swap: int, runner: Runner) -> None:
    """A C of NaN would spoil every element that it is multiplied into, by 0 too."""
    kernel = ptxgen.kernel("gemm", beta=1, tile=(64, 32), cluster=(1, 1), swap_ab=swap)
    problem = kernel.source.problem
    a, b = reference.inputs("integers", problem, 72, 80, 64, seed=0)
    d = reference.poisoned(problem, 72, 80)
    inputs = {"a": a, "b": b, "c": d.copy()}  # poison is NaN
    given = {"d": (d.shape, d.dtype)}
    got = runner.run(kernel, inputs, given, args={"beta": beta})["d"]
    assert reference.compare(a, b, got, problem, exact=True).ok
    spoiled = runner.run(kernel, inputs, given, args={"beta": 1e-30})["d"]
    assert np.isnan(spoiled.astype(np.float32)).all()


@pytest.mark.parametrize("out", ["bf16", "f32", "e4m3"])
@pytest.mark.parametrize("bias", ["row", "column"])
def test_an_odd_last_column_is_read_alone(out: str, bias: str, runner: Runner) -> None:
    """N of 71 in padded rows: what lies beside C and behind the bias is never touched."""
    if "cuda" in runner.backends:
        pytest.skip("views are made by NumPy here")
    kernel = ptxgen.kernel(
        "gemm", tile=(64, 64), cluster=(1, 1), stages=2, out_dtype=out, beta=1, bias=bias,
        bias_dtype="out",
    )  # fmt: skip
    problem = kernel.source.problem
    m, n, k = 70, 71, 72
    a, b = reference.inputs("integers", problem, m, n, k, seed=1)
    given = reference.epilogue("integers", problem, m, n, seed=1)
    element = dtype(out).np_dtype
    # The last row of C ends where the memory ends: reading a pair there would be out of bounds.
    flat = np.full((m - 1) * 80 + n, np.nan, np.float32).astype(element)
    c = np.lib.stride_tricks.as_strided(
        flat, (m, n), (80 * element.itemsize, element.itemsize), writeable=True
    )
    c[...] = given.c
    wide = np.full((m, 80), 1, element)
    d = wide[:, :n]
    args = {**given.arrays(), **given.scalars(problem), "c": c}
    runtime.launch(kernel, a=a, b=b, d=runtime.padded(d), args=args)
    runtime.wait(d)
    assert reference.compare(a, b, d, problem, exact=True, given=replace(given, c=c)).ok
    unit = 16 // element.itemsize
    assert (wide[:, -(-n // unit) * unit :] == 1).all()


# ------------------------------------------------------------------ activations by themselves


def activated(name: str, x: np.ndarray, runner: Runner) -> np.ndarray:
    """The activation alone: without K the sums are 0, so that D is what becomes of C."""
    kernel = ptxgen.kernel(
        "gemm", tile=(64, 128), stages=2, out_dtype="f32", beta=1, activation=name
    )
    empty = np.zeros((x.shape[0], 0), np.float32).astype(dtype("bf16").np_dtype)
    columns = np.zeros((x.shape[1], 0), np.float32).astype(dtype("bf16").np_dtype)
    inputs = {"a": empty, "b": columns, "c": x}
    out = {"d": (x.shape, np.float32)}
    return runner.run(kernel, inputs, out, close=1e-5, args={"beta": 1.0})["d"]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_stated_error_holds(name: str, runner: Runner) -> None:
    """-90..90, densely where functions bend: what the contract says against math.erf and exp."""
    bend, far = np.linspace(-8, 8, 24_576), np.linspace(-90, 90, 8_192)
    x = np.concatenate([bend, far]).astype(np.float32).reshape(256, 128)
    want, bound = ACTIVATIONS[name](x.astype(np.float64))
    error = np.abs(activated(name, x, runner) - want)
    worst = np.argmax(error - bound)
    assert (error <= bound + np.abs(want) * 2.0**-24).all(), (x.flat[worst], error.flat[worst])


def test_gelu_has_no_cancellation_in_its_tail(runner: Runner) -> None:
    """At -5 the value is -1.4e-6: 1 + erf would keep two digits of it, erfc keeps four."""
    x = np.full((64, 128), -5.0, np.float32)
    want = -5 * math.erfc(5 / math.sqrt(2)) / 2
    assert np.allclose(activated("gelu", x, runner), want, rtol=2e-2, atol=0)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("relu", 0, math.inf), ("gelu", 0, math.inf), ("gelu_tanh", math.nan, math.inf),
     ("silu", math.nan, math.inf)],
)  # fmt: skip
def test_special_values(name: str, low: float, high: float, runner: Runner) -> None:
    """NaN stays NaN. -inf gives NaN where it is multiplied by a 0, as PyTorch has it for SiLU."""
    x = np.zeros((64, 128), np.float32)
    x[0, :7] = [math.nan, -math.inf, math.inf, 0, -0.0, 1e30, -1e30]
    got = activated(name, x, runner)
    want = [math.nan, low, high, 0, 0, np.float32(1e30), 0]
    assert np.array_equal(got[0, :7], np.array(want, np.float32), equal_nan=True)
    assert not got[1:].any()
