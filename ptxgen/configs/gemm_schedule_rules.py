"""Rules on who works on which tile when, and where wgmma takes its rows from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxgen.configs.base import Rule, spell
from ptxgen.configs.gemm import SCHEDULES, SOURCES
from ptxgen.configs.gemm_field_rules import among
from ptxgen.errors import Violation

if TYPE_CHECKING:
    from ptxgen.configs.gemm_shape import Gemm


def _turns(g: Gemm) -> Iterator[Violation]:
    if g.turns and g.consumers != 2:
        yield Violation(
            field="consumers", got=str(g.consumers), rule="must be 2 with schedule=pingpong",
            why="one multiplies while the other stores", fix="use consumers=2, or 0 to derive it",
        )  # fmt: skip


def _turns_and_split(g: Gemm) -> Iterator[Violation]:
    if g.turns and g.split_k > 1:
        yield Violation(
            field="split_k", got=str(g.split_k), rule="must be 1 with schedule=pingpong",
            why="CTAs that share K show each other the sums of all consumers at once",
            fix="use split_k=1, or schedule=cooperative",
        )  # fmt: skip


def _stream_and_split(g: Gemm) -> Iterator[Violation]:
    if g.streams and g.split_k > 1:
        yield Violation(
            field="split_k", got=str(g.split_k), rule="must be 1 with schedule=stream_k",
            why="clusters share out K already, where it helps",
            fix="use split_k=1, or schedule=cooperative",
        )  # fmt: skip


def _stream_sums(g: Gemm) -> Iterator[Violation]:
    if g.streams and g.accumulator_bits != 32:
        yield Violation(
            field="schedule", got=g.config.schedule,
            rule=f"must not be stream_k with acc_dtype={g.problem.accumulator}",
            why="parts of a sum are added up in 32 bits: packed f16 pairs would round once more",
            fix="use schedule=cooperative, or acc_dtype=f32",
        )  # fmt: skip


def _fragments_wait(g: Gemm) -> Iterator[Violation]:
    if g.through_registers and g.config.wait_depth:
        yield Violation(
            field="wait_depth", got=str(g.config.wait_depth),
            rule="must be 0 with a_source=registers",
            why="the next stage is loaded into registers that wgmma in flight would still read",
            fix="use wait_depth=0, or a_source=smem",
        )  # fmt: skip


def _fragments_major(g: Gemm) -> Iterator[Violation]:
    if g.through_registers and g.a.major != "k":
        yield Violation(
            field="a_source", got=g.config.a_source,
            rule=f"must be smem with {g.a.arg}_major={g.a.major}",
            why="a fragment holds neighbours along K, so rows in registers are K-major",
            fix=f"use a_source=smem, or {g.a.arg}_major=k",
        )  # fmt: skip


def _fragments_shared(g: Gemm) -> Iterator[Violation]:
    if g.through_registers and g.cluster_n > 1:
        yield Violation(
            field="a_source", got=g.config.a_source,
            rule=f"must be smem in cluster {spell(g.config.cluster)}",
            why="a peer that sends rows must know that ldmatrix has read the ones before; that "
            "takes a release at cluster scope, a memory barrier in the main loop",
            fix="use a_source=smem, or cluster=2x1",
        )  # fmt: skip


def _copies(g: Gemm) -> Iterator[Violation]:
    """What operands that threads copy keep from being combined with."""
    if not g.copies:
        return
    p, c = g.problem, g.config
    for field, got, want, why in (
        ("cluster", spell(c.cluster), "1x1", "nothing but TMA sends a load to several CTAs"),
        ("split_k", str(c.split_k), "1", "CTAs that share K are a cluster"),
        ("a_major", p.a_major, "k", "a lane copies 4 bytes along K"),
        ("b_major", p.b_major, "k", "a lane copies 4 bytes along K"),
        ("gated", str(p.gated), "0", "rows of both halves of B come by one TMA box"),
    ):
        if got != want:
            yield Violation(
                field=field, got=got, rule=f"must be {want} with load={c.load}", why=why,
                fix=f"use {field}={want}, or load=tma",
            )  # fmt: skip


SCHEDULE_RULES: tuple[Rule[Gemm], ...] = (
    Rule(
        name="schedule", text="consumers share tiles, or take turns",
        check=among(
            "schedule", SCHEDULES, "consumers share every tile, or take whole tiles in turns"
        ),
    ),
    Rule(
        name="turns", text="two consumers take turns",
        check=_turns, needs=("consumers", "schedule"),
    ),
    Rule(
        name="turns and split", text="K is split among CTAs whose consumers share tiles",
        check=_turns_and_split, needs=("split_k", "schedule"),
    ),
    Rule(
        name="stream and split", text="K is shared out among clusters or inside of them",
        check=_stream_and_split, needs=("split_k", "schedule"),
    ),
    Rule(
        name="stream sums", text="K is shared out with 32-bit sums",
        check=_stream_sums, needs=("acc_dtype", "schedule"),
    ),
    Rule(
        name="copies", text="threads copy K-major operands for one CTA",
        check=_copies, needs=("load", "cluster", "split_k", "majors", "epilogue"),
    ),
    Rule(
        name="a_source", text="rows come from shared memory or registers",
        check=among("a_source", SOURCES, "wgmma takes the rows of a tile from there"),
    ),
    Rule(
        name="fragments in flight", text="registers that wgmma reads are not loaded anew",
        check=_fragments_wait, needs=("a_source", "wait_depth"),
    ),
    Rule(
        name="K-major fragments", text="rows in registers are K-major",
        check=_fragments_major, needs=("majors", "a_source", "swap_ab"),
    ),
    Rule(
        name="fragments and cluster", text="rows that go through registers are not shared",
        check=_fragments_shared, needs=("cluster", "a_source"),
    ),
)  # fmt: skip
