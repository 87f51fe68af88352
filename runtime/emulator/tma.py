"""TMA: tensor copies between global and shared memory (PTX ISA 9.7.9.27).

A box of a tensor is moved as bytes. Elements outside the tensor read as the fill value and are not
written; a load always writes, and signals, the bytes of the whole box. Shared memory is addressed
in 16-byte units, which are swizzled (see `swizzle`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .access import shared_peer
from .faults import fault
from .functions import lanes_of
from .map_memory import fetch_map, map_used
from .mbarrier import check, find
from .memory import Bank, Fault
from .queue import BulkGroups, Transfer
from .report import hazard
from .space import OFFSET_MASK, RANK_SHIFT, SHARED_WINDOW
from .state import CTA, Path
from .swizzle import swizzled_units
from .tensor_map import TensorMap
from .values import BF16, Array
from .visibility import barrier_signalled

ISA = "9.7.9.27 cp.async.bulk.tensor"
_NUMPY = {"f16": np.dtype(np.float16), "bf16": BF16, "f32": np.dtype(np.float32),
          "f64": np.dtype(np.float64)}  # fmt: skip


@dataclass(slots=True)
class Window:
    """The part of a box that lies inside the tensor: slices of the box, and its bytes in memory.

    Shapes are outermost axis first. `view` is None when nothing lies inside.
    """

    shape: tuple[int, ...]
    slices: tuple[slice, ...]
    view: Array | None


def box_window(p: Path, tmap: TensorMap, start: Sequence[int], line: int) -> tuple[Window, Bank]:
    bank = p.C.memory.find(tmap.address)
    if bank is None:
        raise hazard(
            "tensor-map",
            f"the tensor map's address {tmap.address:#x} is no array of this launch",
            path=p,
            line=line,
            cure="encode the map for the array that is passed",
            isa=ISA,
        )
    slices, shape, strides = [], [], []
    offset = tmap.address - bank.base
    for c, count, dim, step, stride in zip(
        start, tmap.counts, tmap.dims, tmap.element_strides, tmap.strides, strict=True
    ):
        first = max(0, -(c // step))  # the first k with c + k * step >= 0
        last = min(count, max(-((c - dim) // step), first))
        slices.append(slice(first, last))
        shape.append(last - first)
        strides.append(stride * step)
        offset += (c + first * step) * stride
    window = Window(tmap.counts[::-1], tuple(slices[::-1]), None)
    if all(n > 0 for n in shape):
        dtype = np.dtype(f"u{tmap.element_bytes}")
        try:
            window.view = np.ndarray(
                tuple(shape[::-1]),
                dtype,
                bank.data,
                offset,
                tuple(strides[::-1]),
            )
        except (TypeError, ValueError):
            raise hazard(
                "out-of-bounds",
                f"the tensor map reaches beyond {bank.name} ({bank.size:,} bytes)",
                path=p,
                line=line,
                reason=f"dims {tmap.dims}, strides {tmap.strides}, box at {tuple(start)}",
                cure="encode the map with the shape and strides of the array",
                isa=ISA,
            ) from None
    return window, bank


def load_box(p: Path, tmap: TensorMap, start: Sequence[int], line: int) -> Array:
    """The bytes of a box, packed, out-of-bounds elements filled."""
    window, _ = box_window(p, tmap, start, line)
    if window.view is not None and window.view.shape == window.shape:
        return np.ascontiguousarray(window.view).reshape(-1).view(np.uint8)
    box = np.full(window.shape, tmap.fill, f"u{tmap.element_bytes}")
    if window.view is not None:
        box[window.slices] = window.view
    return box.reshape(-1).view(np.uint8)


def _check_shared(p: Path, tmap: TensorMap, offset: int, line: int) -> None:
    if offset % 128:
        raise hazard(
            "misaligned",
            f"the shared address of a tensor copy, offset {offset:#x}, is not aligned to 128 bytes",
            path=p,
            line=line,
            reason="TMA moves tiles of 128-byte aligned shared memory",
            cure="align the tile and the stage size to 128 bytes",
            isa=ISA,
        )
    atom = 8 * tmap.swizzle
    if atom and offset % atom:
        raise hazard(
            "swizzle-atom",
            f"a tile with {tmap.swizzle}-byte swizzle starts at offset {offset:#x}, "
            f"which is not a multiple of {atom}",
            path=p,
            line=line,
            reason="the swizzle uses absolute address bits: the pattern would start in its middle",
            cure=f"align the tile to {atom} bytes",
            isa=ISA,
        )


def _write_tile(p: Path, cta: CTA, offset: int, raw: Array, swizzle: int, line: int) -> None:
    window = cta.window
    try:
        window.check_writable(offset, offset + len(raw))
    except Fault as error:
        raise fault(p, error, line, None, "tensor load") from None
    if not swizzle:
        window.data[offset : offset + len(raw)] = raw
        return
    place = swizzled_units(offset & 0x3FF, len(raw) // 16, swizzle)
    window.units[place + (offset >> 4)] = raw.view(np.complex128)


def _read_tile(p: Path, offset: int, size: int, swizzle: int, line: int) -> Array:
    window = p.C.window
    try:
        window.check_written(offset, offset + size)
    except Fault as error:
        raise fault(p, error, line, None, "tensor store") from None
    if not swizzle:
        return window.data[offset : offset + size].copy()
    place = swizzled_units(offset & 0x3FF, size // 16, swizzle)
    moved: Array = window.units[place + (offset >> 4)].view(np.uint8)
    return moved


def lane_value(operand: int | Array, lane: int) -> int:
    """An operand's value in one lane."""
    return operand if isinstance(operand, int) else int(operand[lane])


