"""Loads and stores at run time, and where their addresses lie.

A load gives rows (arrays of 32 lanes) unless its address is uniform and its space is one where all
lanes see the same bytes; then it gives integers. A fault of a bank becomes a finding here, where
the path, the lane and the PTX line are known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import order
from .faults import fault
from .memory import Bank, Fault
from .report import hazard
from .space import OFFSET_MASK, RANK_SHIFT, SHARED_WINDOW, WINDOWS, space_of
from .state import CTA, Path
from .values import Array


def widen(value: int, bits: int, signed: int, register: int) -> int:
    """A loaded integer in a register that may be wider."""
    if signed and register > bits:
        half = 1 << (bits - 1)
        return ((value ^ half) - half) & ((1 << register) - 1)
    return value


def one_of(p: Path, row: Array, mask: Array | None, line: int) -> int:
    """The one value of a row in the active lanes, as an integer. A hazard when lanes differ."""
    active = row[p.m] if mask is None else row[mask]
    first = int(active[0])
    if (active != active[0]).any():
        raise hazard(
            "lanes-differ",
            "lanes give different values to an operand that is one value a warp",
            path=p,
            line=line,
            cure="compute the operand from values that are equal in all lanes",
        )
    return first


def _lanes(p: Path, mask: Array | None) -> Array | None:
    """Indices of the active lanes, or None for all 32."""
    if mask is None:
        return None if p.full else np.flatnonzero(p.m)
    return np.flatnonzero(mask)


def shared_peer(p: Path, rank: int, line: int) -> CTA:
    """The CTA of this rank, which must be running."""
    peer = p.C.peer(rank)
    if peer is None or peer.exited:
        state = "has exited" if peer is not None else "does not exist"
        raise hazard(
            "dead-peer",
            f"shared memory of CTA rank {rank}, which {state}",
            path=p,
            line=line,
            reason="distributed shared memory lives as long as its CTA runs",
            cure="end the kernel with barrier.cluster.arrive and barrier.cluster.wait",
            isa="5.1.7 Shared state space",
        )
    if p.C.watch is not None:
        order.peer_used(p, peer, line)
    return peer


def _wrong_cta(p: Path, address: int, line: int) -> Exception:
    return hazard(
        "wrong-cta",
        f"shared address {address:#x} is in the window of CTA rank {address >> RANK_SHIFT}, "
        f"used as an address of rank {p.C.rank}",
        path=p,
        line=line,
    )


def _refused(p: Path, space: str, error: Fault, line: int, lane: int, what: str) -> Exception:
    """A bank's refusal as a finding; an address of another CTA's window is called what it is."""
    address = (error.offset + p.C.shared_base) & 0xFFFFFFFF
    if space == "shared" and error.kind == "range" and p.C.peer(address >> RANK_SHIFT):
        if address >> RANK_SHIFT != p.C.rank:
            return _wrong_cta(p, address, line)
    return fault(p, error, line, lane, what)


def bank_of(p: Path, space: str, address: int, line: int) -> tuple[Bank, int]:
    """(bank, offset in it) of one address."""
    if space == "shared" or space == "cluster":
        rank = address >> RANK_SHIFT
        if rank == p.C.rank:
            return p.C.window, address & OFFSET_MASK
        if space == "shared":
            raise _wrong_cta(p, address, line)
        peer = shared_peer(p, rank, line)
        if p.C.watch is not None:
            order.peer_touched(p, peer, line)
        return peer.window, address & OFFSET_MASK
    if space == "param":
        return p.C.params, address
    if space == "const":
        return p.C.consts, address
    if space == "local":
        raise AssertionError("local memory differs between lanes")
    bank = p.C.memory.find(address)
    if bank is None and space_of(address) == "const":  # constants lie in global memory too
        return p.C.consts, address - WINDOWS["const"]
    if bank is None:
        raise hazard(
            "out-of-bounds",
            f"global address {address:#x} is {p.C.memory.nearest(address)}",
            path=p,
            line=line,
            reason="no array of this launch covers the address",
            cure="check the index; check that a generic address was not taken for a global one",
        )
    return bank, address - bank.base


def resolve(p: Path, space: str, address: int, line: int) -> tuple[Bank, int]:
    """As `bank_of`, for a generic address too (space "")."""
    if space:
        return bank_of(p, space, address, line)
    found = space_of(address)
    if found == "global":
        return bank_of(p, "global", address, line)
    return bank_of(p, "cluster" if found == "shared" else found, address - WINDOWS[found], line)


def load_one(p: Path, space: str, address: int, width: int, count: int, line: int) -> list[int]:
    """A load whose address is uniform."""
    bank, offset = resolve(p, space, address, line)
    try:
        values = bank.load_one(offset, width, count)
    except Fault as error:
        raise fault(p, error, line, None, "load") from None
    if p.C.watch is not None:
        p.C.watch.access(p, [(bank, np.array([offset]))], width * count, line, writes=False)
    return values


def store_one(p: Path, space: str, address: int, width: int, values: list[int], line: int) -> None:
    bank, offset = resolve(p, space, address, line)
    watch, unit = p.C.watch, width * len(values)
    before = b"" if watch is None else bank.peek(np.array([offset]), unit).tobytes()
    try:
        bank.store_one(offset, width, values)
    except Fault as error:
        raise fault(p, error, line, None, "store") from None
    if watch is not None:
        at = np.array([offset])
        same = bank.peek(at, unit).tobytes() == before
        watch.access(p, [(bank, at)], unit, line, writes=True, same=same)
    p.C.machine_epoch.bump()


def _split(
    p: Path, space: str, address: Array, line: int
) -> list[tuple[Bank, Array, Array | None]]:
    """Active addresses by bank: (bank, offsets, positions); no positions where one bank has all."""
    if space == "shared":
        return [(p.C.window, address - np.uint32(p.C.shared_base), None)]
    if space in ("param", "const"):
        return [(p.C.params if space == "param" else p.C.consts, address, None)]
    low, high = int(address.min()), int(address.max())
    bank, offset0 = resolve(p, space, low, line)
    if high - low + offset0 < bank.size and (space == "global" or space_of(low) == space_of(high)):
        start = address.dtype.type(low - offset0)
        return [(bank, address - start, None)]
    groups: dict[int, tuple[Bank, list[int], list[int]]] = {}
    for position, one in enumerate(address.tolist()):
        bank, at = resolve(p, space, one, line)
        _, offsets, positions = groups.setdefault(id(bank), (bank, [], []))
        offsets.append(at)
        positions.append(position)
    return [(b, np.array(o, np.int64), np.array(q)) for b, o, q in groups.values()]


def _local(p: Path, lanes: Array | None, address: Array, line: int) -> tuple[Bank, Array]:
    """Local addresses are a thread's own: frames lie one after the other in one bank."""
    bank = p.C.local
    frame = p.C.frame
    offset = address.astype(np.int64)
    if bank is None or int(offset.min()) < 0 or int(offset.max()) >= frame:
        error = Fault("range", "local memory", 0, int(offset.max()), 1, frame)
        raise fault(p, error, line, None, "access")
    threads = p.w.threads if lanes is None else p.w.threads[lanes]
    return bank, offset + threads * frame


