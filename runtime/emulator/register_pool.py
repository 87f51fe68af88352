"""setmaxnreg: registers move between the warps of a CTA (PTX ISA 9.7.19.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from ptxgen.isa.arch import (
    REGISTERS_PER_SM,
    REGISTERS_PER_THREAD,
    SETMAXNREG_MAX,
    SETMAXNREG_MIN,
    SETMAXNREG_STEP,
)

from .emit import Emitter
from .isa import opcode
from .operands import Imm, Op, Program, Reg, Sink
from .report import RegisterUse, hazard
from .state import CTA, PARK, Path, Warp
from .whole_warp import require_whole_warp


@dataclass(slots=True)
class RegisterPool:
    """Registers of a CTA that no warp holds. `entry` is the count a thread starts with."""

    entry: int
    free: int = 0
    changes: Counter[int] = field(default_factory=Counter)  # setmaxnreg by warp

    def use(self, warps: Sequence[Warp]) -> RegisterUse:
        """What the warps hold, for the report."""
        return RegisterUse(
            self.entry,
            tuple(w.registers for w in warps),
            tuple(self.changes[w.index] for w in warps),
        )

    def describe(self) -> str:
        return f"register pool: {self.free} registers free"


@dataclass(frozen=True, slots=True)
class Resize:
    """A setmaxnreg that a warp has executed, and in which epoch when hazards are checked."""

    word: str
    count: int
    line: int
    epoch: int


@dataclass(slots=True)
class PoolWait:
    pool: RegisterPool
    need: int
    holders: str

    def ready(self) -> bool:
        return self.pool.free >= self.need

    def describe(self) -> str:
        return (
            f"setmaxnreg.inc needs {self.need} registers for this warp, the CTA's pool has "
            f"{self.pool.free} of those that dec released (entry {self.pool.entry} a thread); "
            f"held: {self.holders}"
        )


def entry_registers(program: Program) -> int | None:
    """Registers a thread has at entry, as ptxas fixes them; None where it cannot know them.

    With .reqntid (or .maxntid) and .minnctapersm: what fits the SM, but no more than the smallest
    setmaxnreg.inc of the program.
    """
    directives = program.directives
    if "maxnreg" in directives:
        return min(directives["maxnreg"][0], REGISTERS_PER_THREAD)
    threads = directives.get("reqntid") or directives.get("maxntid")
    ctas = directives.get("minnctapersm")
    if not threads or not ctas:
        return None
    rounded = (prod(threads) + 127) // 128 * 128
    fits = REGISTERS_PER_SM // (rounded * ctas[0]) // 8 * 8
    increases = [
        op.operands[0].value
        for op in program.ops
        if op.opcode == "setmaxnreg" and op.has("inc") and isinstance(op.operands[0], Imm)
    ]
    return min(fits, REGISTERS_PER_THREAD, *increases)


def set_max_registers(p: Path, increase: int, count: int, line: int) -> bool:
    """True while the pool is too small for an increase."""
    require_whole_warp(p, line, "setmaxnreg")
    pool, warp = p.C.pool, p.w
    if pool is None:  # ptxas ignores setmaxnreg where it does not know the entry count
        return False
    if count % SETMAXNREG_STEP or not SETMAXNREG_MIN <= count <= SETMAXNREG_MAX:
        raise hazard(
            "setmaxnreg",
            f"setmaxnreg to {count} registers",
            path=p,
            line=line,
            reason=f"counts are multiples of {SETMAXNREG_STEP} from {SETMAXNREG_MIN} to "
            f"{SETMAXNREG_MAX}",
            cure="round the count up",
        )
    if p.token is None:
        _check_warpgroup(p, "inc" if increase else "dec", count, line)
        p.token = "counted"
    change = count - warp.registers
    if (change < 0) if increase else (change > 0):
        word, other = ("inc", "below") if increase else ("dec", "above")
        raise hazard(
            "setmaxnreg",
            f"setmaxnreg.{word} {count}, which is {other} the {warp.registers} it has",
            path=p,
            line=line,
            reason="inc must not lower and dec must not raise the count",
            cure="check the entry count (.maxnreg, or .reqntid with .minnctapersm)",
            isa="9.7.19.5 setmaxnreg",
        )
    if increase and pool.free < 32 * change:
        counts = ", ".join(f"warp {w.index} {w.registers}" for w in p.C.warps)
        p.wait = PoolWait(pool, 32 * change, counts)
        return True
    p.token = None
    pool.free -= 32 * change
    pool.changes[warp.index] += 1
    warp.registers = count
    p.C.machine_epoch.bump()
    return False


def _check_warpgroup(p: Path, word: str, count: int, line: int) -> None:
    """The warps of a warpgroup execute the same setmaxnreg, and meet before the next one."""
    warp, view = p.w, p.w.view
    at = len(warp.resizes)
    warp.resizes.append(Resize(word, count, line, view.epoch if view is not None else 0))
    for other in warp.group.warps:
        if other is warp:
            continue
        theirs = other.resizes[at] if len(other.resizes) > at else None
        if theirs is not None and (theirs.word, theirs.count) != (word, count):
            raise _differ(
                f"setmaxnreg.{word} {count} in warp {warp.index}, .{theirs.word} {theirs.count} in "
                f"warp {other.index} of its warpgroup", p, (line, theirs.line),
            )  # fmt: skip
        if at and p.C.watch is not None:
            before = other.resizes[at - 1] if len(other.resizes) >= at else None
            if before is None or not view.clock.has(other.view.number, before.epoch):
                raise hazard(
                    "setmaxnreg-order",
                    f"a second setmaxnreg, and nothing says that warp {other.index} of the "
                    "warpgroup has executed the first",
                    path=p,
                    line=line,
                    lines=(warp.resizes[at - 1].line,),
                )


def check_resizes(cta: CTA) -> None:
    """A CTA is over: the warps of every warpgroup have executed as many setmaxnreg."""
    for group in cta.groups:
        most = max(group.warps, key=lambda w: len(w.resizes))
        for warp in group.warps:
            if len(warp.resizes) < len(most.resizes):
                missed = most.resizes[len(warp.resizes)]
                raise _differ(
                    f"warp {warp.index} has not executed the setmaxnreg.{missed.word} "
                    f"{missed.count} of its warpgroup",
                    None, (missed.line,), f"CTA {cta.name}, warp {warp.index}",
                )  # fmt: skip


def _differ(message: str, p: Path | None, lines: tuple[int, ...], where: str = "") -> Exception:
    first, *rest = lines
    return hazard(
        "setmaxnreg-warps", message, path=p, line=first, lines=tuple(rest), where=where
    )  # fmt: skip


@opcode("setmaxnreg", dests=0, waits=lambda op: True)
def set_max_nreg(e: Emitter, op: Op) -> None:
    (count,) = op.operands
    if not e.uniform(count) or isinstance(count, Reg | Sink):
        raise op.unsupported("the count must be an immediate")
    increase = int(op.quals[0] == "inc")
    text = f"set_max_registers(p, {increase}, {e.scalar(count)}, {op.line})"
    e.line(f"if {text}: return {PARK}")
