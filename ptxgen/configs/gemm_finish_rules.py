"""Rules on what is done with the sums of a GEMM: two products in one, sums that leave early."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxgen.configs.base import Rule
from ptxgen.configs.gemm_field_rules import nearest
from ptxgen.errors import Violation
from ptxgen.models.registers import WGMMA_OVERHEAD_REGISTERS

if TYPE_CHECKING:
    from ptxgen.configs.gemm_shape import Gemm

GATED_COLUMNS = 32  # of a CTA's part of B: 16 of each half go by one stmatrix
PROMOTED_K = 128  # elements whose sum stays in the tensor core
WIDE_SLAB = 128  # columns beyond which an epilogue takes more registers
COLUMN_STEP = 32  # of the widths that are proposed


def _gated(g: Gemm) -> Iterator[Violation]:
    """What two products in one D keep from being combined with."""
    if not g.problem.gated:
        return
    p, c = g.problem, g.config
    for field, got, want, why in (
        ("beta", p.beta, 0, "C would be added to one of the two products"),
        ("bias", p.bias, "none", "a bias would be added to one of the two products"),
        ("b_major", p.b_major, "k", "one TMA box takes rows of both halves of B"),
        ("swap_ab", c.swap_ab, 0, "the two products of an element lie in one row of the tile"),
        ("split_k", c.split_k, 1, "a CTA that adds up some columns would miss their partners"),
    ):
        if got != want:
            yield Violation(
                field=field, got=str(got), rule=f"must be {want} with gated=1", why=why,
                fix=f"use {field}={want}",
            )  # fmt: skip


def _gated_columns(g: Gemm) -> Iterator[Violation]:
    step = GATED_COLUMNS * g.cluster_m
    if g.problem.gated and g.tile_n % step:
        yield Violation(
            field="tile_n", got=str(g.tile_n),
            rule=f"must be a multiple of {step} with gated=1 and cluster_m={g.cluster_m}",
            why=f"each of {g.cluster_m} CTAs loads {GATED_COLUMNS // 2} rows, or a multiple, of "
            "each half of B",
            fix=f"use tile_n={nearest(g.tile_n, step, 256 // step * step, step)}",
        )  # fmt: skip


def _promoted(g: Gemm) -> Iterator[Violation]:
    p = g.problem
    if p.promoted and p.a.bits != 8:
        yield Violation(
            field="accumulate", got="promoted", rule=f"must be fast for dtype={p.dtype}",
            why="only fp8 sums keep fewer bits in the tensor core than f32 has",
            fix="use accumulate=fast",
        )  # fmt: skip


def _promoted_wait(g: Gemm) -> Iterator[Violation]:
    if g.problem.promoted and g.config.wait_depth:
        yield Violation(
            field="wait_depth", got=str(g.config.wait_depth),
            rule="must be 0 with accumulate=promoted",
            why="the sums of a stage are added when its wgmma are done, and the next ones use the "
            "same registers",
            fix="use wait_depth=0",
        )  # fmt: skip


def _promoted_depth(g: Gemm) -> Iterator[Violation]:
    if g.problem.promoted and g.tile_k != PROMOTED_K:
        yield Violation(
            field="tile_k", got=str(g.tile_k),
            rule=f"must be {PROMOTED_K} with accumulate=promoted",
            why="sums leave the tensor core once a stage",
            fix=f"use tile_k={PROMOTED_K}",
        )  # fmt: skip


def _finish_registers(g: Gemm) -> Iterator[Violation]:
    """What an epilogue takes beside the accumulators."""
    has, own = g.registers.roles[1].registers, WGMMA_OVERHEAD_REGISTERS
    needs = {what: n for what, n in _needs(g) if n}
    most = has - own - sum(needs.values())
    if needs and g.accumulators > most:
        terms = " + ".join(f"{what} {n}" for what, n in needs.items())
        room = most if g.config.store_n else has - own - sum(dict(_parts(g)).values())
        widest = 2 * room // g.blocks // COLUMN_STEP * COLUMN_STEP  # whose slabs are narrow
        yield Violation(
            field="tile_n", got=str(g.tile_n),
            rule=f"its {g.accumulators} accumulators leave {has - g.accumulators} registers of "
            f"{has}, the epilogue needs {has - most}",
            why=f"{own} for addresses + {terms}: loads are in flight together, and with less they "
            "would spill",
            fix=f"use tile_n<={widest}",
        )  # fmt: skip


def _needs(g: Gemm) -> Iterator[tuple[str, int]]:
    """Registers that an epilogue takes, by what ptxas 13.0 and 13.5 spill without."""
    yield from _parts(g)
    # ptxas moves the loads of a whole slab together
    finished = g.problem.finishes and g.store_n > WIDE_SLAB
    yield f"slabs of {g.store_n}", (32 if g.problem.scales == "row" else 28) * finished


def _parts(g: Gemm) -> Iterator[tuple[str, int]]:
    """Those of its parts, whatever the slabs."""
    p = g.problem
    yield "bias", 24 * (p.bias != "none")
    yield "scales", 24 * (p.scales == "row")
    yield "C", 12 * p.beta
    yield p.activation, 12 * (p.activation not in ("none", "relu"))
    yield "amax", 4 * p.amax
    yield "factors", 2 * (p.alpha + p.out_scale)
    yield "stores", 12 * g.direct + 24 * (g.direct and g.streams) * p.beta


FINISH_RULES: tuple[Rule[Gemm], ...] = (
    Rule(
        name="gated", text="two products in one D: K-major B, no C, no bias, K in one CTA",
        check=_gated, needs=("epilogue", "majors", "swap_ab", "split_k"),
    ),
    Rule(
        name="gated columns", text="CTAs load equal parts of both halves of B",
        check=_gated_columns, needs=("epilogue", "tile_n", "cluster"),
    ),
    Rule(
        name="promoted", text="only fp8 sums gain from leaving the tensor core",
        check=_promoted, needs=("epilogue sums",),
    ),
    Rule(
        name="promoted wait", text="sums that leave early are waited for",
        check=_promoted_wait, needs=("promoted", "wait_depth"),
    ),
    Rule(
        name="promoted depth", text="sums leave the tensor core every 128 of K",
        check=_promoted_depth, needs=("promoted", "tile_k"),
    ),
)  # fmt: skip

# After those on the widths and registers of a tile.
FINISH_REGISTER_RULES: tuple[Rule[Gemm], ...] = (
    Rule(
        name="epilogue registers", text="an epilogue fits beside the accumulators",
        check=_finish_registers, needs=("accumulators", "epilogue sums"),
    ),
)  # fmt: skip
