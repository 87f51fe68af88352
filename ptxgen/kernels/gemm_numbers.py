"""The numbers that fill `kernels/gemm.ptx.j2`, each under the name that the template gives it.

Nothing is decided here: a `Gemm` becomes offsets, immediates and lists for the template's loops.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.configs.gemm import SPAN
from ptxgen.configs.gemm_shape import Gemm, Operand
from ptxgen.isa.arch import WARP_THREADS, WARPGROUP_THREADS
from ptxgen.isa.wgmma import WGMMA_M
from ptxgen.kernels.gemm_contract import contract
from ptxgen.kernels.gemm_copies import Turn, copies, turn
from ptxgen.kernels.gemm_finish import finish
from ptxgen.kernels.gemm_pointers import load_lines
from ptxgen.kernels.gemm_schedule import stream, turns
from ptxgen.kernels.gemm_store import store
from ptxgen.spec import KernelSpec

WARPGROUP_WARPS = WARPGROUP_THREADS // WARP_THREADS


@dataclass(frozen=True, slots=True, kw_only=True)
class Math:
    """The wgmma: its form, what follows scale-d, and what its accumulators are."""

    a: str  # types of the problem's A, B, sums and D
    b: str
    accumulator: str
    out: str
    register: str  # PTX type of an accumulator register
    zero: str
    add: str  # how two of them are added
    form: str  # m64n256k16.f32.bf16.bf16
    flags: str
    sums: str  # registers that wgmma adds to
    promoted: bool  # they are then added to %acc, once a stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    m: int
    n: int  # of D
    k: int
    columns: int  # of accumulators: of both halves in a gated problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    m: int
    n: int
    size: int
    square: bool  # CTAs along both axes
    rank_m: str  # registers with this CTA's rank along each axis
    rank_n: str
    destinations: int  # CTAs that receive what one of them loads
    sharing: tuple[str, ...]  # in words


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    producer_last: int  # its last warp
    consumer_warps: str  # "4-11"
    consumers: int  # warpgroups
    rows: int
    rows_bytes: int  # from one consumer's rows of A to the next's in shared memory
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
    tx_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBox:
    """One TMA box of a stage: how far from the first, in elements of the inner axis and bytes."""

    elements: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One operand of the tensor core: what a stage holds, and which part of it this CTA loads."""

    name: str  # a: gives rows of the tile; b: gives columns
    arg: str  # A or B of the problem
    param: str  # its pointer, where threads copy
    entry: tuple[str, ...]  # lines of the entry
    major: str
    box: str  # in words: rows x columns
    swizzle: int
    rank: int  # axes of the tensor map
    inner: str  # registers with the coordinates of this CTA's part
    outer: str
    shared: bool  # with other CTAs of the cluster
    lines: str  # "rows" or "columns"
    part: int  # how many of them this CTA loads
    step: int  # from this CTA's part to the next's, in rows or columns of D
    part_bytes: int
    peer: str  # register with this CTA's rank among those that share
    mask: str  # of those CTAs: a number, or the register that holds it
    mask_of_rank_0: int
    mask_step: str  # register with the rank along the other axis
    mask_bits: int  # by which the mask moves for each of those
    stage_bytes: int
    stage_step: int  # in 16-byte units of a descriptor
    boxes: tuple[LoadBox, ...]
    turn: Turn  # of rows, where threads copy


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One wgmma of a K step: where its 64 rows of A lie, and its first accumulator.

    Through registers, ldmatrix reads at lane ^ `xor` + `offset` into `fragment` and the next three.
    """

    a: int
    acc: int
    fragment: int
    xor: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One K step: where B lies, and whether the accumulators are added to."""

    b: int
    scale_d: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """The bits of a descriptor that are the same for every stage."""

    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptors:
    a: Descriptor
    b: Descriptor
    fragments: int  # registers of A, or 0
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """How the CTAs of a cluster share K, and which accumulators each of them adds up."""

    parts: int
    arrivals: int  # at `shown` and `seen`
    columns: int  # that one CTA adds up and stores
    accumulators: int  # those, a thread
    share_bytes: int  # from one CTA's share to the next's in the partials
    consumer_bytes: int
    partials: int  # offsets in shared memory
    shown: int
    seen: int


