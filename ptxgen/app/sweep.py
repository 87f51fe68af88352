"""One program under many schedules: what breaks it, and how to see that again.

A `Subject` is something that can be launched with its own PTX or with a changed one. A schedule
says when asynchronous work happens, how warps take turns, and the seed; equal schedules give equal
runs, so a failing one replays exactly.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ptxgen.errors import (
    Deadlock,
    EmulatorError,
    Finding,
    HazardError,
    PtxgenError,
    UnsupportedPtx,
)
from ptxgen.isa.rules import RULES

if TYPE_CHECKING:
    from runtime.emulator.backend import EmulatorBackend
    from runtime.emulator.machine import Schedule as Turns
    from runtime.emulator.queue import Mode
    from runtime.emulator.report import Report

MODES: tuple[Mode, ...] = ("eager", "latest", "random")
TURNS: tuple[Turns, ...] = ("round_robin", "random", "priority")
MAX_BLOCKS = 2_000_000  # basic blocks: a mutant that runs on and on is stopped


class Subject(Protocol):
    """A program with its arguments. `launch` runs it and says what is wrong with the result."""

    @property
    def name(self) -> str: ...
    @property
    def ptx(self) -> str: ...
    @property
    def entry(self) -> str: ...
    @property
    def sms(self) -> int: ...
    def launch(self, ptx: str, backend: EmulatorBackend) -> str: ...
    def where(self, line: int) -> str: ...


@dataclass(frozen=True, slots=True)
class Schedule:
    mode: Mode
    turns: Turns
    seed: int

    def __str__(self) -> str:
        return f"{self.mode}:{self.turns}:{self.seed}"

    @staticmethod
    def parse(text: str) -> Schedule:
        """MODE:TURNS:SEED, as findings print it. ValueError for anything else."""
        mode, turns, seed = (*text.split(":"), "", "")[:3]
        if mode not in MODES or turns not in TURNS or not seed.isdigit():
            raise ValueError(
                f"{text!r} is no schedule: MODE:TURNS:SEED, MODE one of {', '.join(MODES)}, "
                f"TURNS one of {', '.join(TURNS)}"
            )
        return Schedule(mode, turns, int(seed))


FIRST = Schedule("eager", "round_robin", 0)


def schedules(seeds: int, modes: Sequence[Mode] = MODES) -> tuple[Schedule, ...]:
    """`seeds` schedules a mode; the first is round robin, then random and priority in turn."""
    turns = [TURNS[0], *(TURNS[1 + i % 2] for i in range(seeds - 1))]
    return tuple(Schedule(m, t, seed) for seed, t in enumerate(turns) for m in modes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one or more runs. `verdict` is "pass", "fail" or "unsupported"."""

    verdict: str
    findings: tuple[Finding, ...] = ()
    advice: tuple[Finding, ...] = ()
    schedule: Schedule | None = None  # the one that failed
    runs: int = 0
    seconds: float = 0.0
    report: Report | None = None  # of the last run that went well


def outcome(subject: Subject, ptx: str, schedule: Schedule, *, hazards: bool = True) -> Outcome:
    """One run under one schedule.

    What the program does wrong is the outcome; what is wrong with the launch itself (arguments, PTX
    that does not parse) is raised.
    """
    from runtime.emulator.backend import EmulatorBackend
    from runtime.emulator.report import Report

    backend = EmulatorBackend(
        sms=subject.sms, mode=schedule.mode, schedule=schedule.turns, seed=schedule.seed,
        hazards=hazards,
    )  # fmt: skip
    backend.machine.max_blocks = MAX_BLOCKS
    start = time.perf_counter()
    try:
        wrong = subject.launch(ptx, backend)
    except UnsupportedPtx as error:
        return Outcome(verdict="unsupported", findings=(as_finding(error),), schedule=schedule)
    except EmulatorError as error:
        found = error.findings if isinstance(error, HazardError) else (as_finding(error),)
        return Outcome(verdict="fail", findings=found, schedule=schedule, runs=1)
    report = backend.wait(backend.stream(None, "cpu"))
    advice = report.advice if isinstance(report, Report) else ()
    if wrong:
        result = Finding(code="wrong-result", severity="error", message=wrong)
        return Outcome(verdict="fail", findings=(result,), advice=advice, schedule=schedule, runs=1)
    return Outcome(
        verdict="pass", advice=advice, runs=1, seconds=time.perf_counter() - start,
        report=report if isinstance(report, Report) else None,
    )  # fmt: skip


def as_finding(error: PtxgenError) -> Finding:
    """An error that is not a finding of its own, as one."""
    line = getattr(error, "line", None)
    lines = (line,) if line is not None else ()
    if isinstance(error, Deadlock):
        head, *rest = str(error).removeprefix("deadlock: ").splitlines()
        rule = RULES["deadlock"]
        why = "; ".join(row.strip() for row in rest)
        return Finding(code="deadlock", severity="error", message=head, reason=why, cure=rule.cure)
    if isinstance(error, UnsupportedPtx):
        message = str(error).split(": ", 1)[1] if line is not None else str(error)
        return Finding(code="unsupported", severity="error", message=message, lines=lines)
    kind = "no-end" if type(error) is EmulatorError else type(error).__name__
    return Finding(code=kind, severity="error", message=str(error), lines=lines)


def sweep(subject: Subject, ptx: str, plan: Iterable[Schedule], *, hazards: bool = True) -> Outcome:
    """Run under every schedule until one fails. Advice is gathered from all of them."""
    start = time.perf_counter()
    advice: dict[tuple[str, tuple[int, ...]], Finding] = {}
    runs = 0
    for schedule in plan:
        found = outcome(subject, ptx, schedule, hazards=hazards)
        runs += 1
        advice.update(((f.code, f.lines), f) for f in found.advice)
        if found.verdict != "pass":
            return Outcome(
                verdict=found.verdict, findings=found.findings, advice=tuple(advice.values()),
                schedule=schedule, runs=runs, seconds=time.perf_counter() - start,
            )  # fmt: skip
    return Outcome(
        verdict="pass", advice=tuple(advice.values()), runs=runs,
        seconds=time.perf_counter() - start,
    )  # fmt: skip
