"""What is remembered of a kernel object for as long as it lives.

Keyed by identity: two kernels that compare equal may still be bound to different plans, and hashing
a kernel would read its whole PTX.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerKernel(Generic[T]):
    """A mapping from kernel object to `T`. An entry goes when its kernel does.

    `entries` may be read without the lock by a caller that holds the kernel: `entries[id(kernel)]`.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self.entries: dict[int, T] = {}
        self._make = make
        self._kept: dict[int, object] = {}  # weak references, or kernels that allow none
        self._lock = threading.Lock()

    def of(self, kernel: object) -> T:
        """The entry of a kernel, made when it is first asked for."""
        key = id(kernel)
        with self._lock:
            if key not in self.entries:
                self._kept[key] = self._watch(kernel, key)
                self.entries[key] = self._make()
            return self.entries[key]

    def clear(self) -> None:
        with self._lock:
            self.entries.clear()
            self._kept.clear()

    def _watch(self, kernel: object, key: int) -> object:
        def forget(_: object) -> None:  # before the id can be given to another object
            self.entries.pop(key, None)
            self._kept.pop(key, None)

        try:
            return weakref.ref(kernel, forget)
        except TypeError:  # no weak references: stay alive, so that the id stays taken
            return kernel
