"""Asynchronous work: what was issued and has not happened yet.

A `Transfer` has two steps, reading its source and completing (writing its destination and
signalling). The mode says when they run:

    eager    both at once, when the instruction is issued
    random   at moments that the seed chooses
    latest   only when no warp can run any more, and every try_wait has given up once

A program that is right gives the same result in every mode: the later the steps, the more a missing
wait shows.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from .report import hazard

if TYPE_CHECKING:
    from .state import Path

Mode: TypeAlias = Literal["eager", "random", "latest"]
MODES: tuple[Mode, ...] = ("eager", "random", "latest")


@dataclass(slots=True)
class Transfer:
    """One bulk copy, load, store or reduction."""

    read: Callable[[], None]
    complete: Callable[[], None]
    line: int
    after: tuple[Transfer, ...] = ()  # those that must have completed before
    has_read: bool = False
    done: bool = False

    def step(self) -> None:
        """Run the next step that has not run."""
        if not self.has_read:
            self.read()
            self.has_read = True
        else:
            self.complete()
            self.done = True


class AsyncQueue:
    """Transfers of one cluster."""

    def __init__(self, mode: Mode, rng: random.Random) -> None:
        self.mode = mode
        self.rng = rng
        self.pending: list[Transfer] = []

    def submit(self, transfer: Transfer) -> None:
        if self.mode == "eager":
            transfer.step()
            transfer.step()
        else:
            self.pending.append(transfer)

    def between_warps(self) -> None:
        """Called after a warp has run for a while."""
        if self.mode == "random" and self.pending:
            for _ in range(self.rng.randrange(3)):
                self.advance()

    def advance(self) -> bool:
        """Run one step of one pending transfer; False when there is none."""
        if not self.pending:
            return False
        i = self.rng.randrange(len(self.pending)) if self.mode == "random" else 0
        transfer = self.pending[i]
        while blocker := next((t for t in transfer.after if not t.done), None):
            transfer, i = blocker, self.pending.index(blocker)
        transfer.step()
        if transfer.done:
            del self.pending[i]
        return True


@dataclass(slots=True)
class BulkGroups:
    """The bulk groups of one thread. Only the thread that issued a copy can wait for it."""

    open: list[Transfer] = field(default_factory=list)
    groups: deque[list[Transfer]] = field(default_factory=deque)
    unread: int = 0  # groups whose reading this thread has not waited for
    committed: int = 0
    # When hazards are checked: the agents of what the copies read and write.
    reads_agent: int = 0
    writes_agent: int = 0

    def commit(self) -> None:
        self.committed += 1
        self.groups.append(self.open)
        self.open = []
        self.unread += 1

    def behind(self, pending: int, reading: bool) -> bool:
        """Whether more than `pending` groups are incomplete (or, `reading`, unread)."""
        old = list(self.groups)[: max(len(self.groups) - pending, 0)]
        return any(not (t.has_read if reading else t.done) for g in old for t in g)

    def waited(self, pending: int, reading: bool) -> None:
        self.unread = min(self.unread, pending)
        if not reading:
            while len(self.groups) > pending:
                self.groups.popleft()
        else:
            while len(self.groups) > pending and all(t.done for t in self.groups[0]):
                self.groups.popleft()

    def check_exit(self, path: Path) -> None:
        """A thread must not exit while its stores may still read shared memory."""
        if self.open or self.unread:
            lines = [t.line for t in self.open] or [t.line for g in self.groups for t in g]
            what = "uncommitted" if self.open else "unwaited"
            raise hazard(
                "exit-with-bulk-store",
                f"a thread exits with {what} bulk copies out of shared memory",
                path=path,
                line=lines[0] if lines else 0,
                reason="shared memory is gone once the CTA has exited",
                cure="cp.async.bulk.commit_group, then cp.async.bulk.wait_group.read 0 before ret",
                isa="9.7.9.25.3 cp.async.bulk.wait_group",
            )


@dataclass(slots=True)
class CpAsyncGroups:
    """The cp.async of one warp that may not have happened yet, by group."""

    open: list[Transfer] = field(default_factory=list)
    groups: list[list[Transfer]] = field(default_factory=list)

    def commit(self) -> None:
        self.groups.append(self.open)
        self.open = []

    def behind(self, pending: int) -> bool:
        """Whether more than `pending` groups are incomplete; with -1, anything at all."""
        old = self.groups[: len(self.groups) - pending] if pending > 0 else list(self.groups)
        if pending < 0:
            old.append(self.open)
        return any(not t.done for g in old for t in g)

    def all_pending(self) -> tuple[Transfer, ...]:
        found = [t for g in [*self.groups, self.open] for t in g if not t.done]
        return tuple(found)


@dataclass(slots=True)
class CpAsyncWait:
    groups: CpAsyncGroups
    pending: int

    def ready(self) -> bool:
        return not self.groups.behind(self.pending)

    def describe(self) -> str:
        return f"cp.async.wait_group {max(self.pending, 0)}"


@dataclass(slots=True)
class BulkWait:
    groups: list[BulkGroups]
    pending: int
    reading: bool

    def ready(self) -> bool:
        return not any(g.behind(self.pending, self.reading) for g in self.groups)

    def describe(self) -> str:
        kind = ".read" if self.reading else ""
        return f"cp.async.bulk.wait_group{kind} {self.pending}"
