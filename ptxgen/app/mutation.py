"""The mutation score of a program: how many ways of breaking it are noticed.

    killed      a schedule gives a finding, a deadlock, a wrong result, or advice that the program
                itself does not get; or ptxas refuses the mutant, or gives something up for it
    equivalent  a rule of PTX makes the change harmless: `equivalence` shows it for this mutant
    survived    nobody noticed

The score is killed / (killed + survived). The raw rate counts equivalents as survivors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ptxgen.app.equivalence import judge
from ptxgen.app.sweep import Outcome, Schedule, Subject, outcome
from ptxgen.errors import HazardError
from ptxgen.ptx.mutate import Mutant


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a mutant. `by` is the code of what killed it, or the rule that makes it
    harmless; `schedule` is the one that killed it."""

    mutant: Mutant
    fate: str  # "killed" | "survived" | "equivalent"
    by: str = ""
    schedule: Schedule | None = None
    advice: bool = False  # killed by advice alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A program's mutants."""

    name: str
    verdicts: tuple[Verdict, ...]
    seconds: float

    def count(self, fate: str) -> int:
        return sum(v.fate == fate for v in self.verdicts)

    @property
    def percent(self) -> float:
        """Killed, of those that are not equivalent."""
        real = len(self.verdicts) - self.count("equivalent")
        return 100 * self.count("killed") / real if real else 100.0

    @property
    def raw_percent(self) -> float:
        """Killed, of all."""
        return 100 * self.count("killed") / len(self.verdicts) if self.verdicts else 100.0


def score(
    subject: Subject,
    mutants: Sequence[Mutant],
    plan: Sequence[Schedule],
    told: Callable[[Verdict], None] = lambda verdict: None,
) -> Score:
    """Run every mutant until a schedule kills it.

    HazardError where the program itself does not pass: then nothing could be said of its mutants.
    """
    start = time.perf_counter()
    clean = outcome(subject, subject.ptx, plan[0])
    if clean.verdict != "pass":
        raise HazardError(clean.findings)
    verdicts = []
    for mutant in mutants:
        verdict = _fate(subject, mutant, plan, clean)
        told(verdict)
        verdicts.append(verdict)
    return Score(name=subject.name, verdicts=tuple(verdicts), seconds=time.perf_counter() - start)


def _fate(subject: Subject, mutant: Mutant, plan: Sequence[Schedule], clean: Outcome) -> Verdict:
    known = {f.code for f in clean.advice}
    found = clean
    for schedule in plan:
        found = outcome(subject, mutant.source, schedule)
        if found.verdict == "unsupported":  # not run, so not noticed
            return Verdict(mutant=mutant, fate="survived", by=found.findings[0].message)
        if found.verdict == "fail":
            by = found.findings[0].code
            return Verdict(mutant=mutant, fate="killed", by=by, schedule=schedule)
        new = [f for f in found.advice if f.code not in known]
        if new:
            by = f"{new[0].code} (advice)"
            return Verdict(mutant=mutant, fate="killed", by=by, schedule=schedule, advice=True)
    last = judge(subject.ptx, mutant, clean.report, found.report)
    return Verdict(mutant=mutant, fate=last.fate, by=last.by)


def sampled(mutants: Sequence[Mutant], count: int) -> tuple[Mutant, ...]:
    """`count` mutants, evenly spread: always the same ones."""
    if count <= 0 or count >= len(mutants):
        return tuple(mutants)
    return tuple(mutants[i * len(mutants) // count] for i in range(count))
