"""Kernel parameters in memory: the values, and the array of pointers that a launch takes.

Pointers rather than one packed buffer, because the offsets inside a packed buffer are the
assembler's business (a 64-byte aligned parameter does not sit where C would put it).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from runtime.cuda.tensor_map import MAP_ALIGN, aligned


class ParamBlock:
    """The values of one launch, each at a multiple of 128 bytes, and their pointer array.

    `address` is what cuLaunchKernelEx takes as kernelParams. The driver copies the values during
    the call; the block must live until it returns, and may be used by many calls at once.
    """

    __slots__ = ("_buffer", "_pointers", "address")

    def __init__(self, values: Sequence[bytes]) -> None:
        slots = [-(-len(value) // MAP_ALIGN) * MAP_ALIGN for value in values]
        self._buffer, start = aligned(max(sum(slots), 1))
        self._pointers = (ctypes.c_void_p * max(len(values), 1))()
        for index, (value, slot) in enumerate(zip(values, slots, strict=True)):
            ctypes.memmove(start, value, len(value))
            self._pointers[index] = start
            start += slot
        self.address = ctypes.addressof(self._pointers)
