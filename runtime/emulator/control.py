"""Control, fences and hints: instructions that order things or end the kernel.

Branches and returns are emitted by `Emitter.block`, since they end blocks. Fences order accesses of
one thread as others see them; here every access is visible at once, so they only have to be forms
that exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .clocks import SCOPES
from .emit import Emitter
from .isa import always, opcode
from .map_forms import emit_map_fence
from .operands import Op
from .report import hazard
from .state import Path

FENCES = frozenset(
    {"mbarrier_init.release.cluster"}
    | {f"proxy.async{s}" for s in ("", ".global", ".shared::cta", ".shared::cluster")}
    | {"proxy.alias"}
    | {
        f"proxy.tensormap::generic.{sem}.{scope}"
        for sem in ("acquire", "release")
        for scope in ("cta", "cluster", "gpu", "sys")
    }
    | {
        f"{sem}{scope}"
        for sem in ("sc.", "acq_rel.", "acquire.", "release.")
        for scope in ("cta", "cluster", "gpu", "sys")
    }
    | {
        "proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster",
        "proxy.async::generic.release.sync_restrict::shared::cta.cluster",
        "acquire.sync_restrict::shared::cluster.cluster",
        "release.sync_restrict::shared::cta.cluster",
    }
)
MEMBARS = frozenset({"cta", "gl", "sys", "gpu", "cluster", "proxy.alias"})


@opcode("bra", "ret", "exit", dests=0)
def leave_block(e: Emitter, op: Op) -> None:
    """Emitted at the end of the block."""


@opcode("fence", "membar", dests=0)
def fence(e: Emitter, op: Op) -> None:
    known = FENCES if op.opcode == "fence" else MEMBARS
    if ".".join(op.quals) not in known:
        raise op.unsupported("this fence is not known here")
    if op.quals[0] == "mbarrier_init":
        e.line("if C.watch: init_fence(p)")
    elif op.has("tensormap::generic"):
        emit_map_fence(e, op)
    elif op.quals[0].startswith("proxy"):
        e.line(f"if C.watch: proxy_fence(p, '{_proxy_space(op)}')")
    elif "sync_restrict" not in ".".join(op.quals):
        semantics = op.quals[0] if op.quals[0] in ("acquire", "release") else "acq_rel"
        e.line(f"if C.watch: order_fence(p, '{semantics}', {SCOPES[op.quals[-1]]})")


def _proxy_space(op: Op) -> str:
    """The state space of a fence.proxy.async; "none" for proxies that are not checked."""
    if op.quals[1] == "alias":
        return "none"
    return op.quals[-1].partition("::")[0] if op.quals[-1] != op.quals[1] else ""


@opcode("griddepcontrol", dests=0)
def grid_dependency(e: Emitter, op: Op) -> None:
    """Launches run one after another, so the grid before has always completed: what is checked is
    that the program does not rely on it."""
    if op.quals[0] not in ("wait", "launch_dependents"):
        raise op.unsupported("only wait and launch_dependents exist")
    if op.quals[0] == "wait":
        e.line("if C.watch: grid_waited(p)")


@opcode("nanosleep", "pmevent", "brkpt", dests=0)
def pause(e: Emitter, op: Op) -> None:
    """Time does not pass here while a warp sleeps."""


@opcode("trap", dests=0)
def trap(e: Emitter, op: Op) -> None:
    e.line(f"trap(p, {op.line})")


def trapped(p: Path, line: int) -> None:
    raise hazard("trap", "the program executed trap", path=p, line=line,
                 reason="the program stops itself where it finds an error")  # fmt: skip


# The policies that ptxas produces for fraction 1.0.
POLICIES: Mapping[str, int] = MappingProxyType(
    {
        "L2::evict_unchanged": 0x10F0 << 48,
        "L2::evict_first": 0x12F0 << 48,
        "L2::evict_last": 0x14F0 << 48,
        "L2::evict_normal": 0x16F0 << 48,
    }
)


@opcode("createpolicy", uniform=always)
def create_policy(e: Emitter, op: Op) -> None:
    """A cache policy changes no result; its value only has to be a 64-bit number."""
    primary = next((q for q in op.quals if q in POLICIES), None)
    if op.quals[0] != "fractional" or primary is None:
        raise op.unsupported("only createpolicy.fractional")
    e.set_scalar(op.operands[0], str(POLICIES[primary]))
