"""mbarrier objects (PTX ISA 9.7.13.15): a phase, pending arrivals, and a count of bytes to come.

    arrive(n)        pending -= n
    expect_tx(n)     tx += n
    complete_tx(n)   tx -= n          (bytes may land before they are expected: tx may be negative)
    a phase ends     when pending == 0 and tx == 0: phase += 1, pending = expected

The object lives beside the shared window, whose bytes only say that a barrier is there. The 64-bit
state that `arrive` returns is (phase << 32) | pending; programs may not look inside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import order
from .access import shared_peer
from .clocks import SyncPoint
from .faults import fault
from .functions import lanes_of
from .memory import Fault
from .report import hazard
from .space import OFFSET_MASK, RANK_SHIFT, SHARED_WINDOW, WINDOW_BYTES
from .state import CTA, Path
from .values import Array

COUNT_MAX = (1 << 20) - 1
ISA = "9.7.13.15 mbarrier"


@dataclass(slots=True)
class Mbarrier:
    cta: CTA
    offset: int
    expected: int
    line: int  # of its init
    pending: int = 0
    tx: int = 0
    phase: int = 0
    expected_bytes: int = 0  # of this phase, for messages
    delivered_bytes: int = 0
    # When hazards are checked: arrivals of this phase, what completed phases pass on, the agent
    # of the copies that it counts and the last phase they were issued for, and its init.
    point: SyncPoint = field(default_factory=SyncPoint)
    done: SyncPoint = field(default_factory=SyncPoint)
    agent: int = 0
    incoming: int = 0
    copy_line: int = 0
    observed: int = 0  # phases that somebody has waited for
    maker: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        self.pending = self.expected

    def arrive(self, count: int) -> None:
        self.pending -= count
        self.settle()

    def expect(self, bytes_: int) -> None:
        self.tx += bytes_
        self.expected_bytes += bytes_
        self.settle_later()

    def complete(self, bytes_: int) -> None:
        self.tx -= bytes_
        self.delivered_bytes += bytes_
        self.settle()

    def settle(self) -> None:
        """End the phase if nothing is missing."""
        self.settle_later()
        if self.pending == 0 and self.tx == 0:
            self.phase += 1
            self.pending = self.expected
            self.expected_bytes = self.delivered_bytes = 0
            self.cta.events["mbarrier_phase"] += 1
            if self.cta.watch is not None:
                order.mbarrier_phase(self.cta.watch, self)

    def settle_later(self) -> None:
        self.cta.machine_epoch.bump()

    def describe(self) -> str:
        return (
            f"mbarrier at CTA {self.cta.name} offset {self.offset:#x} (init in PTX line "
            f"{self.line}): phase {self.phase} (parity {self.phase & 1}), "
            f"{self.pending} of {self.expected} arrivals pending, "
            f"bytes expected {self.expected_bytes:,}, delivered {self.delivered_bytes:,}"
        )


@dataclass(slots=True)
class MbarrierWait:
    barriers: list[tuple[Mbarrier, int]]  # with the phase that must have ended

    def ready(self) -> bool:
        return any(m.phase > phase for m, phase in self.barriers)

    def describe(self) -> str:
        return "; ".join(
            f"waits for parity {phase & 1} of {m.describe()}" for m, phase in self.barriers[:4]
        )


# -- finding and checking --------------------------------------------------------------------------


def _problem(p: Path, line: int, code: str, message: str, reason: str, cure: str) -> Exception:
    return hazard(code, message, path=p, line=line, reason=reason, cure=cure, isa=ISA)


def locate(p: Path, address: int, remote: bool, line: int) -> tuple[CTA, int]:
    """(CTA, offset) of a shared or generic address of an mbarrier."""
    if address >> 32:  # a generic address: others are offsets in the window
        if not SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_BYTES:
            raise _problem(
                p, line, "mbarrier-address", f"{address:#x} is not an address of shared memory",
                "an mbarrier lives in shared memory", "pass a shared address",
            )  # fmt: skip
        address -= SHARED_WINDOW
    rank, offset = address >> RANK_SHIFT, address & OFFSET_MASK
    if offset % 8:
        raise _problem(
            p, line, "misaligned", f"mbarrier at offset {offset:#x} is not aligned to 8 bytes",
            "an mbarrier is a 64-bit object", "align it to 8 bytes",
        )  # fmt: skip
    if rank == p.C.rank:
        return p.C, offset
    if not remote:
        raise _problem(
            p, line, "remote-mbarrier",
            f"mbarrier of CTA rank {rank} through a form for the CTA's own barriers",
            "only arrive, expect_tx and complete_tx may name another CTA's barrier, "
            "with .shared::cluster",
            "use the .shared::cluster form, or the address of the own barrier",
        )  # fmt: skip
    return shared_peer(p, rank, line), offset


def find(p: Path, address: int, remote: bool, line: int, what: str) -> Mbarrier:
    cta, offset = locate(p, address, remote, line)
    barrier = cta.mbarriers.get(offset)
    if barrier is None:
        known = ", ".join(f"{o:#x}" for o in sorted(cta.mbarriers)) or "none"
        raise _problem(
            p, line, "mbarrier-uninitialised",
            f"{what} on CTA {cta.name} offset {offset:#x}, where there is no mbarrier",
            f"live mbarriers of that CTA: {known}",
            "mbarrier.init it first, and let the others wait until that is visible",
        )  # fmt: skip
    if p.C.watch is not None:
        order.mbarrier_used(p, barrier, line, what)
    return barrier


def check(p: Path, barrier: Mbarrier, line: int) -> None:
    """The ranges of PTX ISA 9.7.13.15.2."""
    if barrier.pending < 0:
        raise _problem(
            p, line, "mbarrier-overrun",
            f"more arrivals than the phase expects: {barrier.describe()}",
            f"the barrier was initialised for {barrier.expected} arrivals a phase",
            "make the init count equal to the arrivals of one phase",
        )  # fmt: skip
    if abs(barrier.tx) > COUNT_MAX:
        raise _problem(
            p, line, "mbarrier-tx",
            f"tx-count {barrier.tx} is outside +-{COUNT_MAX}: {barrier.describe()}",
            "the tx-count has 20 bits and a sign", "use smaller transactions a phase",
        )  # fmt: skip


# -- what generated code calls ---------------------------------------------------------------------


def _each(p: Path, address: int | Array, mask: Array | None) -> list[tuple[int, int]]:
    """(address, lanes that use it): one entry where the address is uniform."""
    here = p.active(mask)
    if isinstance(address, int):
        return [(address, here.bit_count())] if here else []
    return [(int(address[lane]), 1) for lane in np.flatnonzero(lanes_of(here)).tolist()]


def mbarrier_init(
    p: Path, address: int | Array, count: int | Array, mask: Array | None, line: int
) -> None:
    for at, lanes in _each(p, address, mask):
        n = count if isinstance(count, int) else int(count[p.m][0])
        cta, offset = locate(p, at, False, line)
        old = cta.mbarriers.get(offset)
        if old is not None or lanes > 1:
            before = f"PTX line {old.line}" if old else f"{lanes} lanes at once"
            raise _problem(
                p, line, "mbarrier-reinit",
                f"init of a live mbarrier at offset {offset:#x} (initialised by {before})",
                "a live barrier must be invalidated before it is initialised again",
                "let one thread initialise it, or mbarrier.inval first",
            )  # fmt: skip
        if not 1 <= n <= COUNT_MAX:
            raise _problem(
                p, line, "mbarrier-count", f"init with {n} arrivals",
                f"the count must be within 1..{COUNT_MAX}", "count the arrivals of one phase",
            )  # fmt: skip
        try:
            cta.window._check_range(offset, 8, 8)
            cta.window.check_writable(offset, offset + 8)
        except Fault as error:
            raise fault(p, error, line, None, "mbarrier.init") from None
        cta.window.mark_barrier(offset, True)
        cta.mbarriers[offset] = Mbarrier(cta, offset, n, line)
        if p.C.watch is not None:
            order.mbarrier_made(p, cta.mbarriers[offset])


def mbarrier_inval(p: Path, address: int | Array, mask: Array | None, line: int) -> None:
    for at, _ in _each(p, address, mask):
        barrier = find(p, at, False, line, "mbarrier.inval")
        del barrier.cta.mbarriers[barrier.offset]
        barrier.cta.window.mark_barrier(barrier.offset, False)


def mbarrier_arrive(
    p: Path,
    address: int | Array,
    count: int | Array,
    tx: int | Array | None,
    drop: int,
    remote: int,
    scope: int,
    mask: Array | None,
    line: int,
) -> Any:
    """arrive, arrive.expect_tx and arrive_drop; the states before, for the lanes' registers.

    `scope` is that of the release (see `clocks.SCOPES`), -1 for .relaxed.
    """
    state = 0
    for lane, (at, lanes) in enumerate(_each(p, address, mask)):
        barrier = find(p, at, bool(remote), line, "mbarrier.arrive")
        if p.C.watch is not None:
            order.mbarrier_arrive(p, barrier, scope, line)
        state = barrier.phase << 32 | barrier.pending
        n = count if isinstance(count, int) else int(count[p.m][lane])
        bytes_ = tx if tx is None or isinstance(tx, int) else int(tx[p.m][lane])
        for _ in range(lanes if bytes_ is not None else 1):
            if bytes_ is not None:
                barrier.expect(bytes_)
            if drop:
                barrier.expected -= n * (1 if bytes_ is not None else lanes)
            if barrier.pending == 0:  # complete but for bytes: one arrival too many
                barrier.pending = -1
                check(p, barrier, line)
            barrier.arrive(n * (1 if bytes_ is not None else lanes))
            check(p, barrier, line)
        if barrier.expected <= 0:
            raise _problem(
                p, line, "mbarrier-count", "arrive_drop leaves a barrier without participants",
                "the expected count must stay positive", "invalidate the barrier instead",
            )  # fmt: skip
    return np.full(32, state, np.uint64)


def mbarrier_no_complete(
    p: Path, address: int | Array, count: int | Array, mask: Array | None, line: int
) -> None:
    """Before an arrive.noComplete: the arrivals must leave the phase incomplete."""
    for lane, (at, lanes) in enumerate(_each(p, address, mask)):
        barrier = find(p, at, False, line, "mbarrier.arrive")
        n = count if isinstance(count, int) else int(count[p.m][lane])
        if n * lanes >= barrier.pending:
            raise _problem(
                p, line, "mbarrier-no-complete",
                f"{n * lanes} arrivals with .noComplete end the phase of {barrier.describe()}",
                "the program has promised that they do not", "leave out .noComplete",
            )  # fmt: skip


def mbarrier_tx(
    p: Path,
    operation: str,
    address: int | Array,
    tx: int | Array,
    remote: int,
    mask: Array | None,
    line: int,
) -> None:
    """expect_tx and complete_tx."""
    for lane, (at, lanes) in enumerate(_each(p, address, mask)):
        barrier = find(p, at, bool(remote), line, f"mbarrier.{operation}")
        bytes_ = tx if isinstance(tx, int) else int(tx[p.m][lane])
        for _ in range(lanes):
            if operation == "expect_tx":
                barrier.expect(bytes_)
            else:
                barrier.complete(bytes_)
            check(p, barrier, line)


def _phase_waited(barrier: Mbarrier, value: int, parity: int) -> int:
    """The phase that must have ended for a wait to succeed."""
    if not parity:
        return value >> 32
    return barrier.phase if barrier.phase & 1 == value & 1 else barrier.phase - 1


def mbarrier_wait(
    p: Path,
    address: int | Array,
    value: int | Array,
    parity: int,
    blocking: int,
    scope: int,
    mask: Array | None,
    line: int,
) -> Any:
    """test_wait and try_wait: True or False (rows where an operand is one), None to park the path.

    try_wait suspends its thread until the phase ends. It may also give up after a time of the
    system's choosing; `Path.expired` is set when nothing else can run any more.
    """
    name = "mbarrier.try_wait" if blocking else "mbarrier.test_wait"
    if isinstance(address, int) and isinstance(value, int):
        barrier = find(p, address, False, line, name)
        waited = _phase_waited(barrier, value, parity)
        if barrier.phase > waited:
            if p.C.watch is not None:
                order.mbarrier_waited(p, barrier, waited, scope)
            return True
        if blocking and not p.expired:
            p.wait = MbarrierWait([(barrier, waited)])
            return None
        p.expired = False
        return False
    row = np.zeros(32, np.bool_)
    missing = []
    for lane in np.flatnonzero(lanes_of(p.active(mask))).tolist():
        at = address if isinstance(address, int) else int(address[lane])
        v = value if isinstance(value, int) else int(value[lane])
        barrier = find(p, at, False, line, name)
        waited = _phase_waited(barrier, v, parity)
        row[lane] = barrier.phase > waited
        if row[lane] and p.C.watch is not None:
            order.mbarrier_waited(p, barrier, waited, scope)
        missing.append((barrier, waited))
    if blocking and not row.any() and not p.expired:
        p.wait = MbarrierWait(missing)
        return None
    p.expired = False
    return row
