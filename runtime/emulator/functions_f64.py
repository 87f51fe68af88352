"""f64 operations in the directed rounding modes, lane by lane in rational arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import copysign, inf, isfinite, nextafter
from types import MappingProxyType

import numpy as np

from .functions_float import fma_f64
from .values import Array

_NEAREST: Mapping[str, Callable[..., Array]] = MappingProxyType(
    {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
        "rcp": lambda x: np.divide(1.0, x), "sqrt": np.sqrt, "fma": fma_f64,
    }
)  # fmt: skip
_EXACT: Mapping[str, Callable[..., Fraction]] = MappingProxyType(
    {
        "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
        "div": lambda x, y: x / y, "rcp": lambda x: 1 / x, "fma": lambda x, y, z: x * y + z,
    }
)  # fmt: skip


def directed_f64(operation: str, mode: str, *rows: Array) -> Array:
    """The exact result, rounded towards zero (rz), down (rm) or up (rp)."""
    out = np.array(_NEAREST[operation](*rows))
    for lane in range(len(out)):
        values = [float(row[lane]) for row in rows]
        if all(map(isfinite, values)) and not np.isnan(out[lane]):
            out[lane] = _lane(operation, mode, values, float(out[lane]))
    return out


def _lane(operation: str, mode: str, values: list[float], nearest: float) -> float:
    if operation in ("div", "rcp") and values[-1] == 0:
        return nearest  # an infinity, exactly
    if operation == "sqrt":
        sign = int(nearest > 0)
        error = _sign(Fraction(values[0]) - Fraction(nearest) ** 2)
    else:
        exact = _EXACT[operation](*map(Fraction, values))
        sign = _sign(exact)
        error = _sign(exact - Fraction(nearest)) if isfinite(nearest) else -_sign(nearest)
    if sign == 0:
        return _zero(operation, mode, values, nearest)
    if error < 0 and (mode == "rm" or (mode == "rz" and sign > 0)):
        return nextafter(nearest, -inf)
    if error > 0 and (mode == "rp" or (mode == "rz" and sign < 0)):
        return nextafter(nearest, inf)
    return nearest


def _sign(x: Fraction | float) -> int:
    return (x > 0) - (x < 0)


def _zero(operation: str, mode: str, values: list[float], nearest: float) -> float:
    """Rounded down, a sum of zero is -0 unless both terms are +0."""
    if mode != "rm" or operation not in ("add", "sub", "fma"):
        return nearest
    *factors, last = values
    first = copysign(1.0, factors[0]) * (copysign(1.0, factors[1]) if len(factors) > 1 else 1.0)
    second = copysign(1.0, -last if operation == "sub" else last)
    return 0.0 if first > 0 and second > 0 else -0.0
