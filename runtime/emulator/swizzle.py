"""The swizzle of shared memory: an XOR of address bits, bits 4-6 with bits 7-9 for 128 bytes, fewer
for 64 and 32. It applies to absolute shared addresses."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .values import Array

SWIZZLE_MASK = {0: 0, 32: 0x10, 64: 0x30, 128: 0x70}


@lru_cache(maxsize=512)
def swizzled_units(start: int, count: int, swizzle: int) -> Array:
    """Where each 16-byte unit of a tile lies, relative to the unit of address `start`."""
    address = start + 16 * np.arange(count)
    address ^= (address >> 3) & SWIZZLE_MASK[swizzle]
    units: Array = (address >> 4) - (start >> 4)
    units.flags.writeable = False
    return units
