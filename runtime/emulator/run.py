"""One launch: its clusters, and the loop that runs them."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ptxgen import env
from ptxgen.errors import Deadlock, EmulatorError, LaunchError
from ptxgen.spec import Dim3

from .analysis import EXIT
from .cluster import ClusterBarrier
from .kernel import Kernel
from .mbarrier import MbarrierWait
from .memory import Bank, GlobalMemory
from .operands import Data
from .queue import AsyncQueue
from .register_pool import RegisterPool, check_resizes, entry_registers
from .report import RegisterUse, hazard
from .space import WINDOWS, align_up
from .state import CTA, PARK, RELOAD, Cluster, Epoch, Path, Warp
from .values import Array
from .watch import Watch
from .wgmma import touch_registers
from .wgmma_queue import WgmmaQueue

if TYPE_CHECKING:
    from .machine import Machine

SLICE_BLOCKS = 512  # basic blocks that a path may run before the next one has its turn
SPIN_BLOCKS = 64  # the longest loop that is recognised as spinning
# A random schedule lets warps spin, but not for ever: the cluster that they wait for may start only
# when nobody else can go on.
QUIET_TURNS = 64
PRIORITY_CHANGES, PRIORITY_TURNS = 3, 200  # changes of priority, and the turns they fall in


@dataclass(frozen=True, slots=True)
class EpochWait:
    """A path that spins: the same state, and nothing it could see has changed."""

    epoch: Epoch
    value: int

    def ready(self) -> bool:
        return self.epoch.value != self.value

    def describe(self) -> str:
        return "spins in a loop on memory that nothing changes any more"


def check_bytes(cta: CTA) -> None:
    """A CTA is over: every barrier has received what it was told to expect."""
    for barrier in cta.mbarriers.values():
        if barrier.tx:
            raise hazard(
                "mbarrier-tx-left",
                f"CTA {cta.name} exits, and bytes expected and delivered differ: "
                f"{barrier.describe()}",
                line=barrier.copy_line or barrier.line,
                lines=(barrier.line,) if barrier.copy_line else (),
                where=f"CTA {cta.name}",
            )


class Run:
    """One launch: its clusters, and the loop that runs them."""

    def __init__(
        self,
        machine: Machine,
        kernel: Kernel,
        grid: Dim3,
        block: Dim3,
        cluster: Dim3,
        smem_bytes: int,
        memory: GlobalMemory,
    ) -> None:
        self.machine = machine
        self.kernel = kernel
        self.grid, self.block, self.cluster = grid, block, cluster
        self.smem_bytes = smem_bytes
        self.memory = memory
        self.epoch = Epoch()
        self.events: Counter[str] = Counter()
        self.counts = [0] * len(kernel.analysis.blocks)
        self.rng = random.Random(machine.seed)
        self.blocks_left = machine.max_blocks
        self.active: list[Cluster] = []
        self.watch = Watch() if machine.hazards else None
        self.admitted = 0
        self.priorities: dict[int, float] = {}
        self.turns = 0
        self.changes = {self.rng.randrange(1, PRIORITY_TURNS) for _ in range(PRIORITY_CHANGES)}
        self.quiet = 0  # turns in a row that used up their share and changed nothing
        self.traces = env.DEBUG.get() >= 6
        self.registers: dict[RegisterUse, None] = {}  # of the CTAs that have run, in order
        self.gave_up_at = -1  # the epoch at which waiting try_waits were last told to give up
        self.patient = True  # they have not been, since the last copy made a step

    # -- memory --------------------------------------------------------------------------------

    def load(self, params: Mapping[str, bytes]) -> None:
        """Fill the parameter block, the constant bank and the module's global variables."""
        program = self.kernel.program
        missing = program.params.keys() ^ params.keys()
        if missing:
            raise LaunchError(
                f"{program.entry} takes {', '.join(program.params) or 'no parameters'}; "
                f"unknown or missing: {', '.join(sorted(missing))}"
            )
        block = np.zeros(align_up(max(program.param_bytes, 16), 16), np.uint8)
        for name, (offset, size) in program.params.items():
            raw = params[name]
            if len(raw) != size:
                raise LaunchError(f"parameter {name} has {size} bytes, got {len(raw)}")
            block[offset : offset + size] = np.frombuffer(raw, np.uint8)
        self.params = Bank("the parameter block", block, 0, tracked=False, writable=False)
        consts = np.zeros(align_up(max(program.consts.size, 16), 16), np.uint8)
        self.consts = Bank("constant memory", consts, 0, tracked=False, writable=False)
        self.globals_base = 0
        if program.globals.size:
            self.globals_base = self.memory.allocate(program.globals.size, "global variables")
            bank = self.memory.find(self.globals_base)
            assert bank is not None
            self._initialise(program.globals.data, bank.data)
        self._initialise(program.consts.data, consts)
        if self.watch is not None:
            self.watch.cover(self.memory)

    def _initialise(self, data: Sequence[Data], target: Array) -> None:
        for item in data:
            raw = bytearray(item.raw)
            for at, symbol, generic in item.links:
                address = symbol.offset
                if symbol.space == "global":
                    address += self.globals_base
                elif generic:
                    address += WINDOWS[symbol.space]
                raw[at : at + 8] = address.to_bytes(8, "little")
            target[item.offset : item.offset + len(raw)] = np.frombuffer(bytes(raw), np.uint8)

    # -- clusters ------------------------------------------------------------------------------

    def clusters(self) -> Iterator[tuple[int, int, int]]:
        """The first CTA of every cluster, in launch order."""
        c, g = self.cluster, self.grid
        for z in range(0, g.z, c.z):
            for y in range(0, g.y, c.y):
                for x in range(0, g.x, c.x):
                    yield x, y, z

    def admit(self, first: tuple[int, int, int]) -> None:
        """Make the CTAs of one cluster."""
        queue = AsyncQueue(self.machine.mode, self.rng)
        ctas: list[CTA] = []
        c = self.cluster
        for rank in range(c.size):
            place = (rank % c.x, rank // c.x % c.y, rank // (c.x * c.y))
            files = [self.kernel.take_file() for _ in range(-(-self.block.size // 128))]
            cta = CTA(
                self.kernel, self.memory, rank=rank,
                ctaid=(first[0] + place[0], first[1] + place[1], first[2] + place[2]),
                grid=self.grid, cluster=c, block=self.block, smem_bytes=self.smem_bytes,
                epoch=self.epoch, events=self.events, files=files,
            )  # fmt: skip
            cta.params, cta.consts, cta.globals_base = self.params, self.consts, self.globals_base
            cta.queue = queue
            cta.sums = self.machine.sums
            cta.watch = self.watch
            entry = entry_registers(self.kernel.program)
            if entry is not None:
                cta.pool = RegisterPool(entry)
                for w in cta.warps:
                    w.registers = entry
            for group in cta.groups:
                group.wgmma = WgmmaQueue(group, eager=self.machine.mode == "eager")
            ctas.append(cta)
        if self.watch is not None:
            self.watch.enter(ctas, self.admitted)
        self.admitted += 1
        cluster = Cluster(ctas, ClusterBarrier(ctas))
        for cta in ctas:
            cta.cluster = cluster
        self.active.append(cluster)

    def retire(self) -> bool:
        """Drop clusters that have finished; whether there were any."""
        done = [c for c in self.active if all(cta.exited for cta in c.ctas)]
        for cluster in done:
            while cluster.ctas[0].queue.advance():
                pass
            self.active.remove(cluster)
            for cta in cluster.ctas:
                check_bytes(cta)
                check_resizes(cta)
                if cta.pool is not None:
                    self.registers[cta.pool.use(cta.warps)] = None
                for group in cta.groups:
                    self.kernel.give_file(group.registers)
        return bool(done)

    def run(self) -> None:
        waiting = self.clusters()
        while True:
            if not self.active:
                first = next(waiting, None)
                if first is None:
                    return
                self.admit(first)
            if self.round():
                self.retire()
                continue
            if self.machine.mode == "latest" and self.patient and self.give_up_waits():
                continue
            if any([c.ctas[0].queue.advance() for c in self.active]):
                self.patient = True
                continue
            resident = self.cluster.size * (len(self.active) + 1)
            first = next(waiting, None) if resident <= self.machine.sms else None
            if first is not None:
                self.admit(first)
                continue
            if self.gave_up_at != self.epoch.value and self.give_up_waits():
                continue
            raise Deadlock(self.deadlock())

    def give_up_waits(self) -> bool:
        """Let every try_wait return false once: its time limit has passed."""
        self.gave_up_at, self.patient = self.epoch.value, False
        waits = [p for p in self.paths() if isinstance(p.wait, MbarrierWait)]
        for p in waits:
            p.expired, p.wait = True, None
        return bool(waits)

    def paths(self) -> Iterator[Path]:
        for w in self.warps():
            yield from w.paths

    def warps(self) -> Iterator[Warp]:
        for cluster in self.active:
            for cta in cluster.ctas:
                yield from cta.warps

    # -- running -------------------------------------------------------------------------------

    def round(self) -> bool:
        """Give every path a turn; whether any could go on."""
        warps = list(self.warps())
        if self.machine.schedule == "priority":
            return self.highest(warps)
        if self.machine.schedule == "random":
            self.rng.shuffle(warps)
        ran = False
        for w in warps:
            for p in list(w.paths):
                if p.wait is not None:
                    if not p.wait.ready():
                        continue
                    p.wait = None
                if p in w.paths:
                    ran = True
                    self.turn(p)
        return ran

    def highest(self, warps: Sequence[Warp]) -> bool:
        """Run the warp of the highest priority that can run. At a few moments that the seed chooses
        it falls behind all others: a race of depth d is found by d - 1 such changes."""
        for w in warps:
            self.priorities.setdefault(id(w), self.rng.random())
        for w in sorted(warps, key=lambda w: -self.priorities[id(w)]):
            for p in list(w.paths):
                if p.wait is not None and not p.wait.ready():
                    continue
                p.wait = None
                self.turns += 1
                if self.turns in self.changes:
                    self.priorities[id(w)] = -self.turns
                self.turn(p)
                return True
        return False

    def turn(self, p: Path) -> None:
        budget = SLICE_BLOCKS
        if self.machine.schedule == "random":
            budget = self.rng.randrange(1, 64)
        elif self.machine.schedule == "priority":
            budget = 64
        epoch, start = self.epoch.value, p.pc
        exhausted = self.advance(p, budget)
        if self.traces:
            self.trace(p, start)
        if exhausted:
            self.blocks_left -= budget
            if self.blocks_left < 0:
                raise EmulatorError(
                    f"no end after {self.machine.max_blocks:,} basic blocks: {p.where()} is at PTX "
                    f"line {self.kernel.line(p.pc)}; raise max_blocks if the program is that long"
                )
            if epoch == self.epoch.value:
                self.quiet += 1
                if self.machine.schedule != "random" or self.quiet > QUIET_TURNS:
                    self.park_if_spinning(p)
        if epoch != self.epoch.value:
            self.quiet = 0
        p.C.queue.between_warps()

    def advance(self, p: Path, budget: int) -> bool:
        """Run a path until it waits, splits, meets or exits; True when its share was used up."""
        kernel, counts, w = self.kernel, self.counts, p.w
        touch, group = kernel.touch, p.w.group
        table = kernel.full if p.full else kernel.masked
        dirt = kernel.dirt if self.watch is not None else None
        pc, meet = p.pc, p.meet
        while budget:
            budget -= 1
            touched = touch[pc]
            if touched and (touched & w.inflight or touched & group.resident):
                p.pc = pc
                touch_registers(w, p, touched, kernel.line(pc))
            after = table[pc](p)
            if dirt is not None and after != PARK and (change := dirt[pc]) is not None:
                w.dirty = w.dirty & change[0] | change[1]
            if after >= 0:
                counts[pc] += 1
                pc = after
                if pc == meet:
                    p.pc = pc
                    p.arrive()
                    return False
            elif after == PARK:
                p.pc = pc
                return False
            elif after == EXIT:
                counts[pc] += 1
                p.pc = pc
                p.leave()
                p.C.cluster.barrier.update()
                return False
            else:
                assert after == RELOAD
                counts[pc] += 1
                return False
        p.pc = pc
        return True

    def park_if_spinning(self, p: Path) -> None:
        """Put a path aside when it comes back to the same state while nothing changes."""
        epoch, start, state = self.epoch.value, p.pc, self.snapshot(p)
        for _ in range(SPIN_BLOCKS):
            if not self.advance(p, 1) or self.epoch.value != epoch:
                return
            if p.pc == start and self.snapshot(p) == state:
                p.wait = EpochWait(self.epoch, epoch)
                return

    def snapshot(self, p: Path) -> tuple[object, ...]:
        w = p.w
        column = slice(32 * (w.index % 4), 32 * (w.index % 4) + 32)
        arrays = w.group.registers.arrays.values()
        return (tuple(p.S), *(a[:, column].tobytes() for a in arrays))

    # -- messages ------------------------------------------------------------------------------

    def trace(self, p: Path, start: int) -> None:
        """PTXGEN_DEBUG=6: one line a turn, on stderr."""
        first, last = self.kernel.line(start), self.kernel.line(p.pc)
        wait = f", {p.wait.describe()}" if p.wait is not None else ""
        print(f"{p.where()}: PTX line {first} to {last}{wait}", file=sys.stderr)

    def deadlock(self) -> str:
        """Who waits for what, one line a reason."""
        reasons: dict[tuple[str, str, int], list[str]] = {}
        for p in self.paths():
            what = p.wait.describe() if p.wait is not None else "can run"
            key = (p.C.name, what, self.kernel.line(p.pc))
            lanes = "" if p.full else f" (lanes {p.mask:#010x})"
            reasons.setdefault(key, []).append(f"{p.w.index}{lanes}")
        lines = ["deadlock: nothing can run and nothing is pending"]
        for (cta, what, line), warps in reasons.items():
            who = f"warp{'s' if len(warps) > 1 else ''} {', '.join(warps)}"
            lines.append(f"  CTA {cta} {who} at PTX line {line}: {what}")
        for cluster in self.active:
            for c in cluster.ctas:
                for barrier in c.named.values():
                    if barrier.active:
                        lines.append(f"  CTA {c.name} {barrier.describe()}")
                if c.pool is not None and c.pool.free:
                    lines.append(f"  CTA {c.name} {c.pool.describe()}")
        return "\n".join(lines)
