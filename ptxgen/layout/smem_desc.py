"""wgmma operands in shared memory: canonical layouts and their 64-bit matrix descriptors.

An operand tile is [mn, k]: mn is M for A and N for B. Its elements lie in one of two orders:

    major  one row of the box holds    written by TMA as boxes of (NumPy order)
    k      k, contiguous               [mn rows][row of k],  boxes follow each other along k
    mn     mn, contiguous              [k rows][row of mn],  boxes follow each other along mn

where a row is the swizzle's span (16 bytes without swizzle). A box written with the same swizzle by
TMA *is* the canonical tile, so `box` and `boxes` below say what to copy, and `desc` how to read it.

Offsets that go into a descriptor's start-address field are in 16-byte **units**, and a kernel adds
them to the low 32 bits only: there is no carry while the address stays below 256 KB.
PTX ISA 9.7.15.5.1: "Shared memory matrix layout", "Strides", "Matrix descriptor format".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ptxgen.errors import ConfigError, Violation
from ptxgen.isa.dtypes import DType
from ptxgen.isa.dtypes import dtype as dtype_row
from ptxgen.layout.swizzle import CHUNK_BYTES, SWIZZLES, Index, Swizzle
from ptxgen.view import Shown, View

Major: TypeAlias = Literal["k", "mn"]

ADDRESS_LIMIT = 1 << 18  # the descriptor keeps address bits 4-17
WGMMA_K_BYTES = 32  # one wgmma consumes 32 bytes of k: k8 tf32, k16 of 16 bits, k32 of 8 bits
CORE_ROWS = 8  # a core matrix is 8 rows of 16 bytes
_UNUSED_LBO = CHUNK_BYTES  # K-major with swizzle ignores LBO; the convention is field value 1


def _fail(headline: str, violations: list[Violation]) -> None:
    if violations:
        raise ConfigError(headline, violations)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmemDesc(Shown):
    """A wgmma matrix descriptor in bytes; `encode()` gives the 64 bits.

        bits 0-13 start >> 4   16-29 lbo >> 4   32-45 sbo >> 4   49-51 base offset   62-63 layout

    `start` is an offset in the CTA's own shared window: a `.shared` address carries the CTA's rank
    in its top byte, so a kernel masks it with 0x3FFFF before the shift.
    """

    start: int = 0
    lbo: int = _UNUSED_LBO
    sbo: int
    base_offset: int = 0
    swizzle: Swizzle = SWIZZLES[128]

    def __post_init__(self) -> None:
        broken = [
            Violation(
                field=name,
                got=f"{value} B",
                rule=f"must be a multiple of 16 B in 0..{ADDRESS_LIMIT - 16:,}",
                why="the descriptor drops the low 4 bits and keeps the next 14",
                fix=f"nearest legal value: {_nearest_unit(value):,} B",
            )
            for name, value in (("start", self.start), ("lbo", self.lbo), ("sbo", self.sbo))
            if value % CHUNK_BYTES or not 0 <= value < ADDRESS_LIMIT
        ]
        if not 0 <= self.base_offset < 8:
            broken.append(
                Violation(
                    field="base_offset",
                    got=str(self.base_offset),
                    rule="must be 0..7",
                    why="the field has 3 bits: (start of the swizzle pattern >> 7) & 7",
                    fix=f"align the tile to {self.swizzle.atom_bytes} B and use 0",
                )
            )
        _fail("no wgmma descriptor can hold these values", broken)

    def encode(self) -> int:
        """The 64-bit descriptor."""
        return (
            self.start >> 4
            | (self.lbo >> 4) << 16
            | (self.sbo >> 4) << 32
            | self.base_offset << 49
            | self.swizzle.desc_layout << 62
        )

    @classmethod
    def decode(cls, bits: int) -> SmemDesc:
        """The fields of a 64-bit descriptor. Bits outside the five fields are ignored."""
        return cls(
            start=(bits & 0x3FFF) << 4,
            lbo=(bits >> 16 & 0x3FFF) << 4,
            sbo=(bits >> 32 & 0x3FFF) << 4,
            base_offset=bits >> 49 & 7,
            swizzle=Swizzle.from_desc_layout(bits >> 62 & 3),
        )

    @property
    def template_bits(self) -> int:
        """The descriptor of start 0: a kernel ORs `(address & 0x3FFFF) >> 4` into this constant."""
        return self.encode() & ~0x3FFF

    def view(self) -> View:
        """The 64 bits as a strip, and every field in words."""
        from ptxgen.layout.draw_desc import desc_view  # drawings read descriptors

        return desc_view(self.encode())

    def __str__(self) -> str:
        return (
            f"0x{self.encode():016x}: start 0x{self.start:05x}, lbo {self.lbo:,} B, "
            f"sbo {self.sbo:,} B, base offset {self.base_offset}, swizzle {self.swizzle}"
        )


def _nearest_unit(value: int) -> int:
    return min(max(-(-value // CHUNK_BYTES) * CHUNK_BYTES, 0), ADDRESS_LIMIT - CHUNK_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperandLayout:
    """A [mn, k] operand tile in shared memory, in one canonical layout.

    `mn` and `k` are the extents of the whole *buffer* that TMA fills, in elements. Steps come from
    the buffer, so a kernel that reads only some of its rows still finds the next k block.
    Made by `k_major` and `mn_major`.
    """

    major: Major
    dtype: DType
    swizzle: Swizzle
    mn: int
    k: int

    def __post_init__(self) -> None:
        _fail(
            f"{self.dtype.name} [{self.mn}, {self.k}] {self.major}-major with swizzle "
            f"{self.swizzle} is not a wgmma operand",
            _layout_violations(self),
        )

    # -- sizes -------------------------------------------------------------------------------------

    @property
    def bytes(self) -> int:
        """Bytes of the tile."""
        return self.mn * self.k * self.dtype.bytes

    @property
    def align(self) -> int:
        """Alignment of the tile's first byte in shared memory."""
        return self.swizzle.atom_bytes

    @property
    def row_elements(self) -> int:
        """Elements of the contiguous axis in one row of the swizzle atom."""
        return self.swizzle.row_bytes // self.dtype.bytes

    @property
    def box(self) -> tuple[int, int]:
        """One TMA box in NumPy order: [mn, row of k] or [k, row of mn]."""
        return (self.mn if self.major == "k" else self.k, self.row_elements)

    @property
    def boxes(self) -> int:
        """Boxes that fill the tile, each `box_bytes` after the one before."""
        return (self.k if self.major == "k" else self.mn) // self.row_elements

    @property
    def box_bytes(self) -> int:
        """Bytes of one box, and the step from one box to the next."""
        return self.box[0] * self.swizzle.row_bytes

    # -- descriptor --------------------------------------------------------------------------------

    @property
    def lbo(self) -> int:
        """Leading byte offset. K-major: between 16-byte chunks along k, without swizzle only.

        MN-major: between rows-of-mn blocks with swizzle, between 8-row groups of k without.
        """
        if self.major == "k":
            return _UNUSED_LBO if self.swizzle.span else self.box_bytes
        return self.box_bytes if self.swizzle.span else self.swizzle.atom_bytes

    @property
    def sbo(self) -> int:
        """Stride byte offset: between 8-row groups; MN-major without swizzle: between mn chunks."""
        if self.major == "mn" and not self.swizzle.span:
            return self.box_bytes
        return self.swizzle.atom_bytes

    @property
    def desc(self) -> SmemDesc:
        """The descriptor of a tile that starts at shared offset 0."""
        return SmemDesc(lbo=self.lbo, sbo=self.sbo, swizzle=self.swizzle)

    @property
    def template_bits(self) -> int:
        """The constant to which a kernel ORs the tile's `(address & 0x3FFFF) >> 4`."""
        return self.desc.template_bits

    # -- steps, in 16-byte units of the start-address field ----------------------------------------

    @property
    def wgmma_k(self) -> int:
        """Elements of k that one wgmma consumes."""
        return WGMMA_K_BYTES // self.dtype.bytes

    @property
    def k_steps(self) -> int:
        """wgmma instructions that walk the tile's k."""
        return self.k // self.wgmma_k

    def k_units(self, step: int) -> int:
        """Units from the tile's start to its `step`-th wgmma along k."""
        return self._units(0, step * self.wgmma_k)

    def mn_units(self, mn: int) -> int:
        """Units from the tile's start to row `mn` (the next warpgroup, or the next 64 rows).

        Raises ConfigError where `mn` would cut a swizzle atom.
        """
        block = CORE_ROWS if self.major == "k" else self.row_elements
        if mn % block:
            _fail(
                "a warpgroup's part of an operand cuts a swizzle atom",
                [
                    Violation(
                        field="mn",
                        got=str(mn),
                        rule=f"must be a multiple of {block} "
                        f"({self.major}-major, swizzle {self.swizzle})",
                        why="a descriptor can start only where an atom starts",
                        fix=f"start at {-(-mn // block) * block}, or use a smaller swizzle",
                    )
                ],
            )
        return self._units(mn, 0)

    @property
    def stage_units(self) -> int:
        """Units from one ring stage to the next when each stage starts on `align`."""
        return -(-self.bytes // self.align) * self.align // CHUNK_BYTES

    def _units(self, mn: int, k: int) -> int:
        return self.offset(mn, k) // CHUNK_BYTES

    # -- elements ----------------------------------------------------------------------------------

    def offset(self, mn: Index, k: Index) -> Index:
        """Byte offset of element (mn, k) in the tile before the swizzle; ints or arrays."""
        es, row, lbo, sbo = self.dtype.bytes, self.row_elements, self.lbo, self.sbo
        if self.major == "k":
            # With swizzle LBO is unused: the next row-wide block of k is the next box.
            block = self.box_bytes
            return (
                mn // CORE_ROWS * sbo
                + mn % CORE_ROWS * self.swizzle.row_bytes
                + k // row * block
                + k % row * es
            )
        mn_step, k_step = (lbo, sbo) if self.swizzle.span else (sbo, lbo)
        return (
            mn // row * mn_step
            + mn % row * es
            + k // CORE_ROWS * k_step
            + k % CORE_ROWS * self.swizzle.row_bytes
        )

    def address(self, mn: Index, k: Index, *, start: int = 0) -> Index:
        """Shared byte address of element (mn, k) of a tile at `start`, after the swizzle."""
        return self.swizzle.apply(start + self.offset(mn, k))

    def __str__(self) -> str:
        return (
            f"{self.dtype.name} [{self.mn}, {self.k}] {self.major}-major, {self.bytes:,} B, "
            f"{self.boxes} x box [{self.box[0]}, {self.box[1]}], align {self.align}, {self.desc}"
        )


def _layout_violations(layout: OperandLayout) -> list[Violation]:
    """Every rule that keeps a tile whole: no cut core matrix, no cut atom, no cut wgmma step."""
    d, row = layout.dtype, layout.row_elements
    k_unit = max(layout.wgmma_k, row) if layout.major == "k" else max(layout.wgmma_k, CORE_ROWS)
    mn_unit = CORE_ROWS if layout.major == "k" else max(row, CORE_ROWS)
    broken = [
        Violation(
            field=name,
            got=str(got),
            rule=f"must be a positive multiple of {unit}",
            why=why,
            fix=f"use {max(-(-got // unit) * unit, unit)}, or a smaller swizzle",
        )
        for name, got, unit, why in (
            ("k", layout.k, k_unit, "whole swizzle rows and whole wgmma steps of 32 bytes"),
            ("mn", layout.mn, mn_unit, "whole core matrices and whole swizzle atoms"),
        )
        if got <= 0 or got % unit
    ]
    if layout.major == "mn" and d.bytes != 2:
        broken.append(
            Violation(
                field="dtype",
                got=d.name,
                rule="an MN-major operand must have a 16-bit type",
                why="wgmma has transpose bits for f16 and bf16 only",
                fix="store the operand K-major, or transpose it first",
            )
        )
    if d.bytes not in (1, 2, 4):
        broken.append(
            Violation(
                field="dtype",
                got=d.name,
                rule="must have 8, 16 or 32 bits",
                why="wgmma multiplies f16, bf16, tf32, fp8 and int8",
            )
        )
    return broken


def k_major(dtype: str, swizzle: Swizzle | int, *, mn: int, k: int) -> OperandLayout:
    """The K-major layout of an [mn, k] tile: k contiguous, rows of one swizzle span.

    `dtype` is any dtype name (tf32 operands are "f32" in memory). Raises ConfigError listing every
    extent that would cut a core matrix, a swizzle row or a wgmma step.
    """
    return _layout("k", dtype, swizzle, mn, k)


def mn_major(dtype: str, swizzle: Swizzle | int, *, mn: int, k: int) -> OperandLayout:
    """The MN-major (transposed) layout of an [mn, k] tile: mn contiguous; f16 and bf16 only."""
    return _layout("mn", dtype, swizzle, mn, k)


def _layout(major: Major, name: str, swizzle: Swizzle | int, mn: int, k: int) -> OperandLayout:
    mode = swizzle if isinstance(swizzle, Swizzle) else Swizzle(swizzle)
    return OperandLayout(major=major, dtype=dtype_row(name), swizzle=mode, mn=mn, k=k)
