"""Barriers that are no memory objects: named barriers of a CTA, the cluster barrier, warp barriers,
and the register pool of setmaxnreg (PTX ISA 9.7.13.1 to 9.7.13.4, 9.7.19.5).

An instruction that waits starts its block. Its function returns True while the path must wait; the
block is then run again later, and `Path.token` tells the second run that the arrival was done.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from .emit import Emitter
from .isa import opcode
from .program import Imm, Op, Program, Reg, Sink, Value
from .report import hazard
from .state import CTA, PARK, Path
from .values import Array

REGISTERS_PER_SM = 65_536
REGISTERS_PER_THREAD_MAX = 256  # the encoding's limit; the compiler uses at most 255


def require_whole_warp(p: Path, line: int, name: str, mask: Array | None = None) -> None:
    """`.aligned`: every lane of the warp that has not exited executes the instruction."""
    here = p.active(mask)
    if here != p.w.live:
        raise hazard(
            "partial-warp",
            f"{name} is executed by lanes {here:#010x} of {p.w.live:#010x}",
            path=p,
            line=line,
            reason=".aligned instructions are for the whole warp: the hardware may hang",
            cure="move it out of the divergent branch, or use the form without .aligned",
            isa="9.7.13 Parallel synchronization",
        )


def guarded_aligned(p: Path, mask: Array, line: int) -> None:
    """An `.aligned` instruction under a guard: the guard must hold in every lane."""
    require_whole_warp(p, line, "an .aligned instruction", mask)


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
    generation: int = 0
    votes: list[bool] = field(default_factory=list)
    results: dict[int, list[bool]] = field(default_factory=dict)

    def target(self) -> int:
        if self.expected is not None:
            return self.expected
        return 32 * sum(1 for w in self.cta.warps if w.live or w.index in self.arrived)

    def update(self) -> None:
        if self.active and 32 * len(self.arrived) >= self.target():
            self.generation += 1
            self.results = {self.generation: self.votes}
            self.arrived, self.votes, self.active = {}, [], False
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

    def ready(self) -> bool:
        return self.barrier.generation > self.generation

    def describe(self) -> str:
        return self.barrier.describe()


def barrier_arrive(
    p: Path, id_: int, count: int | None, aligned: int, votes: Array | None, line: int
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
    index = p.w.index
    if index in barrier.arrived:
        raise _bad_barrier(
            p, line, f"barrier {id_}: warp {index} arrives twice",
            f"it already arrived in PTX line {barrier.arrived[index]}",
        )  # fmt: skip
    wait = BarrierWait(barrier, barrier.generation)
    barrier.active, barrier.expected = True, count
    if votes is not None:
        barrier.votes += votes[p.m].tolist()
    lanes = barrier.partial.pop(index, 0) | p.mask
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
    p.token = None
    return False


def _waits(op: Op) -> bool:
    return "arrive" not in op.quals


@opcode("bar", "barrier", dests=lambda op: int("red" in op.quals), waits=_waits)
def barrier(e: Emitter, op: Op) -> None:
    quals = [q for q in op.quals if q != "cta"]
    if quals[0] == "cluster":
        _cluster(e, op)
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
        e.line(f"barrier_arrive(p, {id_}, {count}, {aligned}, None, {op.line})")
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


# -- cluster barrier -------------------------------------------------------------------------------


@dataclass(slots=True)
class ClusterBarrier:
    """All threads of a cluster. Threads that exited no longer count."""

    ctas: list[CTA]
    arrived: int = 0
    phase: int = 0

    def target(self) -> int:
        return sum(w.live.bit_count() for c in self.ctas for w in c.warps)

    def update(self) -> None:
        if self.arrived and self.arrived >= self.target():
            self.phase += 1
            self.arrived = 0
            self.ctas[0].machine_epoch.bump()

    def describe(self) -> str:
        missing = [
            f"CTA {c.name} warp {w.index}"
            for c in self.ctas
            for w in c.warps
            if w.live & ~w.cluster_arrived
        ]
        return (
            f"cluster barrier: {self.arrived} of {self.target()} threads arrived; "
            f"missing: {', '.join(missing[:8]) or 'none'}{', ...' if len(missing) > 8 else ''}"
        )


@dataclass(slots=True)
class ClusterWait:
    barrier: ClusterBarrier
    phase: int

    def ready(self) -> bool:
        return self.barrier.phase > self.phase

    def describe(self) -> str:
        return self.barrier.describe()


def cluster_arrive(p: Path, aligned: int, line: int) -> None:
    if aligned:
        require_whole_warp(p, line, "barrier.cluster.arrive.aligned")
    warp, barrier = p.w, p.C.cluster.barrier
    if warp.cluster_arrived & p.mask:
        raise hazard(
            "cluster-barrier",
            "barrier.cluster.arrive twice without a wait in between",
            path=p,
            line=line,
            reason="a thread arrives once a phase",
            cure="put barrier.cluster.wait between the two",
            isa="9.7.13.4 barrier.cluster",
        )
    warp.cluster_arrived |= p.mask
    warp.cluster_phase = barrier.phase
    barrier.arrived += p.lanes
    p.C.machine_epoch.bump()
    barrier.update()


def cluster_wait(p: Path, aligned: int, line: int) -> bool:
    """True while threads of the cluster are missing."""
    if aligned:
        require_whole_warp(p, line, "barrier.cluster.wait.aligned")
    warp, barrier = p.w, p.C.cluster.barrier
    if p.mask & ~warp.cluster_arrived:
        raise hazard(
            "cluster-barrier",
            "barrier.cluster.wait without an arrive before it",
            path=p,
            line=line,
            reason="a thread waits for the phase that it arrived at",
            cure="put barrier.cluster.arrive before the wait",
            isa="9.7.13.4 barrier.cluster",
        )
    if barrier.phase <= warp.cluster_phase:
        p.wait = ClusterWait(barrier, warp.cluster_phase)
        return True
    warp.cluster_arrived &= ~p.mask
    return False


def _cluster(e: Emitter, op: Op) -> None:
    aligned = int(op.has("aligned"))
    known = {"cluster", "arrive", "wait", "aligned", "release", "acquire", "relaxed"}
    if set(op.quals) - known:
        raise op.unsupported("this form of barrier.cluster is not known here")
    if op.has("arrive"):
        e.line(f"cluster_arrive(p, {aligned}, {op.line})")
    else:
        e.line(f"if cluster_wait(p, {aligned}, {op.line}): return {PARK}")


# -- setmaxnreg ------------------------------------------------------------------------------------


@dataclass(slots=True)
class RegisterPool:
    """Registers of a CTA that no warp holds. `entry` is the count a thread starts with."""

    entry: int
    free: int = 0

    def describe(self) -> str:
        return f"register pool: {self.free} registers free"


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
        return min(directives["maxnreg"][0], REGISTERS_PER_THREAD_MAX)
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
    return min(fits, REGISTERS_PER_THREAD_MAX, *increases)


def set_max_registers(p: Path, increase: int, count: int, line: int) -> bool:
    """True while the pool is too small for an increase."""
    require_whole_warp(p, line, "setmaxnreg")
    pool, warp = p.C.pool, p.w
    if pool is None:  # ptxas ignores setmaxnreg where it does not know the entry count
        return False
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
    pool.free -= 32 * change
    warp.registers = count
    p.C.machine_epoch.bump()
    return False


@opcode("setmaxnreg", dests=0, waits=lambda op: True)
def set_max_nreg(e: Emitter, op: Op) -> None:
    (count,) = op.operands
    if not e.uniform(count) or isinstance(count, Reg | Sink):
        raise op.unsupported("the count must be an immediate")
    increase = int(op.quals[0] == "inc")
    text = f"set_max_registers(p, {increase}, {e.scalar(count)}, {op.line})"
    e.line(f"if {text}: return {PARK}")
