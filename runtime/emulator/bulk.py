"""cp.async.bulk, cp.reduce.async.bulk and cp.async: emitters, plain bulk copies, and their groups
(PTX ISA 9.7.9.25 and 9.7.9.26)."""

from __future__ import annotations

import numpy as np

from . import order
from .access import resolve
from .emit import Emitter
from .faults import fault
from .functions_float import ftz
from .isa import opcode
from .mbarrier import find
from .memory import Bank, Fault
from .operands import Imm, Mem, Negated, Op, Value
from .queue import BulkGroups, BulkWait, Transfer
from .report import hazard
from .state import CTA, PARK, Path
from .tma import announce, destinations, lane_value, lanes, reduced, shared_offset, signal
from .values import Array, type_bits
from .visibility import barrier_signalled

REDUCTIONS = frozenset({"add", "min", "max", "inc", "dec", "and", "or", "xor"})
COMPLETE = "mbarrier::complete_tx::bytes"
REDUCED_TYPES = frozenset({"u32", "s32", "u64", "s64", "b32", "b64", "f16", "bf16", "f32", "f64"})
KNOWN = frozenset(
    {
        "async", "bulk", "tensor", "1d", "2d", "3d", "4d", "5d", "shared::cluster", "shared::cta",
        "global", "tile", COMPLETE, "multicast::cluster", "L2::cache_hint", "bulk_group",
        "commit_group", "wait_group", "read", "wait_all", "prefetch", "L2", "reduce", "ca", "cg",
        "shared", "L2::64B", "L2::128B", "L2::256B", "mbarrier", "arrive", "noinc", "b64",
        "noftz",
    }
) | REDUCTIONS | REDUCED_TYPES  # fmt: skip


def _waits(op: Op) -> bool:
    return op.has("wait_group") or op.has("wait_all")


@opcode("cp", dests=0, waits=_waits)
def copy(e: Emitter, op: Op) -> None:
    unknown = set(op.quals) - KNOWN
    if unknown:
        raise op.unsupported(f"qualifier .{unknown.pop()} is not executed")
    tail = f"{e.mask_argument()}, {op.line}"
    if not op.has("bulk"):
        _cp_async(e, op, tail)
    elif op.has("commit_group"):
        e.line(f"bulk_commit(p, {tail})")
    elif op.has("wait_group"):
        pending = op.operands[0]
        reading = int(op.has("read"))
        e.line(f"if bulk_wait(p, {e.scalar(pending)}, {reading}, {tail}): return {PARK}")
    elif op.has("tensor"):
        _tensor(e, op, tail)
    else:
        _bulk(e, op, tail)


def _operand(e: Emitter, value: Value, bits: int = 32) -> str:
    """An address or number as an integer expression, or as a row where lanes may differ."""
    if isinstance(value, Mem):
        width = 64 if getattr(value.base, "bits", 32) == 64 or bits == 64 else 32
        return e.address(value, width)[0]
    if e.uniform(value):
        return e.scalar(value, bits)
    return e.vector(value, {16: "H", 32: "U", 64: "W"}[getattr(value, "bits", bits)])


def _coordinates(e: Emitter, mem: Mem) -> str:
    return "[" + ", ".join(_operand(e, c) for c in mem.coordinates) + "]"


def _tensor(e: Emitter, op: Op, tail: str) -> None:
    operands = list(op.operands)
    if op.has("L2::cache_hint"):
        operands.pop()
    if op.has("prefetch"):
        mem = operands[0]
        assert isinstance(mem, Mem)
        e.line(f"prefetch_tensor_map(p, lane_value({_operand(e, mem, 64)}, 0), {op.line})")
        return
    if op.has(COMPLETE):
        dst, mem, mbar, *rest = operands
        assert isinstance(mem, Mem)
        if op.has("multicast::cluster") != bool(rest):
            raise op.unsupported("the operands do not match .multicast::cluster")
        multicast = _operand(e, rest[0], 16) if rest else "None"
        e.line(
            f"tensor_load(p, {_operand(e, dst)}, {_operand(e, mem, 64)}, {_coordinates(e, mem)}, "
            f"{_operand(e, mbar)}, {multicast}, {tail})"
        )
        return
    if not op.has("bulk_group"):
        raise op.unsupported("a tensor copy completes by mbarrier or bulk_group")
    mem, src = operands
    assert isinstance(mem, Mem)
    reduction = next((q for q in op.quals if q in REDUCTIONS), "") if op.has("reduce") else ""
    e.line(
        f"tensor_store(p, {_operand(e, mem, 64)}, {_coordinates(e, mem)}, {_operand(e, src)}, "
        f"'{reduction}', {tail})"
    )