def lanes(p: Path, mask: Array | None) -> list[int]:
    """The active lanes. Bulk instructions are executed by each of them."""
    found: list[int] = np.flatnonzero(lanes_of(p.active(mask))).tolist()
    return found


def shared_offset(p: Path, address: int, line: int, *, own: bool) -> tuple[CTA, int]:
    """(CTA, offset) of a shared address, given in 32 or 64 bits."""
    if address >= SHARED_WINDOW:
        address -= SHARED_WINDOW
    rank, offset = address >> RANK_SHIFT, address & OFFSET_MASK
    if rank == p.C.rank:
        return p.C, offset
    if own:
        raise hazard("wrong-cta", f"shared address {address:#x} of CTA rank {rank}", path=p,
                     line=line, reason="the source of a store is the CTA's own shared memory",
                     cure="use an address of this CTA", isa=ISA)  # fmt: skip
    return shared_peer(p, rank, line), offset


def destinations(
    p: Path, dst: int, mbar: int, multicast: int | None, line: int
) -> list[tuple[CTA, int, int]]:
    """(CTA, offset of the tile, address of the mbarrier) of every CTA that receives."""
    cta, offset = shared_offset(p, dst, line, own=False)
    barrier_cta, barrier_offset = shared_offset(p, mbar, line, own=False)
    if barrier_cta is not cta:
        raise hazard("mbarrier-cta", "the mbarrier of a copy lies in another CTA than its "
                     "destination", path=p, line=line,
                     cure="signal a barrier of the CTA that receives", isa=ISA)  # fmt: skip
    if multicast is None:
        return [(cta, offset, cta.shared_base | barrier_offset)]
    outside = multicast >> p.C.cluster_size
    if outside or not multicast:
        raise hazard(
            "multicast-mask",
            f"multicast mask {multicast:#x} in a cluster of {p.C.cluster_size} CTAs",
            path=p,
            line=line,
            reason="each bit names a CTA rank of the cluster",
            cure=f"use bits 0..{p.C.cluster_size - 1}",
            isa=ISA,
        )
    found = []
    for rank in range(p.C.cluster_size):
        if (multicast >> rank) & 1:
            peer = shared_peer(p, rank, line)
            found.append((peer, offset, peer.shared_base | barrier_offset))
    return found


