"""How tensor cores add: exactly, or as the H200 was measured to (`accumulation` in FACTS.md).

"exact" adds the products of one instruction and its accumulator in float64 and rounds once, to
nearest. "hardware" aligns them to the largest and cuts what lies below, group by group along K:

    unit = 2 ** (largest exponent of the group's products and the sum so far - fraction)
    sum  = every term cut to whole units, added exactly, cut or rounded to the type of D

The exponent of a product is the sum of those of its factors, before normalisation; subnormals have
the least exponent of their type. A sum that is too large is infinite.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from .values import Array

Sums: TypeAlias = Literal["exact", "hardware"]
SUMS: tuple[Sums, ...] = ("exact", "hardware")

_NOTHING = -(1 << 14)  # the exponent of zero: below that of any product
# The least exponent of a type: its subnormals have it, too.
_LEAST = {"f16": -14, "bf16": -126, "tf32": -126, "e4m3": -6, "e5m2": -14, "f32": -126}


@dataclass(frozen=True, slots=True, kw_only=True)
class Adder:
    """`group` products along K are added at once, with `fraction` bits below the largest; of a
    sparse A that many are kept of twice as many.

    `kept` are the fraction bits of a float32 sum: 23, or 13 for 8-bit factors.
    """

    group: int
    fraction: int
    kept: int = 23


ADDERS: Mapping[str, Adder] = {
    "f16": Adder(group=16, fraction=25),
    "bf16": Adder(group=16, fraction=25),
    "tf32": Adder(group=8, fraction=25),
    "e4m3": Adder(group=32, fraction=13, kept=13),
    "e5m2": Adder(group=32, fraction=13, kept=13),
}


def hardware_sum(
    a: Array, b: Array, c: Array, types: tuple[str, str, str], *, sparse: bool = False
) -> Array:
    """`a [m, k]` times `b [n, k]` plus `c [m, n]`, as the hardware adds; float32 `[m, n]`.

    `types` are those of A, B and D ("f16" or "f32"). A sparse A has its zeros in place.
    """
    a_type, b_type, d_type = types
    adder = ADDERS[a_type]
    group = adder.group * (2 if sparse else 1)
    a, b, total = (np.asarray(x, np.float64) for x in (a, b, c))
    plain = a @ b.T + total
    a_exponents, b_exponents = _exponents(a, _LEAST[a_type]), _exponents(b, _LEAST[b_type])
    for start in range(0, a.shape[1], group):
        part = slice(start, start + group)
        terms = a[:, None, part] * b[None, :, part]
        largest = (a_exponents[:, None, part] + b_exponents[None, :, part]).max(axis=2)
        largest = np.maximum(largest, _exponents(total, _LEAST[d_type]))
        scale = np.where(largest > _NOTHING // 2, adder.fraction - largest, 0)
        up = np.ldexp(1.0, scale)
        whole = np.trunc(terms * up[:, :, None]).sum(axis=2) + np.trunc(total * up)
        total = np.ldexp(whole + 0.0, -scale)  # a sum of nothing is +0
        total = _nearest_f16(total) if d_type == "f16" else _cut(total, adder.kept)
    return np.where(np.isfinite(plain), total, plain).astype(np.float32)


def widened_sum(a: Array, b: Array, c: Array, d_type: str, *, sparse: bool = False) -> Array:
    """As `hardware_sum`, of 8-bit floats in mma.sync, which sm_90a does not have: ptxas widens them
    to f16, and takes the lower halves of all registers, then the upper ones, then adds C."""
    k = np.arange(a.shape[1])
    lower = k // 4 % 2 == 0 if sparse else k % 4 < 2
    total = np.zeros(())
    for half in (lower, ~lower):
        types = ("f16", "f16", d_type)
        total = hardware_sum(a[:, half], b[:, half], total, types, sparse=sparse)
    total = c + total.astype(np.float64)
    return (total.astype(np.float16) if d_type == "f16" else total).astype(np.float32)


def _exponents(x: Array, least: int) -> Array:
    """Those of the leading bits; subnormals have the least one."""
    found = np.frexp(x)[1] - 1
    return np.where(x == 0, _NOTHING, np.maximum(found, least))


def _nearest_f16(x: Array) -> Array:
    return x.astype(np.float16).astype(np.float64)


def _cut(x: Array, kept: int) -> Array:
    """Towards zero, to `kept` fraction bits of a float32, or to its subnormals."""
    scale = kept - np.maximum(np.frexp(x)[1] - 1, _LEAST["f32"])
    found: Array = np.ldexp(np.trunc(np.ldexp(x, scale)) + 0.0, -scale)
    return found


def one_nan(values: Array) -> Array:
    """Float16 or float32 results with the one NaN that tensor cores make: all bits but the sign."""
    is_nan = np.isnan(values)
    if is_nan.any():
        unsigned = values.view(f"u{values.itemsize}")
        unsigned[is_nan] = (1 << (8 * values.itemsize - 1)) - 1
    return values
