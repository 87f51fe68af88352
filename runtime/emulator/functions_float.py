"""Float functions of rows, rounded as PTX asks.

"Odd" results are f64 values whose last bit is a sticky bit: truncated towards zero, with the last
bit set when anything was cut. Rounding such a value once more, to a type with at least two bits
less, gives what infinite precision would have given.
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np

from .values import BF16, Array

F16, F32, F64 = np.float16, np.float32, np.float64
U16, U32, U64 = np.uint16, np.uint32, np.uint64
# The NaNs that the hardware makes of any f32 or half operation that gives one, whatever came in.
F32_NAN, HALF_NAN = U32(0x7FFFFFFF).view(F32), 0x7FFF
F16_TINY, F32_TINY = float(np.finfo(np.float16).tiny), float(np.finfo(F32).tiny)


def _has_nan(x: Array) -> bool:
    """Whether a row holds a NaN. The sum of its squares finds out cheaply."""
    squares = np.dot(x, x)
    return bool(squares != squares)


def one_nan(x: Array) -> Array:
    """An f32 row with every NaN as the hardware's."""
    return np.where(np.isnan(x), F32_NAN, x) if _has_nan(x) else x


def settle_nan(row: Array, mask: Array | None) -> None:
    """The same in place, in the lanes of `mask`: the others hold what they held."""
    if _has_nan(row):
        found = np.isnan(row)
        row[found if mask is None else found & mask] = F32_NAN


def ftz(x: Array) -> Array:
    """Subnormals to zeros of the same sign (of f16 in an f16 row, else of f32)."""
    tiny = F16_TINY if x.dtype == np.float16 else F32_TINY
    return np.where(np.abs(x) < tiny, np.copysign(x.dtype.type(0), x), x)


def ftz_half(x: Array) -> Array:
    """f16 subnormals, of a row of f64, to zeros of the same sign."""
    return np.where(np.abs(x) < F16_TINY, np.copysign(0.0, x), x)


def relu(x: Array) -> Array:
    """Negative to +0; NaN stays."""
    return np.where(x > 0, x, np.where(np.isnan(x), x, x.dtype.type(0)))


def saturate(x: Array) -> Array:
    """Clamp to [0, 1]; NaN becomes +0."""
    clipped = np.clip(x, 0, 1)
    return np.where(clipped > 0, clipped, x.dtype.type(0))


def _extreme(x: Array, y: Array, nan: int, plain: np.ufunc, propagate: np.ufunc) -> Array:
    out = (propagate if nan else plain)(x, y)
    zeros = (x == 0) & (y == 0)
    if zeros.any():  # -0 is less than +0 here
        negative = (
            np.signbit(x) | np.signbit(y) if plain is np.fmin else np.signbit(x) & np.signbit(y)
        )
        out = np.where(zeros, np.where(negative, -0.0, 0.0).astype(out.dtype), out)
    return np.asarray(out)


def min_float(x: Array, y: Array, nan: int) -> Array:
    return _extreme(x, y, nan, np.fmin, np.minimum)


def max_float(x: Array, y: Array, nan: int) -> Array:
    return _extreme(x, y, nan, np.fmax, np.maximum)


def xor_sign(result: Array, x: Array, y: Array) -> Array:
    """A magnitude with the sign of x * y."""
    negative = np.signbit(x) ^ np.signbit(y)
    return np.asarray(np.copysign(result, np.where(negative, -1, 1).astype(result.dtype)))


def _make_odd(s: Array, error: Array) -> Array:
    """A rounded-to-nearest f64 and the sign of what rounding lost, as an odd value."""
    bits = s.view(U64)
    adjust = (error != 0) & np.isfinite(s) & np.isfinite(error) & ((bits & 1) == 0)
    step = np.where((error > 0) == (s > 0), U64(1), ~U64(0))
    return np.where(adjust, bits + step, bits).view(F64)


def _sum_odd(p: Array, c: Array, mode: str) -> Array:
    s = p + c
    b = s - p
    odd = _make_odd(s, (p - (s - b)) + (c - b))
    if mode != "rm":
        return odd
    # Rounding down, a sum of zero is -0, unless both terms are +0.
    return np.where((odd == 0) & (np.signbit(p) | np.signbit(c)), -0.0, odd)


def add_odd(x: Array, y: Array, mode: str) -> Array:
    return _sum_odd(x, y, mode)


def sub_odd(x: Array, y: Array, mode: str) -> Array:
    return _sum_odd(x, -y, mode)


def fma_odd(x: Array, y: Array, z: Array, mode: str) -> Array:
    """x * y + z for operands whose product is exact in f64."""
    return _sum_odd(x.astype(F64) * y, z.astype(F64), mode)


def mul_odd(x: Array, y: Array, mode: str) -> Array:
    return np.asarray(x * y)


def div_odd(x: Array, y: Array, mode: str) -> Array:
    q = x / y
    remainder = _exact_remainder(x, y, q)
    return _make_odd(q, np.where(y > 0, remainder, -remainder))


def _exact_remainder(x: Array, y: Array, q: Array) -> Array:
    """x - q * y where q is x / y rounded: q is split so that the products are exact."""
    high = (q.view(U64) & ~U64((1 << 27) - 1)).view(F64)
    return (x - high * y) - (q - high) * y


def sqrt_odd(x: Array) -> Array:
    s = np.sqrt(x)
    return _make_odd(s, _exact_remainder(x, s, s))


def rcp_odd(x: Array) -> Array:
    return div_odd(np.ones_like(x), x, "rn")


