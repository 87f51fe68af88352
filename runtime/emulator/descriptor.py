"""wgmma shared-memory descriptors, read as the hardware reads them (PTX ISA 9.7.16.5.1).

    bits 0-13 start >> 4    16-29 leading byte offset >> 4    32-45 stride byte offset >> 4
    49-51 base offset       62-63 layout: 0 none, 1 128-byte, 2 64-byte, 3 32-byte swizzle

One wgmma reads 32 bytes of K, of the B of a sparse one 64. `units` lists, for every row of the
operand, the 16-byte units that hold its elements, as addresses in the shared window: decoding is
then one gather.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .swizzle import SWIZZLE_MASK
from .values import Array

LAYOUT_SWIZZLE = {0: 0, 1: 128, 2: 64, 3: 32}


@dataclass(frozen=True, slots=True)
class Descriptor:
    """Offsets in bytes."""

    start: int
    leading: int
    stride: int
    base_offset: int
    swizzle: int

    @staticmethod
    def decode(bits: int) -> Descriptor:
        return Descriptor(
            start=(bits & 0x3FFF) << 4,
            leading=(bits >> 16 & 0x3FFF) << 4,
            stride=(bits >> 32 & 0x3FFF) << 4,
            base_offset=bits >> 49 & 7,
            swizzle=LAYOUT_SWIZZLE[bits >> 62],
        )

    def __str__(self) -> str:
        return (
            f"start {self.start:#x}, leading {self.leading}, stride {self.stride}, "
            f"swizzle {self.swizzle}"
        )


@dataclass(frozen=True, slots=True)
class Footprint:
    """Which 16-byte units an operand reads, as unit numbers relative to unit `start >> 4`.

    K-major: `units[rows, k_units]`, each unit 16 bytes of K of one row.
    MN-major: `units[k, rows / 8]`, each unit 8 elements along MN of one k.
    """

    units: Array
    low: int  # bytes relative to start: the first byte read
    high: int  # and one past the last
    mn_major: bool


@lru_cache(maxsize=4096)
def footprint(
    phase: int, leading: int, stride: int, swizzle: int, rows: int, mn_major: bool, k_units: int = 2
) -> Footprint:
    """The units of `rows` by `16 * k_units` bytes; `phase` is the start address modulo 1024."""
    span_units = max(swizzle, 16) // 16
    if not mn_major:
        mn, k = np.arange(rows)[:, None], np.arange(k_units)[None, :]
        if swizzle:
            offset = (mn // 8) * stride + (mn % 8) * 16 * span_units + k * 16
        else:
            offset = (mn // 8) * stride + (mn % 8) * 16 + k * leading
    else:
        k, chunk = np.arange(8 * k_units)[:, None], np.arange(rows // 8)[None, :]
        if swizzle:
            block, inner = chunk // span_units, chunk % span_units
            offset = block * leading + inner * 16
            offset = offset + (k // 8) * stride + (k % 8) * 16 * span_units
        else:
            offset = chunk * stride + (k // 8) * leading + (k % 8) * 16
    address = phase + offset
    address = address ^ ((address >> 3) & SWIZZLE_MASK[swizzle])
    units = (address >> 4) - (phase >> 4)
    units.flags.writeable = False
    low, high = int(units.min()) * 16, int(units.max()) * 16 + 16
    return Footprint(units, low, high, mn_major)
