"""The 128 bytes of a tensor map on sm_90, read as the hardware reads them.

Axes are in hardware order here: axis 0 is the innermost, whose elements are contiguous.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache

MAP_BYTES = 128

# Element type field: name, bytes, and the bits that fill out-of-bounds elements under NaN fill.
ELEMENTS: dict[int, tuple[str, int, int]] = {
    0: ("u8", 1, 0), 1: ("u16", 2, 0), 2: ("u32", 4, 0), 3: ("s32", 4, 0), 4: ("u64", 8, 0),
    5: ("s64", 8, 0), 6: ("f16", 2, 0x7FFF), 7: ("f32", 4, 0x7FFFFFFF), 8: ("f32", 4, 0x7FFFFFFF),
    9: ("f64", 8, 0x7FFFFFFFFFFFFFFF), 10: ("bf16", 2, 0x7FFF),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorMap:
    """A decoded tiled tensor map. `strides` are bytes between elements of each axis."""

    address: int
    element: str
    element_bytes: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    swizzle: int  # bytes: 0, 32, 64, 128
    fill: int  # bits of an out-of-bounds element
    box_bytes: int

    @property
    def counts(self) -> tuple[int, ...]:
        """Elements of a box along each axis, after element strides."""
        return tuple(b // s for b, s in zip(self.box, self.element_strides, strict=True))


@lru_cache(maxsize=256)
def decode(raw: bytes) -> TensorMap:
    """Decode 128 bytes. Raises ValueError where they are no tiled map that is understood here."""
    if len(raw) != MAP_BYTES:
        raise ValueError(f"a tensor map has {MAP_BYTES} bytes, not {len(raw)}")
    (address,) = struct.unpack_from("<Q", raw, 0)
    (fields,) = struct.unpack_from("<I", raw, 8)
    rank = (fields >> 4 & 7) + 1
    element_field = fields >> 7 & 15
    if rank > 5 or element_field not in ELEMENTS:
        raise ValueError(
            f"rank {rank}, element type {element_field}: these bytes are no tensor map"
        )
    if fields >> 11 & 3:
        raise ValueError("interleaved tensor maps are not executed")
    name, width, nan = ELEMENTS[element_field]
    low = struct.unpack_from("<4I", raw, 0x0C)
    (high,) = struct.unpack_from("<H", raw, 0x1C)
    outer = tuple((low[i] | (high >> 4 * i & 15) << 32) << 4 for i in range(rank - 1))
    dims = tuple(d + 1 for d in struct.unpack_from("<5I", raw, 0x20))[:rank]
    (packed,) = struct.unpack_from("<I", raw, 0x34)
    steps = tuple((packed >> 3 * i & 7) + 1 for i in range(rank))
    box = ((packed >> 24) + 1, *(b + 1 for b in struct.unpack_from("<4B", raw, 0x38)))[:rank]
    (box_bytes,) = struct.unpack_from("<I", raw, 0x40)
    decoded = TensorMap(
        address=address,
        element=name,
        element_bytes=width,
        dims=dims,
        strides=(width, *outer),
        box=box,
        element_strides=steps,
        swizzle=(0, 32, 64, 128)[fields >> 13 & 3],
        fill=nan if fields >> 15 & 1 else 0,
        box_bytes=box_bytes,
    )
    size = width
    for n in decoded.counts:
        size *= n
    if size != box_bytes or address % 16:
        raise ValueError(
            f"box of {size} bytes against {box_bytes} recorded, address {address:#x}: "
            "these bytes are no tensor map"
        )
    return decoded
