"""Every rule of the hardware that the GEMM kernel touches, as one table.

A rule yields the numbers that break it and the nearest legal choice. It may rely on the rules that
its row in `RULES` names, and on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ptxgen.configs.base import Rule, spell
from ptxgen.errors import Violation
from ptxgen.isa import arch
from ptxgen.isa.dtypes import DTYPES
from ptxgen.models.registers import WGMMA_OVERHEAD_REGISTERS, accumulator_registers

if TYPE_CHECKING:
    from ptxgen.configs.gemm import Gemm

Check = Callable[["Gemm"], Iterator[Violation]]

INPUTS = ("bf16", "f16")
OUTPUTS = ("same", "bf16", "f16", "f32")
CLUSTERS = ((1, 1), (2, 1), (1, 2))
CONSUMERS = (1, 2, 3)
ATOM_ROWS = 8  # of a swizzle atom: boxes of shared loads must not cut one


# ---------------------------------------------------------------------------- single fields


def _type(name: str, legal: tuple[str, ...]) -> Check:
    def check(g: Gemm) -> Iterator[Violation]:
        value = getattr(g.problem, name)
        if value not in legal:
            known = "" if value in DTYPES else " (unknown type)"
            yield Violation(
                field=name, got=f"{value}{known}", rule=f"must be one of {', '.join(legal)}",
                why="this kernel multiplies 16-bit floats with f32 accumulation",
            )  # fmt: skip

    return check


def _extent(index: int, low: int, high: int, step: int, why: str) -> Check:
    name = ("tile_m", "tile_n", "tile_k")[index]

    def check(g: Gemm) -> Iterator[Violation]:
        value = g.config.tile[index]
        if value % step or not low <= value <= high:
            yield Violation(
                field=name, got=str(value), rule=f"must be {low}..{high} in steps of {step}",
                why=why, fix=f"use {name}={_nearest(value, low, high, step)}",
            )  # fmt: skip

    return check


def _nearest(value: int, low: int, high: int, step: int) -> int:
    """The next legal value upwards, or the largest one."""
    return min(max(-(-value // step) * step, low), high)


def _cluster(g: Gemm) -> Iterator[Violation]:
    if g.config.cluster not in CLUSTERS:
        yield Violation(
            field="cluster", got=spell(g.config.cluster), rule="must be 1x1, 2x1 or 1x2",
            why="the two CTAs of a cluster share the loads of one operand",
            fix="use cluster=2x1, cluster=1x2 or cluster=1x1",
        )  # fmt: skip


def _consumers(g: Gemm) -> Iterator[Violation]:
    if g.config.consumers and g.config.consumers not in CONSUMERS:
        yield Violation(
            field="consumers", got=str(g.config.consumers), rule="must be 1, 2 or 3",
            why="with the producer, three make 512 threads of 128 registers; a fourth would leave "
            "no room for accumulators",
            fix=f"use consumers={_nearest(g.config.consumers, 1, 3, 1)}, or 0 to derive it",
        )  # fmt: skip


def _wait_depth(g: Gemm) -> Iterator[Violation]:
    if g.config.wait_depth not in (0, 1):
        yield Violation(
            field="wait_depth", got=str(g.config.wait_depth), rule="must be 0 or 1",
            why="wgmma groups on the same accumulators finish in order, so a third has nothing to "
            "overlap with",
            fix="use wait_depth=1",
        )  # fmt: skip


def _stages(g: Gemm) -> Iterator[Violation]:
    if g.config.stages != "max" and g.config.stages < 1:
        yield Violation(
            field="stages", got=str(g.config.stages), rule="must be at least 1, or max",
            why="TMA needs a stage to fill", fix="use stages=max",
        )  # fmt: skip


# ---------------------------------------------------------------------------- tile, roles, cluster


def _share_of_rows(g: Gemm) -> Iterator[Violation]:
    if g.tile_m % (64 * g.consumers):
        fits = [f"consumers={n}" for n in CONSUMERS if g.tile_m % (64 * n) == 0]
        yield Violation(
            field="consumers", got=str(g.consumers),
            rule=f"must share the {g.tile_m} rows of the tile in multiples of 64",
            why="a consumer warpgroup computes whole wgmmas", fix=f"use {' or '.join(fits)}",
        )  # fmt: skip


def _a_box(g: Gemm) -> Iterator[Violation]:
    rows = g.a_box[0]
    if rows > arch.TENSOR_MAP_BOX_MAX:  # cluster 1x2 halves it, and tile_m ends at 384
        yield Violation(
            field="tile_m", got=str(g.tile_m),
            rule=f"needs a TMA box of {rows} rows, the limit is {arch.TENSOR_MAP_BOX_MAX}",
            why="one box carries all the rows of A that this CTA loads",
            fix=f"use tile_m<={arch.TENSOR_MAP_BOX_MAX}, or cluster=1x2",
        )  # fmt: skip


def _b_share(g: Gemm) -> Iterator[Violation]:
    step = ATOM_ROWS * g.cluster_m
    if g.tile_n % step:
        yield Violation(
            field="tile_n", got=str(g.tile_n),
            rule=f"must be a multiple of {step} in cluster {spell(g.config.cluster)}",
            why=f"each of {g.cluster_m} CTAs loads an equal share of B in whole 8-row atoms",
            fix=f"use tile_n={_nearest(g.tile_n, step, 256, step)}, or cluster=1x2",
        )  # fmt: skip


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
    return accumulator_registers(64, g.tile_n) + WGMMA_OVERHEAD_REGISTERS


def _fewer_accumulators(g: Gemm) -> str:
    """Consumers, or the widest tile, with which the accumulators fit."""

    def fits(other: Gemm) -> bool:
        return not other.registers.violations() and _wgmma_registers(other) <= other.registers.entry

    shares = [n for n in CONSUMERS if g.tile_m % (64 * n) == 0]
    choices = [f"consumers={n}" for n in shares if fits(_with(g, consumers=n))]
    widest = next((tile_n for tile_n in _narrower(g) if fits(_with_n(g, tile_n))), 0)
    if widest:
        choices.append(f"tile_n<={widest}")
    return "use " + ", or ".join(choices)


# ---------------------------------------------------------------------------- store


def _store_n(g: Gemm) -> Iterator[Violation]:
    legal = g.legal_store_n()
    if g.config.store_n and g.config.store_n not in legal:
        yield Violation(
            field="store_n", got=str(g.config.store_n),
            rule=f"must divide tile_n={g.tile_n} into whole store boxes of {g.store_box_n} columns",
            why="a slab is stored by whole TMA boxes, and a tile by whole slabs",
            fix=f"use one of {_listed('store_n', legal)}, or 0 to derive it",
        )  # fmt: skip


def _store_slabs(g: Gemm) -> Iterator[Violation]:
    each = g.slabs_per_tile
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
    step = ATOM_ROWS * g.cluster_m
    return range((g.tile_n - 1) // step * step, 0, -step)


def _with_n(g: Gemm, tile_n: int) -> Gemm:
    """Another width; slabs were chosen for this one, so they are derived anew."""
    return _with(g, tile=(g.tile_m, tile_n, g.tile_k), store_n=0, store_slabs=0)


def _with(g: Gemm, **fields: object) -> Gemm:
    return replace(g, config=replace(g.config, **fields))  # type: ignore[arg-type]


RULES: tuple[Rule[Gemm], ...] = (
    Rule(name="dtype", text="A and B are bf16 or f16", check=_type("dtype", INPUTS)),
    Rule(name="out_dtype", text="D is bf16, f16 or f32", check=_type("out_dtype", OUTPUTS)),
    Rule(
        name="tile_m", text="tile M is 64..384 in steps of 64",
        check=_extent(0, 64, 384, 64, "a wgmma computes 64 rows"),
    ),
    Rule(
        name="tile_n", text="tile N is 8..256 in steps of 8",
        check=_extent(1, 8, 256, 8, "wgmma N is 8..256 in steps of 8"),
    ),
    Rule(
        name="tile_k", text="tile K is 64..256 in steps of 64",
        check=_extent(2, 64, 256, 64, "a stage holds whole 128-byte swizzle rows of 64 elements"),
    ),
    Rule(name="cluster", text="clusters are 1x1, 2x1 or 1x2", check=_cluster),
    Rule(name="consumers", text="1 to 3 consumer warpgroups", check=_consumers),
    Rule(name="wait_depth", text="0 or 1 wgmma groups in flight", check=_wait_depth),
    Rule(name="stages", text="at least one stage", check=_stages),
    Rule(
        name="share of rows", text="consumers share tile M in multiples of 64",
        check=_share_of_rows, needs=("tile_m", "consumers"),
    ),
    Rule(
        name="box of A", text="a TMA box has at most 256 rows",
        check=_a_box, needs=("dtype", "tile_m", "cluster"),
    ),
    Rule(
        name="share of B", text="CTAs that share B load whole swizzle atoms",
        check=_b_share, needs=("tile_n", "cluster"),
    ),
    Rule(
        name="accumulators", text="accumulators fit in a consumer's registers",
        check=_accumulators, needs=("tile_n", "cluster", "share of rows"),
    ),
    Rule(
        name="one wgmma", text="the accumulators of one wgmma fit in the registers at entry",
        check=_one_wgmma, needs=("tile_n", "cluster", "share of rows"),
    ),
    Rule(
        name="store_n", text="slabs of D are whole store boxes",
        check=_store_n, needs=("dtype", "out_dtype", "tile_n"),
    ),
    Rule(
        name="store_slabs", text="the slab ring divides the slabs of a tile",
        check=_store_slabs, needs=("store_n", "share of rows"),
    ),
    Rule(
        name="ring", text="the ring is deeper than the wait depth",
        check=_ring, needs=("store_slabs", "tile_k", "wait_depth", "stages"),
    ),
    Rule(
        name="shared memory", text="everything fits in 227 KB",
        check=_smem, needs=("store_slabs", "tile_k", "cluster", "wait_depth", "stages"),
    ),
)  # fmt: skip
