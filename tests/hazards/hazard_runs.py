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

FLAGS = ("--pdl",)  # options without a value


def options(words: Sequence[str], **changes: object) -> Options:
    """Options from words of a command line, each with its value; then changes to them."""
    found: dict[str, object] = {"args": tuple(v for k, v in _pairs(words) if k == "--arg")}
    found |= {k.removeprefix("--"): v for k, v in _pairs(words) if k != "--arg"}
    return replace(Options(**found), **changes)  # type: ignore[arg-type]


def _pairs(words: Sequence[str]) -> list[tuple[str, object]]:
    flags = [word for word in words if word in FLAGS]
    rest = [word for word in words if word not in FLAGS]
    return [*zip(rest[::2], rest[1::2], strict=True), *((word, True) for word in flags)]


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
    kernel = load_ptx(ptx, pdl=asked.pdl)
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


# Names that the bodies of small programs share.
PROLOGUE = """
.shared .align 1024 .b8 tile[4096];
.shared .align 8 .b64 full;
.shared .align 8 .b64 empty;
.reg .pred %other, %done, %p;
.reg .b32 %thread, %warp, %tile, %full, %empty, %mine, %word, %rank, %peer, %n;
.reg .b64 %x, %out, %map;
mov.u32 %thread, %tid.x;
shr.u32 %warp, %thread, 5;
mov.u32 %rank, %cluster_ctarank;
mov.u32 %tile, tile;
mov.u32 %full, full;
mov.u32 %empty, empty;
mad.lo.u32 %mine, %thread, 4, %tile;
setp.ne.u32 %other, %thread, 0;
"""
COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
TENSOR_LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"


def program(body: str, params: str = "", *, threads: int = 32, cluster: int = 1) -> str:
    """An entry with that body. It may use the names of PROLOGUE, and thread 0 is `!%other`."""
    lines = [
        ".version 8.3", ".target sm_90a", ".address_size 64", f".visible .entry case({params})",
        f".reqntid {threads}", f".reqnctapercluster {cluster}" if cluster > 1 else "",
        "{", PROLOGUE, body, "ret;", "}",
    ]  # fmt: skip
    return "\n".join(lines)


def wait(parity: int, bar: str = "%full", label: str = "WAIT") -> str:
    """Spin until the phase of that parity has ended."""
    return (
        f"{label}: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [{bar}], "
        f"{parity};\n@!%done bra {label};"
    )


def init(count: int, bar: str = "%full") -> str:
    """One thread makes a barrier; everybody knows."""
    return (
        f"@!%other mbarrier.init.shared::cta.b64 [{bar}], {count};\n"
        "fence.mbarrier_init.release.cluster;\nbar.sync 0;"
    )


def codes(name: str, ptx: str, words: Sequence[str] = (), **changes: object) -> set[str]:
    """The codes that the schedules of the options find, advice included; each is asked alone."""
    found: set[str] = set()
    for schedule in ("eager:round_robin:0", "latest:random:1", "random:priority:2"):
        result = check(name, ptx, words, replay=schedule, **changes)
        found |= {f.code for f in (*result.findings, *result.advice)}
    return found
