"""Rules on what is done with the sums of a GEMM: two products in one, sums that leave early."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxgen.configs.base import Rule
from ptxgen.configs.gemm_field_rules import nearest
from ptxgen.errors import Violation

if TYPE_CHECKING:
    from ptxgen.configs.gemm_shape import Gemm

GATED_COLUMNS = 32  # of a CTA's part of B: 16 of each half go by one stmatrix
PROMOTED_K = 128  # elements whose sum stays in the tensor core


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
