"""ld, st and their relatives: emitters, and the functions that generated code calls.

A load gives rows (arrays of 32 lanes) unless its address is uniform and its space is one where all
lanes see the same bytes; then it gives integers. A fault of a bank becomes a finding here, where
the path, the lane and the PTX line are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from . import order
from .alu_float import typed
from .async_forms import emit_async
from .clocks import SCOPES
from .emit import Emitter, flatten
from .faults import fault
from .isa import opcode
from .memory import Bank, Fault
from .operands import Mem, Op, Reg, Symbol, Value
from .report import hazard
from .space import OFFSET_MASK, RANK_SHIFT, SHARED_WINDOW, WINDOW_BYTES, WINDOWS, space_of
from .state import CTA, Path
from .values import BITS_CODE, Array, type_bits

# Cache and ordering qualifiers that do not change what a single access does here.
HINTS = frozenset(
    {
        "weak", "volatile", "relaxed", "acquire", "release", "mmio", "cta", "cluster", "gpu", "sys",
        "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "L1::evict_normal", "L1::evict_unchanged",
        "L1::evict_first", "L1::evict_last", "L1::no_allocate", "L2::cache_hint", "L2::64B",
        "L2::128B", "L2::256B", "unified",
    }
)  # fmt: skip
SPACES = frozenset({"shared", "global", "local", "param", "const"})


def _form(op: Op) -> tuple[str, int, str]:
    """(space, vector length, type) of a load or store. Generic space is ""."""
    space, count = "", 1
    for q in op.quals[:-1]:
        base = q.partition("::")[0]
        if base in SPACES:
            space = "cluster" if q == "shared::cluster" else base
        elif q in ("v2", "v4"):
            count = int(q[1:])
        elif q not in HINTS:
            raise op.unsupported(f"qualifier .{q} is not known here")
    mem = next((o for o in op.operands if isinstance(o, Mem)), None)
    if space == "param" and mem is not None and isinstance(mem.base, Symbol):
        space = mem.base.space  # arguments of an inlined call live in the frame
    return space, count, op.quals[-1]


_STRONG = frozenset({"relaxed", "acquire", "release", "volatile", "mmio"})


def emit_order(e: Emitter, op: Op) -> None:
    """Tell the checks that the next access is strong: its semantics and scope."""
    words = [q for q in op.quals if q in _STRONG]
    semantics = next((w for w in words if w in ("acquire", "release")), "relaxed")
    scopes = [q for q in op.quals if q in SCOPES]
    if words:
        e.line(f"if C.watch: C.watch.order = ('{semantics}', {SCOPES[(*scopes, 'sys')[0]]})")


def _load_uniform(op: Op, uniform: Callable[[Value], bool]) -> bool:
    """One value a warp: uniform address in a space where all lanes see the same bytes."""
    space, _, _ = _form(op)
    return space in ("shared", "cluster", "global", "param", "const") and uniform(op.operands[1])


@opcode("ld", "ldu", uniform=_load_uniform)
def load(e: Emitter, op: Op) -> None:
    space, count, type_ = _form(op)
    dests, mem = flatten(op.operands[0]), op.operands[1]
    assert isinstance(mem, Mem)
    width = type_bits(type_) // 8
    if width > 8:
        raise op.unsupported("there is no 128-bit register")
    emit_order(e, op)
    address, one = e.address(mem, 32 if space in ("shared", "cluster") else 64)
    scalar = one and space not in ("local", "")
    if scalar and all(e.uniform(d) for d in dests):
        names = e.temporary(f"load_one(p, '{space}', {address}, {width}, {count}, {op.line})")
        for i, d in enumerate(dests):
            bits = d.bits if isinstance(d, Reg) else 32
            e.set_scalar(d, f"widen({names}[{i}], {width * 8}, {int(type_[0] == 's')}, {bits})")
        return
    if one:
        address = f"full_{'U' if space in ('shared', 'cluster') else 'W'}({address})"
    rows = e.temporary(
        f"load_rows(p, '{space}', {address}, {width}, {count}, {e.mask_argument()}, {op.line})"
    )
    for i, d in enumerate(dests):
        bits = d.bits if isinstance(d, Reg) else max(width * 8, 16)
        row = f"{rows}[{i}]"
        if bits != width * 8:
            row = f"extend({row}, '{type_}', {bits})"
        e.assign(d, row, BITS_CODE[bits])


@opcode("st", dests=0)
def store(e: Emitter, op: Op) -> None:
    if op.has("async"):
        emit_async(e, op, typed)
        return
    space, count, type_ = _form(op)
    mem, values = op.operands[0], flatten(op.operands[1])
    assert isinstance(mem, Mem)
    if len(values) != count:
        raise op.unsupported(f"{len(values)} values where the vector has {count}")
    width = type_bits(type_) // 8
    emit_order(e, op)
    address, one = e.address(mem, 32 if space in ("shared", "cluster") else 64)
    if one and space not in ("local", "") and all(e.uniform(v) for v in values):
        numbers = [e.scalar(typed(v, type_), width * 8) for v in values]
        e.line(f"store_one(p, '{space}', {address}, {width}, [{', '.join(numbers)}], {op.line})")
        return
    if one:
        address = f"full_{'U' if space in ('shared', 'cluster') else 'W'}({address})"
    rows = [_stored_row(e, v, type_, width) for v in values]
    e.line(
        f"store_rows(p, '{space}', {address}, {width}, [{', '.join(rows)}], "
        f"{e.mask_argument()}, {op.line})"
    )


def _stored_row(e: Emitter, value: Value, type_: str, width: int) -> str:
    value = typed(value, type_)
    bits = value.bits if isinstance(value, Reg) else max(width * 8, 16)
    row = e.bits_row(value, bits)
    return row if bits == width * 8 else f"{row}.astype(u{width})"


@opcode("prefetch", "prefetchu", "applypriority", "discard", dests=0)
def prefetch(e: Emitter, op: Op) -> None:
    """Hints without effect, except that a tensor map must be there to be prefetched.

    What `discard` leaves behind is undefined, so the old data are as good as any.
    """
    mem = op.operands[0]
    if op.has("tensormap") and isinstance(mem, Mem):
        address, one = e.address(mem, 64)
        window = next((WINDOWS[q] for q in op.quals if q in ("param", "const")), 0)
        address = f"({address} + {window})"
        if one:
            e.line(f"prefetch_tensor_map(p, {address}, {op.line})")
        else:
            lanes = e.mask_argument()
            e.line(f"prefetch_tensor_map(p, one_of(p, {address}, {lanes}, {op.line}), {op.line})")


@opcode("isspacep", pure=True)
def is_space(e: Emitter, op: Op) -> None:
    d, a = op.operands
    space = op.quals[-1].partition("::")[0]
    row = e.bits_row(a, 64)
    if space == "global":
        form = f"({row} < {min(WINDOWS.values())})"
    else:
        form = f"(({row} - {WINDOWS[space]}) < {WINDOW_BYTES})"
        if op.quals[-1] in ("shared", "shared::cta"):
            form += f" & ((({row} >> {RANK_SHIFT}) & 255) == C.rank)"
    e.assign(d, form, "P")


# -- runtime ---------------------------------------------------------------------------------------


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
        watch.access(p, [g[:2] for g in groups], unit, line, writes=True, same=same)
    p.C.machine_epoch.bump()


def _lane(lanes: Array | None, positions: Array | None, position: int) -> int:
    at = position if positions is None else int(positions[position])
    return at if lanes is None else int(lanes[at])
