"""What a running grid consists of.

    Cluster ── CTA ── Warpgroup ── Warp ── Path
                │         │          │       lanes that run together: pc, mask, uniform registers
                │         │          registers of 32 lanes, as columns of the warpgroup's arrays
                │         wgmma queue and accumulator tiles (see wgmma.py)
                shared window, mbarriers, named barriers, register pool

Lanes of a warp split where a branch diverges and meet again at its post-dominator (`Join`). Groups
that are apart run independently of each other, as on the hardware: one may wait for the other.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ptxgen.spec import Dim3

from . import order
from .analysis import EXIT
from .clocks import Clock
from .functions import lane_bits, lanes_of
from .memory import Bank, GlobalMemory, SharedWindow
from .report import hazard
from .space import RANK_SHIFT
from .values import CODE_DTYPE, POISON, Array

if TYPE_CHECKING:
    from .barriers import NamedBarrier
    from .cluster import ClusterBarrier
    from .kernel import Kernel
    from .mbarrier import Mbarrier
    from .queue import AsyncQueue, BulkGroups, CpAsyncGroups
    from .register_pool import RegisterPool, Resize
    from .watch import WarpView, Watch
    from .wgmma_queue import WgmmaQueue

FULL_MASK = 0xFFFFFFFF
PARK, RELOAD, YIELD = -2, -3, -4  # what a block function returns instead of the next block

# Codes of each register class: the untyped array, and the views of it.
CLASS_VIEWS = {"P": "", "H": "JE", "U": "IF", "W": "XD"}


class Wait(Protocol):
    """What a parked path waits for."""

    def ready(self) -> bool: ...
    def describe(self) -> str: ...


@dataclass(slots=True)
class Join:
    """A meeting point of lanes that went different ways."""

    block: int
    parent: Join | None
    missing: int  # paths that have not arrived
    mask: int = 0
    S: list[Any] | None = None


class RegisterFile:
    """The registers of one warpgroup: a `[rows, 128]` array a class, and rows of each warp."""

    def __init__(self, rows: dict[str, int]) -> None:
        self.arrays = {c: np.zeros((n, 128), CODE_DTYPE[c]) for c, n in rows.items()}
        self.arrays["U"].fill(POISON)
        self.warps: list[dict[str, list[Array]]] = []
        for w in range(4):
            views: dict[str, list[Array]] = {}
            for c, array in self.arrays.items():
                part = array[:, 32 * w : 32 * w + 32]
                views[c] = list(part)
                for code in CLASS_VIEWS[c]:
                    views[code] = list(part.view(CODE_DTYPE[code]))
            self.warps.append(views)

    def poison(self) -> None:
        self.arrays["U"].fill(POISON)


class Warpgroup:
    """Four consecutive warps and what they share: registers and the wgmma queue."""

    def __init__(self, cta: CTA, index: int, registers: RegisterFile) -> None:
        self.cta = cta
        self.index = index
        self.registers = registers
        self.warps: list[Warp] = []
        self.resident = 0  # rows of class U whose value is in a tile, as a bit set
        self.wgmma: WgmmaQueue = None  # type: ignore[assignment]  # set by the machine


class Warp:
    """32 lanes. The single-letter attributes are register rows by code (see `values`)."""

    P: list[Array]
    H: list[Array]
    J: list[Array]
    E: list[Array]
    U: list[Array]
    I: list[Array]  # noqa: E741
    F: list[Array]
    W: list[Array]
    X: list[Array]
    D: list[Array]

    def __init__(self, cta: CTA, group: Warpgroup, index: int, lanes: int, kernel: Kernel) -> None:
        self.cta = cta
        self.group = group
        self.index = index
        self.live = lanes
        self.kernel = kernel
        for code, rows in group.registers.warps[index % 4].items():
            setattr(self, code, rows)
        self.T: dict[int, int] = dict.fromkeys(kernel.doubtful, 0)
        self.tid = cta.thread_rows(index)
        self.threads = np.arange(32 * index, 32 * index + 32)
        self.paths: list[Path] = [Path(self, lanes, 0, [None] * kernel.scalars, None)]
        self.inflight = 0  # rows of class U that a pending wgmma may touch
        self.registers = 0  # per thread, as setmaxnreg sees it
        self.resizes: list[Resize] = []  # the setmaxnreg that it has executed
        self.bulk: dict[int, BulkGroups] = {}
        self.cp_async: CpAsyncGroups | None = None
        self.cluster_arrived = 0  # lanes that have arrived at the cluster barrier and not waited
        self.cluster_phase = 0
        # When hazards are checked: its clock, those of cluster barriers, registers to be fenced.
        self.view: WarpView = None  # type: ignore[assignment]
        self.cluster_clock = Clock()
        self.cluster_inits: dict[int, int] = {}
        self.dirty = -1
        self.shapes: list[tuple[int, tuple[int, str]]] = []

    def exit_lanes(self, path: Path) -> None:
        """Lanes leave the kernel."""
        for lane, groups in self.bulk.items():
            if (path.mask >> lane) & 1:
                groups.check_exit(path)
        self.live &= ~path.mask
        self.cta.machine_epoch.bump()
        if not self.live:
            if self.cta.watch is not None:
                order.warp_left(path)
            self.cta.warp_exited()
            if self.cta.watch is not None and self.cta.exited:
                order.cta_left(path)


class Path:
    """Lanes of one warp that run together."""

    __slots__ = (
        "C", "S", "expired", "first", "full", "join", "lanes", "m", "mask", "meet", "pc", "token",
        "w", "wait",
    )  # fmt: skip

    def __init__(self, warp: Warp, mask: int, pc: int, S: list[Any], join: Join | None) -> None:
        self.w = warp
        self.C = warp.cta
        self.S = S
        self.pc = pc
        self.join = join
        self.meet = join.block if join is not None else -100
        self.wait: Wait | None = None
        self.token: Any = None  # what a waiting instruction remembers between its retries
        self.expired = False  # a try_wait may return false once
        self.set_mask(mask)

    def set_mask(self, mask: int) -> None:
        self.mask = mask
        self.full = mask == FULL_MASK
        self.m = lanes_of(mask)
        self.lanes = mask.bit_count()
        self.first = (mask & -mask).bit_length() - 1  # the lowest lane

    def where(self) -> str:
        """CTA, warp and lanes, for messages."""
        lanes = "" if self.full else f", lanes {self.mask:#010x}"
        return f"CTA {self.C.name}, warp {self.w.index}{lanes}"

    def clock(self) -> int:
        return self.C.machine_epoch.clock()

    def active(self, mask: Array | None) -> int:
        """The lanes of an instruction as bits: those of its guard, or all of the path."""
        return self.mask if mask is None else lane_bits(mask)

    def uninitialised(self, register: int, line: int) -> None:
        """Raise for a register that reaches an address, a branch or a side effect unwritten."""
        name = self.w.kernel.program.registers[register]
        raise hazard(
            "uninitialised-register",
            f"{name} is used before anything was written to it, or to what it was made of",
            path=self,
            line=line,
            bytes_=name,
            reason="the value of a register is undefined until it is written",
            cure=f"write {name} on every path that leads here",
        )

    # -- control flow --------------------------------------------------------------------------

    def branch(self, taken: Array, target: int, falls: int, meet: int) -> int:
        """A branch on a predicate row: the next block, or RELOAD when lanes went both ways."""
        go = lane_bits(taken) & self.mask
        if go == 0:
            return falls
        if go == self.mask:
            return target
        if target == falls:
            return target
        self._diverge(go, target, falls, meet)
        return RELOAD

    def _diverge(self, go: int, target: int, falls: int, meet: int) -> None:
        join: Join | None = self.join
        if meet != EXIT:
            if join is None or join.block != meet:
                join = Join(meet, self.join, 2)
            else:
                join.missing += 1
        elif join is not None:
            join.missing += 1
        other = Path(self.w, go, target, list(self.S), join)
        self.w.paths.append(other)
        self.set_mask(self.mask & ~go)
        self.pc, self.join = falls, join
        self.meet = join.block if join is not None else -100
        for path, block in ((other, target), (self, falls)):
            if block == path.meet:
                path.arrive()
            elif block == EXIT:
                path.leave()

    def arrive(self) -> None:
        """This path has reached its meeting point."""
        join = self.join
        assert join is not None
        join.mask |= self.mask
        join.S = self.S
        self._close(join)

    def leave(self) -> None:
        """The lanes of this path exit the kernel."""
        self.w.exit_lanes(self)
        if self.join is None:
            self.w.paths.remove(self)
        else:
            self._close(self.join)

    def _close(self, join: Join) -> None:
        """One path less to wait for; the last one lets the lanes that met go on together."""
        self.w.paths.remove(self)
        open_: Join | None = join
        while open_ is not None:
            open_.missing -= 1
            if open_.missing:
                return
            if open_.mask:
                assert open_.S is not None
                path = Path(self.w, open_.mask, open_.block, open_.S, open_.parent)
                self.w.paths.append(path)
                if path.meet == open_.block:
                    path.arrive()
                return
            open_ = open_.parent


@dataclass(slots=True)
class Epoch:
    """Counts changes that another path could observe. A path that spins while nothing changes can
    be put aside until something does."""

    value: int = 0
    reads: int = 0

    def bump(self) -> None:
        self.value += 1

    def clock(self) -> int:
        """Time, for %clock and %globaltimer: monotonic and deterministic."""
        self.reads += 1
        return self.value * 16 + self.reads


@dataclass(slots=True)
class Cluster:
    """CTAs that run together and reach each other's shared memory."""

    ctas: list[CTA]
    barrier: ClusterBarrier


