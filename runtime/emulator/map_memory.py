"""Tensor maps in memory: read by copies, changed by kernels, fenced (PTX ISA 9.7.9.27 to 9.7.9.29).

Copies read their map through the tensormap proxy, which caches it. A map that is a parameter or a
constant needs nothing. One in global memory is used after a fence.proxy.tensormap::generic.acquire
on its address; one that a kernel has written, after the writer's .release and then that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from . import races
from .access import resolve
from .clocks import Clock, Place
from .faults import fault
from .functions import lanes_of
from .memory import Bank, Fault
from .report import hazard
from .shadow import Checked, Stamp
from .state import Path
from .tensor_map import MAP_BYTES, TensorMap, decode
from .values import Array
from .watch import MapAcquire, Now, WarpView, Watch
from .whole_warp import require_whole_warp

ISA = "9.7.9.27 cp.async.bulk.tensor"

# -- reading ---------------------------------------------------------------------------------------


def fetch_map(p: Path, address: int, line: int) -> TensorMap:
    """The tensor map at a generic address."""
    if address < p.C.params.size:
        raise hazard(
            "tensor-map-address",
            f"tensor map at address {address:#x}, which is an offset in the parameter block",
            path=p,
            line=line,
        )
    if address % 64:
        raise hazard("misaligned", f"tensor map at {address:#x} is not aligned to 64 bytes", path=p,
                     line=line, cure=".param .align 64 .b8 map[128]", isa=ISA)  # fmt: skip
    bank, offset = resolve(p, "", address, line)
    try:
        return decode(bank.read(offset, MAP_BYTES).tobytes())
    except Fault as error:
        raise fault(p, error, line, None, "tensor map") from None
    except ValueError as error:
        raise hazard("tensor-map", str(error), path=p, line=line,
                     cure="pass the bytes of an encoded tensor map") from None  # fmt: skip


def prefetch_tensor_map(p: Path, address: int, line: int) -> None:
    fetch_map(p, address, line)


def map_used(p: Path, address: int, key: tuple[int, int], line: int) -> None:
    """A copy reads its map until it is complete. `key` is its agent and epoch."""
    bank, offset = resolve(p, "", address, line)
    watch, view = p.C.watch, p.w.view
    if watch is None or bank.shadow is None:
        return  # a parameter, or a constant
    verb = "a tensor copy reads its map from"
    watch.now = Now(p, line, verb, bank, offset, offset + MAP_BYTES, False, True)
    acquires = [
        a for a in watch.map_acquires.get((id(bank), offset), ())
        if a.warp == view.number or view.clock.has(a.warp, a.epoch)
    ]  # fmt: skip

    def check(old: int) -> bool:
        stamp = watch.stamps.table[old]
        assert stamp is not None
        if not view.clock.has(stamp.agent, stamp.epoch):
            races.conflict(watch, view, old, stamp)
        if not any(_fenced(watch, view, stamp, a) for a in acquires):
            raise _unfenced(p, line, stamp, bank, offset)
        return False  # another map of the same epoch has fences of its own

    stamp = watch.stamps.number(*key, line, False, False, "")
    bank.shadow.read_range(offset, offset + MAP_BYTES, stamp, Checked(check))
    if not acquires:
        raise _unfenced(p, line, None, bank, offset)


def _fenced(watch: Watch, view: WarpView, stamp: Stamp, acquire: MapAcquire) -> bool:
    """Whether a release of the writer lies between a write and this acquire."""
    writer = watch.agents[stamp.agent].owner
    if writer is None or stamp.agent != writer.number:
        return acquire.clock.has(stamp.agent, stamp.epoch)
    needed = _scope_between(writer.place, view.place)
    return acquire.scope >= needed and any(
        stamp.epoch <= epoch < acquire.clock.seen.get(writer.number, 0) and scope >= needed
        for epoch, scope in writer.map_releases
    )


def _scope_between(a: Place, b: Place) -> int:
    """The least scope that reaches from one CTA to another, see `clocks.SCOPES`."""
    if a == b:
        return 0
    return 1 if a.cluster == b.cluster else 2


def _unfenced(p: Path, line: int, stamp: Stamp | None, bank: Bank, offset: int) -> Exception:
    where = f"{bank.name} offset {offset:#x}"
    if stamp is None:
        what = f"the tensor map at {where} is used without a fence: copies may see an older one"
        cure = "fence.proxy.tensormap::generic.acquire.sys on the map, or pass it as a parameter"
    else:
        assert p.C.watch is not None
        writer = p.C.watch.agents[stamp.agent].name
        what = f"the tensor map at {where}, which {writer} wrote, is used without a fence"
        cure = ""
    lines = (stamp.line,) if stamp is not None else ()
    return hazard("tensor-map-fence", what, path=p, line=line, lines=lines, bytes_=where, cure=cure)


# -- changing --------------------------------------------------------------------------------------

# Field: (byte, bits of a word of which size, lowest bit) by axis, and what is stored of a value.
_Place = tuple[int, int, int, int]  # byte, bytes of the word, lowest bit, bits


def _same(value: int) -> int:
    return value


def _less_one(value: int) -> int:
    return value - 1


_FIELDS: Mapping[str, tuple[tuple[_Place, ...], Callable[[int], int]]] = MappingProxyType(
    {
        "global_address": (((0x00, 8, 0, 64),), _same),
        "rank": (((0x08, 4, 4, 3),), _same),
        "elemtype": (((0x08, 4, 7, 4),), _same),
        "interleave_layout": (((0x08, 4, 11, 2),), _same),
        "swizzle_mode": (((0x08, 4, 13, 2),), _same),
        "fill_mode": (((0x08, 4, 15, 1),), _same),
        "global_dim": (tuple((0x20 + 4 * i, 4, 0, 32) for i in range(5)), _less_one),
        "element_stride": (tuple((0x34, 4, 3 * i, 3) for i in range(5)), _less_one),
        "box_dim": (
            ((0x34, 4, 24, 8), *((0x38, 4, 8 * i, 8) for i in range(4))), _less_one,
        ),
        "global_stride": (tuple((0x0C + 4 * i, 4, 0, 32) for i in range(4)), _same),
    }
)  # fmt: skip


F32, F32_FTZ, TF32, TF32_FTZ = 7, 8, 11, 12  # values of elemtype
# Values that change more than their own field, as an H200 does it.
_ALSO: Mapping[tuple[str, int], tuple[tuple[_Place, int], ...]] = MappingProxyType(
    {
        ("elemtype", TF32): (((0x08, 4, 16, 1), 1),),
        ("elemtype", TF32_FTZ): (((0x08, 4, 16, 1), 1),),
        ("swizzle_mode", 3): (((0x08, 4, 22, 1), 0),),
    }
)


def map_replace(
    p: Path, space: str, address: int, field: str, axis: int, value: int, line: int
) -> None:
    """tensormap.replace: one field of the 128 bytes at an address."""
    bank, offset = resolve(p, space, address, line)
    try:
        raw = bytearray(bank.read(offset, MAP_BYTES).tobytes())
    except Fault as error:
        raise fault(p, error, line, None, "tensormap.replace") from None
    replace(raw, field, axis, value)
    _write(p, bank, offset, bytes(raw), line, "tensormap.replace writes")


def replace(raw: bytearray, field: str, axis: int, value: int) -> None:
    """Change one field of a map's bytes."""
    places, stored = _FIELDS[field]
    if field == "global_stride":
        value >>= 4
        _put(raw, (0x1C, 4, 4 * axis, 4), value >> 32)
    for place, bits in _ALSO.get((field, value), ()):
        _put(raw, place, bits)
    if field == "elemtype":
        value = {TF32: F32, TF32_FTZ: F32_FTZ}.get(value, value)
    _put(raw, places[axis], stored(value))


