"""How accumulators reach D: the slabs of a consumer, and where each register goes in them.

A slab is staged in shared memory as TMA boxes in the swizzle of D's tensor map. Straight, a slab
row is a row of the tile; swapped, it is a column, because the rows of the tile run along N of D.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ptxgen.configs.gemm_shape import Gemm
from ptxgen.isa.wgmma import WGMMA_M
from ptxgen.kernels.gemm_contract import meets
from ptxgen.kernels.gemm_pointers import store_lines
from ptxgen.layout.swizzle import CHUNK_BYTES, Swizzle


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Registers that go to shared memory together; their address is lane ^ `xor` + `offset`."""

    acc: int
    columns: int  # 8 or 16
    pairs: int  # registers once two 16-bit columns share one
    xor: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Eight:
    """Eight columns of D: four accumulators, two of row g and two of row g + 8.

    f16 sums lie two in a register.
    """

    acc: int
    column: int
    half: int = 0  # of B, in a gated problem
    gate: int = 0  # first accumulator of the same columns in the other half


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreBox:
    """One TMA store: where it lies in the tile of a consumer, and in the ring of slabs."""

    row: int
    column: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Slab:
    """Some columns of 64 rows: from where they come, and the stores that take them away."""

    row: int
    column: int
    eights: tuple[Eight, ...]
    sums: tuple[Eight, ...]  # the same, and those of the other half
    pieces: tuple[Piece, ...]
    boxes: tuple[StoreBox, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """The slabs of a consumer. `kind` says which instruction writes them:

    matrix     pairs rounded to 16 bits, stmatrix          packed     f16 pairs, stmatrix
    pair32     two 32-bit columns, st.v2                   pair8      two fp8 columns, st.b16
    single32   one 32-bit element, st (swapped only)

    `direct` stores have no pieces and boxes: see blocks/store_direct.ptx.j2.
    """

    kind: str
    type: str
    bytes: int
    bits: int
    direct: bool
    barrier: bool  # the threads of a consumer meet
    transposed: bool  # swapped: a row of a slab is a column of the tile
    n: int
    box: str
    box_bytes: int
    row_bytes: int
    swizzle: int
    row_shift: int
    chunk_mask: int
    slots: int
    consumer_bytes: int
    params: tuple[str, ...]  # lines of the entry
    slabs: tuple[Slab, ...]


def _kind(g: Gemm) -> str:
    if g.problem.accumulator == "f16":
        return "packed"
    size = g.problem.output.bytes
    if size == 4:
        return "single32" if g.swapped else "pair32"
    return "matrix" if size == 2 else "pair8"


@lru_cache(maxsize=64)  # the numbers of a template and the promises about its SASS ask for it
def store(g: Gemm) -> Store:
    """The store of one consumer's tile."""
    swizzle = Swizzle(0) if g.direct else g.store_swizzle
    rows, columns = g.store_box
    return Store(
        kind=_kind(g),
        type=g.problem.output.name,
        bytes=g.problem.output.bytes,
        bits=g.problem.output.bits,
        direct=g.direct,
        barrier=meets(g),
        transposed=g.swapped,
        n=g.store_n,
        box=f"{rows} x {columns}",
        box_bytes=g.store_box_bytes,
        row_bytes=columns * g.problem.output.bytes,
        swizzle=swizzle.span,
        row_shift=swizzle.row_shift,
        chunk_mask=swizzle.chunk_mask,
        slots=g.store_slabs,
        consumer_bytes=g.store_slabs * g.slab_bytes,
        params=_params(g),
        slabs=_slabs(g),
    )


def _params(g: Gemm) -> tuple[str, ...]:
    if not g.direct:
        rows, columns = g.store_box
        boxes = f"boxes of {rows} x {columns}, swizzle {g.store_swizzle.span}"
        return (f".param .align 64 .b8 tmap_d[128],  // tensor map of D: {boxes}",)
    return store_lines(g)


def _slabs(g: Gemm) -> tuple[Slab, ...]:
    """The slabs in the order in which they are written and stored."""
    slabs: list[Slab] = []
    for block in range(g.blocks):
        for first in range(0, g.out_n, g.store_n):
            slot = (len(slabs) % max(g.store_slabs, 1)) * g.slab_bytes
            eights, partners = (_eights(g, block, first, half) for half in range(2))
            slabs.append(
                Slab(
                    row=block * WGMMA_M,
                    column=first,
                    eights=eights,
                    sums=eights + (partners if g.problem.gated else ()),
                    pieces=() if g.direct else _pieces(g, block, first, slot),
                    boxes=() if g.direct else _boxes(g, block, first, slot),
                )
            )
    return tuple(slabs)


def _eights(g: Gemm, block: int, first: int, half: int) -> tuple[Eight, ...]:
    def acc(column: int, half: int) -> int:
        lies = g.accumulator_column(column, half)
        return block * g.block_accumulators + lies * g.accumulator_bits // 64

    return tuple(
        Eight(acc=acc(column, half), column=column, half=half, gate=acc(column, 1 - half))
        for column in range(first, first + g.store_n, 8)
    )


def _pieces(g: Gemm, block: int, first: int, slot: int) -> tuple[Piece, ...]:
    """A piece is 16 columns where one stmatrix.x4 takes them, else 8."""
    pieces: list[Piece] = []
    column = 0
    while column < g.store_n:
        wide = 16 if _takes_16(g, g.store_n - column) else 8
        xor, offset = _place(g, column)
        lies = g.accumulator_column(first + column)
        acc = block * g.block_accumulators + lies * g.accumulator_bits // 64
        pieces.append(Piece(acc=acc, columns=wide, pairs=wide // 4, xor=xor, offset=slot + offset))
        column += wide
    return tuple(pieces)


def _takes_16(g: Gemm, left: int) -> bool:
    """Whether the next 16 of `left` columns lie side by side and go by one stmatrix."""
    return _kind(g) in ("matrix", "packed") and left >= 16 and (g.swapped or g.store_box[1] >= 16)


def _place(g: Gemm, column: int) -> tuple[int, int]:
    """(xor, offset) of a column of the slab against the lane's address in column 0."""
    size = g.problem.output.bytes
    if g.swapped:  # it is a row of the slab, and swizzle atoms have 8 rows
        return 0, column * g.store_box[1] * size
    box, inside = divmod(column, g.store_box[1])
    if not g.store_swizzle.span:
        return 0, box * g.store_box_bytes + inside * size
    chunk, rest = divmod(inside * size, CHUNK_BYTES)  # rest: fp8, where 8 columns are half a chunk
    return chunk * CHUNK_BYTES, box * g.store_box_bytes + rest


def _boxes(g: Gemm, block: int, first: int, slot: int) -> tuple[StoreBox, ...]:
    """The TMA stores of a slab: along the columns of D's rows, or swapped along its rows."""
    columns = g.store_box[1]
    return tuple(
        StoreBox(
            row=block * WGMMA_M + (i * columns if g.swapped else 0),
            column=first + (0 if g.swapped else i * columns),
            offset=slot + i * g.store_box_bytes,
        )
        for i in range(g.boxes_per_slab)
    )