def _accesses(
    p: Path, space: str, address: Array, mask: Array | None, line: int
) -> tuple[Array | None, list[tuple[Bank, Array, Array | None]]]:
    lanes = _lanes(p, mask)
    active = address if lanes is None else address[lanes]
    if space == "local":
        return lanes, [(*_local(p, lanes, active, line), None)]
    if (
        not space
        and (active >= np.uint64(SHARED_WINDOW)).any()
        and space_of(int(active[0])) == "local"
    ):
        inner = active - np.uint64(WINDOWS["local"])
        return lanes, [(*_local(p, lanes, inner, line), None)]
    return lanes, _split(p, space, active, line)


def load_rows(
    p: Path,
    space: str,
    address: Array,
    width: int,
    count: int,
    mask: Array | None,
    line: int,
    watched: bool = True,
) -> Array:
    """`[count, 32]` values; lanes that are off hold zeros."""
    lanes, groups = _accesses(p, space, address, mask, line)
    n = 32 if lanes is None else len(lanes)
    values: Array | None = None
    for bank, offset, positions in groups:
        try:
            found = bank.load(offset, width, count)
        except Fault as error:
            lane = _lane(lanes, positions, error.position)
            raise _refused(p, space, error, line, lane, "load") from None
        if positions is None:
            values = found
        else:
            values = np.zeros((n, count), f"u{width}") if values is None else values
            values[positions] = found
    assert values is not None
    if p.C.watch is not None and watched:
        p.C.watch.access(p, [g[:2] for g in groups], width * count, line, writes=False)
    if lanes is None:
        return values.T
    rows = np.zeros((count, 32), f"u{width}")
    rows[:, lanes] = values.T
    return rows


def store_rows(
    p: Path,
    space: str,
    address: Array,
    width: int,
    rows: Sequence[Array],
    mask: Array | None,
    line: int,
    watched: bool = True,
) -> None:
    """Store `len(rows)` consecutive values a lane."""
    values = np.empty((32, len(rows)), f"u{width}")
    for i, row in enumerate(rows):
        values[:, i] = row
    store_values(p, space, address, width, values, mask, line, watched)


def store_values(
    p: Path,
    space: str,
    address: Array,
    width: int,
    values: Array,
    mask: Array | None,
    line: int,
    watched: bool = True,
) -> None:
    """As `store_rows`, with the values as `[32, count]`."""
    lanes, groups = _accesses(p, space, address, mask, line)
    if lanes is not None:
        values = values[lanes]
    watch = p.C.watch if watched else None
    unit = width * values.shape[1]
    before = [] if watch is None else [bank.peek(offset, unit) for bank, offset, _ in groups]
    for bank, offset, positions in groups:
        try:
            bank.store(offset, width, values if positions is None else values[positions])
        except Fault as error:
            lane = _lane(lanes, positions, error.position)
            raise _refused(p, space, error, line, lane, "store") from None
    if watch is not None:
        after = [bank.peek(offset, unit) for bank, offset, _ in groups]
        same = all((x == y).all() for x, y in zip(before, after, strict=True))
        for (bank, offset, positions), found in zip(groups, after, strict=True):
            _check_lanes(p, bank, offset, values if positions is None else values[positions],
                         found, line)  # fmt: skip
        watch.access(p, [g[:2] for g in groups], unit, line, writes=True, same=same)
    p.C.machine_epoch.bump()


def _check_lanes(
    p: Path, bank: Bank, offset: Array, values: Array, found: Array, line: int
) -> None:
    """Every lane finds what it has stored, unless another one stored something else there."""
    wrote = np.ascontiguousarray(values).view(np.uint8).ravel()
    if np.array_equal(wrote, found):
        return
    first = int(np.flatnonzero(wrote != found)[0]) * len(offset) // len(wrote)
    where = f"{bank.name} offset {int(offset[first]):#x}"
    raise hazard(
        "race-lanes",
        f"lanes of one store write different values to {where}",
        path=p,
        line=line,
        bytes_=where,
    )


def _lane(lanes: Array | None, positions: Array | None, position: int) -> int:
    at = position if positions is None else int(positions[position])
    return at if lanes is None else int(lanes[at])