def _put(raw: bytearray, place: _Place, value: int) -> None:
    byte, size, low, bits = place
    mask = (1 << bits) - 1
    word = int.from_bytes(raw[byte : byte + size], "little")
    word = word & ~(mask << low) | (value & mask) << low
    raw[byte : byte + size] = word.to_bytes(size, "little")


def _write(p: Path, bank: Bank, offset: int, raw: bytes, line: int, verb: str) -> None:
    try:
        bank.write(offset, np.frombuffer(raw, np.uint8))
    except Fault as error:
        raise fault(p, error, line, None, "tensor map") from None
    if p.C.watch is not None:
        p.C.watch.lanes(p, bank, np.array([offset]), MAP_BYTES, line, True, verb)
    p.C.machine_epoch.bump()


def map_copy(p: Path, target: int, source: int, scope: int, line: int) -> None:
    """tensormap.cp_fenceproxy: a map from shared to global memory, and a release of it."""
    require_whole_warp(p, line, "tensormap.cp_fenceproxy")
    verb = "tensormap.cp_fenceproxy"
    inside, at = resolve(p, "shared", source, line)
    try:
        raw = inside.read(at, MAP_BYTES).tobytes()
    except Fault as error:
        raise fault(p, error, line, None, verb) from None
    if p.C.watch is not None:
        p.C.watch.lanes(p, inside, np.array([at]), MAP_BYTES, line, False, f"{verb} reads")
    bank, offset = resolve(p, "global", target, line)
    _write(p, bank, offset, raw, line, f"{verb} writes")
    if p.C.watch is not None:
        map_release(p, scope)


# -- fences ----------------------------------------------------------------------------------------


def map_release(p: Path, scope: int) -> None:
    """fence.proxy.tensormap::generic.release: maps written so far may be acquired."""
    view = p.w.view
    view.map_releases.append((view.epoch, scope))
    view.close()


def map_acquire(p: Path, address: int | Array, scope: int, mask: Array | None, line: int) -> None:
    """fence.proxy.tensormap::generic.acquire of the 128 bytes at an address (in every lane)."""
    watch, view = p.C.watch, p.w.view
    assert watch is not None
    here = lanes_of(p.active(mask))
    addresses = [address] if isinstance(address, int) else np.unique(address[here]).tolist()
    for one in addresses:
        bank, offset = resolve(p, "", one, line)
        clock = Clock(dict(view.clock.seen))
        found = watch.map_acquires.setdefault((id(bank), offset), [])
        found.append(MapAcquire(view.number, view.epoch, scope, clock))
    view.close()
