"""The epilogue of a GEMM in float64: made-up arguments, what it gives, and how far it may be off.

With x = alpha sum + beta C + bias, an error e of the sums becomes |alpha| e, and three roundings
to f32 (six, where scales are multiplied into alpha) add at most 2^-24 (|alpha| sum |a b| + |beta C|
+ |bias|) each. An activation passes on the
error of x, times its steepest slope (at most 1.13, that of GELU; ReLU has 1), and has its own:

    gelu             2^-21, absolute: the polynomial and its roundings
    gelu_tanh, silu  (1 + |y|) 2^-21 of the value: ex2.approx of y, whose argument was rounded, and
                     rcp.approx; values below 2^-100 may be flushed
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxgen.configs.gemm import GemmProblem
from ptxgen.isa.dtypes import dtype

EXACT = ("none", "relu")  # activations that add no rounding
STEEPEST = 1.13
F32_ROUNDING = 2.0**-24
APPROXIMATION = 2.0**-21
FLUSHED = 2.0**-100
_LOG2E = math.log2(math.e)
_ROOT = math.sqrt(2 / math.pi)
_VALUES = {"integers": (2.0, -1.0), "random": (0.75, -1.25)}  # alpha, beta


@dataclass(frozen=True, slots=True, kw_only=True)
class Epilogue:
    """What a launch is given beside A, B and D. `amax` is 0 before it."""

    alpha: float = 1.0
    beta: float = 0.0
    c: Any = None
    bias: Any = None
    scale_a: Any = None
    scale_b: Any = None
    out_scale: Any = None
    amax: Any = None

    def arrays(self) -> dict[str, Any]:
        """Launch arguments that are arrays."""
        names = ("c", "bias", "scale_a", "scale_b", "out_scale", "amax")
        return {name: x for name in names if (x := getattr(self, name)) is not None}

    def scalars(self, problem: GemmProblem) -> dict[str, float]:
        """Launch arguments that are numbers."""
        return {name: getattr(self, name) for name in ("alpha", "beta") if getattr(problem, name)}


PLAIN = Epilogue()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """D before it is rounded, how far a correct kernel may be off; before out_scale, its bounds."""

    value: Any
    error: Any
    largest: float = 0.0  # of |value| before out_scale
    largest_error: float = 0.0


def epilogue(
    kind: str, problem: GemmProblem, shape: tuple[int, ...], seed: int, limit: int
) -> Epilogue:
    """Arguments for D of that shape: normal numbers, or integers -limit..limit and powers of 2."""
    rng = np.random.default_rng((seed, 1))
    factors = _VALUES[kind]

    def make(name: str, extents: tuple[int, ...]) -> Any:
        drawn: Any = rng.standard_normal(extents)
        if kind == "integers":
            drawn = rng.integers(-limit, limit + 1, extents)
        return drawn.astype(np.float32).astype(dtype(name).np_dtype)

    def scale(*extents: int) -> Any:
        powers = rng.integers(-1, 2, extents)
        return np.exp2(powers if kind == "integers" else rng.uniform(-1, 1, extents), dtype="f4")

    along = {"row": shape[-1:], "column": shape[-2:-1]}
    vectors = problem.scales == "row"
    halves = (2,) if problem.gated else ()
    scaled = problem.scales != "none"
    return Epilogue(
        alpha=factors[0] if problem.alpha else 1.0,
        beta=factors[1] if problem.beta else 0.0,
        c=make(problem.output.name, shape) if problem.beta else None,
        bias=make(problem.bias_type.name, along[problem.bias]) if problem.bias in along else None,
        scale_a=scale(shape[-2] if vectors else 1) if scaled else None,
        scale_b=scale(*(*halves, shape[-1]) if vectors else (1,)) if scaled else None,
        out_scale=scale(1) if problem.out_scale else None,
        amax=np.zeros(1, np.float32) if problem.amax else None,
    )


def apply(problem: GemmProblem, given: Epilogue, sums: Any, magnitude: Any, error: Any) -> Result:
    """D before it is rounded, in float64, and the most that a correct kernel may differ from it.

    `sums` are the exact ones, `magnitude` the sums of |a b|, `error` how far sums may be off. Those
    of a gated problem have both products along their third axis from behind.
    """
    if not problem.finishes:
        return Result(value=sums, error=error)
    factor = _factor(problem, given)
    x, size = factor * sums, np.abs(factor) * magnitude
    if given.beta:
        term = given.beta * np.asarray(given.c).astype(np.float64)
        x, size = x + term, size + np.abs(term)
    if given.bias is not None:
        term = np.asarray(given.bias).astype(np.float64)
        term = term if problem.bias == "row" else term[:, None]
        x, size = x + term, size + np.abs(term)
    roundings = 3 if problem.scales == "none" else 6
    error = np.abs(factor) * error + roundings * F32_ROUNDING * size
    value, error = _activated(problem, x, error)
    largest = float(np.abs(value).max(initial=0.0))
    most = float(np.broadcast_to(error, value.shape).max(initial=0.0))
    if given.out_scale is not None:
        scale = float(given.out_scale[0])
        value = scale * value
        error = abs(scale) * error + F32_ROUNDING * np.abs(value)
    return Result(value=value, error=error, largest=largest, largest_error=most)


def _factor(problem: GemmProblem, given: Epilogue) -> Any:
    """What multiplies the sums: a number, or one for every element."""
    if problem.scales == "none":
        return given.alpha
    a, b = (np.asarray(x).astype(np.float64) for x in (given.scale_a, given.scale_b))
    if problem.scales == "tensor":
        return given.alpha * a[0] * b[0]
    return given.alpha * a[:, None] * b[..., None, :]


def _activated(problem: GemmProblem, x: Any, error: Any) -> tuple[Any, Any]:
    """The activation of x, or of the first product times the second."""
    slope = 1.0 if problem.activation in EXACT else STEEPEST
    if not problem.gated:
        value, own = ACTIVATIONS[problem.activation](x)
        return value, slope * error + own
    first, second = x[..., 0, :, :], x[..., 1, :, :]
    value, own = ACTIVATIONS[problem.activation](first)
    off = slope * error[..., 0, :, :] + own
    product = value * second
    spread = np.abs(second) * off + (np.abs(value) + off) * error[..., 1, :, :]
    return product, spread + F32_ROUNDING * np.abs(product)


def wrong_amax(given: Epilogue, result: Result, *, exact: bool) -> str:
    """What is wrong with the amax that a kernel left, or nothing."""
    if given.amax is None:
        return ""
    got = float(given.amax[0])
    room = 0.0 if exact else result.largest_error + F32_ROUNDING * result.largest
    if abs(got - result.largest) <= room:
        return ""
    return f"amax is {got:g}, should be {result.largest:g}"


def _none(x: Any) -> tuple[Any, Any]:
    return x, 0.0


def _relu(x: Any) -> tuple[Any, Any]:
    return np.maximum(x, 0.0), 0.0


def _gelu(x: Any) -> tuple[Any, Any]:
    erf = np.vectorize(math.erf, otypes=[np.float64])
    return x * (1 + erf(x / math.sqrt(2))) / 2, APPROXIMATION


def _logistic(x: Any, y: Any) -> tuple[Any, Any]:
    """x / (1 + 2^-y)."""
    with np.errstate(over="ignore"):
        value = x / (1 + np.exp2(-y))
    return value, APPROXIMATION * (1 + np.abs(y)) * np.abs(value) + FLUSHED


def _gelu_tanh(x: Any) -> tuple[Any, Any]:
    return _logistic(x, 2 * _LOG2E * _ROOT * (x + 0.044715 * x**3))


def _silu(x: Any) -> tuple[Any, Any]:
    return _logistic(x, _LOG2E * x)


ACTIVATIONS: Mapping[str, Callable[[Any], tuple[Any, Any]]] = {
    "none": _none, "relu": _relu, "gelu": _gelu, "gelu_tanh": _gelu_tanh, "silu": _silu,
}  # fmt: skip