def _bulk(e: Emitter, op: Op, tail: str) -> None:
    operands = list(op.operands)
    if op.has("L2::cache_hint"):
        operands.pop()
    if op.has("prefetch"):
        return
    dst, src, size = operands[:3]
    reduction = type_ = ""
    if op.has("reduce"):
        reduction, type_ = next(q for q in op.quals if q in REDUCTIONS), op.quals[-1]
        if type_ not in REDUCED_TYPES:
            raise op.unsupported("a reduction ends in the type of its elements")
    tail = f"'{reduction}', '{type_}', {tail}"
    if op.has("bulk_group"):
        e.line(
            f"bulk_store(p, {_operand(e, dst, 64)}, {_operand(e, src)}, {_operand(e, size)}, "
            f"{tail})"
        )
        return
    if not op.has(COMPLETE):
        raise op.unsupported("a bulk copy completes by mbarrier or bulk_group")
    multicast = _operand(e, operands[4], 16) if op.has("multicast::cluster") else "None"
    source_bits = 64 if op.has("global") else 32
    e.line(
        f"bulk_load(p, {_operand(e, dst)}, {_operand(e, src, source_bits)}, {_operand(e, size)}, "
        f"{_operand(e, operands[3])}, {multicast}, {int(op.has('global'))}, {tail})"
    )


def _cp_async(e: Emitter, op: Op, tail: str) -> None:
    if op.has("mbarrier"):
        mem = op.operands[0]
        assert isinstance(mem, Mem)
        e.line(f"async_arrive(p, {_operand(e, mem)}, {int(op.has('noinc'))}, {tail})")
        return
    if op.has("commit_group"):
        e.line("cp_async_commit(p)")
        return
    if op.has("wait_group") or op.has("wait_all"):
        pending = e.scalar(op.operands[0]) if op.has("wait_group") else "-1"
        e.line(f"if cp_async_wait(p, {pending}): return {PARK}")
        return
    dst, src, size, *rest = op.operands
    assert isinstance(dst, Mem)
    assert isinstance(src, Mem)
    assert isinstance(size, Imm)
    if op.has("L2::cache_hint"):
        rest = rest[:-1]
    count = str(size.value)
    if rest:
        extra = rest[0]
        if isinstance(extra, Negated) or getattr(extra, "bits", 32) == 1:  # true ignores the source
            if e.uniform(extra):
                count = f"(0 if {e.scalar(extra, 1)} else {size.value})"
            else:
                count = f"where({e.vector(extra, 'P')}, 0, {size.value})"
        else:
            count = _operand(e, extra)
    rows = [_as_row(e, m, bits) for m, bits in ((dst, 32), (src, 64))]
    e.line(f"cp_async(p, {rows[0]}, {rows[1]}, {size.value}, {count}, {tail})")


def _as_row(e: Emitter, mem: Mem, bits: int) -> str:
    text, one = e.address(mem, bits)
    return f"full_{'U' if bits == 32 else 'W'}({text})" if one else text


# -- runtime ---------------------------------------------------------------------------------------


def _check_bulk(p: Path, line: int, size: int, *addresses: int) -> None:
    bad = [a for a in (size, *addresses) if a % 16]
    if bad:
        what = "size" if size % 16 else f"address {bad[0]:#x}"
        raise hazard(
            "misaligned",
            f"cp.async.bulk of {size} bytes: its {what} is not a multiple of 16",
            path=p,
            line=line,
            reason="bulk copies move 16-byte units",
            cure="copy the aligned part in bulk and the tail with ordinary accesses",
            isa="9.7.9.25.4 cp.async.bulk",
        )


def bulk_load(
    p: Path,
    dst: int | Array,
    src: int | Array,
    size: int | Array,
    mbar: int | Array,
    multicast: int | Array | None,
    from_global: int,
    reduction: str,
    type_: str,
    mask: Array | None,
    line: int,
) -> None:
    """cp.async.bulk to shared memory, from global memory or from the CTA's own shared memory; a
    reduction combines instead of overwriting."""
    for lane in lanes(p, mask):
        to, source = lane_value(dst, lane), lane_value(src, lane)
        n = lane_value(size, lane)
        _check_bulk(p, line, n, to, source)
        mask16 = None if multicast is None else lane_value(multicast, lane) & 0xFFFF
        receivers = destinations(p, to, lane_value(mbar, lane), mask16, line)
        bank, offset = resolve(p, "global" if from_global else "shared", source, line)
        p.C.events["bulk_load"] += 1
        p.C.queue.submit(_bulk_load(p, bank, offset, n, receivers, (reduction, type_), line))


