"""The epilogue of a GEMM in float64: made-up arguments, what it gives, and how far it may be off.

With x = alpha sum + beta C + bias, an error e of the sums becomes |alpha| e, and three roundings
to f32 add at most 3 x 2^-24 (|alpha| sum |a b| + |beta C| + |bias|). An activation passes on the
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
    """What a launch is given beside A, B and D."""

    alpha: float = 1.0
    beta: float = 0.0
    c: Any = None
    bias: Any = None

    def arrays(self) -> dict[str, Any]:
        """Launch arguments that are arrays."""
        return {k: x for k, x in (("c", self.c), ("bias", self.bias)) if x is not None}

    def scalars(self, problem: GemmProblem) -> dict[str, float]:
        """Launch arguments that are numbers."""
        return {name: getattr(self, name) for name in ("alpha", "beta") if getattr(problem, name)}


PLAIN = Epilogue()


def epilogue(
    kind: str, problem: GemmProblem, shape: tuple[int, ...], seed: int, limit: int
) -> Epilogue:
    """Arguments for D of that shape: standard normal numbers, or integers -limit..limit."""
    rng = np.random.default_rng((seed, 1))
    factors = _VALUES[kind]

    def make(name: str, extents: tuple[int, ...]) -> Any:
        drawn: Any = rng.standard_normal(extents)
        if kind == "integers":
            drawn = rng.integers(-limit, limit + 1, extents)
        return drawn.astype(np.float32).astype(dtype(name).np_dtype)

    along = {"row": shape[-1:], "column": shape[-2:-1]}
    return Epilogue(
        alpha=factors[0] if problem.alpha else 1.0,
        beta=factors[1] if problem.beta else 0.0,
        c=make(problem.output.name, shape) if problem.beta else None,
        bias=make(problem.bias_type.name, along[problem.bias]) if problem.bias in along else None,
    )


def apply(
    problem: GemmProblem, given: Epilogue, sums: Any, magnitude: Any, error: Any
) -> tuple[Any, Any]:
    """D before it is rounded, in float64, and the most that a correct kernel may differ from it.

    `sums` are the exact ones, `magnitude` the sums of |a b|, `error` how far sums may be off.
    """
    if not problem.finishes:
        return sums, error
    x, size = given.alpha * sums, abs(given.alpha) * magnitude
    if given.beta:
        term = given.beta * np.asarray(given.c).astype(np.float64)
        x, size = x + term, size + np.abs(term)
    if given.bias is not None:
        term = np.asarray(given.bias).astype(np.float64)
        term = term if problem.bias == "row" else term[:, None]
        x, size = x + term, size + np.abs(term)
    error = abs(given.alpha) * error + 3 * F32_ROUNDING * size
    value, own = ACTIVATIONS[problem.activation](x)
    slope = 1.0 if problem.activation in EXACT else STEEPEST
    return value, slope * error + own


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