class CTA:
    """One thread block. Tuples are (x, y, z); names are those of the special registers."""

    def __init__(
        self,
        kernel: Kernel,
        memory: GlobalMemory,
        *,
        rank: int,
        ctaid: tuple[int, int, int],
        grid: Dim3,
        cluster: Dim3,
        block: Dim3,
        smem_bytes: int,
        epoch: Epoch,
        events: Counter[str],
        files: list[RegisterFile],
    ) -> None:
        self.kernel = kernel
        self.memory = memory
        self.machine_epoch = epoch
        self.events = events
        self.rank = rank
        self.ctaid, self.nctaid, self.ntid = ctaid, tuple(grid), tuple(block)
        self.cluster_nctaid = tuple(cluster)
        self.clusterid = tuple(c // n for c, n in zip(ctaid, cluster, strict=True))
        self.nclusterid = tuple(c // n for c, n in zip(grid, cluster, strict=True))
        self.cluster_ctaid = tuple(c % n for c, n in zip(ctaid, cluster, strict=True))
        self.cluster_size = cluster.size
        self.explicit_cluster = "explicitcluster" in kernel.program.directives or cluster.size > 1
        self.name = f"({ctaid[0]},{ctaid[1]},{ctaid[2]})"
        self.shared_base = rank << RANK_SHIFT
        self.dynamic_smem = smem_bytes
        end = kernel.program.dynamic_offset + smem_bytes
        self.total_smem = end
        self.window = SharedWindow(end, self.shared_base)
        threads = block.size
        self.threads = threads
        self.nwarps = -(-threads // 32)
        self.block = block
        self.smid, self.nsmid = 0, 1
        frame = kernel.program.local.size
        self.frame = frame
        self.local: Bank | None = None
        if frame:
            raw = np.zeros(self.nwarps * 32 * frame, np.uint8)
            self.local = Bank("local memory", raw, 0, tracked=True)
        self.params: Bank = None  # type: ignore[assignment]  # set by the machine
        self.consts: Bank = None  # type: ignore[assignment]
        self.globals_base = 0
        self.mbarriers: dict[int, Mbarrier] = {}
        self.named: dict[int, NamedBarrier] = {}
        self.pool: RegisterPool | None = None
        self.cluster: Cluster = None  # type: ignore[assignment]
        self.queue: AsyncQueue = None  # type: ignore[assignment]
        self.exited = False
        self.watch: Watch | None = None
        self.visitors: dict[int, tuple[int, int]] = {}  # warps of other CTAs: last access, line
        self.farewell = Clock()  # what its warps knew when they exited
        self.decoded: dict[tuple[Any, ...], tuple[tuple[int, int], int, int, Array]] = {}
        self.groups = [Warpgroup(self, i, files[i]) for i in range(-(-self.nwarps // 4))]
        self.warps: list[Warp] = []
        for i in range(self.nwarps):
            lanes = (1 << min(32, threads - 32 * i)) - 1
            warp = Warp(self, self.groups[i // 4], i, lanes, kernel)
            self.groups[i // 4].warps.append(warp)
            self.warps.append(warp)

    def thread_rows(self, warp: int) -> tuple[Array, Array, Array]:
        """%tid of the lanes of a warp."""
        linear = np.arange(32 * warp, 32 * warp + 32, dtype=np.uint32)
        x, y = np.uint32(self.block.x), np.uint32(self.block.y)
        return linear % x, linear // x % y, linear // (x * y)

    def warp_exited(self) -> None:
        for barrier in self.named.values():
            barrier.update()
        if not any(w.live for w in self.warps):
            self.exited = True

    def peer(self, rank: int) -> CTA | None:
        """The CTA of this rank in the cluster, if there is one."""
        ctas = self.cluster.ctas
        return ctas[rank] if 0 <= rank < len(ctas) else None
