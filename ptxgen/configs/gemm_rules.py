"""Every rule of the hardware that the GEMM kernel touches, as one table.

A rule yields the numbers that break it and the nearest legal choice. It may rely on the rules that
its row in `RULES` names, and on nothing else. Rules on the types of the problem stand in
`gemm_type_rules`, those on single fields of the config in `gemm_field_rules`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import gcd
from typing import TYPE_CHECKING

from ptxgen.configs.base import Rule, spell
from ptxgen.configs.gemm_field_rules import CONSUMERS, FIELD_RULES, nearest
from ptxgen.configs.gemm_finish_rules import FINISH_REGISTER_RULES, FINISH_RULES, GATED_COLUMNS
from ptxgen.configs.gemm_schedule_rules import SCHEDULE_RULES
from ptxgen.configs.gemm_type_rules import TYPE_RULES
from ptxgen.errors import Violation
from ptxgen.isa import arch
from ptxgen.models.registers import WGMMA_OVERHEAD_REGISTERS

if TYPE_CHECKING:
    from ptxgen.configs.gemm_shape import Gemm

ATOM_ROWS = 8  # of a K-major swizzle atom: boxes of shared loads must not cut one
ROW_ELEMENTS = 16  # the narrowest MN-major row that has a swizzle: 32 bytes of a 16-bit type
STORE_ROW_BYTES = 16  # the least inner extent of a TMA box
FRAGMENT_REGISTERS = 4  # that hold the rows of one wgmma


# ---------------------------------------------------------------------------- tile, roles, cluster


def _share_of_rows(g: Gemm) -> Iterator[Violation]:
    if g.tile_m % (64 * g.readers):
        fits = [f"consumers={n}" for n in CONSUMERS if g.tile_m % (64 * n) == 0]
        yield Violation(
            field="consumers", got=str(g.consumers),
            rule=f"must share the {g.tile_m} rows of the tile in multiples of 64",
            why="a consumer warpgroup computes whole wgmmas", fix=f"use {' or '.join(fits)}",
        )  # fmt: skip


def _a_box(g: Gemm) -> Iterator[Violation]:
    rows = max(g.a.box)
    # cluster 1x2 halves it, and tile_m ends at 384
    if rows > arch.TENSOR_MAP_BOX_MAX and not g.copies:
        yield Violation(
            field="tile_m", got=str(g.tile_m),
            rule=f"needs a TMA box of {rows} rows, the limit is {arch.TENSOR_MAP_BOX_MAX}",
            why="one K-major box carries all the rows that this CTA loads",
            fix=f"use tile_m<={arch.TENSOR_MAP_BOX_MAX}, or cluster=1x2",
        )  # fmt: skip


def _b_share(g: Gemm) -> Iterator[Violation]:
    step = _share_step(g)
    if g.tile_n % step:
        others = ", or cluster=1x2" if g.cluster_m > 1 and g.tile_n % (step // 2) == 0 else ""
        what = "8-row atoms" if g.b.major == "k" else "rows of at least 32 bytes"
        yield Violation(
            field="tile_n", got=str(g.tile_n),
            rule=f"must be a multiple of {step} in cluster {spell(g.config.cluster)} with "
            f"{g.b.arg}_major={g.b.major}",
            why=f"each of {g.cluster_m} CTAs loads an equal share of the columns in whole {what}",
            fix=f"use tile_n={nearest(g.tile_n, step, 256, step)}{others}",
        )  # fmt: skip


def _share_step(g: Gemm) -> int:
    """Columns that can only be loaded together."""
    return g.cluster_m * (ATOM_ROWS if g.b.major == "k" else ROW_ELEMENTS)


def _column_step(g: Gemm) -> int:
    """A step of tile_n that keeps every rule on columns: all are powers of two, so the largest."""
    unit = 1 if g.swapped or g.direct else STORE_ROW_BYTES // g.problem.output.bytes
    integers = 1 if g.problem.a.legal_n(40) else 16
    gated = GATED_COLUMNS * g.cluster_m if g.problem.gated else 1
    return max(_share_step(g), g.split_k * max(ATOM_ROWS, unit), integers, gated)


# ---------------------------------------------------------------------------- split K, swapped


def _split_cluster(g: Gemm) -> Iterator[Violation]:
    if g.split_k > 1 and g.config.cluster != (1, 1):
        yield Violation(
            field="split_k", got=str(g.split_k),
            rule=f"must be 1 with cluster={spell(g.config.cluster)}",
            why="the CTAs of a cluster share either loads or K", fix="use split_k=1 or cluster=1x1",
        )  # fmt: skip


def _split_rows(g: Gemm) -> Iterator[Violation]:
    if g.split_k > 1 and g.rows != 64:
        shares = () if g.turns else CONSUMERS
        cures = [f"consumers={n}" for n in shares if g.tile_m == 64 * n] + ["split_k=1"]
        yield Violation(
            field="split_k", got=str(g.split_k),
            rule=f"must be 1 with {g.rows} rows a consumer, or have 64 of them",
            why="a CTA adds up one contiguous share of the accumulators, which are some columns of "
            "64 rows",
            fix=f"use {' or '.join(cures)}",
        )  # fmt: skip


def _split_columns(g: Gemm) -> Iterator[Violation]:
    step = ATOM_ROWS * g.split_k
    if g.split_k > 1 and g.tile_n % step:
        yield Violation(
            field="tile_n", got=str(g.tile_n),
            rule=f"must be a multiple of {step} with split_k={g.split_k}",
            why=f"each of {g.split_k} CTAs adds up and stores an equal part in whole 8 columns",
            fix=f"use tile_n={nearest(g.tile_n, step, 256, step)}, or split_k=1",
        )  # fmt: skip


def _split_sums(g: Gemm) -> Iterator[Violation]:
    if g.split_k > 1 and g.accumulator_bits != 32:
        yield Violation(
            field="split_k", got=str(g.split_k),
            rule=f"must be 1 with acc_dtype={g.problem.accumulator}",
            why="partial sums are added up in 32 bits: packed f16 pairs would round once more",
            fix="use split_k=1, or acc_dtype=f32",
        )  # fmt: skip


def _swapped_store(g: Gemm) -> Iterator[Violation]:
    if g.swapped and g.problem.output.bytes == 1 and not g.direct:
        yield Violation(
            field="swap_ab", got="1", rule=f"must be 0 for {g.problem.output.name} D",
            why="stmatrix transposes 16-bit elements; 8-bit ones would be stored byte by byte",
            fix="use swap_ab=0, or out_dtype=f16, or store=direct",
        )  # fmt: skip


def _store_row(g: Gemm) -> Iterator[Violation]:
    size = g.problem.output.bytes
    row = gcd(g.out_n * size, STORE_ROW_BYTES)
    if not g.swapped and not g.direct and row < STORE_ROW_BYTES:
        step = STORE_ROW_BYTES // size * g.split_k
        yield Violation(
            field="tile_n", got=str(g.tile_n),
            rule=f"must be a multiple of {step} for {g.problem.output.name} D",
            why=f"TMA stores rows of {STORE_ROW_BYTES} B and more: {g.out_n} columns are cut into "
            f"boxes of {row} B",
            fix=f"use tile_n={nearest(g.tile_n, step, 256, step)}, or store=direct",
        )  # fmt: skip


# ---------------------------------------------------------------------------- registers


def _accumulators(g: Gemm) -> Iterator[Violation]:
    for violation in g.registers.violations():
        yield replace(violation, fix=_fewer_accumulators(g))


def _one_wgmma(g: Gemm) -> Iterator[Violation]:
    needed, entry = _wgmma_registers(g), g.registers.entry
    if needed > entry:
        yield Violation(
            field="tile_n", got=str(g.tile_n),
            rule=f"one wgmma needs {needed} registers, {g.threads} threads start with {entry}",
            why="ptxas holds a single instruction to the registers at entry (C7602), whatever "
            "setmaxnreg adds",
            fix=_fewer_accumulators(g),
        )  # fmt: skip


def _wgmma_registers(g: Gemm) -> int:
    """Without which ptxas refuses one wgmma: where rows come from registers, four more."""
    fragment = FRAGMENT_REGISTERS if g.through_registers else 0
    return g.block_accumulators + fragment + WGMMA_OVERHEAD_REGISTERS


def _fewer_accumulators(g: Gemm) -> str:
    """Consumers, or the widest tile, with which the accumulators fit."""

    def fits(other: Gemm) -> bool:
        return not other.registers.violations() and _wgmma_registers(other) <= other.registers.entry

    shares = [] if g.turns else [n for n in CONSUMERS if g.tile_m % (64 * n) == 0]
    choices = [f"consumers={n}" for n in shares if fits(_with(g, consumers=n))]
    widest = next((tile_n for tile_n in _narrower(g) if fits(_with_n(g, tile_n))), 0)
    if widest:
        choices.append(f"tile_n<={widest}")
    return "use " + ", or ".join(choices)


# ---------------------------------------------------------------------------- store


def _store_n(g: Gemm) -> Iterator[Violation]:
    legal = g.legal_store_n()
    if g.config.store_n and g.config.store_n not in legal:
        each = f"tile_n={g.tile_n}" + (f" / split_k={g.split_k}" if g.split_k > 1 else "")
        yield Violation(
            field="store_n", got=str(g.config.store_n),
            rule=f"must divide {each} into whole units of {g.store_unit} columns",
            why="a slab is stored by whole TMA boxes, and a tile by whole slabs",
            fix=f"use one of {_listed('store_n', legal)}, or 0 to derive it",
        )  # fmt: skip


def _store_slabs(g: Gemm) -> Iterator[Violation]:
    each = g.slabs_per_tile
    if g.direct:
        if g.config.store_slabs:
            yield Violation(
                field="store_slabs", got=str(g.config.store_slabs),
                rule="must be 0 with store=direct",
                why="D goes from registers to memory, past shared memory", fix="use store_slabs=0",
            )  # fmt: skip
        return
    if g.config.store_slabs and (g.config.store_slabs < 0 or each % g.config.store_slabs):
        legal = tuple(n for n in range(1, each + 1) if each % n == 0)
        yield Violation(
            field="store_slabs", got=str(g.config.store_slabs),
            rule=f"must divide the {each} slabs that a consumer stores a tile",
            why="every tile starts with the first slab of the ring",
            fix=f"use one of {_listed('store_slabs', legal)}, or 0 to derive it",
        )  # fmt: skip


def _listed(name: str, values: tuple[int, ...]) -> str:
    return ", ".join(f"{name}={n}" for n in values)


# ---------------------------------------------------------------------------- shared memory, ring


def _ring(g: Gemm) -> Iterator[Violation]:
    # A tile too large for the least ring is the next rule's.
    if g.stages < g.least_stages <= g.most_stages:
        yield Violation(
            field="stages", got=str(g.stages),
            rule=f"must be at least {g.least_stages} with wait_depth={g.config.wait_depth}",
            why="a stage is released only after the next one was multiplied: with fewer stages "
            "producer and consumers wait for each other for ever",
            fix=f"use stages={g.least_stages}..{g.most_stages}, or wait_depth=0",
        )  # fmt: skip


def _smem(g: Gemm) -> Iterator[Violation]:
    if not g.smem.fits():
        yield from g.smem.violations(field="stages", got=str(g.stages), fix=_smaller(g, g.stages))
    elif g.most_stages < g.least_stages:
        yield from g.smem_with(g.least_stages).violations(
            field="tile",
            got=f"{spell(g.config.tile)} with {g.least_stages} stages",
            fix=_smaller(g, g.least_stages),
        )


def _smaller(g: Gemm, stages: int) -> str:
    """What would fit: fewer stages, or the widest tile at the stages asked for."""
    choices = [f"stages<={g.most_stages}"] if g.most_stages >= g.least_stages else []
    widest = next((n for n in _narrower(g) if _with_n(g, n).smem_with(stages).fits()), 0)
    if widest:
        choices.append(f"tile_n<={widest}")
    return "use " + ", or ".join(choices or ["a smaller tile_m or tile_k"])


# ---------------------------------------------------------------------------- other configs


def _narrower(g: Gemm) -> range:
    """Every legal tile_n below this one, widest first."""
    step = _column_step(g)
    return range((g.tile_n - 1) // step * step, 0, -step)


def _with_n(g: Gemm, tile_n: int) -> Gemm:
    """Another width; slabs were chosen for this one, so they are derived anew."""
    return _with(g, tile=(g.tile_m, tile_n, g.tile_k), store_n=0, store_slabs=0)


def _with(g: Gemm, **fields: object) -> Gemm:
    return replace(g, config=replace(g.config, **fields))  # type: ignore[arg-type]


# What decides which widths a tile may have.
WIDTH = (
    "out_dtype", "majors", "tile_n", "tile_k", "cluster", "split_k", "swap_ab", "share of rows",
    "gated columns", "promoted",
)  # fmt: skip

RULES: tuple[Rule[Gemm], ...] = (
    *TYPE_RULES,
    *FIELD_RULES,
    *FINISH_RULES,
    *SCHEDULE_RULES,
    Rule(
        name="share of rows", text="consumers share tile M in multiples of 64",
        check=_share_of_rows, needs=("tile_m", "consumers", "schedule"),
    ),
    Rule(
        name="box of A", text="a TMA box has at most 256 rows",
        check=_a_box, needs=("majors", "tile_m", "tile_k", "cluster", "swap_ab", "load"),
    ),
    Rule(
        name="share of B", text="CTAs that share columns load whole swizzle atoms",
        check=_b_share, needs=("majors", "tile_n", "cluster", "swap_ab"),
    ),
    Rule(
        name="split and cluster", text="a cluster shares loads or K",
        check=_split_cluster, needs=("cluster", "split_k"),
    ),
    Rule(
        name="split sums", text="K is split with 32-bit sums",
        check=_split_sums, needs=("acc_dtype", "split_k"),
    ),
    Rule(
        name="split rows", text="K is split with 64 rows a consumer",
        check=_split_rows, needs=("split_k", "share of rows"),
    ),
    Rule(
        name="split columns", text="CTAs that split K store equal parts in whole 8 columns",
        check=_split_columns, needs=("split_k", "tile_n"),
    ),
    Rule(
        name="swapped store", text="swapped tiles stage 16- or 32-bit elements",
        check=_swapped_store, needs=("out_dtype", "swap_ab", "store"),
    ),
    Rule(
        name="store row", text="a row of a store box has at least 16 bytes",
        check=_store_row,
        needs=("out_dtype", "swap_ab", "split columns", "gated", "gated columns"),
    ),
    Rule(
        name="accumulators", text="accumulators fit in a consumer's registers",
        check=_accumulators, needs=WIDTH,
    ),
    *FINISH_REGISTER_RULES,
    Rule(
        name="one wgmma", text="the accumulators of one wgmma fit in the registers at entry",
        check=_one_wgmma, needs=WIDTH,
    ),
    Rule(
        name="store_n", text="slabs of D are whole store boxes",
        check=_store_n, needs=("store row", "swapped store"),
    ),
    Rule(
        name="store_slabs", text="the slab ring divides the slabs of a tile",
        check=_store_slabs, needs=("store_n", "share of rows"),
    ),
    Rule(
        name="ring", text="the ring is deeper than the wait depth",
        check=_ring, needs=("store_slabs", "box of A", "share of B", "wait_depth", "stages"),
    ),
    Rule(
        name="shared memory", text="everything fits in 227 KB",
        check=_smem, needs=("store_slabs", "box of A", "share of B", "wait_depth", "stages"),
    ),
)  # fmt: skip
