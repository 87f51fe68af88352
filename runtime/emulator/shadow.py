"""Shadow memory: who wrote each byte last, and who has read it since.

Two levels. A page of 1 KB that is only ever touched as a whole is one entry; the first partial
access explodes it into bytes. An access is a *stamp*, a number in `Stamps`; the readers of a byte
are a set of stamps, which is again a number. Both are interned, so that memory stays small and a
check that has succeeded once is one look into a set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .values import Array

PAGE_SHIFT = 10
PAGE_BYTES = 1 << PAGE_SHIFT
_EXPLODED = -1


@dataclass(frozen=True, slots=True)
class Stamp:
    """One access, or many that need not be told apart."""

    agent: int
    epoch: int
    line: int
    writes: bool
    strong: bool  # atomic, or a relaxed, acquire, release or volatile access
    where: str


@dataclass(slots=True)
class Stamps:
    """All stamps of a launch, and sets of them. Number 0 is "nobody" and the empty set."""

    table: list[Stamp | None] = field(default_factory=lambda: [None])
    sets: list[tuple[int, ...]] = field(default_factory=lambda: [()])
    _number: dict[tuple[int, int, int, bool, bool], int] = field(default_factory=dict)
    _set_number: dict[tuple[int, ...], int] = field(default_factory=lambda: {(): 0})
    _added: dict[tuple[int, int], int] = field(default_factory=dict)

    def number(
        self, agent: int, epoch: int, line: int, writes: bool, strong: bool, where: str
    ) -> int:
        key = (agent, epoch, line, writes, strong)
        found = self._number.get(key)
        if found is None:
            found = self._number[key] = len(self.table)
            self.table.append(Stamp(agent, epoch, line, writes, strong, where))
        return found

    def with_reader(self, readers: int, stamp: int) -> int:
        """The set with one more reader. It replaces earlier reads of its own agent."""
        found = self._added.get((readers, stamp))
        if found is None:
            new = self.table[stamp]
            assert new is not None
            kept = [
                s for s in self.sets[readers]
                if (old := self.table[s]) is not None and old.agent != new.agent
            ]  # fmt: skip
            members = (*kept, stamp)
            found = self._set_number.get(members)
            if found is None:
                found = self._set_number[members] = len(self.sets)
                self.sets.append(members)
            self._added[readers, stamp] = found
        return found


# Given an old stamp: raises when the two accesses may be in either order. False when they need no
# order now, but another access of the same agent might.
Check = Callable[[int], bool]


@dataclass(slots=True)
class Checked:
    """What one agent, through one proxy, is known to come after: stamps and sets of readers."""

    check: Check
    stamps: set[int] = field(default_factory=lambda: {0})
    readers: set[int] = field(default_factory=lambda: {0})

    def writer(self, stamp: int) -> bool:
        if stamp in self.stamps:
            return True
        if not self.check(stamp):
            return False
        self.stamps.add(stamp)
        return True

    def all_readers(self, number: int, stamps: Stamps) -> None:
        if number not in self.readers and all([self.writer(s) for s in stamps.sets[number]]):
            self.readers.add(number)


def _distinct(values: Array) -> list[int]:
    flat = values.ravel()
    first = flat[0]
    if (flat == first).all():
        return [int(first)]
    found: list[int] = np.unique(flat).tolist()
    return found


class Shadow:
    """The shadow of one bank."""

    def __init__(self, size: int, stamps: Stamps) -> None:
        pages = -(-size // PAGE_BYTES)
        self.stamps = stamps
        self.size = size
        self.writers = np.zeros(pages * PAGE_BYTES, np.int32)
        self.readers = np.zeros(pages * PAGE_BYTES, np.int32)
        self.page_writer = [0] * pages
        self.page_readers = [0] * pages
        self.written = False
        self.deferred: dict[tuple[object, ...], tuple[int, Sequence[int], Sequence[int]]] = {}

    # -- whole pages ---------------------------------------------------------------------------

    def explode(self, page: int) -> None:
        if self.page_writer[page] != _EXPLODED:
            at = page << PAGE_SHIFT
            self.writers[at : at + PAGE_BYTES] = self.page_writer[page]
            self.readers[at : at + PAGE_BYTES] = self.page_readers[page]
            self.page_writer[page] = _EXPLODED

    def read_pages(self, pages: Iterable[int], stamp: int, checked: Checked) -> None:
        added = self.stamps.with_reader
        for page in pages:
            writer = self.page_writer[page]
            if writer == _EXPLODED:
                at = page << PAGE_SHIFT
                self._read(slice(at, at + PAGE_BYTES), stamp, checked)
                continue
            if writer not in checked.stamps:
                checked.writer(writer)
            self.page_readers[page] = added(self.page_readers[page], stamp)

    def write_pages(self, pages: Iterable[int], stamp: int, checked: Checked) -> None:
        for page in pages:
            writer = self.page_writer[page]
            if writer == _EXPLODED:
                at = page << PAGE_SHIFT
                self._check_write(slice(at, at + PAGE_BYTES), checked)
            else:
                checked.writer(writer)
                checked.all_readers(self.page_readers[page], self.stamps)
            self.page_writer[page], self.page_readers[page] = stamp, 0

    # -- ranges --------------------------------------------------------------------------------

    def read_range(self, start: int, end: int, stamp: int, checked: Checked) -> None:
        for low, high, whole in _pieces(start, end):
            if whole:
                self.read_pages(range(low >> PAGE_SHIFT, high >> PAGE_SHIFT), stamp, checked)
            else:
                self.explode(low >> PAGE_SHIFT)
                self._read(slice(low, high), stamp, checked)

    def write_range(self, start: int, end: int, stamp: int, checked: Checked) -> None:
        self.begin_writing()
        for low, high, whole in _pieces(start, end):
            if whole:
                self.write_pages(range(low >> PAGE_SHIFT, high >> PAGE_SHIFT), stamp, checked)
            else:
                self.explode(low >> PAGE_SHIFT)
                self._write(slice(low, high), stamp, checked)

    # -- lanes ---------------------------------------------------------------------------------

    def read_lanes(self, offset: Array, unit: int, stamp: int, checked: Checked) -> None:
        index = self._index(offset, unit)
        self._read(index, stamp, checked, unit)

    def write_lanes(self, offset: Array, unit: int, stamp: int, checked: Checked) -> None:
        self.begin_writing()
        index = self._index(offset, unit)
        self._write(index, stamp, checked, unit)

    def _index(self, offset: Array, unit: int) -> Array:
        """Explode the pages of these accesses; rows of `unit` bytes, or bytes where unaligned."""
        first, last = int(offset.min()) >> PAGE_SHIFT, int(offset.max()) + unit - 1 >> PAGE_SHIFT
        pages: Iterable[int] = range(first, last + 1)
        if last - first > 8:
            pages = np.unique(offset.astype(np.int64) >> PAGE_SHIFT).tolist()
            pages = sorted({*pages, *(p for p in [last] if p not in pages)})
        for page in pages:
            if self.page_writer[page] != _EXPLODED:
                self.explode(page)
        if int(np.bitwise_or.reduce(offset)) % unit:
            return offset.astype(np.int64)[:, None] + np.arange(unit)
        return offset // unit

    # -- boxes ---------------------------------------------------------------------------------

    def read_box(
        self, start: int, shape: Sequence[int], strides: Sequence[int], stamp: int, checked: Checked
    ) -> None:
        """A strided read; remembered only, as long as nothing in the bank has been written."""
        if not self.written:
            self.deferred[start, tuple(shape), tuple(strides), stamp] = (start, shape, strides)
            return
        readers, writers = self._box(start, shape, strides)
        for writer in _distinct(writers):
            checked.writer(writer)
        self._add_reader(readers, Ellipsis, stamp)

    def write_box(
        self, start: int, shape: Sequence[int], strides: Sequence[int], stamp: int, checked: Checked
    ) -> None:
        self.begin_writing()
        readers, writers = self._box(start, shape, strides)
        for writer in _distinct(writers):
            checked.writer(writer)
        for number in _distinct(readers):
            checked.all_readers(number, self.stamps)
        writers[...] = stamp
        readers[...] = 0

    def _box(self, start: int, shape: Sequence[int], strides: Sequence[int]) -> tuple[Array, Array]:
        """(readers, writers) of a box whose strides are bytes, innermost 1, as views."""
        end = start + 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        for page in range(start >> PAGE_SHIFT, (end - 1 >> PAGE_SHIFT) + 1):
            if self.page_writer[page] != _EXPLODED:
                self.explode(page)
        views = [
            np.ndarray(tuple(shape), np.int32, a.data, 4 * start, tuple(4 * s for s in strides))
            for a in (self.readers, self.writers)
        ]
        return views[0], views[1]

    def begin_writing(self) -> None:
        """The first write: what was only remembered becomes shadow."""
        if not self.written:
            self.written = True
            for key, (start, shape, strides) in self.deferred.items():
                readers, _ = self._box(start, shape, strides)
                number = key[3]
                assert isinstance(number, int)
                self._add_reader(readers, Ellipsis, number)
            self.deferred.clear()

    # -- bytes ---------------------------------------------------------------------------------

    def _rows(self, array: Array, index: Any, unit: int) -> Array:
        """The array in the shape that an index counts in."""
        aligned = unit > 1 and isinstance(index, np.ndarray) and index.ndim == 1
        rows: Array = array.reshape(-1, unit) if aligned else array
        return rows

    def _read(self, index: Any, stamp: int, checked: Checked, unit: int = 1) -> None:
        writers = self._rows(self.writers, index, unit)[index]
        for writer in _distinct(writers):
            if writer not in checked.stamps:
                checked.writer(writer)
        self._add_reader(self._rows(self.readers, index, unit), index, stamp)

    def _add_reader(self, rows: Array, index: Any, stamp: int) -> None:
        old = rows[index]
        found = _distinct(old)
        if len(found) == 1:
            rows[index] = self.stamps.with_reader(found[0], stamp)
            return
        new = old.copy()
        for number in found:
            new[old == number] = self.stamps.with_reader(number, stamp)
        rows[index] = new

    def _check_write(self, index: Any, checked: Checked, unit: int = 1) -> None:
        for writer in _distinct(self._rows(self.writers, index, unit)[index]):
            checked.writer(writer)
        for number in _distinct(self._rows(self.readers, index, unit)[index]):
            checked.all_readers(number, self.stamps)

    def _write(self, index: Any, stamp: int, checked: Checked, unit: int = 1) -> None:
        self._check_write(index, checked, unit)
        self._rows(self.writers, index, unit)[index] = stamp
        self._rows(self.readers, index, unit)[index] = 0

    def find(self, number: int, start: int, end: int) -> int:
        """The first byte of start..end-1 with this stamp, as writer or reader (for messages)."""
        for page in range(start >> PAGE_SHIFT, (end - 1 >> PAGE_SHIFT) + 1):
            self.explode(page)
        hit = self.writers[start:end] == number
        if not hit.any():
            having = [i for i, s in enumerate(self.stamps.sets) if number in s]
            hit = np.isin(self.readers[start:end], having)
        return start + int(np.argmax(hit))


def _pieces(start: int, end: int) -> list[tuple[int, int, bool]]:
    """A range as (low, high, whole pages): a partial head, whole pages, a partial tail."""
    head = -(-start // PAGE_BYTES) * PAGE_BYTES
    tail = end // PAGE_BYTES * PAGE_BYTES
    if head > tail:
        return [(start, end, False)] if start < end else []
    pieces = [(start, head, False), (head, tail, True), (tail, end, False)]
    return [p for p in pieces if p[0] < p[1]]
