"""`ptxgen check`: a PTX program on the emulator, which stops at whatever a GPU would get wrong.

    clean         it ran to its end                              exit 0
    finding       it broke a rule of the machine, or hung        exit 1
    unsupported   it uses what the emulator does not execute     exit 2

What the command line or the PTX itself gets wrong is an error like any other, and exit 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group
from rich.text import Text

from ptxgen.app.check_args import Argument, extents, parse_arguments
from ptxgen.app.lines import Lines
from ptxgen.app.output import Answer
from ptxgen.errors import (
    ArgumentError,
    Deadlock,
    Finding,
    HazardError,
    KernelReferenceError,
    UnsupportedPtx,
    Violation,
)
from ptxgen.foreign import ForeignKernel, load_ptx
from ptxgen.isa.dtypes import from_numpy

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
    args: Sequence[str] = ()
    seed: int = 0
    save: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One checked run. `verdict` is "clean", "finding" or "unsupported"."""

    verdict: str
    file: str
    kernel: ForeignKernel
    grid: tuple[int, ...]
    findings: tuple[Finding, ...] = ()
    ctas: int = 0
    instructions: int = 0
    seconds: float = 0.0
    events: Mapping[str, int] = field(default_factory=dict)
    arrays: Mapping[str, str] = field(default_factory=dict)  # those that were changed, in words
    names: Mapping[str, str] = field(default_factory=dict)  # parameter -> argument


def check(what: str, options: Options) -> Answer:
    """Run what was named, and say what came of it."""
    if Path(what).suffix != ".ptx":
        raise KernelReferenceError(
            f"{what!r} is no .ptx file: `ptxgen check` runs PTX files; `ptxgen run` runs kernels "
            "of the catalogue, and `ptxgen emit KERNEL -o FILE.ptx` writes one to a file"
        )
    found = run(what, Path(what).read_text(encoding="utf-8"), options)
    failure = UNSUPPORTED if found.verdict == "unsupported" else 1
    return Answer(
        data=to_dict(found), view=view(found), ok=found.verdict == "clean", failure=failure
    )


def run(file: str, ptx: str, options: Options) -> Check:
    """Run a PTX text with arguments made as `options.args` say; then save the arrays if asked."""
    import runtime
    from runtime.emulator.backend import EmulatorBackend

    kernel = load_ptx(
        ptx,
        options.entry,
        block=_extents("--block", options.block),
        cluster=_extents("--cluster", options.cluster),
        smem=options.smem,
    )
    grid = _extents("--grid", options.grid) or (1,)
    arguments = parse_arguments(options.args, options.seed)
    names = _matched(kernel, arguments)
    values = {param: a.value for param, a in zip(names, arguments, strict=True)}
    before = {a.name: a.array.copy() for a in arguments if a.array is not None}
    backend = EmulatorBackend()
    found = Check(verdict="clean", file=file, kernel=kernel, grid=grid, names=names)
    try:
        runtime.launch(kernel, args=values, grid=grid, backend=backend)
    except UnsupportedPtx as error:
        return replace(found, verdict="unsupported", findings=(_unsupported(error),))
    except HazardError as error:
        return replace(found, verdict="finding", findings=error.findings)
    except Deadlock as error:
        return replace(found, verdict="finding", findings=(_deadlock(error),))
    report: Any = backend.wait(backend.stream(None, "cpu"))
    after = {a.name: a.array for a in arguments if a.array is not None}
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


def _unsupported(error: UnsupportedPtx) -> Finding:
    message = str(error).split(": ", 1)[1] if error.line is not None else str(error)
    lines = (error.line,) if error.line is not None else ()
    return Finding(code="unsupported", severity="error", message=message, lines=lines)


def _deadlock(error: Deadlock) -> Finding:
    head, *rest = str(error).removeprefix("deadlock: ").splitlines()
    return Finding(
        code="deadlock",
        severity="error",
        message=head,
        reason="; ".join(line.strip() for line in rest),
    )


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
        "ctas": found.ctas,
        "instructions": found.instructions,
        "seconds": found.seconds,
        "events": found.events,
        "arrays": found.arrays,
    }


def view(found: Check) -> Group:
    """The verdict on top; then what is wrong, or what was run and changed."""
    spec = found.kernel.spec
    good = found.verdict == "clean"
    style = "bold green" if good else "bold red"
    shape = "x".join(map(str, found.grid))
    head = (
        f"{found.verdict}: {spec.entry}, grid {shape}, block {spec.block}, cluster {spec.cluster}"
    )
    if not good:
        parts = [Lines(explain(f, found.kernel.ptx, found.names)) for f in found.findings]
        return Group(Text(head, style=style), *parts)
    rows = [f"  {found.instructions:,} warp instructions in {found.ctas:,} CTAs"]
    rows += [f"  {count:,} {name}" for name, count in sorted(found.events.items())]
    width = max(map(len, found.arrays), default=0)
    rows += [f"  {name:{width}}  {text}" for name, text in found.arrays.items()]
    return Group(Text(head, style=style), Lines("\n".join(rows)))


def explain(finding: Finding, ptx: str, names: Mapping[str, str]) -> str:
    """A finding with its PTX lines: code and message, the lines, who, why, and the cure.

    Parameters go by the names that the caller gave them.
    """

    def named(text: str) -> str:
        return re.sub(r"[\w$]+", lambda word: names.get(word[0], word[0]), text)

    rows = [(f"line {n}", line_of(ptx, n)) for n in finding.lines]
    rows += [
        ("in", finding.where),
        ("bytes", named(finding.bytes_)),
        ("why", finding.reason),
        ("cure", finding.cure),
        ("PTX ISA", finding.isa),
    ]
    rows = [(name, text) for name, text in rows if text]
    width = max((len(name) for name, _ in rows), default=0)
    head = f"{finding.severity} {finding.code}: {named(finding.message)}"
    return "\n".join([head, *(f"  {name:{width}}  {text}" for name, text in rows)])


def line_of(ptx: str, number: int) -> str:
    """One line of the PTX, without its indentation."""
    lines = ptx.splitlines()
    return " ".join(lines[number - 1].split()) if 0 < number <= len(lines) else ""
