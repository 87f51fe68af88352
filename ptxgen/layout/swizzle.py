"""The shared-memory swizzle: one object for the tensor map, the wgmma descriptor, the epilogue.

TMA and wgmma permute 16-byte chunks by XOR-ing low address bits with higher ones, so that eight
rows of a tile fall into different banks. Both permute *absolute* shared addresses, in the same way:

    span   bits 4.. ^= bits 7..      repeats every
    128    4-6  ^= 7-9               1024 B (8 rows of 128 B)
     64    4-5  ^= 7-8                512 B (8 rows of  64 B)
     32    4    ^= 7                  256 B (8 rows of  32 B)
      0    nothing                    (8 rows of 16 B = 128 B, one core matrix)

Because absolute bits take part, a swizzled tile must start on a multiple of `atom_bytes`.
PTX ISA 5.5.5 (tensors, swizzling modes) and 9.7.15.5.1 (wgmma, matrix descriptor).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ptxgen.errors import ConfigError, Violation
from ptxgen.view import Shown, View

# What index functions of this package take: one int, or an integer array of any shape.
Index = TypeVar("Index", int, npt.NDArray[np.int64])

CHUNK_BYTES = 16  # what the XOR moves as a unit
_DESC_LAYOUT = {0: 0, 128: 1, 64: 2, 32: 3}  # wgmma matrix descriptor, bits 62-63
_MAP_CODE = {0: 0, 32: 1, 64: 2, 128: 3}  # CUtensorMapSwizzle of cuda.h
_NAME = {0: "none", 32: "32B", 64: "64B", 128: "128B"}


@dataclass(frozen=True, slots=True)
class Swizzle(Shown):
    """A swizzle mode, named by its span in bytes: 0 (none), 32, 64 or 128."""

    span: int

    def __post_init__(self) -> None:
        if self.span not in _DESC_LAYOUT:
            raise ConfigError(
                "unknown swizzle",
                [
                    Violation(
                        field="swizzle",
                        got=str(self.span),
                        rule="must be 0, 32, 64 or 128 (the span in bytes)",
                        why="TMA and wgmma have these four modes only",
                        fix="use largest_swizzle(row_bytes)",
                    )
                ],
            )

    @property
    def atom_bytes(self) -> int:
        """Bytes after which the pattern repeats: 8 rows of the span (8 x 16 without swizzle).

        Every tile written or read with this swizzle must start on a multiple of it.
        """
        return 8 * self.row_bytes

    @property
    def row_bytes(self) -> int:
        """Bytes of one row of the atom: the span, or one 16-byte chunk without swizzle."""
        return self.span or CHUNK_BYTES

    @property
    def chunk_mask(self) -> int:
        """Mask of the 16-byte chunk index within a row that the XOR may change: 7, 3, 1 or 0."""
        return max(self.span // CHUNK_BYTES - 1, 0)

    @property
    def row_shift(self) -> int:
        """In rows of `span` bytes, chunk index ^= `(row >> row_shift) & chunk_mask`."""
        return {128: 0, 64: 1, 32: 2, 0: 0}[self.span]

    @property
    def desc_layout(self) -> int:
        """The layout type of a wgmma descriptor (bits 62-63): none 0, 128B 1, 64B 2, 32B 3."""
        return _DESC_LAYOUT[self.span]

    @property
    def map_code(self) -> int:
        """The CUtensorMapSwizzle value of cuda.h: none 0, 32B 1, 64B 2, 128B 3."""
        return _MAP_CODE[self.span]

    def apply(self, address: Index) -> Index:
        """The physical byte address of a logical one (an int, or an integer array of any shape).

        An involution: applied twice it gives the address back.
        """
        return address ^ ((address >> 3) & (self.chunk_mask << 4))

    @classmethod
    def from_desc_layout(cls, code: int) -> Swizzle:
        """The swizzle of a wgmma descriptor's layout type, 0..3."""
        return cls({v: k for k, v in _DESC_LAYOUT.items()}[code])

    @classmethod
    def from_map_code(cls, code: int) -> Swizzle:
        """The swizzle of a CUtensorMapSwizzle value, 0..3."""
        return cls({v: k for k, v in _MAP_CODE.items()}[code])

    def view(self) -> View:
        """One atom as it lies in shared memory, in elements of 16 bits."""
        from ptxgen.layout.draw_swizzle import swizzle_grid  # drawings read swizzles

        return swizzle_grid(self)

    def __str__(self) -> str:
        return _NAME[self.span]


SWIZZLES: Mapping[int, Swizzle] = MappingProxyType({span: Swizzle(span) for span in _MAP_CODE})


def largest_swizzle(row_bytes: int) -> Swizzle:
    """The widest swizzle whose span divides a row of `row_bytes` bytes; none if no span does.

    128 -> 128B, 192 -> 64B, 96 -> 32B, 16 -> none.
    """
    if row_bytes > 0:
        for span in (128, 64, 32):
            if row_bytes % span == 0:
                return SWIZZLES[span]
    return SWIZZLES[0]
