"""barrier.cluster: a barrier of all threads of a cluster (PTX ISA 9.7.13.4)."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import order
from .clocks import Clock
from .emit import Emitter
from .operands import Op
from .report import hazard
from .state import CTA, PARK, Path
from .whole_warp import require_whole_warp


@dataclass(slots=True)
class ClusterBarrier:
    """All threads of a cluster. Threads that exited no longer count."""

    ctas: list[CTA]
    arrived: int = 0
    phase: int = 0
    clock: Clock = field(default_factory=Clock)  # what this phase passes on
    inits: dict[int, int] = field(default_factory=dict)  # and what relaxed arrivals do

    def target(self) -> int:
        return sum(w.live.bit_count() for c in self.ctas for w in c.warps)

    def update(self) -> None:
        if self.arrived and self.arrived >= self.target():
            self.phase += 1
            self.arrived = 0
            self.clock, self.inits = Clock(), {}
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


def cluster_arrive(p: Path, aligned: int, relaxed: int, line: int) -> None:
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
        )
    if p.C.watch is not None:
        order.cluster_arrive(p, barrier, bool(relaxed))
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
        )
    if barrier.phase <= warp.cluster_phase:
        p.wait = ClusterWait(barrier, warp.cluster_phase)
        return True
    warp.cluster_arrived &= ~p.mask
    if p.C.watch is not None:
        order.cluster_wait(p)
    return False


def emit_cluster(e: Emitter, op: Op) -> None:
    aligned = int(op.has("aligned"))
    known = {"cluster", "arrive", "wait", "aligned", "release", "acquire", "relaxed"}
    if set(op.quals) - known:
        raise op.unsupported("this form of barrier.cluster is not known here")
    if op.has("arrive"):
        relaxed = int(op.has("relaxed"))
        e.line(f"cluster_arrive(p, {aligned}, {relaxed}, {op.line})")
    else:
        e.line(f"if cluster_wait(p, {aligned}, {op.line}): return {PARK}")
