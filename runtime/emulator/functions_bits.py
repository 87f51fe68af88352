"""Bit masks, extension from a width, the n-th set bit, modes of prmt: on rows of 32 lanes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from .values import Array

U32, I64 = np.uint32, np.int64
_ONES = U32(0xFFFFFFFF)

# The default-mode selector that each mode of prmt stands for, by the low two bits of its operand.
PERMUTES: Mapping[str, tuple[int, int, int, int]] = MappingProxyType(
    {
        "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
        "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
        "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
        "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
        "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
        "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
    }
)


def permute_selector(mode: str, operand: Array) -> Array:
    return np.array(PERMUTES[mode], U32)[(operand & U32(3)).astype(np.intp)]


def _shifted_ones(count: Array) -> Array:
    """All ones shifted left; counts of 32 and more leave nothing."""
    wide = np.uint64(0xFFFFFFFF) << np.minimum(count, 32).astype(np.uint64)
    return (wide & np.uint64(0xFFFFFFFF)).astype(U32)


def bmsk_rows(start: Array, width: Array, clamp: int) -> Array:
    """`width` ones from bit `start` (PTX ISA 9.7.1.22). With wrap both count modulo 32."""
    if not clamp:
        start, width = start & U32(31), width & U32(31)
    begin = np.minimum(start, 32).astype(I64)
    end = np.minimum(begin + np.minimum(width, 32).astype(I64), 32)
    return _shifted_ones(begin) & ~_shifted_ones(end)


def szext_rows(a: Array, width: Array, clamp: int, is_signed: int) -> Array:
    """The low `width` bits, extended by zeros or by their sign (PTX ISA 9.7.1.21)."""
    low = np.minimum(width, 32) if clamp else width & U32(31)
    upper = _shifted_ones(low)
    sign = (a >> (np.maximum(low, 1) - U32(1))) & U32(1)
    fills = (sign != 0) & (low > 0) & (low < 32) & bool(is_signed)
    return np.asarray((a & ~upper) | np.where(fills, upper, U32(0)))


def fns_rows(mask: Array, base: Array, offset: Array) -> Array:
    """The |offset|-th set bit from `base`, upwards or downwards; all ones where there is none
    (PTX ISA 9.7.1.17). Offset 0 asks for the bit at `base` itself."""
    out = np.full(32, _ONES, U32)
    for lane in range(32):
        bits, start = int(mask[lane]), int(base[lane])
        n = int(offset[lane].astype(np.int32))
        way = range(start, 32) if n > 0 else range(min(start, 31), -1, -1)
        found = [at for at in way if bits >> at & 1][: max(abs(n), 1)]
        if n == 0:
            found = [at for at in found if at == start]
        if len(found) == max(abs(n), 1):
            out[lane] = found[-1]
    return out