def reciprocal(x: Array) -> Array:
    return np.asarray(np.divide(x.dtype.type(1), x))


def fma_f32(x: Array, y: Array, z: Array) -> Array:
    """fma.rn.f32. f64 alone is wrong where its rounding lands on a tie of f32: those are redone."""
    p = x.astype(F64) * y
    c = np.asarray(z, F64)
    s = p + c
    tie = (s.view(U64) & 0x1FFFFFFF) == 0x10000000
    small = np.abs(s) < 2 * F32_TINY  # below, f32 has fewer bits and other ties
    if tie.any() or small.any():
        s = _sum_odd(p, np.broadcast_to(c, p.shape), "rn")
    return s.astype(F32)


def fma_f64(x: Array, y: Array, z: Array) -> Array:
    """fma.rn.f64, lane by lane in rational arithmetic."""
    out = x * y + z
    for i in range(len(out)):
        a, b, c = float(x[i]), float(y[i]), float(z[i])
        if isfinite(a) and isfinite(b) and isfinite(c):
            exact = Fraction(a) * Fraction(b) + Fraction(c)
            if exact != 0:
                try:
                    out[i] = float(exact)
                except OverflowError:
                    out[i] = np.inf if exact > 0 else -np.inf
    return np.asarray(out)


# -- rounding -----------------------------------------------------------------------------------


def round_f32(x: Array, mode: str) -> Array:
    """f64 (exact or odd) to f32."""
    return _rounded(x, F32, mode)


def _rounded(x: Array, dtype: type[Any], mode: str) -> Array:
    """f64 (exact or odd) to f32 or f16."""
    nearest = x.astype(dtype)
    if mode == "rn":
        return nearest
    back = nearest.astype(F64)
    up, down = np.nextafter(nearest, dtype(np.inf)), np.nextafter(nearest, dtype(-np.inf))
    ceiling = np.where(back < x, up, nearest)
    floor = np.where(back > x, down, nearest)
    if mode == "rp":
        return ceiling
    if mode == "rm":
        return floor
    return np.where(x > 0, floor, ceiling)


def round_f64(x: Array, mode: str) -> Array:
    return x


def _odd_f32(x: Array) -> Array:
    """f64 (exact or odd) to an odd f32."""
    cut = round_f32(x, "rz")
    sticky = (cut.astype(F64) != x) & np.isfinite(x) & np.isfinite(cut)
    return np.where(sticky, cut.view(U32) | U32(1), cut.view(U32)).view(F32)


def f16_to_f64(bits: Array) -> Array:
    """f16 bits (packed pairs become 64 values) to f64."""
    return bits.view(F16).astype(F64)


def bf16_to_f32(bits: Array) -> Array:
    return (bits.view(U16).astype(U32) << U32(16)).view(F32)


def bf16_to_f64(bits: Array) -> Array:
    return bf16_to_f32(bits).astype(F64)


def f64_to_f16(x: Array, mode: str, flush: int) -> Array:
    """f64 (exact or odd) to f16 bits."""
    half = _rounded(x, F16, mode)
    if flush:
        half = np.where(np.abs(half) < F16(6.1035e-05), np.copysign(F16(0), half), half)
    return np.where(np.isnan(x), U16(HALF_NAN), half.view(U16))


def f64_to_bf16(x: Array, mode: str, flush: int) -> Array:
    """f64 (exact or odd) to bf16 bits."""
    single = _odd_f32(x)
    return f32_to_bf16(ftz(single) if flush else single, mode)


def f32_to_bf16(x: Array, mode: str) -> Array:
    """f32 (exact or odd) to bf16 bits."""
    if mode == "rn":
        bits = x.astype(BF16).view(U16)
    else:
        word = x.view(U32)
        inexact = (word & U32(0xFFFF)) != 0
        away = inexact & (((word >> U32(31)) == (0 if mode == "rp" else 1)) & (mode != "rz"))
        bits = ((word >> U32(16)) + away).astype(U16)
    return np.where(np.isnan(x), U16(HALF_NAN), bits)


def f32_to_f16(x: Array, mode: str) -> Array:
    return f64_to_f16(x.astype(F64), mode, 0)


def is_normal(x: Array) -> Array:
    return np.asarray(np.isfinite(x) & (np.abs(x) >= np.finfo(x.dtype).tiny))


def is_subnormal(x: Array) -> Array:
    return np.asarray((x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny))


# -- approximations, in f64 ---------------------------------------------------------------------


def cut_low_word(x: Array) -> Array:
    """f64 without its lower 32 bits, subnormals flushed: `.approx.ftz.f64` reads and gives such."""
    flushed = np.where(np.abs(x) < np.finfo(F64).tiny, np.copysign(0.0, x), x)
    return (flushed.view(U64) & ~U64(0xFFFFFFFF)).view(F64)


def approx_sqrt(x: Array) -> Array:
    return np.sqrt(x)


def approx_rcp(x: Array) -> Array:
    return 1.0 / x


def approx_rsqrt(x: Array) -> Array:
    return 1.0 / np.sqrt(x)


def approx_ex2(x: Array) -> Array:
    return np.asarray(np.exp2(x))


def approx_lg2(x: Array) -> Array:
    return np.asarray(np.log2(x))


def approx_sin(x: Array) -> Array:
    return np.asarray(np.sin(x))


def approx_cos(x: Array) -> Array:
    return np.asarray(np.cos(x))


def approx_tanh(x: Array) -> Array:
    return np.asarray(np.tanh(x))
