"""Runs kernels: on an NVIDIA GPU through the driver, or on the CPU through an emulator of PTX.

    launch      run a kernel on arrays of any framework
    prepare     check once, then launch at the cost of the driver call alone
    wait        until queued work has run; a hang becomes an error
    padded      a result whose rows may be written to the end of their last 16 bytes
    tensor_map  the 128 bytes of an array's tensor map
    ops         operations on arrays: `ops.gemm(a, b)`

Importing this package imports neither CUDA nor NumPy; each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime import ops as ops
    from runtime.buffers import padded as padded
    from runtime.launcher import launch as launch
    from runtime.launcher import prepare as prepare
    from runtime.launcher import wait as wait
    from runtime.tensor_maps import tensor_map as tensor_map

_HOMES = {
    "launch": "launcher",
    "prepare": "launcher",
    "wait": "launcher",
    "padded": "buffers",
    "tensor_map": "tensor_maps",
}
__all__ = ["launch", "ops", "padded", "prepare", "tensor_map", "wait"]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value = getattr(import_module(f"runtime.{_HOMES[name]}"), name)
    elif name == "ops":
        value = import_module("runtime.ops")
    else:
        raise AttributeError(f"module 'runtime' has no attribute {name!r}")
    globals()[name] = value  # the next use is a plain attribute
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