def _bulk_load(
    p: Path,
    bank: Bank,
    offset: int,
    size: int,
    receivers: list[tuple[CTA, int, int]],
    how: tuple[str, str],
    line: int,
) -> Transfer:
    raw: list[Array] = []
    verb = "a bulk copy writes"
    phases = announce(p, receivers, size, line, verb, combines=bool(how[0]))
    if p.C.watch is not None:
        key = p.C.watch.copy_key(find(p, receivers[0][2], True, line, verb))
        p.C.watch.range(p, bank, offset, size, key, line, False, "a bulk copy reads")
        for _, _, mbar in receivers:
            barrier_signalled(p, find(p, mbar, True, line, verb), line)

    def read() -> None:
        try:
            raw.append(bank.read(offset, size).copy())
        except Fault as error:
            raise fault(p, error, line, None, "bulk copy") from None

    def complete() -> None:
        for (cta, at, barrier), phase in zip(receivers, phases, strict=True):
            try:
                cta.window.check_writable(at, at + size)
            except Fault as error:
                raise fault(p, error, line, None, "bulk copy") from None
            place = cta.window.data[at : at + size]
            place[:] = _combined(place, raw[0], *how)
            signal(p, barrier, size, line, phase)

    return Transfer(read, complete, line)


def bulk_store(
    p: Path,
    dst: int | Array,
    src: int | Array,
    size: int | Array,
    reduction: str,
    type_: str,
    mask: Array | None,
    line: int,
) -> None:
    """cp.async.bulk or cp.reduce.async.bulk from shared to global memory, in the thread's group."""
    for lane in lanes(p, mask):
        to, n = lane_value(dst, lane), lane_value(size, lane)
        _, offset = shared_offset(p, lane_value(src, lane), line, own=True)
        _check_bulk(p, line, n, to, offset)
        bank, at = resolve(p, "global", to, line)
        transfer = _bulk_store(p, bank, at, offset, n, (reduction, type_), line)
        groups = p.w.bulk.setdefault(lane, BulkGroups())
        groups.open.append(transfer)
        if p.C.watch is not None:
            p.C.watch.bulk_agents(p.w, lane, groups)
            reads, writes = groups.reads_agent, groups.writes_agent
            epoch, window = groups.committed + 1, p.C.window
            p.C.watch.range(p, window, offset, n, (reads, epoch), line, False,
                            "a bulk store reads")  # fmt: skip
            p.C.watch.range(p, bank, at, n, (writes, epoch), line, True, "a bulk store writes",
                            bool(reduction))  # fmt: skip
        p.C.events["bulk_store"] += 1
        p.C.queue.submit(transfer)


def _bulk_store(
    p: Path, bank: Bank, at: int, offset: int, size: int, how: tuple[str, str], line: int
) -> Transfer:
    raw: list[Array] = []

    def read() -> None:
        try:
            raw.append(p.C.window.read(offset, size).copy())
        except Fault as error:
            raise fault(p, error, line, None, "bulk copy") from None

    def complete() -> None:
        try:
            old = bank.read(at, size) if how[0] else raw[0]
            bank.write(at, _combined(old, raw[0], *how))
        except Fault as error:
            raise fault(p, error, line, None, "bulk copy") from None
        p.C.machine_epoch.bump()

    return Transfer(read, complete, line)


def _combined(old: Array, new: Array, reduction: str, type_: str) -> Array:
    """The bytes that a copy leaves. A sum of f32 flushes subnormals, unlike any other."""
    if not reduction:
        return new
    words = f"u{type_bits(type_) // 8}"
    if (reduction, type_) == ("add", "f32"):
        total = ftz(ftz(old.view(np.float32)) + ftz(new.view(np.float32)))
        return np.asarray(total).view(np.uint8)
    return reduced(old.view(words), new.view(words), reduction, type_).view(np.uint8)


def bulk_commit(p: Path, mask: Array | None, line: int) -> None:
    for lane in lanes(p, mask):
        groups = p.w.bulk.get(lane)
        if groups is not None and (groups.open or groups.groups):
            groups.commit()


def bulk_wait(p: Path, pending: int, reading: int, mask: Array | None, line: int) -> bool:
    """True while more than `pending` groups of an active thread are unfinished."""
    mine = [p.w.bulk[lane] for lane in lanes(p, mask) if lane in p.w.bulk]
    wait = BulkWait(mine, pending, bool(reading))
    if not wait.ready():
        p.wait = wait
        return True
    for groups in mine:
        if groups.open:
            raise hazard(
                "uncommitted-group",
                "cp.async.bulk.wait_group while copies are not committed to a group",
                path=p,
                line=line,
            )
        groups.waited(pending, bool(reading))
        if p.C.watch is not None and groups.reads_agent:
            order.bulk_waited(p, groups, pending, bool(reading))
    return False
