"""`ptxgen check` without launching by hand: reading only, many schedules, and mutants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from ptxgen.app.findings import explain, line_of
from ptxgen.app.lines import Lines
from ptxgen.app.mutation import Score, sampled, score
from ptxgen.app.output import Answer
from ptxgen.app.sweep import (
    FIRST,
    MODES,
    Outcome,
    Schedule,
    Subject,
    schedules,
    sweep,
)
from ptxgen.errors import ArgumentError, Finding, Violation
from ptxgen.ptx.lint import lint
from ptxgen.ptx.mutate import mutants
from ptxgen.view.base import count

if TYPE_CHECKING:
    from ptxgen.app.check_cmd import Options

UNSUPPORTED = 2


def plan(options: Options) -> tuple[Schedule, ...]:
    """The schedules that the options ask for. ArgumentError for what is none."""
    try:
        if options.replay is not None:
            return (Schedule.parse(options.replay),)
        modes = [m for m in MODES if options.mode in (None, m)]
        if not modes:
            raise ValueError(f"{options.mode!r} is no mode; there are {', '.join(MODES)}")
    except ValueError as error:
        broken = Violation(field="--replay or --mode", got="", rule=str(error))
        raise ArgumentError("no such schedule", [broken]) from None
    if options.seeds == 1 and options.mode is None:
        return (FIRST, *schedules(1)[1:])
    return schedules(options.seeds, modes)


def static(file: str, ptx: str, entry: str | None) -> Answer:
    """What reading the PTX finds."""
    found = lint(ptx, entry)
    bad = any(f.severity == "error" for f in found)
    head = f"{'fail' if bad else 'pass'}: {file}, read only"
    parts = [Lines(explain(f, ptx, {})) for f in found]
    view = Group(Text(head, style=_style(not bad)), *parts)
    data = {
        "verdict": "fail" if bad else "pass", "file": file,
        "findings": [_dict(f, ptx) for f in found],
    }  # fmt: skip
    return Answer(data=data, view=view, ok=not bad)


def check(subject: Subject, options: Options) -> Answer:
    """Read, run under every schedule, and break, a subject."""
    found = lint(subject.ptx, subject.entry)
    errors = tuple(f for f in found if f.severity == "error")
    chosen = plan(options)
    if errors or options.static:
        result = Outcome(verdict="fail" if errors else "pass", findings=errors, advice=found)
    else:
        result = sweep(subject, subject.ptx, chosen)
    marks = None
    if options.mutate and result.verdict == "pass":
        chosen_mutants = sampled(tuple(mutants(subject.ptx, subject.entry)), options.sample)
        marks = score(subject, chosen_mutants, chosen)
    ok = result.verdict == "pass" and (marks is None or not marks.count("survived"))
    failure = UNSUPPORTED if result.verdict == "unsupported" else 1
    return Answer(
        data=to_dict(subject, result, marks), view=view(subject, result, marks), ok=ok,
        failure=failure,
    )  # fmt: skip


def _style(good: bool) -> str:
    return "bold green" if good else "bold red"


def _dict(finding: Finding, ptx: str) -> Mapping[str, object]:
    return {**asdict(finding), "ptx": [line_of(ptx, n) for n in finding.lines]}


def to_dict(subject: Subject, result: Outcome, marks: Score | None) -> dict[str, object]:
    """For JSON."""
    data: dict[str, object] = {
        "verdict": result.verdict,
        "kernel": subject.name,
        "entry": subject.entry,
        "runs": result.runs,
        "seconds": result.seconds,
        "schedule": str(result.schedule) if result.schedule else None,
        "findings": [_dict(f, subject.ptx) for f in result.findings],
        "advice": [_dict(f, subject.ptx) for f in result.advice],
    }
    if marks is not None:
        data["mutants"] = {
            "killed": marks.count("killed"),
            "survived": marks.count("survived"),
            "equivalent": marks.count("equivalent"),
            "percent": marks.percent,
            "raw_percent": marks.raw_percent,
            "each": [
                {
                    "operator": v.mutant.operator, "line": v.mutant.line, "was": v.mutant.was,
                    "now": v.mutant.now, "fate": v.fate, "by": v.by,
                    "schedule": str(v.schedule) if v.schedule else None,
                }
                for v in marks.verdicts
            ],
        }  # fmt: skip
    return data


def view(subject: Subject, result: Outcome, marks: Score | None) -> Group:
    """The verdict on top; then what is wrong; then the mutants that nobody noticed."""
    runs = f", {count(result.runs, 'schedule')} in {result.seconds:.1f} s" if result.runs else ""
    head = Text(f"{result.verdict}: {subject.name}{runs}", style=_style(result.verdict == "pass"))
    shown = result.findings if result.verdict != "pass" else result.advice
    parts: list[Text | Lines] = [Lines(explain(f, subject.ptx, {}, subject.where)) for f in shown]
    if result.schedule is not None and result.verdict != "pass":
        again = f"ptxgen check {subject.name} --replay {result.schedule}"
        parts.append(Text(f"  again    {again}", style="dim"))
    if marks is not None:
        parts.append(Lines(mutant_lines(marks)))
    return Group(head, *parts)


def mutant_lines(marks: Score) -> str:
    """The score, and every mutant that was not killed."""
    rows = [
        f"mutants: {marks.count('killed')} killed, {marks.count('survived')} survived, "
        f"{marks.count('equivalent')} equivalent, in {marks.seconds:.1f} s",
        f"  {marks.percent:.1f} % of those that change something are killed, "
        f"{marks.raw_percent:.1f} % of all",
    ]
    for v in marks.verdicts:
        if v.fate != "killed":
            rows.append(f"  {v.fate}  {v.mutant.operator}, line {v.mutant.line}: {v.mutant.was}")
            if v.by:
                rows.append(f"      why  {v.by}")
    return "\n".join(rows)
