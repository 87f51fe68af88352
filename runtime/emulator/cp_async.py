"""cp.async at run time (PTX ISA 9.7.9.25.1): copies of a warp, their groups and their arrivals.

What a copy reads and writes is told to the checks when it is issued; the bytes move when the mode
of the queue says so.
"""

from __future__ import annotations

import numpy as np

from . import order
from .access import load_rows, store_rows
from .mbarrier import check, find, mbarrier_arrive
from .queue import CpAsyncGroups, CpAsyncWait, Transfer
from .report import hazard
from .state import Path
from .tma import lane_value, lanes
from .values import Array


def async_arrive(p: Path, address: int | Array, noinc: int, mask: Array | None, line: int) -> None:
    """cp.async.mbarrier.arrive: the copies so far are done, so the arrival happens at once. Without
    .noinc the pending count goes up first, and the two cancel."""
    barriers = [
        find(p, lane_value(address, lane), False, line, "cp.async.mbarrier.arrive")
        for lane in lanes(p, mask)
    ]
    if p.C.watch is not None:
        for barrier in barriers[:1] if isinstance(address, int) else barriers:
            order.cp_async_arrive(p, barrier)
    before = p.w.cp_async.all_pending() if p.w.cp_async is not None else ()
    if not before:
        if noinc:
            mbarrier_arrive(p, address, 1, None, 0, 0, 0, mask, line)
        return
    if not noinc:
        for barrier in barriers:
            barrier.pending += 1

    def arrive() -> None:
        for barrier in barriers:
            barrier.arrive(1)
            check(p, barrier, line)

    p.C.queue.submit(Transfer(lambda: None, arrive, line, before))


def cp_async_commit(p: Path) -> None:
    if p.w.cp_async is not None:
        p.w.cp_async.commit()
    if p.C.watch is not None:
        order.cp_async_committed(p)


def cp_async_wait(p: Path, pending: int) -> bool:
    """True while more than `pending` groups of the warp are incomplete; -1 is wait_all."""
    if p.w.cp_async is not None and p.w.cp_async.behind(pending):
        p.wait = CpAsyncWait(p.w.cp_async, pending)
        return True
    if p.C.watch is not None:
        order.cp_async_waited(p, pending)
    return False


def cp_async(
    p: Path,
    dst: Array,
    src: Array,
    size: int,
    count: int | Array,
    mask: Array | None,
    line: int,
) -> None:
    """cp.async: `count` bytes copied, the rest of `size` zero-filled."""
    take = np.full(32, count, np.uint32) if isinstance(count, int) else count
    active = take[p.m] if mask is None else take[mask]
    if (active > size).any():
        raise hazard("cp-async-size", f"src-size {int(active.max())} exceeds cp-size {size}",
                     path=p, line=line)  # fmt: skip
    if p.C.watch is not None:
        here = p.m if mask is None else mask & p.m
        p.C.watch.cp_async(p, dst[here] - np.uint32(p.C.shared_base), size, line)
        # What is read counts as read at once: the copy's source must be there when it is issued.
        touched = here & (take > 0)
        if touched.any():
            load_rows(p, "global", src, 1, 1, touched, line)
    if p.C.queue.mode == "eager":
        _copy_rows(p, dst, src, size, take, active, mask, line)
        return
    groups = p.w.cp_async = p.w.cp_async or CpAsyncGroups()
    state = (dst.copy(), src.copy(), take.copy(), None if mask is None else mask.copy(), p.m.copy())
    for offset in (dst[p.m if mask is None else mask & p.m] - np.uint32(p.C.shared_base)).tolist():
        p.C.window.mark_in_flight(offset, offset + size)

    def complete() -> None:
        at, source, wanted, lanes_, all_lanes = state
        here = all_lanes if lanes_ is None else lanes_ & all_lanes
        for offset in (at[here] - np.uint32(p.C.shared_base)).tolist():
            p.C.window.mark_landed(offset, offset + size)
        _copy_rows(p, at, source, size, wanted, wanted[here], here, line)

    transfer = Transfer(lambda: None, complete, line)
    groups.open.append(transfer)
    p.C.queue.submit(transfer)


def _copy_rows(
    p: Path,
    dst: Array,
    src: Array,
    size: int,
    take: Array,
    active: Array,
    mask: Array | None,
    line: int,
) -> None:
    """Move the bytes of a cp.async, which the checks have seen already."""
    width = 4 if not (active & 3).any() else 1
    rows = np.zeros((size // width, 32), f"u{width}")
    reading = (p.m if mask is None else mask) & (take > 0)
    if (take[reading] == size).all():
        if reading.any():
            rows = load_rows(p, "global", src, width, len(rows), reading, line, False)
    else:  # no byte past src-size is read
        for i in range(len(rows)):
            wanted = reading & (take > i * width)
            if wanted.any():
                rows[i] = load_rows(p, "global", src + i * width, width, 1, wanted, line, False)[0]
    store_rows(p, "shared", dst, width, list(rows), mask, line, False)
