"""What orders accesses: barriers, mbarriers, groups, fences and atomics, as joins of clocks.

Each function is called by the instruction that it is named after, when hazards are checked. A
release passes on what a warp knows and closes its epoch; an acquire takes it over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import races
from .clocks import SCOPES, Clock
from .report import hazard

if TYPE_CHECKING:
    from . import state
    from .barriers import BarrierWait, NamedBarrier
    from .cluster import ClusterBarrier
    from .mbarrier import Mbarrier
    from .memory import Bank
    from .queue import BulkGroups
    from .state import Path
    from .watch import Watch

ALL = 3  # a scope that reaches everybody


# -- fences ----------------------------------------------------------------------------------------


def proxy_fence(p: Path, space: str) -> None:
    """fence.proxy.async: what this warp has seen, the async proxy sees too."""
    view = p.w.view
    for name, via in (("shared", view.clock.via), ("global", view.clock.via_global)):
        if space in ("", name):
            via.update(view.clock.seen)
    view.fences.append(view.epoch)
    view.close()


def init_fence(p: Path) -> None:
    """fence.mbarrier_init: inits so far may be made visible to the cluster."""
    p.w.view.init_fence = p.w.view.epoch
    p.w.view.close()


def fence(p: Path, semantics: str, scope: int) -> None:
    """fence.sc, acq_rel, acquire or release, and membar."""
    view = p.w.view
    if semantics != "release":
        for point in view.unacquired.values():
            point.acquire(view.place, scope, view.clock)
        view.unacquired.clear()
    if semantics != "acquire":
        view.released = [(s, c) for s, c in view.released if s > scope]
        view.released.append((scope, view.clock.copy()))
        view.close()


# -- atomics, and accesses with an order -----------------------------------------------------------


def ordered_access(
    p: Path, bank: Bank, offsets: Sequence[int], semantics: str, scope: int, *, reads: bool,
    writes: bool, modifies: bool,
) -> None:  # fmt: skip
    """The synchronisation of a strong access: releases to, and acquires from, its locations."""
    watch, view = p.C.watch, p.w.view
    assert watch is not None
    for offset in set(offsets):
        point = watch.locations.get((id(bank), offset))
        if reads and point is not None:
            if semantics in ("acquire", "acq_rel"):
                point.acquire(view.place, scope, view.clock)
            else:
                view.unacquired[id(point)] = point
        if not writes:
            continue
        if semantics in ("release", "acq_rel"):
            releases = [(scope, view.clock)]
        else:
            releases = [(min(s, scope), c) for s, c in view.released]
        if point is None:
            if not releases:
                continue
            point = watch.location(bank, offset)
        if not modifies:
            point.parts.clear()
        for reach, clock in releases:
            point.release(view.place, reach, clock)
    if writes and semantics in ("release", "acq_rel"):
        view.close()


# -- barriers of a CTA and of a cluster ------------------------------------------------------------


def barrier_arrive(p: Path, barrier: NamedBarrier, wait: BarrierWait) -> None:
    """Arrive at a named barrier: a release among its participants."""
    barrier.clock.join(p.w.view.clock)
    wait.clock = barrier.clock
    p.w.view.close()


def barrier_done(p: Path, clock: Clock) -> None:
    p.w.view.clock.join(clock)


def cluster_arrive(p: Path, barrier: ClusterBarrier, relaxed: bool) -> None:
    view = p.w.view
    p.w.cluster_clock, p.w.cluster_inits = barrier.clock, barrier.inits
    if not relaxed:
        barrier.clock.join(view.clock)
    elif view.init_fence:  # then inits, and nothing else, become visible
        barrier.inits[view.number] = view.init_fence
    view.close()


def cluster_wait(p: Path) -> None:
    view = p.w.view
    view.clock.join(p.w.cluster_clock)
    view.inits.update(p.w.cluster_inits)
    view.started.update(w.view.place.cta for c in p.C.cluster.ctas for w in c.warps)


# -- mbarriers -------------------------------------------------------------------------------------


def mbarrier_made(p: Path, barrier: Mbarrier) -> None:
    view = p.w.view
    barrier.maker = (view.number, view.epoch)


def mbarrier_used(p: Path, barrier: Mbarrier, line: int, what: str) -> None:
    """The init of a barrier must be visible to whoever uses it, and so must its CTA."""
    view = p.w.view
    if id(barrier) in view.known_barriers:
        return
    if barrier.cta is not p.C:
        peer_used(p, barrier.cta, line)
    number, epoch = barrier.maker
    inits = max(view.clock.seen.get(number, 0), view.inits.get(number, 0))
    if inits < epoch:
        raise hazard(
            "mbarrier-init-order",
            f"{what} on {barrier.describe()}, whose init this warp has not synchronised with",
            path=p,
            line=line,
            lines=(barrier.line,),
            cure="fence.mbarrier_init.release.cluster and a cluster barrier after the init"
            if barrier.cta is not p.C
            else "bar.sync (or a cluster barrier) between the init and the first use",
        )
    if barrier.cta is not p.C:
        maker = p.C.watch.agents[number].owner  # type: ignore[union-attr]
        if maker is not None and maker.init_fence < epoch:
            races.advise(
                p.C.watch, "mbarrier-init-fence",
                f"{what} on {barrier.describe()}: no fence.mbarrier_init after its init",
                p, (line, barrier.line),
            )  # fmt: skip
    view.known_barriers.add(id(barrier))


def mbarrier_arrive(p: Path, barrier: Mbarrier, scope: int, line: int) -> None:
    """An arrival releases. `scope` is -1 for .relaxed: then only a fence before it does."""
    view = p.w.view
    if barrier.phase and barrier.observed < barrier.phase:
        raise hazard(
            "phase-overrun",
            f"an arrival in phase {barrier.phase} of {barrier.describe()}, "
            f"though nobody has waited for phase {barrier.phase - 1}",
            path=p,
            line=line,
            lines=(barrier.line,),
        )
    if barrier.cta is not p.C:
        peer_touched(p, barrier.cta, line)
    if scope < 0:
        for reach, clock in view.released:
            barrier.point.release(view.place, reach, clock)
    else:
        barrier.point.release(view.place, scope, view.clock)
    view.close()


def mbarrier_phase(watch: Watch, barrier: Mbarrier) -> None:
    """A phase ends: its arrivals, and the copies that it counted, are there for who waits."""
    barrier.done.merge(barrier.point)
    if barrier.agent:
        place = watch.places[id(barrier.cta)]
        barrier.done.release(place, ALL, Clock({barrier.agent: barrier.phase}))


def mbarrier_waited(p: Path, barrier: Mbarrier, phase: int, scope: int) -> None:
    """A wait for `phase` was successful. `scope` is -1 for .relaxed."""
    view = p.w.view
    barrier.observed = max(barrier.observed, phase + 1)
    if scope < 0:
        view.unacquired[id(barrier.done)] = barrier.done
    else:
        barrier.done.acquire(view.place, scope, view.clock)


# -- groups ----------------------------------------------------------------------------------------


def bulk_waited(p: Path, groups: BulkGroups, pending: int, reading: bool) -> None:
    seen = p.w.view.clock.seen
    finished = groups.committed - pending
    seen[groups.reads_agent] = max(seen.get(groups.reads_agent, 0), finished)
    if not reading:
        seen[groups.writes_agent] = max(seen.get(groups.writes_agent, 0), finished)


def wgmma_waited(p: Path, pending: int) -> None:
    view, agent = p.w.view, p.w.group.wgmma.agent
    view.clock.seen[agent] = max(view.clock.seen.get(agent, 0), view.wgmma_commits - pending)


def cp_async_committed(p: Path) -> None:
    view = p.w.view
    view.cp_commits.append(view.cp_epoch)
    view.cp_epoch += 1


def cp_async_waited(p: Path, pending: int) -> None:
    """`pending` is -1 for wait_all, which covers copies that are in no group yet."""
    view = p.w.view
    done = view.cp_commits[: len(view.cp_commits) - pending] if pending > 0 else view.cp_commits
    epoch = view.cp_epoch if pending < 0 else max(done, default=0)
    view.clock.seen[view.cp_agent] = max(view.clock.seen.get(view.cp_agent, 0), epoch)
    if pending < 0:
        view.cp_epoch += 1


def cp_async_arrive(p: Path, barrier: Mbarrier) -> None:
    """cp.async.mbarrier.arrive: the copies so far are passed on when the phase ends."""
    view = p.w.view
    barrier.point.release(view.place, ALL, Clock({view.cp_agent: view.cp_epoch}))
    view.cp_epoch += 1


# -- other CTAs ------------------------------------------------------------------------------------


def peer_used(p: Path, cta: state.CTA, line: int) -> None:
    """Another CTA must have started: something must have been heard from it."""
    watch, view = p.C.watch, p.w.view
    assert watch is not None
    place = watch.places[id(cta)]
    if place.cta in view.started:
        return
    if not any(w.view.number in view.clock.seen for w in cta.warps):
        raise hazard(
            "cluster-start",
            f"CTA {cta.name} is accessed, but nothing says that it has started",
            path=p,
            line=line,
        )
    view.started.add(place.cta)


def peer_touched(p: Path, cta: state.CTA, line: int) -> None:
    """An access to another CTA: it must not exit before it knows that the access is done."""
    view = p.w.view
    cta.visitors[view.number] = (view.epoch, line)


def warp_left(p: Path) -> None:
    """A warp exits; the last one of a CTA takes its shared memory with it."""
    cta, view = p.C, p.w.view
    cta.farewell.join(view.clock)


def cta_left(p: Path) -> None:
    """All warps of a CTA have exited: nothing may still use its shared memory."""
    cta, watch = p.C, p.C.watch
    assert watch is not None
    known = cta.farewell
    for number, (epoch, line) in cta.visitors.items():
        if not known.has(number, epoch):
            raise hazard(
                "cluster-exit",
                f"CTA {cta.name} exits, but nothing orders the last access of "
                f"{watch.agents[number].name} to its shared memory before that",
                path=p,
                line=line,
            )
    for barrier in cta.mbarriers.values():
        if barrier.agent and not known.has(barrier.agent, barrier.incoming):
            raise hazard(
                "exit-with-copy",
                f"CTA {cta.name} exits before copies into it are known to have arrived: "
                f"{barrier.describe()}",
                path=p,
                line=barrier.copy_line,
            )
    for group in cta.groups:
        agent = group.wgmma.agent
        commits = max(w.view.wgmma_commits for w in group.warps)
        if not known.has(agent, commits):
            raise hazard(
                "exit-with-wgmma",
                f"CTA {cta.name} exits while wgmma groups of warpgroup {group.index} are unwaited",
                path=p,
                line=group.wgmma.last_line,
            )


def scope_number(words: Sequence[str], default: int) -> int:
    """The widest scope among qualifiers."""
    found = [SCOPES[w] for w in words if w in SCOPES]
    return max(found) if found else default
