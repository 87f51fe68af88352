"""Rounding to fp8: every element equal to NumPy's, for every type, scale, edge and special value.

Runs on the emulator; `--backend cuda` and `--backend both` run the same tests on a GPU.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from machines import ARRAYS, Runner, assert_same_bits

import ptxgen
import runtime
from ptxgen.configs.quantize import LARGEST
from ptxgen.errors import ArgumentError
from ptxgen.isa.dtypes import dtype
from runtime.ops import gemm, quantize_fp8

pytestmark = pytest.mark.emu

# One element; a vector of a lane and its neighbours; a pass of a warp (256 of 16 bits, 128 of f32)
# and its neighbours; more rows than warps of one CTA; more than one part of a row.
SHAPES = ((1, 1), (3, 7), (2, 8), (9, 9), (2, 128), (2, 255), (3, 257), (33, 264), (2, 2056))
LEAST = np.float32(2.0**-126)


def padded(x: np.ndarray, kind: Any) -> np.ndarray:
    """The same in rows of a legal pitch, with NaN behind them."""
    wide = np.full((x.shape[0], -(-x.shape[1] // 16) * 16), np.nan, np.float32).astype(kind)
    wide[:, : x.shape[1]] = x
    return wide[:, : x.shape[1]]


def inputs(shape: tuple[int, int], name: str, seed: int = 0) -> np.ndarray:
    """Normal numbers whose rows differ in size by up to 2^12."""
    rng = np.random.default_rng(seed)
    sizes = np.exp2(rng.integers(-6, 7, (shape[0], 1)))
    return padded((rng.standard_normal(shape) * sizes).astype(np.float32), dtype(name).np_dtype)


def scale_of(largest: np.ndarray, out: str) -> np.ndarray:
    return np.maximum(largest * np.float32(1 / LARGEST[out]), LEAST)


def rounded(x: np.ndarray, scale: np.ndarray, out: str) -> np.ndarray:
    """The rule, in NumPy."""
    y = x.astype(np.float32) * (np.float32(1) / scale)
    return np.clip(y, -LARGEST[out], LARGEST[out]).astype(dtype(out).np_dtype)


def quantized(runner: Runner, x: np.ndarray, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """(q, scale) of the first backend, equal to those of the others."""
    results = []
    for backend in runner.backends:
        put, get = ARRAYS[backend].put, ARRAYS[backend].get
        wide = put(x.base if x.base is not None else x)  # with its padding
        given = {k: put(v.copy()) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        q, scale = quantize_fp8(wide[:, : x.shape[1]], backend=backend, **given)
        runtime.wait(q, scale, backend=backend)
        results.append((np.ascontiguousarray(get(q)), get(scale)))
    for q, scale in results[1:]:
        assert_same_bits(results[0][0], q, "q")
        assert_same_bits(results[0][1], scale, "scale")
    return results[0]


@pytest.mark.parametrize("out", ["e4m3", "e5m2"])
@pytest.mark.parametrize("name", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("axis", [None, -1])
def test_found_scales(axis: int | None, name: str, out: str, runner: Runner) -> None:
    for shape in SHAPES:
        x = inputs(shape, name)
        q, scale = quantized(runner, x, dtype=out, axis=axis)
        x32 = np.abs(x.astype(np.float32))
        largest = x32.max(axis=1) if axis else x32.max(keepdims=True).reshape(1)
        want = scale_of(largest, out)
        assert_same_bits(want, scale, f"scale of {shape}")
        assert_same_bits(rounded(x, want[:, None] if axis else want, out), q, f"q of {shape}")


@pytest.mark.parametrize("axis", [None, -1])
def test_given_scales(axis: int | None, runner: Runner) -> None:
    x = inputs((40, 300), "bf16")
    scale = np.exp2(np.arange(40 if axis else 1) % 7 - 3).astype(np.float32) * np.float32(1.1)
    q, same = quantized(runner, x, scale=scale, axis=axis)
    assert_same_bits(scale, same, "scale")
    assert_same_bits(rounded(x, scale[:, None] if axis else scale, "e4m3"), q, "q")


@pytest.mark.parametrize(("out", "most"), [("e4m3", 448), ("e5m2", 57_344)])
def test_what_cannot_be_held(out: str, most: float, runner: Runner) -> None:
    """Beyond the largest value it is that, infinity too; NaN stays NaN; -0 keeps its sign."""
    special = [math.nan, math.inf, -math.inf, 3e38, -3e38, most, -0.0, 0.0, 2.0**-30, most * 1.06]
    x = np.zeros((1, 16), np.float32)
    x[0, : len(special)] = special
    q, _ = quantized(runner, x, dtype=out, scale=np.ones(1, np.float32))
    want = [math.nan, most, -most, most, -most, most, -0.0, 0.0, 0.0, most]
    got = q[0, : len(special)].astype(np.float32)
    assert np.array_equal(got, np.array(want, np.float32), equal_nan=True)
    assert np.signbit(got[6])


@pytest.mark.parametrize("axis", [None, -1])
def test_scales_of_zeros_and_of_what_is_no_number(axis: int | None, runner: Runner) -> None:
    x = np.zeros((2, 32), np.float32)
    q, scale = quantized(runner, x, axis=axis)
    assert (scale == LEAST).all()
    assert not q.astype(np.float32).any()
    x[:, 5], x[1, 7] = 1, math.nan
    q, scale = quantized(runner, x, axis=axis)
    assert np.isnan(scale[-1])
    assert np.isnan(q[1].astype(np.float32)).all()
    if axis:  # the other row has a scale of its own
        assert scale[0] == np.float32(1 / 448)
        assert q[0, 5].astype(np.float32) == 448


def test_nothing_beside_q_is_written() -> None:
    kernel = ptxgen.kernel("quantize", scales="row_given")
    x = inputs((5, 13), "bf16")
    wide = np.full((5, 32), 1, dtype("e4m3").np_dtype)
    scale = np.ones(5, np.float32)
    runtime.launch(kernel, x=x, q=wide[:, :13], scale=scale, backend="emulator")
    runtime.wait(wide)
    assert (wide[:, 13:] == 1).all()


def test_into_a_product(runner: Runner) -> None:
    """Activations a row, weights a row: the error is that of fp8, 2^-4 an element at most."""
    rng = np.random.default_rng(1)
    a, w = (rng.standard_normal((rows, 256)).astype(np.float32) for rows in (64, 48))
    for backend in runner.backends:
        put, get = ARRAYS[backend].put, ARRAYS[backend].get
        (qa, sa), (qw, sw) = (quantize_fp8(put(x), axis=-1, backend=backend) for x in (a, w))
        d = gemm(qa, qw.T, scale_a=sa, scale_b=sw, out_dtype="f32", backend=backend)
        runtime.wait(d, backend=backend)
        error = np.linalg.norm(get(d) - a @ w.T) / np.linalg.norm(a @ w.T)
        assert 1e-3 < error < 2.0**-4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": np.zeros(16, np.float32)}, r"two axes, \[M, K\]"),
        ({"x": np.zeros((4, 16), np.int8)}, "bf16, f16 or f32"),
        ({"x": np.zeros((0, 16), np.float32)}, "must have elements"),
        ({"x": np.zeros((4, 15), np.float32)}, "pad rows to 16 elements"),
        ({"x": np.zeros((16, 4), np.float32).T}, "contiguous along K"),
        ({"axis": 0}, "quantize the transpose"),
        ({"axis": 2}, "must be None or -1"),
        ({"dtype": "bf16"}, "must be e4m3 or e5m2"),
        ({"scale": np.ones(3, np.float32)}, "one element"),
        ({"scale": np.ones(1, np.float64)}, "must be f32"),
        ({"scale": np.ones(3, np.float32), "axis": -1}, r"\[4\], contiguous"),
    ],
)
def test_refusals(change: dict[str, Any], words: str) -> None:
    options: dict[str, Any] = {"x": np.ones((4, 16), np.float32), **change}
    with pytest.raises(ArgumentError, match=words):
        quantize_fp8(options.pop("x"), backend="emulator", **options)
