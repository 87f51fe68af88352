"""`ptxgen check`: a PTX program on the emulator, which stops at whatever a GPU would get wrong.

    pass          it ran to its end under every schedule         exit 0
    fail          it broke a rule of the machine, or hung        exit 1
    unsupported   it uses what the emulator does not execute     exit 2

What the command line or the PTX itself gets wrong is an error like any other, and exit 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group
from rich.text import Text

from ptxgen.app import check_many
from ptxgen.app.check_args import Argument, extents, parse_arguments
from ptxgen.app.findings import explain, line_of
from ptxgen.app.lines import Lines
from ptxgen.app.output import Answer
from ptxgen.app.subjects import CatalogueSubject, FileSubject
from ptxgen.app.sweep import FIRST, Schedule, as_finding, sweep
from ptxgen.errors import (
    ArgumentError,
    Deadlock,
    Finding,
    HazardError,
    UnsupportedPtx,
    Violation,
)
from ptxgen.foreign import ForeignKernel, load_ptx
from ptxgen.isa.dtypes import from_numpy
from ptxgen.ptx.lint import lint
from ptxgen.view.base import count

UNSUPPORTED = 2
SHOWN_VALUES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What may be typed after `ptxgen check FILE.ptx`, as it was typed."""

    entry: str | None = None
    grid: str = "1"
    block: str | None = None
    cluster: str | None = None
    smem: int = 0
    pdl: bool = False  # beside the grid before
    args: Sequence[str] = ()
    seed: int = 0
    save: Path | None = None
    static: bool = False  # read only, do not run
    seeds: int = 1  # schedules a mode
    mode: str | None = None  # one mode instead of all three
    replay: str | None = None  # one schedule, as a finding names it
    mutate: bool = False
    sample: int = 0  # mutants; 0: all


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One checked run. `verdict` is "pass", "fail" or "unsupported"."""

    verdict: str
    file: str
    kernel: ForeignKernel
    grid: tuple[int, ...]
    findings: tuple[Finding, ...] = ()
    advice: tuple[Finding, ...] = ()
    schedule: Schedule = FIRST
    runs: int = 1
    ctas: int = 0
    instructions: int = 0
    seconds: float = 0.0
    events: Mapping[str, int] = field(default_factory=dict)
    arrays: Mapping[str, str] = field(default_factory=dict)  # those that were changed, in words
    names: Mapping[str, str] = field(default_factory=dict)  # parameter -> argument


def check(what: str, options: Options) -> Answer:
    """Read or run what was named, and say what came of it."""
    if Path(what).suffix != ".ptx":
        return check_many.check(CatalogueSubject(what), options)
    ptx = Path(what).read_text(encoding="utf-8")
    if options.static:
        return check_many.static(what, ptx, options.entry)
    if options.mutate:
        return check_many.check(_subject(what, ptx, options), options)
    found = run(what, ptx, options)
    failure = UNSUPPORTED if found.verdict == "unsupported" else 1
    return Answer(
        data=to_dict(found), view=view(found), ok=found.verdict == "pass", failure=failure
    )


def _subject(file: str, ptx: str, options: Options) -> FileSubject:
    launch = {
        "block": _extents("--block", options.block),
        "cluster": _extents("--cluster", options.cluster),
        "smem": options.smem,
        "pdl": options.pdl,
    }
    arguments = parse_arguments(options.args, options.seed)
    names = _matched(load_ptx(ptx, options.entry, **launch), arguments)  # type: ignore[arg-type]
    grid = _extents("--grid", options.grid) or (1,)
    return FileSubject(file, ptx, options.entry, arguments, names, grid, launch)


def run(file: str, ptx: str, options: Options) -> Check:
    """Run a PTX text with arguments made as `options.args` say; then save the arrays if asked.

    The first schedule is the one that fills the arrays; more of them follow where asked for.
    """
    import runtime
    from runtime.emulator.backend import EmulatorBackend

    kernel = load_ptx(
        ptx,
        options.entry,
        block=_extents("--block", options.block),
        cluster=_extents("--cluster", options.cluster),
        smem=options.smem,
        pdl=options.pdl,
    )
    grid = _extents("--grid", options.grid) or (1,)
    arguments = parse_arguments(options.args, options.seed)
    names = _matched(kernel, arguments)
    values = {param: a.value for param, a in zip(names, arguments, strict=True)}
    before = {a.name: a.array.copy() for a in arguments if a.array is not None}
    plan = check_many.plan(options)
    first = plan[0]
    backend = EmulatorBackend(mode=first.mode, schedule=first.turns, seed=first.seed, hazards=True)
    advice = lint(ptx, kernel.spec.entry)
    found = Check(
        verdict="pass", file=file, kernel=kernel, grid=grid, names=names, schedule=first,
        advice=advice,
    )  # fmt: skip
    if any(f.severity == "error" for f in advice):
        return replace(found, verdict="fail", findings=advice, advice=())
    try:
        runtime.launch(kernel, args=values, grid=grid, backend=backend)
    except UnsupportedPtx as error:
        return replace(found, verdict="unsupported", findings=(as_finding(error),))
    except HazardError as error:
        return replace(found, verdict="fail", findings=error.findings)
    except Deadlock as error:
        return replace(found, verdict="fail", findings=(as_finding(error),))
    report: Any = backend.wait(backend.stream(None, "cpu"))
    after = {a.name: a.array for a in arguments if a.array is not None}
    found = replace(found, advice=(*advice, *report.advice), runs=len(plan))
    if len(plan) > 1:
        rest = sweep(_subject(file, ptx, options), ptx, plan[1:])
        if rest.verdict != "pass" and rest.schedule is not None:
            return replace(
                found, verdict=rest.verdict, findings=rest.findings, schedule=rest.schedule
            )
    if options.save is not None:
        saved: dict[str, Any] = {name: _storable(array) for name, array in after.items()}
        np.savez(options.save, **saved)
    return replace(
        found,
        ctas=report.ctas,
        instructions=report.instructions,
        seconds=report.elapsed_s,
        events=dict(report.events),
        arrays={n: describe(x) for n, x in after.items() if x.tobytes() != before[n].tobytes()},
    )


def _extents(option: str, text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        found = extents(text)
    except ValueError:
        found = ()
    if not 1 <= len(found) <= 3:
        rule = "must be 1 to 3 extents along x, y, z"
        raise ArgumentError(
            "this launch cannot be read",
            [Violation(field=option, got=text, rule=rule, fix=f"for example {option} 4x2")],
        )
    return found


def _matched(kernel: ForeignKernel, arguments: Sequence[Argument]) -> dict[str, str]:
    """Parameter -> name of its argument, in the order of the arguments.

    By name where the PTX has one of these names; otherwise, as compilers lose the names of a
    program, all of them in order.
    """
    known = [p.name for p in kernel.spec.params]
    given = [a.name for a in arguments]
    if any(name in known for name in given):
        return {name: name for name in given}
    if len(given) == len(known):
        return dict(zip(known, given, strict=True))
    raise ArgumentError(
        f"{kernel.spec.entry}: wrong arguments",
        [
            Violation(
                field="--arg",
                got=f"{len(given)}: {', '.join(given) or 'none'}",
                rule=f"must be {len(known)}: {', '.join(known) or 'none'}",
                why="names that the PTX does not have are taken in the order of its parameters",
            )
        ],
    )


# --- what came of it -----------------------------------------------------------------------------


def _storable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What .npz can name: types that are not NumPy's own are saved as their bits."""
    return array.view(f"u{array.itemsize}") if array.dtype.kind == "V" else array


