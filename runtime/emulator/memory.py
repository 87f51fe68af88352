"""Memory as banks of bytes that know what may be touched.

A `Bank` is one contiguous piece: a CTA's shared window, the local frames of a CTA, the parameter
block, the constant bank, or one global array. It checks bounds, alignment and, where it is tracked,
that bytes were written before they are read and that nobody but mbarrier instructions touches an
mbarrier. Each byte of a tracked bank has a state:

    UNWRITTEN   allocated, never written
    WRITTEN     fine
    BARRIER     belongs to a live mbarrier
    OUTSIDE     not part of the allocation (the system's first 1 KB, padding)
    IN_FLIGHT   an asynchronous copy will write it

`GlobalMemory` gives host arrays 64-bit virtual addresses: guard gaps between them, and the same low
8 bits as the host pointer, so that alignment errors are those a GPU would have.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .space import GLOBAL_BASE, SMEM_RESERVED_BYTES, align_up
from .values import Array

if TYPE_CHECKING:
    from .shadow import Shadow

UNWRITTEN, WRITTEN, BARRIER, OUTSIDE, IN_FLIGHT = 0, 1, 2, 4, 8
_NO_STORES = BARRIER | OUTSIDE | IN_FLIGHT
PAGE_SHIFT = 10
GUARD_BYTES = 1 << 20
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@dataclass(frozen=True, slots=True)
class Fault(Exception):
    """What a bank refused: `kind` is range, align, unwritten, in-flight, barrier or readonly.

    `position` is the index of the offending access in the batch, `offset` its offset in the bank.
    """

    kind: str
    bank: str
    position: int
    offset: int
    unit: int
    size: int


@lru_cache
def _repeat(code: int, width: int) -> int:
    return int.from_bytes(bytes([code]) * width, "little")


class Bank:
    """`size` bytes at virtual address `base`. Offsets are relative to `base`."""

    def __init__(
        self, name: str, data: Array, base: int, *, tracked: bool, writable: bool = True
    ) -> None:
        self.name = name
        self.data = data
        self.base = base
        self.size = len(data)
        self.writable = writable
        self.state: Array | None = np.zeros(self.size, np.uint8) if tracked else None
        self.stores = 0  # counts stores by ordinary instructions
        self.shadow: Shadow | None = None  # who touched what, when hazards are checked
        self._views: dict[tuple[int, int], tuple[Array, Array | None, int]] = {}

    # -- batches of lanes ----------------------------------------------------------------------

    def load(self, offset: Array, width: int, count: int) -> Array:
        """`[n, count]` values of `width` bytes at n offsets."""
        unit = width * count
        view, state, shift = self._view(width, count)
        if unit > 1 and int(np.bitwise_or.reduce(offset)) + self.base & (unit - 1):
            self._misaligned(offset, unit)
        if shift < 0:
            return self._bytes(offset, unit).view(_UNSIGNED[width])
        index = offset >> shift
        try:
            values: Array = view[index]
        except IndexError:
            raise self._out_of_range(offset, unit) from None
        if state is not None and np.count_nonzero(state[index] != _repeat(WRITTEN, min(unit, 8))):
            raise self._bad_state(offset, unit, reading=True)
        return values

    def store(self, offset: Array, width: int, values: Array) -> None:
        """Write `[n, count]` values at n offsets; where offsets repeat, the last one stays."""
        count = values.shape[1]
        unit = width * count
        view, state, shift = self._view(width, count)
        if not self.writable:
            raise Fault("readonly", self.name, 0, int(offset[0]), unit, self.size)
        if unit > 1 and int(np.bitwise_or.reduce(offset)) + self.base & (unit - 1):
            self._misaligned(offset, unit)
        self.stores += 1
        if shift < 0:
            index = self._byte_index(offset, unit)
            self.data[index] = np.ascontiguousarray(values).view(np.uint8)
            return
        index = offset >> shift
        try:
            if state is not None:
                if np.count_nonzero(state[index] & _repeat(_NO_STORES, min(unit, 8))):
                    raise self._bad_state(offset, unit, reading=False)
                state[index] = _repeat(WRITTEN, min(unit, 8))
            view[index] = values
        except IndexError:
            raise self._out_of_range(offset, unit) from None

    def _view(self, width: int, count: int) -> tuple[Array, Array | None, int]:
        """(values as rows, states as rows, shift from offset to row); shift -1 means bytewise."""
        found = self._views.get((width, count))
        if found is None:
            unit = width * count
            whole = self.size // unit * unit
            if (
                (self.base | self.data.ctypes.data) % width
                or self.base % unit
                or whole != self.size
            ):
                found = (self.data, None, -1)
            else:
                view = self.data.view(_UNSIGNED[width]).reshape(-1, count)
                state = None
                if self.state is not None:
                    state = self.state.view(_UNSIGNED[min(unit, 8)])
                    state = state.reshape(-1, 2) if unit == 16 else state
                found = (view, state, unit.bit_length() - 1)
            self._views[(width, count)] = found
        return found

    def _byte_index(self, offset: Array, unit: int) -> Array:
        start = offset.astype(np.int64)
        if int(start.min()) < 0 or int(start.max()) + unit > self.size:
            raise self._out_of_range(offset, unit)
        index: Array = start[:, None] + np.arange(unit)
        return index

    def _bytes(self, offset: Array, unit: int) -> Array:
        """Bytewise loads, for banks whose base or size is not a multiple of the access."""
        found: Array = self.data[self._byte_index(offset, unit)]
        return found

    def peek(self, offset: Array, unit: int) -> Array:
        """The bytes there, unchecked; those outside are left out."""
        index = (offset.astype(np.int64)[:, None] + np.arange(unit)).ravel()
        found: Array = self.data[index[(index >= 0) & (index < self.size)]]
        return found

    # -- one access ----------------------------------------------------------------------------

    def load_one(self, offset: int, width: int, count: int) -> list[int]:
        """`count` integers of `width` bytes at one offset."""
        raw = self.read(offset, width * count, width * count)
        return [
            int.from_bytes(raw[i : i + width].tobytes(), "little")
            for i in range(0, width * count, width)
        ]

    def store_one(self, offset: int, width: int, values: list[int]) -> None:
        unit = width * len(values)
        raw = b"".join(v.to_bytes(width, "little") for v in values)
        self.stores += 1
        if self.state is not None and (self.state[offset : offset + unit] & IN_FLIGHT).any():
            raise self._bad_state(np.array([offset]), unit, reading=False)
        self.write(offset, np.frombuffer(raw, np.uint8), unit)

    # -- ranges --------------------------------------------------------------------------------

    def read(self, offset: int, size: int, align: int = 1) -> Array:
        """A view of `size` bytes, after the checks of a read."""
        self._check_range(offset, size, align)
        if self.state is not None and np.count_nonzero(
            self.state[offset : offset + size] != WRITTEN
        ):
            raise self._bad_state(np.array([offset]), size, reading=True)
        found: Array = self.data[offset : offset + size]
        return found

    def write(self, offset: int, values: Array, align: int = 1) -> None:
        """Write bytes at one offset, after the checks of a write."""
        size = len(values)
        self._check_range(offset, size, align)
        if not self.writable:
            raise Fault("readonly", self.name, 0, offset, size, self.size)
        if self.state is not None:
            part = self.state[offset : offset + size]
            if (part & (BARRIER | OUTSIDE)).any():
                raise self._bad_state(np.array([offset]), size, reading=False)
            part[:] = WRITTEN
        self.data[offset : offset + size] = values

    def _check_range(self, offset: int, size: int, align: int) -> None:
        if offset < 0 or offset + size > self.size:
            raise Fault("range", self.name, 0, offset, size, self.size)
        if (self.base + offset) % align:
            raise Fault("align", self.name, 0, offset, align, self.size)

    # -- faults --------------------------------------------------------------------------------

    def _misaligned(self, offset: Array, unit: int) -> None:
        bad = np.flatnonzero((offset.astype(np.int64) + self.base) % unit)
        if len(bad):
            at = int(bad[0])
            raise Fault("align", self.name, at, int(offset[at]), unit, self.size)

    def _out_of_range(self, offset: Array, unit: int) -> Fault:
        start = offset.astype(np.int64)
        bad = int(np.flatnonzero((start < 0) | (start + unit > self.size))[0])
        return Fault("range", self.name, bad, int(start[bad]), unit, self.size)

    def _bad_state(self, offset: Array, unit: int, *, reading: bool) -> Fault:
        assert self.state is not None
        for position, start in enumerate(offset.astype(np.int64).tolist()):
            for at, state in enumerate(self.state[start : start + unit].tolist()):
                if state & OUTSIDE:
                    return Fault("range", self.name, position, start + at, unit, self.size)
                if state & BARRIER:
                    return Fault("barrier", self.name, position, start + at, unit, self.size)
                if state & IN_FLIGHT:
                    return Fault("in-flight", self.name, position, start + at, unit, self.size)
                if reading and state == UNWRITTEN:
                    return Fault("unwritten", self.name, position, start + at, unit, self.size)
        raise AssertionError("no bad byte found")


class SharedWindow(Bank):
    """The shared memory of one CTA. Offsets count from 0; the first 1 KB is the system's.

    `pages[i]` is the time of the last asynchronous write to KB i and `stores` counts ordinary
    stores: together they tell whether something decoded earlier is still valid.
    """

    def __init__(self, end: int, rank_base: int) -> None:
        size = align_up(end, 1 << PAGE_SHIFT)
        super().__init__("shared memory", np.zeros(size, np.uint8), 0, tracked=True)
        self.rank_base = rank_base
        self.end = end
        self.time = 0
        self.pages = [0] * (size >> PAGE_SHIFT)
        self.whole = [False] * (size >> PAGE_SHIFT)  # every byte of the page is WRITTEN
        self.units = self.data.view(np.complex128)  # 16-byte units, moved as such
        assert self.state is not None
        self.state[:SMEM_RESERVED_BYTES] = OUTSIDE
        self.state[end:] = OUTSIDE

    def check_written(self, start: int, end: int) -> None:
        """Every byte of start..end-1 must be inside the allocation and written."""
        if start < 0 or end > self.size:
            raise Fault("range", self.name, 0, start, end - start, self.end)
        first, last = start >> PAGE_SHIFT, (end - 1) >> PAGE_SHIFT
        if all(self.whole[first : last + 1]):
            return
        assert self.state is not None
        if (self.state[start:end] != WRITTEN).any():
            raise self._bad_state(np.array([start]), end - start, reading=True)
        for page in range(first, last + 1):
            at = page << PAGE_SHIFT
            self.whole[page] = bool((self.state[at : at + (1 << PAGE_SHIFT)] == WRITTEN).all())

    def check_writable(self, start: int, end: int) -> None:
        """Every byte must be inside the allocation and no mbarrier; then they count as written."""
        if start < 0 or end > self.size:
            raise Fault("range", self.name, 0, start, end - start, self.end)
        assert self.state is not None
        first, last = start >> PAGE_SHIFT, (end - 1) >> PAGE_SHIFT
        if not all(self.whole[first : last + 1]):
            part = self.state[start:end]
            if (part & (BARRIER | OUTSIDE)).any():
                raise self._bad_state(np.array([start]), end - start, reading=False)
            part[:] = WRITTEN
        self.time += 1
        self.pages[first : last + 1] = [self.time] * (last + 1 - first)

    def stamp(self, start: int, end: int) -> tuple[int, int]:
        """Changes whenever bytes of start..end-1 may have changed."""
        first, last = start >> PAGE_SHIFT, (end - 1) >> PAGE_SHIFT
        return self.stores, max(self.pages[first : last + 1])

    def mark_in_flight(self, start: int, end: int) -> None:
        """Poison the destination of a copy. What may not be written is left for it to report."""
        assert self.state is not None
        part = self.state[max(start, 0) : max(end, 0)]
        part[(part & (BARRIER | OUTSIDE)) == 0] = IN_FLIGHT
        for page in range(
            max(start, 0) >> PAGE_SHIFT, min((end - 1 >> PAGE_SHIFT) + 1, len(self.whole))
        ):
            self.whole[page] = False

    def mark_landed(self, start: int, end: int) -> None:
        """The copy is about to write: its destination may be written again."""
        assert self.state is not None
        part = self.state[max(start, 0) : max(end, 0)]
        part[part == IN_FLIGHT] = WRITTEN

    def mark_barrier(self, offset: int, live: bool) -> None:
        assert self.state is not None
        self.state[offset : offset + 8] = BARRIER if live else UNWRITTEN
        self.whole[offset >> PAGE_SHIFT] = False


class GlobalMemory:
    """Host arrays and scratch at virtual addresses.

    `add(array)` registers the memory that a NumPy array spans (strides and all) and returns the
    address of its first element. Arrays that overlap share one bank, so aliasing works.
    """

    def __init__(self) -> None:
        self._banks: list[Bank] = []
        self._bases: list[int] = []
        self._hosts: list[tuple[int, int, Bank]] = []  # host start and end of each span
        self._keep: list[object] = []
        self._next = GLOBAL_BASE

    def add(self, array: np.ndarray[Any, Any], name: str = "array") -> int:
        """Register a host array; the address of its first element (index 0 on every axis)."""
        pointer = int(array.ctypes.data)
        low, high = np.lib.array_utils.byte_bounds(array) if array.size else (pointer, pointer)
        self.add_span(low, high, writable=array.flags.writeable, owner=array, name=name)
        return self.translate(pointer)

    def add_span(self, low: int, high: int, *, writable: bool, owner: object, name: str) -> None:
        """Register the host bytes low..high-1. `owner` keeps them alive.

        A span that lies inside one that is there shares its bank. ValueError when it only partly
        overlaps another.
        """
        for start, end, bank in self._hosts:
            if start <= low and high <= end:
                bank.writable = bank.writable or writable
                return
            if low < end and start < high:
                raise ValueError(
                    f"{name} partly overlaps {bank.name}; register their union instead"
                )
        self._keep.append(owner)
        raw: Any = (ctypes.c_uint8 * (high - low)).from_address(low) if high > low else b""
        base = align_up(self._next, 256) + low % 256
        bank = self._place(name, np.frombuffer(raw, np.uint8), base, writable)
        self._hosts.append((low, high, bank))

    def translate(self, pointer: int) -> int:
        """The virtual address of a host address inside a registered span (or at its end)."""
        for start, end, bank in self._hosts:
            if start <= pointer <= end:
                return bank.base + pointer - start
        raise ValueError(f"host address {pointer:#x} belongs to no registered array")

    def allocate(self, size: int, name: str) -> int:
        """New zeroed memory, 256-byte aligned."""
        base = align_up(self._next, 256)
        self._place(name, np.zeros(align_up(size, 16), np.uint8), base, True)
        return base

    def _place(self, name: str, data: Array, base: int, writable: bool) -> Bank:
        bank = Bank(name, data, base, tracked=False, writable=writable)
        self._banks.append(bank)
        self._bases.append(base)
        self._next = base + len(data) + GUARD_BYTES
        return bank

    def banks(self) -> list[Bank]:
        """Every array and scratch buffer, in the order of their addresses."""
        return list(self._banks)

    def find(self, address: int) -> Bank | None:
        """The bank that holds an address, or None."""
        i = bisect_right(self._bases, address) - 1
        if i < 0 or address >= self._bases[i] + max(self._banks[i].size, 1):
            return None
        return self._banks[i]

    def nearest(self, address: int) -> str:
        """Where an address lies, in words, for messages."""
        i = bisect_right(self._bases, address) - 1
        if i < 0:
            return "below every array"
        bank = self._banks[i]
        return f"{address - bank.base - bank.size} bytes past the end of {bank.name}"
