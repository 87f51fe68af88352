"""Rules on who works on which tile when: schedules of the consumers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxgen.configs.base import Rule
from ptxgen.configs.gemm import SCHEDULES
from ptxgen.errors import Violation

if TYPE_CHECKING:
    from ptxgen.configs.gemm_shape import Gemm


def _schedule(g: Gemm) -> Iterator[Violation]:
    if g.config.schedule not in SCHEDULES:
        yield Violation(
            field="schedule", got=g.config.schedule, rule=f"must be {' or '.join(SCHEDULES)}",
            why="consumers share every tile, or take whole tiles in turns",
            fix="use schedule=cooperative",
        )  # fmt: skip


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


SCHEDULE_RULES: tuple[Rule[Gemm], ...] = (
    Rule(name="schedule", text="consumers share tiles, or take turns", check=_schedule),
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
)  # fmt: skip