def numbers(g: Gemm, spec: KernelSpec) -> dict[str, object]:
    """Everything that the template takes, by the names it uses."""
    return {
        "entry": spec.entry,
        "ptx_version": "{}.{}".format(*spec.ptx_version),
        "math": _math(g),
        "tile": Tile(m=g.tile_m, n=g.d_columns, k=g.tile_k, columns=g.tile_n),
        "ring": g.ring,
        "cluster": _cluster(g),
        "threads": g.threads,
        "role": _roles(g),
        "registers": Registers(
            entry=g.registers.entry,
            producer=g.registers.roles[0].registers,
            consumer=g.registers.roles[1].registers,
        ),
        "smem": _smem(g),
        "barrier": Barriers(
            full_arrivals=g.barriers.full_arrivals,
            empty_arrivals=g.barriers.empty_arrivals,
            tx_bytes=g.barriers.tx_bytes,
        ),
        "a": _load(g, "a", g.a),
        "b": _load(g, "b", g.b),
        "copies": copies(g),
        "desc": _descriptors(g),
        "store": store(g),
        "finish": finish(g),
        "split": _split(g),
        "turns": turns(g),
        "stream": stream(g),
        "contract": contract(g),
        "batched": bool(g.problem.batched),
        "swapped": g.swapped,
    }


def _math(g: Gemm) -> Math:
    p = g.problem
    a, b = g.a.math, g.b.math
    scales = ", 1, 1" if a.scales else ""
    orders = [int(g.a.major == "mn"), int(g.b.major == "mn")]
    if g.fragments:
        del orders[0]  # rows in registers are K-major
    transposes = "".join(f", {order}" for order in orders) if a.transposes else ""
    f32 = p.accumulator == "f32"
    return Math(
        a=p.a.name,
        b=p.b.name,
        accumulator=p.accumulator,
        out=p.output.name,
        register="f32" if f32 else "b32",
        zero="0f00000000" if f32 else "0",
        add="add.f32" if f32 else "add.s32",
        form=f"m64n{g.tile_n}k{a.k}.{p.accumulator}.{a.name}.{b.name}",
        flags=scales + transposes,
        sums="part" if p.promoted else "acc",
        promoted=p.promoted,
    )


def _roles(g: Gemm) -> Roles:
    return Roles(
        producer_last=WARPGROUP_WARPS - 1,
        consumer_warps=f"{WARPGROUP_WARPS}-{WARPGROUP_WARPS * (1 + g.consumers) - 1}",
        consumers=g.consumers,
        rows=g.rows,
        rows_bytes=g.a.layout.mn_units(g.rows) * 16,
        accumulators=g.accumulators,
        block_accumulators=g.block_accumulators,
        wgmma_per_stage=g.wgmma_per_stage,
    )


def _cluster(g: Gemm) -> Cluster:
    sharing = tuple(
        f"{op.sharers} of them share {lines} of {op.arg.upper()}: each loads {op.part} and "
        "multicasts them"
        for lines, op in (("rows", g.a), ("columns", g.b))
        if op.sharers > 1
    )
    if g.split_k > 1:
        sharing = ("they share the K of a tile and add up through shared memory",)
    square = g.cluster_m > 1 and g.cluster_n > 1
    return Cluster(
        m=g.cluster_m,
        n=g.cluster_n,
        size=g.cluster_size,
        square=square,
        rank_m="%cta_m" if square else "%cta_rank",
        rank_n="%cta_n" if square else "%cta_rank",
        destinations=g.destinations,
        sharing=sharing,
    )


