"""Streams of any framework as driver handles, without importing CUDA.

0 and 1 both are the legacy default stream, 2 is the per-thread default stream.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from ptxgen.errors import ArgumentError, Violation

LEGACY = 1
_ACCEPTED = "an int handle, a torch, CuPy or cuda.core stream, or any object with __cuda_stream__"


def handle_of(x: object) -> int:
    """The driver handle of a stream object. ArgumentError for anything else.

    Accepts an int, `__cuda_stream__` (a method or an attribute giving (version, handle)),
    `.cuda_stream` (torch), `.ptr` (CuPy), `.handle` (cuda.core, Numba) and cuda.bindings' CUstream.
    """
    if isinstance(x, int) and not isinstance(x, bool):
        return x
    protocol = getattr(x, "__cuda_stream__", None)
    if protocol is not None:
        version, handle = protocol() if callable(protocol) else protocol
        if version != 0:
            raise _refused(x, f"__cuda_stream__ of version {version}", "version 0 is known")
        return int(handle)
    for attribute in ("cuda_stream", "ptr", "handle"):
        handle = getattr(x, attribute, None)
        if handle is not None:
            return int(getattr(handle, "value", handle) or 0)
    if hasattr(x, "getPtr") and hasattr(x, "__int__"):
        return int(x)
    raise _refused(x, type(x).__qualname__, f"must be {_ACCEPTED}")


def same(a: int, b: int) -> bool:
    """Whether two handles name one stream (0 and 1 do)."""
    return (a or LEGACY) == (b or LEGACY)


def current_stream(framework: str, ordinal: int) -> Callable[[], int]:
    """A function that asks a framework for its current stream on GPU `ordinal`, cheap to call.

    Frameworks without that notion work on the legacy default stream.
    """
    if framework == "torch":
        torch: Any = sys.modules["torch"]
        # What Triton and torch's own compiler call: a plain C function from index to handle.
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        if raw is not None:
            return partial(raw, ordinal)
        return lambda: int(torch.cuda.current_stream(ordinal).cuda_stream)
    if framework == "cupy":
        get_current = sys.modules["cupy"].cuda.get_current_stream
        return lambda: int(get_current().ptr)
    return _legacy


def _legacy() -> int:
    return LEGACY


def _refused(x: object, got: str, rule: str) -> ArgumentError:
    return ArgumentError(
        "the stream cannot be used",
        [Violation(field="stream", got=got, rule=rule, fix=f"pass {_ACCEPTED}")],
    )
