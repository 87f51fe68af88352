"""The numbers that fill `kernels/gemm.ptx.j2`, each under the name that the template gives it.

Nothing is decided here: a `Gemm` becomes offsets, immediates and lists for the template's loops.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.configs.gemm import SWIZZLE, WGMMA_M, Gemm
from ptxgen.isa.arch import WARP_THREADS, WARPGROUP_THREADS
from ptxgen.layout.smem_desc import k_major
from ptxgen.models.registers import accumulator_registers

WARPGROUP_WARPS = WARPGROUP_THREADS // WARP_THREADS
PTX_VERSION = (8, 0)  # the least that has wgmma, TMA and setmaxnreg: old drivers take it too


@dataclass(frozen=True, slots=True, kw_only=True)
class Types:
    dtype: str
    out: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    m: int
    n: int
    k: int
    k_boxes: int  # TMA boxes along K of one stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    m: int
    n: int
    size: int
    mask: int
    sharing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    producer_last: int  # its last warp
    consumer_warps: str  # "4-11"
    consumers: int  # warpgroups
    rows: int
    rows_bytes: int  # A bytes of one box that lie before the next consumer's rows
    accumulators: int
    block_accumulators: int  # of one wgmma
    wgmma_per_stage: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Registers:
    entry: int
    producer: int
    consumer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SmemRow:
    offset: int
    bytes: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Smem:
    a: int
    b: int
    d: int
    full: int
    empty: int
    total: int
    regions: tuple[SmemRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Barriers:
    full_arrivals: int
    empty_arrivals: int
    empty_arrivers: str
    tx_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """One of A and B: what a stage holds and which part of it this CTA loads."""

    shared: bool  # with the other CTAs of the cluster
    box_rows: int
    swizzle: int
    slice_bytes: int  # of one box, loaded here
    k_box_bytes: int  # from one box along K to the next
    stage_bytes: int
    stage_step: int  # in 16-byte units of a descriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One wgmma of a k16 step: where its 64 rows of A lie, and its first accumulator."""

    a: int
    acc: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One k16 step: where B lies, and whether the accumulators are added to."""

    b: int
    scale_d: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptors:
    low: int
    high: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Registers that go to shared memory together: x ^ `xor` + `offset` is their address."""

    acc: int
    registers: int  # 32-bit registers of packed pairs; 4 or 2
    xor: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreBox:
    column: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Slab:
    row: int
    column: int
    pieces: tuple[Piece, ...]
    boxes: tuple[StoreBox, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    type: str
    bytes: int  # of an element of D
    n: int
    box_n: int
    box_row_bytes: int
    swizzle: int
    row_shift: int
    chunk_mask: int
    slots: int
    consumer_bytes: int
    slabs: tuple[Slab, ...]


def _operand(rows: int, box_rows: int, bytes_: int, k_boxes: int) -> Operand:
    return Operand(
        shared=box_rows < rows,
        box_rows=box_rows,
        swizzle=SWIZZLE.span,
        slice_bytes=box_rows * SWIZZLE.span,
        k_box_bytes=bytes_ // k_boxes,
        stage_bytes=bytes_,
        stage_step=bytes_ // 16,
    )


def _descriptors(g: Gemm) -> Descriptors:
    """Every wgmma of a stage, in issue order: k16 steps outside, 64-row blocks inside."""
    a = k_major(g.problem.dtype, SWIZZLE, mn=g.tile_m, k=g.tile_k)
    b = k_major(g.problem.dtype, SWIZZLE, mn=g.tile_n, k=g.tile_k)
    blocks = range(g.rows // WGMMA_M)
    steps = tuple(
        Step(
            b=b.k_units(step),
            scale_d="%accumulate" if step == 0 else "1",
            blocks=tuple(
                Block(
                    a=a.k_units(step) + a.mn_units(WGMMA_M * block),
                    acc=block * (g.accumulators // len(blocks)),
                )
                for block in blocks
            ),
        )
        for step in range(a.k_steps)
    )
    if a.template_bits != b.template_bits:
        raise AssertionError("A and B share the constant half of their descriptors")
    return Descriptors(low=a.template_bits & 0xFFFFFFFF, high=a.template_bits >> 32, steps=steps)


def _slabs(g: Gemm) -> tuple[Slab, ...]:
    """The slabs of one consumer's tile in the order in which they are written and stored."""
    element = g.problem.output.bytes
    box_bytes = WGMMA_M * g.store_box_n * element
    wide = 8 if g.store_box_n == 8 or element == 4 else 16  # columns of one piece
    slabs: list[Slab] = []
    for block in range(g.rows // WGMMA_M):
        for first in range(0, g.tile_n, g.store_n):
            slot = (len(slabs) % g.store_slabs) * g.slab_bytes
            pieces = tuple(
                Piece(
                    acc=block * g.tile_n // 2 + (first + column) // 2,
                    registers=wide // 4,
                    xor=column % g.store_box_n * element,
                    offset=slot + column // g.store_box_n * box_bytes,
                )
                for column in range(0, g.store_n, wide)
            )
            boxes = tuple(
                StoreBox(column=first + box * g.store_box_n, offset=slot + box * box_bytes)
                for box in range(g.store_n // g.store_box_n)
            )
            slabs.append(Slab(row=block * WGMMA_M, column=first, pieces=pieces, boxes=boxes))
    return tuple(slabs)


def _store(g: Gemm) -> Store:
    swizzle = g.store_swizzle
    return Store(
        type=g.problem.output.name,
        bytes=g.problem.output.bytes,
        n=g.store_n,
        box_n=g.store_box_n,
        box_row_bytes=g.store_box_n * g.problem.output.bytes,
        swizzle=swizzle.span,
        row_shift=swizzle.row_shift,
        chunk_mask=swizzle.chunk_mask,
        slots=g.store_slabs,
        consumer_bytes=g.store_slabs * g.slab_bytes,
        slabs=_slabs(g),
    )


def _smem(g: Gemm) -> Smem:
    plan = g.smem
    return Smem(
        a=plan.offset("A"),
        b=plan.offset("B"),
        d=plan.offset("D slabs"),
        full=plan.offset("full"),
        empty=plan.offset("empty"),
        total=plan.total,
        regions=tuple(
            SmemRow(
                offset=r.offset,
                bytes=r.total,
                text=f"{r.name}: {r.count} x {r.bytes:,} ({r.note})",
            )
            for r in plan
        ),
    )


def _cluster(g: Gemm) -> Cluster:
    operand, rows = ("B", g.tile_n) if g.cluster_m > 1 else ("A", g.tile_m)
    return Cluster(
        m=g.cluster_m,
        n=g.cluster_n,
        size=g.cluster_size,
        mask=2**g.cluster_size - 1,
        sharing=""
        if g.cluster_size == 1
        else f": each loads {rows // g.cluster_size} rows of {operand} and multicasts them to all",
    )


def entry(g: Gemm) -> str:
    """The entry's name: what a profiler shows."""
    return (
        f"gemm_{g.problem.input.name}_{g.problem.output.name}_{g.tile_m}x{g.tile_n}x{g.tile_k}"
        f"_{g.stages}s_{g.cluster_m}x{g.cluster_n}"
    )


def numbers(g: Gemm) -> dict[str, object]:
    """Everything that the template takes, by the names it uses."""
    k_boxes = g.k_boxes
    return {
        "entry": entry(g),
        "ptx_version": "{}.{}".format(*PTX_VERSION),
        "problem": Types(dtype=g.problem.input.name, out=g.problem.output.name),
        "tile": Tile(m=g.tile_m, n=g.tile_n, k=g.tile_k, k_boxes=k_boxes),
        "ring": g.ring,
        "cluster": _cluster(g),
        "threads": g.threads,
        "role": Roles(
            producer_last=WARPGROUP_WARPS - 1,
            consumer_warps=f"{WARPGROUP_WARPS}-{WARPGROUP_WARPS * (1 + g.consumers) - 1}",
            consumers=g.consumers,
            rows=g.rows,
            rows_bytes=g.rows * SWIZZLE.span,
            accumulators=g.accumulators,
            block_accumulators=accumulator_registers(WGMMA_M, g.tile_n),
            wgmma_per_stage=g.wgmma_per_stage,
        ),
        "registers": Registers(
            entry=g.registers.entry,
            producer=g.registers.roles[0].registers,
            consumer=g.registers.roles[1].registers,
        ),
        "smem": _smem(g),
        "barrier": Barriers(
            full_arrivals=g.barriers.full_arrivals,
            empty_arrivals=g.barriers.empty_arrivals,
            empty_arrivers="one thread a consumer"
            + (" of every CTA" if g.cluster_size > 1 else ""),
            tx_bytes=g.barriers.tx_bytes,
        ),
        "a": _operand(g.tile_m, g.a_box[0], g.a_bytes, k_boxes),
        "b": _operand(g.tile_n, g.b_box[0], g.b_bytes, k_boxes),
        "desc": _descriptors(g),
        "store": _store(g),
    }