def _load(g: Gemm, name: str, operand: Operand) -> Load:
    """Ranks are m + cluster_m * n; A goes to the CTAs of one m, B to those of one n."""
    cluster, row = _cluster(g), operand.box[1]
    part_bytes = operand.boxes * operand.layout.box_bytes
    if operand.major == "k":
        part_bytes = operand.part * operand.swizzle.row_bytes
    if name == "a":
        lines, peer, mask_step, mask_bits = "rows", cluster.rank_n, "%cta_m", 1
        mask = sum(1 << g.cluster_m * n for n in range(g.cluster_n))
    else:
        lines, peer, mask_step, mask_bits = "columns", cluster.rank_m, "%cta_n", g.cluster_m
        mask = (1 << g.cluster_m) - 1
    first = f"%{name}_first"
    inner, outer = ("%k", first) if operand.major == "k" else (first, "%k")
    halves = g.problem.halves if operand.arg == "b" else 1
    return Load(
        name=name,
        arg=operand.arg.upper(),
        param=operand.arg,
        entry=_entry(g, name, operand),
        major=operand.major.upper(),
        box=f"{operand.box[0]} x {row}" if halves == 1 else f"2 x {operand.box[0] // 2} x {row}",
        swizzle=operand.swizzle.span,
        rank=1 + halves + (1 if g.problem.batched else 0),
        inner=inner,
        outer=outer + (", 0" if halves == 2 else "") + (", %batch" if g.problem.batched else ""),
        shared=operand.sharers > 1,
        lines=lines,
        part=operand.part,
        step=operand.part // halves,
        part_bytes=part_bytes,
        peer=peer,
        mask=f"%{name}_mask" if cluster.square else str(mask),
        mask_of_rank_0=mask,
        mask_step=mask_step,
        mask_bits=mask_bits,
        stage_bytes=operand.bytes,
        stage_step=operand.bytes // 16,
        boxes=tuple(
            LoadBox(elements=i * row, bytes=i * operand.layout.box_bytes)
            for i in range(operand.boxes)
        ),
        turn=turn(g, operand),
    )


def _entry(g: Gemm, name: str, operand: Operand) -> tuple[str, ...]:
    if g.copies:
        return load_lines(g, operand)
    rows, row = operand.box
    boxes = f"{rows} x {row}"
    if g.problem.halves == 2 and operand.arg == "b":
        boxes = f"2 x {rows // 2} x {row}"
    text = f"tensor map of {operand.arg.upper()}: boxes of {boxes}, swizzle {operand.swizzle.span}"
    return (f".param .align 64 .b8 tmap_{name}[128],  // {text}",)


def _descriptors(g: Gemm) -> Descriptors:
    """Every wgmma of a stage, in issue order: K steps outside, 64-row blocks inside."""
    a, b = g.a.layout, g.b.layout
    first = "0" if g.problem.promoted else "%accumulate"
    steps = tuple(
        Step(
            b=b.k_units(step),
            scale_d=first if step == 0 else "1",
            blocks=tuple(_block(g, step, block) for block in range(g.blocks)),
        )
        for step in range(a.k_steps)
    )
    return Descriptors(
        a=_constant(a.template_bits),
        b=_constant(b.template_bits),
        fragments=g.fragments,
        steps=steps,
    )


def _block(g: Gemm, step: int, block: int) -> Block:
    units = g.a.layout.k_units(step), g.a.layout.mn_units(WGMMA_M * block)
    box, inside = divmod(units[0] * 16, SPAN)  # a K step may start inside a swizzle row
    return Block(
        a=sum(units),
        acc=block * g.block_accumulators,
        fragment=4 * (step * g.blocks + block),
        xor=inside,
        offset=box * SPAN + units[1] * 16,
    )


def _constant(bits: int) -> Descriptor:
    return Descriptor(low=bits & 0xFFFFFFFF, high=bits >> 32)


def _split(g: Gemm) -> Split:
    share = g.accumulators // g.split_k
    at = g.smem.offset if g.split_k > 1 else lambda name: 0
    return Split(
        parts=g.split_k,
        arrivals=g.split_k * g.consumers,
        columns=g.out_n,
        accumulators=share,
        share_bytes=share * 4 * WARPGROUP_THREADS,
        consumer_bytes=g.partial_bytes,
        partials=at("partials"),
        shown=at("shown"),
        seen=at("seen"),
    )


def _smem(g: Gemm) -> Smem:
    plan = g.smem
    return Smem(
        a=plan.offset("A"),
        b=plan.offset("B"),
        d=0 if g.direct else plan.offset("D slabs"),
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