def announce(
    p: Path,
    receivers: Sequence[tuple[CTA, int, int]],
    size: int,
    line: int,
    verb: str,
    *,
    combines: bool = False,
) -> list[int]:
    """A copy to shared memory is issued: the phases of its mbarriers. Its destinations are poisoned
    until it completes, unless it combines with what is there."""
    phases = []
    for cta, offset, mbar in receivers:
        barrier = find(p, mbar, True, line, verb)
        phases.append(barrier.phase)
        if p.C.watch is not None:
            key = p.C.watch.copy_key(barrier)
            barrier.copy_line = line
            p.C.watch.range(p, cta.window, offset, size, key, line, True, verb, combines)
        if p.C.queue.mode != "eager" and not combines:
            cta.window.mark_in_flight(offset, offset + size)
    return phases


def signal(p: Path, mbar: int, bytes_: int, line: int, phase: int) -> None:
    """complete_tx on the mbarrier of a copy that was issued in `phase`."""
    barrier = find(p, mbar, True, line, "complete_tx of a bulk copy")
    if barrier.phase != phase:
        raise hazard(
            "copy-late",
            f"a copy that was issued for phase {phase} completes in phase {barrier.phase} of "
            f"{barrier.describe()}",
            path=p,
            line=line,
            lines=(barrier.line,),
        )
    barrier.complete(bytes_)
    check(p, barrier, line)


def tensor_load(
    p: Path,
    dst: int | Array,
    map_address: int | Array,
    coordinates: Sequence[int | Array],
    mbar: int | Array,
    multicast: int | Array | None,
    mask: Array | None,
    line: int,
) -> None:
    """cp.async.bulk.tensor, global to shared, once for every active lane."""
    for lane in lanes(p, mask):
        tmap = fetch_map(p, lane_value(map_address, lane), line)
        start = [_s32(lane_value(c, lane)) for c in coordinates]
        _check_rank(p, tmap, start, line)
        mask16 = None if multicast is None else lane_value(multicast, lane) & 0xFFFF
        receivers = destinations(p, lane_value(dst, lane), lane_value(mbar, lane), mask16, line)
        for _, offset, _ in receivers:
            _check_shared(p, tmap, offset, line)
        if p.C.watch is not None:
            key = p.C.watch.copy_key(find(p, receivers[0][2], True, line, "a tensor load"))
            map_used(p, lane_value(map_address, lane), key, line)
        _submit_load(p, tmap, start, receivers, line)


def _submit_load(
    p: Path,
    tmap: TensorMap,
    start: list[int],
    receivers: list[tuple[CTA, int, int]],
    line: int,
) -> None:
    raw: list[Array] = []
    phases = announce(p, receivers, tmap.box_bytes, line, "a tensor load writes")
    watch = p.C.watch
    if watch is not None:
        window, bank = box_window(p, tmap, start, line)
        first = watch.copy_key(find(p, receivers[0][2], True, line, "a tensor load"))
        watch.box(p, bank, window.view, first, line, False, "a tensor load reads")
        for cta, offset, mbar in receivers:
            barrier_signalled(p, find(p, mbar, True, line, "a tensor load"), line)
            watch.tile_written(cta, offset, tmap.box_bytes, tmap.swizzle)

    def read() -> None:
        raw.append(load_box(p, tmap, start, line))

    def complete() -> None:
        for (cta, offset, mbar), phase in zip(receivers, phases, strict=True):
            _write_tile(p, cta, offset, raw[0], tmap.swizzle, line)
            signal(p, mbar, tmap.box_bytes, line, phase)

    p.C.events["tma_load"] += 1
    p.C.events["tma_load_bytes"] += tmap.box_bytes
    p.C.queue.submit(Transfer(read, complete, line))


