"""Happens-before checks of every access: `Watch` is what instructions tell, when hazards are on.

Accesses go to the shadow of their bank, with the clock of the warp that makes or issues them. An
asynchronous access is checked when it is issued, and counts for others until its completion has
been seen: what it touches must be in order from the issue on. What orders accesses is in `order`,
how a conflict reads in `races`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptxgen.errors import Finding

from . import order, races, visibility
from .clocks import Clock, Place, SyncPoint
from .descriptor import Descriptor, footprint
from .memory import Bank, GlobalMemory
from .report import hazard
from .shadow import PAGE_SHIFT, Checked, Shadow, Stamp, Stamps
from .values import Array

if TYPE_CHECKING:
    from .mbarrier import Mbarrier
    from .queue import BulkGroups
    from .state import CTA, Path, Warp
    from .wgmma_queue import Shape

WARP, COPIES, WGMMA, BULK_READS, BULK_WRITES, CP_ASYNC = (
    "warp", "copies", "wgmma", "bulk reads", "bulk writes", "cp.async",
)  # fmt: skip
_ASYNC_KINDS = frozenset({COPIES, WGMMA, BULK_READS, BULK_WRITES})


@dataclass(frozen=True, slots=True)
class Agent:
    """Whose accesses carry a number: what it is, where it belongs, and its name for messages."""

    kind: str
    cta: CTA
    name: str
    owner: WarpView | None  # the warp that issues its work, where it is always the same one


class Now(NamedTuple):
    """The access that is being checked."""

    path: Path
    line: int
    verb: str
    bank: Bank
    start: int
    end: int
    writes: bool
    is_async: bool
    same: bool = False  # the store left every byte as it was


class MapAcquire(NamedTuple):
    """A fence.proxy.tensormap::generic.acquire: whose, in which epoch, and what it knew."""

    warp: int
    epoch: int
    scope: int
    clock: Clock


@dataclass(slots=True)
class WarpView:
    """A warp as the checks see it. `epoch` grows at everything that splits its accesses in two."""

    watch: Watch
    number: int
    place: Place
    cta: CTA
    clock: Clock
    generic: Checked = field(init=False)
    through_async: Checked = field(init=False)
    epoch: int = 1
    fences: list[int] = field(default_factory=list)  # epochs that its own proxy fences closed
    released: list[tuple[int, Clock]] = field(default_factory=list)  # fences: scope, and knowledge
    unacquired: dict[int, SyncPoint] = field(default_factory=dict)  # read, and no fence since
    wgmma_commits: int = 0
    cp_agent: int = 0
    cp_epoch: int = 1
    cp_commits: list[int] = field(default_factory=list)
    init_fence: int = 0  # the last epoch that a fence.mbarrier_init closed
    map_releases: list[tuple[int, int]] = field(default_factory=list)  # epoch, and scope
    strong: bool = False  # of the access at hand
    inits: dict[int, int] = field(default_factory=dict)  # mbarrier.init that relaxed arrivals pass
    started: set[int] = field(default_factory=set)  # CTAs known to have started
    known_barriers: set[int] = field(default_factory=set)  # whose init is known to be visible
    signalled: set[int] = field(default_factory=set)  # barriers that its copies have named

    def __post_init__(self) -> None:
        self.clock.seen[self.number] = 1
        self.generic = Checked(self._after_generic)
        self.through_async = Checked(self._after_async)

    def close(self) -> None:
        """What follows is a new epoch."""
        self.epoch += 1
        self.clock.seen[self.number] = self.epoch

    def _after_generic(self, old: int) -> bool:
        stamp = self.watch.stamps.table[old]
        assert stamp is not None
        if self.clock.seen.get(stamp.agent, 0) >= stamp.epoch:
            return True
        if stamp.strong and self.strong:
            return False
        races.conflict(self.watch, self, old, stamp)
        return False

    def _after_async(self, old: int) -> bool:
        stamp = self.watch.stamps.table[old]
        assert stamp is not None
        if self.clock.seen.get(stamp.agent, 0) < stamp.epoch:
            if not (stamp.strong and self.strong):
                races.conflict(self.watch, self, old, stamp)
            return False
        if stamp.agent & 1:
            return True
        shared = self.watch.now.bank.name == "shared memory"
        via = self.clock.via if shared else self.clock.via_global
        if via.get(stamp.agent, 0) < stamp.epoch:
            races.unfenced(self.watch, self, old, stamp)
        elif stamp.writes and not self._fenced_by_writer(stamp):
            races.fenced_late(self.watch, self, old, stamp)
        return True

    def _fenced_by_writer(self, stamp: Stamp) -> bool:
        """Whether a proxy fence of the writer itself lies between its write and this access."""
        owner = self.watch.agents[stamp.agent].owner
        if owner is None or owner is self:
            return True
        known = self.clock.seen.get(owner.number, 0)
        epoch = stamp.epoch if stamp.agent == owner.number else 0
        return any(epoch <= f <= known for f in owner.fences)


class Watch:
    """The checks of one launch. `advice` holds findings that are disputed, each once."""

    def __init__(self) -> None:
        self.stamps = Stamps()
        self.agents: dict[int, Agent] = {}
        self.advice: dict[tuple[str, tuple[int, ...]], Finding] = {}
        self.places: dict[int, Place] = {}
        self.locations: dict[tuple[int, int], SyncPoint] = {}
        self.swizzles: dict[tuple[int, int], int] = {}  # (CTA, page): of the tile that TMA wrote
        self.map_acquires: dict[tuple[int, int], list[MapAcquire]] = {}  # by (bank, offset)
        self.now: Now = None  # type: ignore[assignment]  # set by every access
        self.order: tuple[str, int] | None = None  # semantics and scope of the next access
        self.grid_before = 0  # the agent of a grid that this one may run beside
        self._next = 0

    # -- agents --------------------------------------------------------------------------------

    def agent(self, kind: str, cta: CTA, name: str, owner: WarpView | None = None) -> int:
        self._next += 2
        number = self._next + (kind in _ASYNC_KINDS)
        self.agents[number] = Agent(kind, cta, name, owner)
        return number

    def overlap(self) -> None:
        """This launch may start before the grid in front of it has ended."""
        self._next += 2
        self.grid_before = self._next + 1

    def enter(self, ctas: Sequence[CTA], cluster: int) -> None:
        """CTAs of a cluster start."""
        for cta in ctas:
            place = Place(len(self.places), cluster)
            self.places[id(cta)] = place
            cta.window.shadow = Shadow(cta.window.size, self.stamps)
            for warp in cta.warps:
                name = f"CTA {cta.name} warp {warp.index}"
                number = self.agent(WARP, cta, name)
                view = WarpView(self, number, place, cta, Clock())
                self.agents[number] = Agent(WARP, cta, name, view)
                view.cp_agent = self.agent(CP_ASYNC, cta, f"cp.async of {name}", view)
                warp.view = view
            for group in cta.groups:
                name = f"wgmma of CTA {cta.name} warpgroup {group.index}"
                group.wgmma.agent = self.agent(WGMMA, cta, name)

    def cover(self, memory: GlobalMemory) -> None:
        """Give every global array a shadow."""
        for bank in memory.banks():
            bank.shadow = Shadow(bank.size, self.stamps)

    def bulk_agents(self, warp: Warp, lane: int, groups: BulkGroups) -> None:
        """Bulk groups belong to a thread: two agents, for what they read and what they write."""
        if not groups.reads_agent:
            thread = f"CTA {warp.cta.name} thread {32 * warp.index + lane}"
            groups.reads_agent = self.agent(BULK_READS, warp.cta, f"bulk stores of {thread}")
            groups.writes_agent = self.agent(BULK_WRITES, warp.cta, f"bulk stores of {thread}")

    def location(self, bank: Bank, offset: int) -> SyncPoint:
        """The synchronisation object of an address."""
        return self.locations.setdefault((id(bank), offset), SyncPoint())

    # -- generic accesses ----------------------------------------------------------------------

    def lanes(
        self, p: Path, bank: Bank, offset: Array, unit: int, line: int, writes: bool, verb: str,
        same: bool = False,
    ) -> None:  # fmt: skip
        """ld, st, ldmatrix, stmatrix, atom: `unit` bytes at every offset."""
        shadow = bank.shadow
        if shadow is None or not len(offset):
            return
        view = p.w.view
        if self.grid_before:
            visibility.grid_needed(self, view, p, bank, line, verb)
        self.now = Now(
            p, line, verb, bank, int(offset.min()), int(offset.max()) + unit, writes, False, same
        )
        stamp = self.stamps.number(view.number, view.epoch, line, writes, view.strong, "")
        if writes:
            shadow.write_lanes(offset, unit, stamp, view.generic)
        else:
            shadow.read_lanes(offset, unit, stamp, view.generic)

    def access(
        self, p: Path, groups: Sequence[tuple[Bank, Array]], unit: int, line: int, *,
        writes: bool, modifies: bool = False, same: bool = False,
    ) -> None:  # fmt: skip
        """A load, a store or an atomic, with the order that `self.order` says it has."""
        how, self.order = self.order, None
        p.w.view.strong = how is not None
        verb = "an atomic changes" if modifies else "a store writes" if writes else "a load reads"
        for bank, offset in groups:
            if bank.shadow is None:
                continue
            self.lanes(p, bank, offset, unit, line, writes, verb, same)
            if how is not None:
                order.ordered_access(
                    p, bank, offset.tolist(), *how, reads=modifies or not writes, writes=writes,
                    modifies=modifies,
                )  # fmt: skip
        p.w.view.strong = False

    # -- asynchronous accesses -----------------------------------------------------------------

    def _begin(
        self, p: Path, line: int, verb: str, bank: Bank, start: int, end: int, writes: bool,
        strong: bool = False,
    ) -> WarpView:  # fmt: skip
        self.now = Now(p, line, verb, bank, start, end, writes, True)
        view = p.w.view
        if self.grid_before:
            visibility.grid_needed(self, view, p, bank, line, verb)
        view.strong = strong
        return view

    def range(
        self, p: Path, bank: Bank, start: int, size: int, key: tuple[int, int], line: int,
        writes: bool, verb: str, strong: bool = False,
    ) -> None:  # fmt: skip
        """An asynchronous access to consecutive bytes. `key` is (agent, epoch)."""
        if bank.shadow is None or start < 0 or start + size > bank.size:
            return  # the copy itself reports it
        view = self._begin(p, line, verb, bank, start, start + size, writes, strong)
        stamp = self.stamps.number(*key, line, writes, strong, "")
        act = bank.shadow.write_range if writes else bank.shadow.read_range
        act(start, start + size, stamp, view.through_async)
        view.strong = False

    def box(
        self, p: Path, bank: Bank, box: Array | None, key: tuple[int, int], line: int,
        writes: bool, verb: str, strong: bool = False,
    ) -> None:  # fmt: skip
        """As `range`, for the part of a tensor that a box covers: a view of the bank's bytes."""
        if bank.shadow is None or box is None:
            return
        start = box.ctypes.data - bank.data.ctypes.data
        shape, strides = (*box.shape, box.itemsize), (*box.strides, 1)
        size = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        view = self._begin(p, line, verb, bank, start, start + size, writes, strong)
        stamp = self.stamps.number(*key, line, writes, strong, "")
        act = bank.shadow.write_box if writes else bank.shadow.read_box
        act(start, shape, strides, stamp, view.through_async)
        view.strong = False

    def copy_key(self, barrier: Mbarrier) -> tuple[int, int]:
        """The agent of copies that complete on a barrier now, and the phase that tells of them."""
        if not barrier.agent:
            barrier.agent = self.agent(
                COPIES, barrier.cta, f"copies to CTA {barrier.cta.name} mbarrier "
                f"{barrier.offset:#x}",
            )  # fmt: skip
        barrier.incoming = barrier.phase + 1
        return barrier.agent, barrier.phase + 1

    def tile_written(self, cta: CTA, offset: int, size: int, swizzle: int) -> None:
        """TMA writes a tile: remember its swizzle for the descriptors that will read it."""
        for page in range(offset >> PAGE_SHIFT, offset + size - 1 >> PAGE_SHIFT):
            self.swizzles[id(cta), page] = swizzle
        self.swizzles[id(cta), offset + size - 1 >> PAGE_SHIFT] = swizzle

    def _check_swizzle(self, p: Path, line: int, name: str, pages: Sequence[int], swizzle: int,
                       ) -> None:  # fmt: skip
        shadow = p.C.window.shadow
        assert shadow is not None
        for page in (pages[0], pages[-1]):
            written = self.swizzles.get((id(p.C), page))
            stamp = self.stamps.table[max(shadow.page_writer[page], 0)]
            tile = stamp is not None and self.agents[stamp.agent].kind == COPIES
            if tile and written is not None and written != swizzle:
                raise hazard(
                    "descriptor-swizzle",
                    f"the descriptor of operand {name} says {swizzle}-byte swizzle, TMA wrote the "
                    f"tile with {written}",
                    path=p,
                    line=line,
                    lines=(stamp.line,) if stamp is not None else (),
                    bytes_=f"shared memory offset {page << PAGE_SHIFT:#x}",
                )

    def cp_async(self, p: Path, offset: Array, size: int, line: int) -> None:
        """What cp.async writes: generic accesses of their own agent."""
        view = p.w.view
        shadow = p.C.window.shadow
        assert shadow is not None
        low, high = int(offset.min()), int(offset.max()) + size
        self.now = Now(p, line, "cp.async writes", p.C.window, low, high, True, False)
        stamp = self.stamps.number(view.cp_agent, view.cp_epoch, line, True, False, "")
        shadow.write_lanes(offset, size, stamp, view.generic)

    def wgmma(self, p: Path, shape: Shape, a: int, b: int) -> None:
        """The operands of a wgmma that this warp issues."""
        view = p.w.view
        key = (p.w.group.wgmma.agent, view.wgmma_commits + 1)
        if not shape.a_rows:
            self._operand(p, shape.line, "A", a, 64, shape.a_mn_major, 2, key)
        k_units = 4 if shape.selector >= 0 else 2
        self._operand(p, shape.line, "B", b, shape.n, shape.b_mn_major, k_units, key)

    def _operand(
        self, p: Path, line: int, name: str, bits: int, rows: int, mn_major: bool, k_units: int,
        key: tuple[int, int],
    ) -> None:  # fmt: skip
        window = p.C.window
        shadow = window.shadow
        pages, parts = operand_pages(bits, rows, mn_major, k_units)
        if shadow is None or not 0 <= pages[0] <= pages[-1] < len(shadow.page_writer):
            return  # execution reports what lies outside
        self._check_swizzle(p, line, name, pages, Descriptor.decode(bits).swizzle)
        low, high = pages[0] << PAGE_SHIFT, (pages[-1] + 1) << PAGE_SHIFT
        verb = f"wgmma reads operand {name}"
        view = self._begin(p, line, verb, window, low, high, False)
        stamp = self.stamps.number(*key, line, False, False, "")
        if not parts:
            shadow.read_pages(pages, stamp, view.through_async)
            return
        whole = [page for page in pages if page not in parts]
        shadow.read_pages(whole, stamp, view.through_async)
        for page, (start, end) in parts.items():
            at = page << PAGE_SHIFT
            shadow.read_range(at + start, at + end, stamp, view.through_async)


@lru_cache(maxsize=4096)
def operand_pages(
    bits: int, rows: int, mn_major: bool, k_units: int
) -> tuple[tuple[int, ...], dict[int, tuple[int, int]]]:
    """The pages that a wgmma operand reads, and the bytes of those that it reads in part.

    Inside a page the bytes between the first and the last one count as read: a swizzle atom is
    the operand of one tile.
    """
    d = Descriptor.decode(bits)
    units = footprint(
        d.start & 0x3FF, d.leading, d.stride, d.swizzle, rows, mn_major, k_units
    ).units
    at = np.sort(units.ravel() + (d.start >> 4)) * 16
    pages = np.unique(at >> PAGE_SHIFT)
    first = np.searchsorted(at, pages << PAGE_SHIFT)
    last = np.searchsorted(at, (pages + 1) << PAGE_SHIFT) - 1
    parts = {}
    for page, low, high in zip(pages.tolist(), at[first].tolist(), at[last].tolist(), strict=True):
        start, end = low & 0x3FF, (high & 0x3FF) + 16
        if end - start < 640:  # more is a slice along K of whole swizzle atoms
            parts[page] = (start, end)
    return tuple(pages.tolist()), parts
