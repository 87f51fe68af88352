"""Small PTX programs under the checks, as `ptxgen check` runs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import runtime
from ptxgen.app.check_args import extents, parse_arguments
from ptxgen.app.check_cmd import Check, Options, run
from ptxgen.app.sweep import Schedule, as_finding
from ptxgen.errors import Deadlock, Finding, HazardError
from ptxgen.foreign import load_ptx
from runtime.emulator.backend import EmulatorBackend


def options(words: Sequence[str], **changes: object) -> Options:
    """Options from words of a command line, each with its value; then changes to them."""
    found: dict[str, object] = {"args": tuple(v for k, v in _pairs(words) if k == "--arg")}
    found |= {k.removeprefix("--"): v for k, v in _pairs(words) if k != "--arg"}
    return replace(Options(**found), **changes)  # type: ignore[arg-type]


def _pairs(words: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(words[::2], words[1::2], strict=True))


def check(name: str, ptx: str, words: Sequence[str] = (), **changes: object) -> Check:
    """Read and run a program under the schedules that the options ask for."""
    return run(name, ptx, options(words, **changes))


def one(found: Check) -> Finding:
    """The only finding (or, where the program passes, the only advice)."""
    (finding,) = found.findings or found.advice
    return finding


def unchecked(ptx: str, words: Sequence[str], schedule: Schedule) -> tuple[Finding, ...]:
    """What a run without hazard checks finds."""
    asked = options(words)
    kernel = load_ptx(ptx)
    arguments = parse_arguments(asked.args, 0)
    names = [p.name for p in kernel.spec.params]
    values = dict(zip(names, (a.value for a in arguments), strict=True))
    backend = EmulatorBackend(mode=schedule.mode, schedule=schedule.turns, seed=schedule.seed)
    try:
        runtime.launch(kernel, args=values, grid=extents(asked.grid), backend=backend)
    except HazardError as error:
        return error.findings
    except Deadlock as error:
        return (as_finding(error),)
    return ()