def _s32(value: int) -> int:
    return ((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


def _check_rank(p: Path, tmap: TensorMap, start: Sequence[int], line: int) -> None:
    if len(start) != len(tmap.dims):
        raise hazard(
            "tensor-map",
            f"{len(start)} coordinates for a tensor map of rank {len(tmap.dims)}",
            path=p,
            line=line,
            cure="use the .Nd form of the map's rank",
            isa=ISA,
        )


def tensor_store(
    p: Path,
    map_address: int | Array,
    coordinates: Sequence[int | Array],
    src: int | Array,
    reduction: str,
    mask: Array | None,
    line: int,
) -> None:
    """cp.async.bulk.tensor (or cp.reduce) from shared to global, once for every active lane."""
    for lane in lanes(p, mask):
        tmap = fetch_map(p, lane_value(map_address, lane), line)
        start = [_s32(lane_value(c, lane)) for c in coordinates]
        _check_rank(p, tmap, start, line)
        if min(start) < 0:
            raise hazard(
                "negative-coordinate",
                f"a tensor store starts at {tuple(start)}",
                path=p,
                line=line,
                reason="the box of a store must not start before the tensor",
                cure="clip the box by other means, or shift the tensor's address",
                isa=ISA,
            )
        _, offset = shared_offset(p, lane_value(src, lane), line, own=True)
        _check_shared(p, tmap, offset, line)
        groups = p.w.bulk.setdefault(lane, BulkGroups())
        if p.C.watch is not None:
            p.C.watch.bulk_agents(p.w, lane, groups)
            key = (groups.reads_agent, groups.committed + 1)
            map_used(p, lane_value(map_address, lane), key, line)
        transfer = _store_transfer(p, tmap, start, offset, reduction, lane, line)
        groups.open.append(transfer)
        p.C.events["tma_store"] += 1
        p.C.events["tma_store_bytes"] += tmap.box_bytes
        p.C.queue.submit(transfer)


def _store_transfer(
    p: Path,
    tmap: TensorMap,
    start: list[int],
    offset: int,
    reduction: str,
    lane: int,
    line: int,
) -> Transfer:
    raw: list[Array] = []
    watch = p.C.watch
    if watch is not None:
        groups = p.w.bulk[lane]
        epoch = groups.committed + 1
        watch.range(p, p.C.window, offset, tmap.box_bytes, (groups.reads_agent, epoch), line,
                    False, "a tensor store reads")  # fmt: skip
        window, bank = box_window(p, tmap, start, line)
        watch.box(p, bank, window.view, (groups.writes_agent, epoch), line, True,
                  "a tensor store writes", bool(reduction))  # fmt: skip

    def read() -> None:
        raw.append(_read_tile(p, offset, tmap.box_bytes, tmap.swizzle, line))

    def complete() -> None:
        window, bank = box_window(p, tmap, start, line)
        if window.view is None:
            return
        if not bank.writable:
            error = Fault("readonly", bank.name, 0, 0, tmap.box_bytes, bank.size)
            raise fault(p, error, line, None, "tensor store")
        box = raw[0].view(f"u{tmap.element_bytes}").reshape(window.shape)[window.slices]
        if reduction:
            box = reduced(window.view, box, reduction, tmap.element)
        window.view[...] = box
        p.C.machine_epoch.bump()

    return Transfer(read, complete, line)


def reduced(old: Array, new: Array, operation: str, element: str) -> Array:
    """The elementwise reduction of cp.reduce.async.bulk, with a tensor map or without, as bits."""
    bits = old.dtype
    dtype = _NUMPY.get(element)
    if dtype is None:
        dtype = np.dtype(f"{'i' if element[0] == 's' else 'u'}{bits.itemsize}")
    x, y = old.copy().view(dtype), np.ascontiguousarray(new).view(dtype)
    wide = np.float32 if dtype.itemsize == 2 and element in _NUMPY else dtype
    x, y = x.astype(wide), y.astype(wide)
    if operation == "inc":
        result = np.where(x >= y, 0, x + 1)
    elif operation == "dec":
        result = np.where((x == 0) | (x > y), y, x - 1)
    else:
        ufunc = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
                 "or": np.bitwise_or, "xor": np.bitwise_xor}[operation]  # fmt: skip
        result = ufunc(x, y)
    return np.asarray(result).astype(dtype).view(bits)
