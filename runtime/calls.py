"""Remembered launches: what identifies a call cheaply, and the bounded cache of prepared ones.

A key holds all that the checks of a launch depend on: address, shape, strides, dtype and device of
every array, and every scalar. So a hit is a call that was checked before. Entries hold addresses,
never arrays. What has no cheap key (host arrays, DLPack producers) is not remembered.

Reading the key is most of what a repeated launch costs in Python. So its function is written for
the arguments of one kernel and compiled, as dataclasses do with `__init__`: for arguments x and n,

    def read_key(values):
        v0, v1 = values['x'], values['n']
        if len(values) == 2 and type(v0) in arrays and type(v1) is int:
            return (v0.data_ptr(), v0.shape, ..., v1)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from runtime.backend import Repeatable
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
# The text form tells -0.0 from 0.0, and makes a NaN equal to itself.
_SCALAR_KEYS: Mapping[type, str] = {bool: "{0}", int: "{0}", float: "{0}.hex()"}


class Calls:
    """The remembered calls of one kernel, for arrays of one framework.

    `read_key` gives the key of a call's values by name. It answers None for values of other types
    and raises KeyError for a missing name; `calls` has no entry for None.
    """

    def __init__(self) -> None:
        self.calls: dict[Key | None, Repeatable] = {}
        self.read_key: Callable[[Mapping[str, object]], Key | None] = lambda values: None
        self._names: tuple[str, ...] = ()
        self._signature: tuple[object, ...] = ()
        self._types: set[type] = set()
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
        frameworks = set(arrays.values())
        scalars = [type(values[name]) for name in values if name not in arrays]
        known = len(frameworks) == 1 and frameworks <= _ARRAY_KEYS.keys()
        if not known or not all(kind in _SCALAR_KEYS for kind in scalars):
            return False
        with self._lock:
            self._specialise(values, arrays, frameworks.pop())
            self._make_room()
            call.used = False  # until it is asked for again
            self.calls[self.read_key(values)] = call
        return True

    def forget(self, call: Repeatable) -> None:
        with self._lock:
            self.calls = {key: kept for key, kept in self.calls.items() if kept is not call}

    def _specialise(
        self, values: Mapping[str, object], arrays: Mapping[str, str], framework: str
    ) -> None:
        """Make `read_key` fit these values. Calls of another form are dropped."""
        kinds = tuple(framework if n in arrays else type(v) for n, v in values.items())
        if self._signature != (tuple(values), kinds):
            self.calls = {}
            self._types = set()
            self._signature = (tuple(values), kinds)
            self._names = tuple(values)
            self.read_key = _compile(self._names, kinds, self._types)
        self._types.update(type(values[name]) for name in arrays)

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
    names: Sequence[str], kinds: Sequence[object], arrays: set[type]
) -> Callable[[Mapping[str, object]], Key | None]:
    """The function in this module's docstring. `kinds` are frameworks (arrays) and scalar types."""
    scope: dict[str, Any] = {"arrays": arrays}
    variables = [f"v{i}" for i in range(len(names))]
    tests = [f"len(values) == {len(names)}"]
    parts: list[str] = []
    for variable, kind in zip(variables, kinds, strict=True):
        if isinstance(kind, type):
            tests.append(f"type({variable}) is {kind.__name__}")
            parts.append(_SCALAR_KEYS[kind].format(variable))
        else:
            tests.append(f"type({variable}) in arrays")
            parts += [part.format(variable) for part in _ARRAY_KEYS[str(kind)]]
    values = ", ".join(f"values[{name!r}]" for name in names)
    source = (
        f"def read_key(values):\n"
        f"    {', '.join(variables)}, = {values},\n"
        f"    if {' and '.join(tests)}:\n"
        f"        return ({', '.join(parts)},)\n"
    )
    exec(compile(source, "<read_key>", "exec"), scope)
    function: Callable[[Mapping[str, object]], Key | None] = scope["read_key"]
    return function


CALLS: PerKernel[Calls] = PerKernel(Calls)