def describe(array: np.ndarray[Any, Any]) -> str:
    """`f32 [4]  12 -7 3 88`: type, shape, the first values, and how many are not a number."""
    row = from_numpy(array.dtype)
    values = array.ravel()[:SHOWN_VALUES].astype(np.float64 if row and row.is_float else object)
    texts = [f"{v:.6g}" if isinstance(v, float) else str(v) for v in values.tolist()]
    more = " ..." if array.size > SHOWN_VALUES else ""
    nans = int(np.isnan(array.astype(np.float64)).sum()) if row and row.is_float else 0
    note = f"  ({nans:,} of {array.size:,} are NaN)" if nans else ""
    shape = ", ".join(map(str, array.shape))
    return f"{row.name if row else array.dtype} [{shape}]  {' '.join(texts)}{more}{note}"


def to_dict(found: Check) -> dict[str, object]:
    """For JSON. Each finding also has the text of its PTX lines."""
    spec = found.kernel.spec
    return {
        "verdict": found.verdict,
        "file": found.file,
        "entry": spec.entry,
        "grid": found.grid,
        "block": tuple(spec.block),
        "cluster": tuple(spec.cluster),
        "parameters": found.names,
        "findings": [
            {**asdict(f), "ptx": [line_of(found.kernel.ptx, n) for n in f.lines]}
            for f in found.findings
        ],
        "advice": [
            {**asdict(f), "ptx": [line_of(found.kernel.ptx, n) for n in f.lines]}
            for f in found.advice
        ],
        "schedule": str(found.schedule),
        "runs": found.runs,
        "ctas": found.ctas,
        "instructions": found.instructions,
        "seconds": found.seconds,
        "events": found.events,
        "arrays": found.arrays,
    }


def view(found: Check) -> Group:
    """The verdict on top; then what is wrong, or what was run and changed."""
    spec = found.kernel.spec
    good = found.verdict == "pass"
    style = "bold green" if good else "bold red"
    shape = "x".join(map(str, found.grid))
    head = (
        f"{found.verdict}: {spec.entry}, grid {shape}, block {spec.block}, cluster {spec.cluster}"
    )
    if not good:
        parts = [Lines(explain(f, found.kernel.ptx, found.names)) for f in found.findings]
        again = Text(f"  again    --replay {found.schedule}", style="dim")
        return Group(Text(head, style=style), *parts, again)
    rows = [f"  {count(found.instructions, 'warp instruction')} in {count(found.ctas, 'CTA')}"]
    rows += [f"  {number:,} {name}" for name, number in sorted(found.events.items())]
    width = max(map(len, found.arrays), default=0)
    rows += [f"  {name:{width}}  {text}" for name, text in found.arrays.items()]
    advice = [Lines(explain(f, found.kernel.ptx, found.names)) for f in found.advice]
    return Group(Text(head, style=style), *advice, Lines("\n".join(rows)))
