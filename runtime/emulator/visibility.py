"""What must be made visible before asynchronous work, or this grid, may rely on it.

Two orders that no barrier makes by itself: of an mbarrier's init before the copies that signal it
(the async proxy), and of the grid before this one, which programmatic launch lets run beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import races
from .report import hazard

if TYPE_CHECKING:
    from .mbarrier import Mbarrier
    from .memory import Bank
    from .state import Path
    from .watch import WarpView, Watch


def barrier_signalled(p: Path, barrier: Mbarrier, line: int) -> None:
    """A copy that will signal a barrier is issued: its init must be there for the async proxy.

    fence.mbarrier_init by whoever made the barrier does that, or a proxy fence on the way here.
    """
    watch, view = p.C.watch, p.w.view
    assert watch is not None
    if id(barrier) in view.signalled:
        return
    view.signalled.add(id(barrier))
    number, epoch = barrier.maker
    maker = watch.agents[number].owner
    fenced = maker is None or maker.init_fence >= epoch
    if not fenced and view.clock.via.get(number, 0) < epoch:
        races.advise(
            watch, "mbarrier-init-proxy",
            f"a copy signals {barrier.describe()}: no fence between its init and the async proxy",
            p, (line, barrier.line),
        )  # fmt: skip


def grid_waited(p: Path) -> None:
    """griddepcontrol.wait: what the grid before has done is visible from here on."""
    watch = p.C.watch
    if watch is not None and watch.grid_before:
        p.w.view.clock.seen[watch.grid_before] = 1


def grid_needed(watch: Watch, view: WarpView, path: Path, bank: Bank, line: int, verb: str) -> None:
    """An access to global memory, in a launch that may run beside the grid before it."""
    if bank.name != "shared memory" and not view.clock.has(watch.grid_before, 1):
        raise hazard(
            "grid-dependency",
            f"{verb} {bank.name}, and nothing orders that after the grid before this one",
            path=path,
            line=line,
        )
