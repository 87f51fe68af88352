"""Barriers that are no memory objects: named barriers of a CTA, the cluster barrier, warp barriers,
and the register pool of setmaxnreg (PTX ISA 9.7.13.1 to 9.7.13.4, 9.7.19.5).

An instruction that waits starts its block. Its function returns True while the path must wait; the
block is then run again later, and `Path.token` tells the second run that the arrival was done.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from . import order
from .clocks import Clock
from .cluster import emit_cluster
from .emit import Emitter
from .isa import opcode
from .operands import Op, Value
from .report import hazard
from .state import CTA, PARK, Path
from .values import Array
from .whole_warp import require_whole_warp

# -- named barriers --------------------------------------------------------------------------------


@dataclass(slots=True)
class NamedBarrier:
    """One of the 16 barriers of a CTA. Counts are threads; a warp counts as 32."""

    cta: CTA
    id: int
    expected: int | None = None  # None: every thread of the CTA that has not exited
    arrived: dict[int, int] = field(default_factory=dict)  # warp -> PTX line
    partial: dict[int, int] = field(default_factory=dict)  # warp -> lanes that have come so far
    active: bool = False
    reduces: bool = False  # whether this phase is of bar.red
    generation: int = 0
    votes: list[bool] = field(default_factory=list)
    results: dict[int, list[bool]] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)  # what this phase passes on

    def target(self) -> int:
        if self.expected is not None:
            return self.expected
        return 32 * sum(1 for w in self.cta.warps if w.live or w.index in self.arrived)

    def update(self) -> None:
        if self.active and 32 * len(self.arrived) >= self.target():
            self.generation += 1
            self.results = {self.generation: self.votes}
            self.arrived, self.votes, self.active = {}, [], False
            self.clock = Clock()
            self.cta.machine_epoch.bump()

    def describe(self) -> str:
        came = ", ".join(f"warp {w} (PTX line {n})" for w, n in sorted(self.arrived.items()))
        got = 32 * len(self.arrived)
        return (
            f"named barrier {self.id}: {got} of {self.target()} threads arrived: {came or 'none'}"
        )


@dataclass(slots=True)
class BarrierWait:
    barrier: NamedBarrier
    generation: int
    clock: Clock | None = None

    def ready(self) -> bool:
        return self.barrier.generation > self.generation

    def describe(self) -> str:
        return self.barrier.describe()


def barrier_arrive(
    p: Path,
    id_: int,
    count: int | None,
    aligned: int,
    votes: Array | None,
    line: int,
    mask: Array | None = None,
) -> BarrierWait:
    """Arrive at a named barrier. Returns what to wait for."""
    if aligned:
        require_whole_warp(p, line, "bar")
    if not 0 <= id_ < 16:
        raise _bad_barrier(p, line, f"barrier {id_}", "there are barriers 0 to 15")
    whole = 32 * p.C.nwarps
    if count is not None and (count <= 0 or count % 32 or count > whole):
        raise _bad_barrier(
            p, line, f"barrier {id_} for {count} threads",
            f"the count must be a multiple of 32, at most {whole} here",
        )  # fmt: skip
    barrier = p.C.named.setdefault(id_, NamedBarrier(p.C, id_))
    if barrier.active and barrier.expected != count:
        raise _bad_barrier(
            p, line, f"barrier {id_} for {count or 'all'} threads",
            f"other warps wait at it for {barrier.expected or 'all'}: all must agree",
        )  # fmt: skip
    if barrier.active and barrier.reduces != (votes is not None):
        raise _bad_barrier(
            p, line, f"barrier {id_}: bar.red among bar.sync or bar.arrive",
            "one phase is one or the other",
        )  # fmt: skip
    index = p.w.index
    if index in barrier.arrived:
        raise _bad_barrier(
            p, line, f"barrier {id_}: warp {index} arrives twice",
            f"it already arrived in PTX line {barrier.arrived[index]}",
        )  # fmt: skip
    wait = BarrierWait(barrier, barrier.generation)
    barrier.active, barrier.expected, barrier.reduces = True, count, votes is not None
    if votes is not None:
        barrier.votes += votes[p.m].tolist()
    if p.C.watch is not None:
        order.barrier_arrive(p, barrier, wait)
    lanes = barrier.partial.pop(index, 0) | p.active(mask)
    if lanes & p.w.live == p.w.live:
        barrier.arrived[index] = line
        barrier.update()
    else:
        barrier.partial[index] = lanes
    p.C.machine_epoch.bump()
    return wait


def _bad_barrier(p: Path, line: int, what: str, rule: str) -> Exception:
    return hazard("named-barrier", f"{what}: {rule}", path=p, line=line,
                  cure="give every participant the same id and count",
                  isa="9.7.13.1 bar, barrier")  # fmt: skip


def barrier_sync(p: Path, id_: int, count: int | None, aligned: int, line: int) -> bool:
    """bar.sync: True while the path has to wait."""
    if p.token is None:
        p.token = barrier_arrive(p, id_, count, aligned, None, line)
    return _still_waits(p)


def barrier_reduce(
    p: Path, id_: int, count: int | None, aligned: int, votes: Array, line: int
) -> list[bool] | None:
    """bar.red: all predicates, or None while the path has to wait."""
    if p.token is None:
        p.token = barrier_arrive(p, id_, count, aligned, votes, line)
    barrier, generation = p.token.barrier, p.token.generation
    return None if _still_waits(p) else barrier.results[generation + 1]


def _still_waits(p: Path) -> bool:
    if not p.token.ready():
        p.wait = p.token
        return True
    if p.token.clock is not None:
        order.barrier_done(p, p.token.clock)
    p.token = None
    return False


def _waits(op: Op) -> bool:
    return "arrive" not in op.quals


@opcode("bar", "barrier", dests=lambda op: int("red" in op.quals), waits=_waits)
def barrier(e: Emitter, op: Op) -> None:
    quals = [q for q in op.quals if q != "cta"]
    if quals[0] == "cluster":
        emit_cluster(e, op)
        return
    if quals[0] == "warp":
        (members,) = op.operands
        e.line(f"if warp_sync(p, {e.scalar(members)}, {op.line}): return {PARK}")
        return
    aligned = int(op.opcode == "bar" or "aligned" in quals)
    operands = list(op.operands)
    if quals[0] == "red":
        _reduce(e, op, quals, operands, aligned)
        return
    id_, count = _barrier_operands(e, op, operands)
    if quals[0] == "sync":
        e.line(f"if barrier_sync(p, {id_}, {count}, {aligned}, {op.line}): return {PARK}")
    elif quals[0] == "arrive":
        arguments = f"{id_}, {count}, {aligned}, None, {op.line}, {e.mask_argument()}"
        e.line(f"barrier_arrive(p, {arguments})")
    else:
        raise op.unsupported("only sync, arrive and red exist")


def _barrier_operands(e: Emitter, op: Op, operands: list[Value]) -> tuple[str, str]:
    texts = []
    for value in operands:
        if e.uniform(value):
            texts.append(e.scalar(value))
        else:
            texts.append(f"one_of(p, {e.vector(value, 'U')}, {e.mask_argument()}, {op.line})")
    return texts[0], texts[1] if len(texts) > 1 else "None"


def _reduce(e: Emitter, op: Op, quals: list[str], operands: list[Value], aligned: int) -> None:
    dst, *rest = operands
    predicate = rest.pop()
    id_, count = _barrier_operands(e, op, rest)
    row = e.vector(predicate, "P", array=True)
    name = e.temporary(f"barrier_reduce(p, {id_}, {count}, {aligned}, {row}, {op.line})")
    e.line(f"if {name} is None: return {PARK}")
    form = {"popc": f"sum({name})", "and": f"all({name})", "or": f"any({name})"}[
        next(q for q in quals if q in ("popc", "and", "or"))
    ]
    e.set_scalar(dst, form)


# -- warp barrier ----------------------------------------------------------------------------------


@dataclass(slots=True)
class WarpWait:
    path: Path
    members: int
    line: int

    def ready(self) -> bool:
        """Every member is here or waits at a warp barrier too."""
        here = 0
        for other in self.path.w.paths:
            token = other.token
            if isinstance(token, WarpWait) and token.members == self.members:
                here |= other.mask
        return not self.members & self.path.w.live & ~here

    def describe(self) -> str:
        return f"bar.warp.sync {self.members:#010x}: other lanes of the warp are elsewhere"


def warp_sync(p: Path, members: int, line: int) -> bool:
    """bar.warp.sync: True while members of the mask are elsewhere."""
    if not members & p.w.live & ~p.mask:
        p.token = None
        return False
    if p.token is None:
        p.token = WarpWait(p, members, line)
    if p.token == "released":
        p.token = None
        return False
    if p.token.ready():
        for other in p.w.paths:
            if isinstance(other.token, WarpWait) and other.token.members == members:
                other.token = "released"
                other.wait = None
        p.token = None
        p.C.machine_epoch.bump()
        return False
    p.wait = p.token
    return True
