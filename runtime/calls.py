"""Remembered launches: what identifies a call cheaply, and the bounded cache of prepared ones.

A key holds all that the checks of a launch depend on: address, shape, strides, dtype and device of
every array, and every scalar. So a hit is a call that was checked before. Entries hold addresses,
never arrays. What has no cheap key (host arrays, DLPack producers) is not remembered.

Reading the key is most of what a repeated launch costs in Python. So its function is written for
the arguments of one kernel and compiled, as dataclasses do with `__init__`: for arguments x and n,

    def find(values):
        v0, v1, = values['x'], values['n'],
        if len(values) == 2:
            return calls[v0.data_ptr(), v0.shape, ..., type(v1), v1]

A value of another kind has no such attributes, or no such key.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from runtime.backend import ArrayRef, Repeatable
from runtime.module import PerKernel

CALLS_PER_KERNEL = 256

Key: TypeAlias = tuple[object, ...]

# What identifies an array: expressions on it. A contiguous torch tensor's strides follow from its
# shape (but for axes of extent 1, whose strides are never used); asking is cheaper than listing.
_ARRAY_KEYS: Mapping[str, tuple[str, ...]] = {
    "torch": ("{0}.data_ptr()", "{0}.shape", "{0}.is_contiguous() or {0}.stride()",
              "{0}.dtype", "{0}.get_device()"),
    "cupy": ("{0}.data.ptr", "{0}.shape", "{0}.strides", "{0}.dtype", "{0}.data.device_id"),
}  # fmt: skip
# The type tells True from 1; the text form tells -0.0 from 0.0, and makes a NaN equal to itself.
_SCALAR_KEYS: Mapping[type, tuple[str, ...]] = {
    bool: ("type({0})", "{0}"),
    int: ("type({0})", "{0}"),
    float: ("{0}.hex()",),
}
MISSES = (KeyError, AttributeError, TypeError, RuntimeError)
"""What `Calls.find` raises, or the attributes of values of another kind."""


def _nothing(values: Mapping[str, object]) -> Repeatable | None:
    """The `find` of a kernel of which nothing is remembered."""
    return None


class Calls:
    """The remembered calls of one kernel, for arrays of one framework.

    `find` gives the call for values by name. It answers None for another number of values and
    raises one of `MISSES` where there is no such call.
    """

    def __init__(self) -> None:
        self.calls: dict[Key, Repeatable] = {}
        self.find: Callable[[Mapping[str, object]], Repeatable | None] = _nothing
        self._key: Callable[[Mapping[str, object]], Key]
        self._names: tuple[str, ...] = ()
        self._signature: tuple[object, ...] = ()
        self._lock = threading.Lock()

    def name(
        self, positional: Sequence[object], named: Mapping[str, object]
    ) -> Mapping[str, object]:
        """Values by name, or nothing if the call is not one of those remembered here."""
        if len(positional) + len(named) != len(self._names):
            return {}
        return {**dict(zip(self._names, positional, strict=False)), **named}

    def remember(
        self,
        values: Mapping[str, object],
        arrays: Mapping[str, str],
        call: Repeatable,
    ) -> bool:
        """Keep a call. `values` in `.param` order, `arrays` the framework of each array in it.

        False, and nothing is kept, when some value has no cheap key or two frameworks own arrays.
        """
        if any(isinstance(values[name], ArrayRef) for name in arrays):
            return False
        frameworks = set(arrays.values())
        scalars = [type(values[name]) for name in values if name not in arrays]
        known = len(frameworks) == 1 and frameworks <= _ARRAY_KEYS.keys()
        if not known or not all(kind in _SCALAR_KEYS for kind in scalars):
            return False
        with self._lock:
            self._specialise(values, arrays, frameworks.pop())
            self._make_room()
            call.used = False  # until it is asked for again
            self.calls[self._key(values)] = call
        return True

    def forget(self, call: Repeatable) -> None:
        with self._lock:
            for key in [key for key, kept in self.calls.items() if kept is call]:
                del self.calls[key]

    def _specialise(
        self, values: Mapping[str, object], arrays: Mapping[str, str], framework: str
    ) -> None:
        """Make `find` fit these values. Calls of another form are dropped."""
        kinds = tuple(framework if n in arrays else type(v) for n, v in values.items())
        if self._signature != (tuple(values), kinds):
            self.calls = {}
            self._signature = (tuple(values), kinds)
            self._names = tuple(values)
            self._key, self.find = _compile(self._names, kinds, self.calls)

    def _make_room(self) -> None:
        """A full cache drops what was not used since it was last full.

        That costs a hit one attribute store, instead of a reordering under the lock.
        """
        if len(self.calls) < CALLS_PER_KERNEL:
            return
        unused = [key for key, call in self.calls.items() if not call.used]
        for old in unused or list(self.calls)[: CALLS_PER_KERNEL // 2]:
            del self.calls[old]
        for kept in self.calls.values():
            kept.used = False


def _compile(
    names: Sequence[str], kinds: Sequence[object], calls: dict[Key, Repeatable]
) -> tuple[Callable[[Mapping[str, object]], Key], Callable[[Mapping[str, object]], Repeatable]]:
    """The functions from values to key and to call: see this module's docstring.

    `kinds` are the framework of each array and the type of each scalar.
    """
    variables = [f"v{i}" for i in range(len(names))]
    parts: list[str] = []
    for variable, kind in zip(variables, kinds, strict=True):
        known = _SCALAR_KEYS[kind] if isinstance(kind, type) else _ARRAY_KEYS[str(kind)]
        parts += [part.format(variable) for part in known]
    values = ", ".join(f"values[{name!r}]" for name in names)
    unpack, key = f"{', '.join(variables)}, = {values},", f"{', '.join(parts)},"
    source = (
        f"def read_key(values):\n    {unpack}\n    return {key}\n\n"
        f"def find(values):\n    {unpack}\n"
        f"    if len(values) == {len(names)}:\n        return calls[{key}]\n"
    )
    scope: dict[str, Any] = {"calls": calls}
    exec(compile(source, "<remembered calls>", "exec"), scope)
    return scope["read_key"], scope["find"]


CALLS: PerKernel[Calls] = PerKernel(Calls)
