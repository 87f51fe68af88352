"""One program under many schedules: what breaks it, how to see that again, and its mutants.

A `Subject` is something that can be launched with its own PTX or with a changed one. A schedule
says when asynchronous work happens, how warps take turns, and the seed; equal schedules give equal
runs, so a failing one replays exactly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
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
from ptxgen.ptx.mutate import Mutant

if TYPE_CHECKING:
    from runtime.emulator.backend import EmulatorBackend
    from runtime.emulator.machine import Schedule as Turns
    from runtime.emulator.queue import Mode

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


def outcome(subject: Subject, ptx: str, schedule: Schedule, *, hazards: bool = True) -> Outcome:
    """One run under one schedule."""
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
    except PtxgenError as error:
        found = error.findings if isinstance(error, HazardError) else (as_finding(error),)
        return Outcome(verdict="fail", findings=found, schedule=schedule, runs=1)
    report = backend.wait(backend.stream(None, "cpu"))
    advice = report.advice if isinstance(report, Report) else ()
    if wrong:
        result = Finding(code="wrong-result", severity="error", message=wrong)
        return Outcome(verdict="fail", findings=(result,), advice=advice, schedule=schedule, runs=1)
    return Outcome(verdict="pass", advice=advice, runs=1, seconds=time.perf_counter() - start)


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


# -- mutants ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a mutant: "killed" (by which code), "survived", or "equivalent" (why)."""

    mutant: Mutant
    fate: str
    by: str = ""
    schedule: Schedule | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A kernel's mutants. `percent` counts those that could be killed: equivalents aside."""

    name: str
    verdicts: tuple[Verdict, ...]
    seconds: float

    def count(self, fate: str) -> int:
        return sum(v.fate == fate for v in self.verdicts)

    @property
    def percent(self) -> float:
        real = len(self.verdicts) - self.count("equivalent")
        return 100 * self.count("killed") / real if real else 100.0


def score(
    subject: Subject,
    mutants: Sequence[Mutant],
    plan: Sequence[Schedule],
    told: Callable[[Verdict], None] = lambda verdict: None,
) -> Score:
    """Run every mutant until a schedule kills it. A program whose mutant gives a new piece of
    advice counts as killed: somebody is told."""
    start = time.perf_counter()
    known = {f.code for f in outcome(subject, subject.ptx, plan[0]).advice}
    verdicts = []
    for mutant in mutants:
        verdict = _fate(subject, mutant, plan, known)
        told(verdict)
        verdicts.append(verdict)
    return Score(name=subject.name, verdicts=tuple(verdicts), seconds=time.perf_counter() - start)


def _fate(subject: Subject, mutant: Mutant, plan: Sequence[Schedule], known: set[str]) -> Verdict:
    for schedule in plan:
        found = outcome(subject, mutant.source, schedule)
        new = [f for f in (*found.findings, *found.advice) if f.code not in known]
        if new:
            by = new[0].code if found.verdict != "pass" else f"{new[0].code} (advice)"
            return Verdict(mutant=mutant, fate="killed", by=by, schedule=schedule)
    why = equivalent(subject.ptx, mutant)
    return Verdict(mutant=mutant, fate="equivalent" if why else "survived", by=why)


def equivalent(ptx: str, mutant: Mutant) -> str:
    """The rule of PTX that makes a surviving mutant harmless, or "" when there is none known."""
    if "setmaxnreg" in mutant.operator:
        return (
            "9.7.19.5: setmaxnreg moves registers between warps; it waits when the pool is short, "
            "and here the pool still covers every inc"
        )
    if mutant.was.startswith("fence.mbarrier_init") and ".shared::cluster.b64" not in ptx:
        return (
            "9.7.13.1: bar.sync and the default .release of barrier.cluster.arrive order the inits "
            "for the CTA itself, and no other CTA uses these barriers"
        )
    return ""


def sampled(mutants: Sequence[Mutant], count: int) -> tuple[Mutant, ...]:
    """`count` mutants, evenly spread: always the same ones."""
    if count <= 0 or count >= len(mutants):
        return tuple(mutants)
    return tuple(mutants[i * len(mutants) // count] for i in range(count))
