"""Remembered launches: what identifies a call cheaply, and the bounded cache of prepared ones.

A key holds all that the checks of a launch depend on: address, shape, strides, dtype and device of
every array, and every scalar. So a hit is a call that was checked before. Entries hold addresses,
never arrays. What has no cheap key (host arrays, DLPack producers) is not remembered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from runtime.backend import Repeatable
from runtime.module import PerKernel

CALLS_PER_KERNEL = 256

Key: TypeAlias = tuple[object, ...]


class Calls(dict[Key, Repeatable]):
    """The remembered calls of one kernel. A full cache drops those unused since the last time.

    A mark on each call gives it a second chance, which costs a hit one attribute store instead of a
    reordering under a lock.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def remember(self, key: Key, call: Repeatable) -> None:
        with self._lock:
            if len(self) >= CALLS_PER_KERNEL:
                unused = [k for k, c in self.items() if not c.used]
                for old in unused or list(self)[: CALLS_PER_KERNEL // 2]:
                    self.pop(old, None)
                for kept in self.values():
                    kept.used = False
            call.used = False  # until it is asked for again
            self[key] = call


CALLS: PerKernel[Calls] = PerKernel(Calls)


def _torch_key(x: Any) -> Key:
    # A contiguous tensor's strides follow from its shape (but for axes of extent 1, whose strides
    # are never used), and asking is cheaper than listing them.
    return (x.data_ptr(), x.shape, x.is_contiguous() or x.stride(), x.dtype, x.get_device())


def _cupy_key(x: Any) -> Key:
    data = x.data
    return (data.ptr, x.shape, x.strides, x.dtype, data.device_id)


ARRAY_KEYS: Mapping[str, Callable[[Any], Key]] = {"torch": _torch_key, "cupy": _cupy_key}

KEYS: dict[type, Callable[[Any], object]] = {
    bool: lambda x: (bool, x),
    int: lambda x: (int, x),
    float: lambda x: (float, x.hex()),  # tells -0.0 from 0.0, and a NaN equals itself
}
"""What identifies a value, by its exact type. Array types are added when they are first seen."""


def learn(arrays: Mapping[str, object], frameworks: Iterable[str]) -> bool:
    """Add the types of these arrays to `KEYS`. False unless one known framework owns them all."""
    owners = set(frameworks)
    if len(owners) != 1 or not owners <= ARRAY_KEYS.keys():
        return False
    key = ARRAY_KEYS[owners.pop()]
    for array in arrays.values():
        KEYS.setdefault(type(array), key)
    return True
