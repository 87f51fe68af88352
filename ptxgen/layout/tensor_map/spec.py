"""What a tensor map says, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Literal, TypeAlias

from ptxgen.errors import TensorMapError, Violation
from ptxgen.isa.dtypes import DTYPES
from ptxgen.isa.dtypes import dtype as dtype_row
from ptxgen.view import Shown, View

Fill: TypeAlias = Literal["zero", "nan"]

# Positions are the enum values of cuda.h, and the values in the 128-byte object.
INTERLEAVES = (0, 16, 32)  # bytes
SWIZZLE_SPANS = (0, 32, 64, 128)  # bytes
PROMOTIONS = (0, 64, 128, 256)  # bytes
FILLS: tuple[Fill, ...] = ("zero", "nan")

RANK_MAX = 5
PITCH_BYTES = 16  # unit of every stride but the innermost, and of the base address
INTERLEAVED_PITCH_BYTES = 32  # the same with 32-byte interleave


@dataclass(frozen=True, slots=True, kw_only=True)
class MapType:
    """One element type of a tensor map.

    `name` is the suffix of CU_TENSOR_MAP_DATA_TYPE_* and `code` its value in cuda.h; `bits` is the
    type field inside the 128-byte object, which numbers the types differently, and `tf32` its flag.
    """

    name: str
    bytes: int
    is_float: bool
    code: int
    bits: int
    tf32: bool = False


MAP_TYPES: Mapping[str, MapType] = MappingProxyType(
    {
        row.name: row
        for row in (
            MapType(name="UINT8", bytes=1, is_float=False, code=0, bits=0),
            MapType(name="UINT16", bytes=2, is_float=False, code=1, bits=1),
            MapType(name="UINT32", bytes=4, is_float=False, code=2, bits=2),
            MapType(name="INT32", bytes=4, is_float=False, code=3, bits=3),
            MapType(name="UINT64", bytes=8, is_float=False, code=4, bits=4),
            MapType(name="INT64", bytes=8, is_float=False, code=5, bits=5),
            MapType(name="FLOAT16", bytes=2, is_float=True, code=6, bits=6),
            MapType(name="FLOAT32", bytes=4, is_float=True, code=7, bits=7),
            MapType(name="FLOAT64", bytes=8, is_float=True, code=8, bits=9),
            MapType(name="BFLOAT16", bytes=2, is_float=True, code=9, bits=10),
            MapType(name="FLOAT32_FTZ", bytes=4, is_float=True, code=10, bits=8),
            MapType(name="TFLOAT32", bytes=4, is_float=True, code=11, bits=7, tf32=True),
            MapType(name="TFLOAT32_FTZ", bytes=4, is_float=True, code=12, bits=8, tf32=True),
        )
    }
)


def find_map_type(name: str) -> MapType | None:
    """The map type of a dtype ("bf16", "e4m3", ...) or of a CU_TENSOR_MAP_DATA_TYPE_ suffix.

    fp8 and int8 travel as UINT8. None where a tensor map has no such elements.
    """
    if name in MAP_TYPES:
        return MAP_TYPES[name]
    try:
        suffix = dtype_row(name).map_name
    except KeyError:
        return None
    return None if suffix is None else MAP_TYPES[suffix]


def map_type(name: str) -> MapType:
    """`find_map_type`, or TensorMapError naming the type that no tensor map can hold."""
    found = find_map_type(name)
    if found is None:
        raise TensorMapError("a tensor map cannot hold this element type", [unsupported(name)])
    return found


def unsupported(name: str, field: str = "dtype") -> Violation:
    """The refusal of an element type."""
    usable = ", ".join(row.name for row in DTYPES.values() if row.map_name)
    return Violation(
        field=field,
        got=name,
        rule=f"must be one of {usable}, or a map type: {', '.join(MAP_TYPES)}",
        why="the hardware has no sub-byte, bool or complex elements",
        fix="view the bytes as u8 with a matching inner extent, or convert the array",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorMapSpec(Shown):
    """The contents of a tiled tensor map, in NumPy order (outermost axis first).

    `shape`, `box` and `element_strides` are in elements, `strides` in bytes with one entry an axis
    (the innermost must be the element size, as in a NumPy array). `interleave` is 0, 16 or 32 and
    `swizzle` 0, 32, 64 or 128, both in bytes; `l2` is the promotion in bytes (0, 64, 128, 256);
    `fill` is what out-of-bounds elements read as. No `element_strides` means all ones.

    Building one checks nothing: `violations` and `check` do.
    """

    dtype: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...] = ()
    interleave: int = 0
    swizzle: int = 0
    l2: int = 0
    fill: Fill = "zero"

    def __post_init__(self) -> None:
        if not self.element_strides:
            object.__setattr__(self, "element_strides", (1,) * len(self.shape))

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def element(self) -> MapType:
        """The element type. Raises TensorMapError where there is none."""
        return map_type(self.dtype)

    @property
    def pitch_bytes(self) -> int:
        """What the address and every outer stride must be a multiple of."""
        return INTERLEAVED_PITCH_BYTES if self.interleave == 32 else PITCH_BYTES

    @property
    def box_bytes(self) -> int:
        """Bytes that one copy moves and complete_tx counts, out-of-bounds elements included.

        A step takes every element of the box that it reaches, so counts are rounded up; that of the
        innermost axis is ignored (measured: `tma_element_strides` in examples/microbench/FACTS.md).
        """
        *outer, inner = zip(self.box, self.element_strides, strict=True)
        return self.element.bytes * prod(-(-b // s) for b, s in outer) * inner[0]

    @property
    def encoded_box_bytes(self) -> int:
        """The size that the object holds and the driver limits: all counts rounded down."""
        steps = zip(self.box, self.element_strides, strict=True)
        return self.element.bytes * prod(b // s for b, s in steps)

    def view(self) -> View:
        """The axes in both orders, the modes, and what one copy moves."""
        from ptxgen.layout.draw_desc import tensor_map_view  # drawings read maps

        return tensor_map_view(self)

    def describe(self) -> str:
        """A table of the map in both orders: NumPy's, and the driver's (innermost first)."""
        rows = [("axis", "driver dim", "extent", "stride B", "box", "step")]
        for axis in range(self.rank):
            rows.append(
                (
                    str(axis),
                    str(self.rank - 1 - axis),
                    f"{self.shape[axis]:,}",
                    f"{self.strides[axis]:,}",
                    str(self.box[axis]),
                    str(self.element_strides[axis]),
                )
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = [
            "  " + "  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in rows
        ]
        inner_first = (
            f"driver order: dims {list(self.shape[::-1])}, strides {list(self.strides[-2::-1])}, "
            f"box {list(self.box[::-1])}"
        )
        head = (
            f"tensor map of {self.dtype} ({self.element.name}) at 0x{self.address:x}, "
            f"swizzle {self.swizzle or 'none'}, interleave {self.interleave or 'none'}, "
            f"L2 promotion {self.l2 or 'none'}, fill {self.fill}, {self.box_bytes:,} B a box"
        )
        return "\n".join([head, *table, "  " + inner_first])


def box_bytes(dtype: str, box: tuple[int, ...]) -> int:
    """Bytes of one box of `dtype` elements: what mbarrier expect_tx must count for one copy.

    Elements out of bounds are filled, written and counted like the others.
    """
    return map_type(dtype).bytes * prod(box)
