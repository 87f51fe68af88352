"""What a TMA box costs: bytes a copy moves, sectors it touches, and how many must be in flight.

One copy is one instruction of one thread, and takes a latency that hardly depends on its size. So
small boxes leave bandwidth unused unless many are in flight:

    bytes in flight of an SM  >=  bytes a clock and SM  x  latency

The innermost axis is read in 32-byte sectors: a row of the box shorter than one, or not a multiple,
moves bytes that nobody asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, prod
from typing import Annotated

from ptxgen.errors import ConfigError, TensorMapError, Violation
from ptxgen.isa.dtypes import DType
from ptxgen.layout.access import SECTOR_BYTES
from ptxgen.layout.tensor_map.rules import violations as map_violations
from ptxgen.layout.tensor_map.spec import PITCH_BYTES, TensorMapSpec
from ptxgen.models.rates import Rates, rates
from ptxgen.models.record import ANY, Bars, Record, element, in_range
from ptxgen.models.stages import TMA_HBM_CYCLES
from ptxgen.view import Row, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class TmaBox(Record):
    """A box, outermost axis first, and the copies in flight. Made by `tma_box`."""

    box: tuple[int, ...]
    shape: tuple[int, ...]  # the array that the boxes tile; empty: whole boxes
    dtype: DType
    swizzle: int
    in_flight: int
    latency: int
    rates: Rates

    @property
    def bytes(self) -> int:
        """Bytes that one copy writes, and that expect_tx counts."""
        return prod(self.box) * self.dtype.bytes

    @property
    def row_bytes(self) -> int:
        """Contiguous bytes of the innermost axis."""
        return self.box[-1] * self.dtype.bytes

    @property
    def sectors(self) -> int:
        """32-byte sectors that one copy reads where rows start on a sector."""
        return prod(self.box[:-1]) * ceil(self.row_bytes / SECTOR_BYTES)

    @property
    def sector_efficiency(self) -> float:
        """Share of the bytes in those sectors that the box asks for."""
        return self.bytes / (self.sectors * SECTOR_BYTES)

    @property
    def useful(self) -> float:
        """Share of all boxes' elements that lie inside the array; 1 without a shape."""
        if not self.shape:
            return 1.0
        covered = (ceil(n / b) * b for n, b in zip(self.shape, self.box, strict=True))
        return prod(self.shape) / prod(covered)

    @property
    def needed_bytes(self) -> float:
        """Bytes an SM must have in flight for its share of HBM's bandwidth."""
        return self.rates.level("HBM").bytes_per_clk_sm * self.latency

    @property
    def needed_boxes(self) -> int:
        """Copies an SM must have in flight for that."""
        return ceil(self.needed_bytes / self.bytes)

    @property
    def hbm_share(self) -> float:
        """Share of HBM's bandwidth that the copies in flight can use, sector waste included."""
        return min(self.in_flight * self.bytes / self.needed_bytes, 1.0) * self.sector_efficiency

    def bars(self) -> Bars:
        return Bars(
            unit="bytes",
            values={
                "one copy": self.bytes,
                "in flight": self.in_flight * self.bytes,
                "needed in flight": self.needed_bytes,
            },
        )

    def headline(self) -> Mapping[str, float | str]:
        return {
            "bytes": self.bytes,
            "sectors used": round(self.sector_efficiency, 3),
            "boxes needed": self.needed_boxes,
            "of HBM": round(self.hbm_share, 3),
        }

    def table(self) -> Table:
        rows = [
            Row(("bytes a copy", f"{self.bytes:,}"), "what expect_tx counts"),
            Row(("bytes a row", f"{self.row_bytes:,}"), f"swizzle {self.swizzle or 'none'}"),
            Row(
                ("sectors a copy", f"{self.sectors:,}"),
                f"{self.sector_efficiency:.0%} of their bytes used",
                "plain" if self.sector_efficiency == 1 else "bad",
            ),
            Row(
                ("in flight for HBM", f"{self.needed_bytes:,.0f} B"),
                f"{self.needed_boxes} boxes an SM, at {self.latency} cycles latency",
            ),
            Row(("with", f"{self.in_flight} in flight"), f"{self.hbm_share:.0%} of HBM bandwidth"),
        ]
        if self.shape:
            shape = "x".join(map(str, self.shape))
            rows.append(Row(("inside the array", f"{self.useful:.1%}"), f"of boxes over {shape}"))
        return Table(
            title=f"TMA box {'x'.join(map(str, self.box))} {self.dtype.name}, "
            f"{self.rates.chip.title}",
            columns=("", "value"),
            rows=tuple(rows),
        )


def tma_box(
    *,
    box: Annotated[str, "extents, outermost first, as 128x64"] = "128x64",
    shape: Annotated[str, "array that the boxes tile, as 1000x1000; empty: whole boxes"] = "",
    dtype: Annotated[str, "element type"] = "bf16",
    swizzle: Annotated[int, "bytes: 0, 32, 64 or 128"] = 128,
    in_flight: Annotated[int, "copies an SM has in flight"] = 4,
    latency: Annotated[int, "cycles of one copy from HBM"] = TMA_HBM_CYCLES,
    chip: Annotated[str, "chip: h200, h100_sxm, ..."] = "h200",
) -> TmaBox:
    """A TMA box: bytes, sectors, out-of-bounds waste, and the copies in flight that HBM wants.

    Raises ConfigError for extents that cannot be read, and TensorMapError for a box that no tensor
    map takes.
    """
    in_range("no such copy", ("in_flight", in_flight, 1, ANY), ("latency", latency, 1, ANY))
    ty, extents = element(dtype), _extents("box", box)
    array = _extents("shape", shape) if shape else ()
    if array and len(array) != len(extents):
        raise ConfigError(
            "the box does not tile the array",
            [Violation(field="shape", got=shape, rule=f"must have the box's {len(extents)} axes")],
        )
    broken = map_violations(_spec(extents, ty, swizzle))
    if broken:
        raise TensorMapError("no tensor map has this box", broken)
    return TmaBox(
        box=extents, shape=array, dtype=ty, swizzle=swizzle, in_flight=in_flight, latency=latency,
        rates=rates(chip=chip),
    )  # fmt: skip


def _spec(box: tuple[int, ...], dtype: DType, swizzle: int) -> TensorMapSpec:
    """A map that has this box over an array of exactly its extents, with legal strides."""
    strides = [dtype.bytes]
    for extent in reversed(box[1:]):
        strides.insert(0, ceil(strides[0] * extent / PITCH_BYTES) * PITCH_BYTES)
    return TensorMapSpec(
        dtype=dtype.name, address=0, shape=box, strides=tuple(strides), box=box, swizzle=swizzle
    )


def _extents(field: str, text: str) -> tuple[int, ...]:
    parts = text.lower().replace(" ", "").split("x")
    if not all(part.isdigit() and int(part) for part in parts):
        raise ConfigError(
            "extents cannot be read",
            [Violation(field=field, got=text, rule="must be positive integers joined by x")],
        )
    return tuple(int(part) for part in parts)
