"""New arrays in the framework of another one, on its device: where results of operations go."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ptxgen.isa.dtypes import DType
from ptxgen.isa.dtypes import dtype as dtype_row
from runtime.backend import ArrayRef
from runtime.buffers import borrow, framework_of, refusal
from runtime.stream import LEGACY, same


def empty_like(
    shape: Sequence[int], dtype: str, like: object, *, stream: int | None = None
) -> object:
    """A C-contiguous array of this shape and dtype, made by the framework that owns `like`.

    It lives where `like` lives; a framework that allocates in stream order does so on the driver
    stream `stream` (None: its current one). The contents are undefined. ArgumentError where the
    framework is unknown or has no such type.
    """
    row = dtype_row(dtype)
    framework = framework_of("like", like)
    makers = {
        "numpy": _numpy, "buffer": _numpy, "torch": _torch, "cupy": _cupy, "jax": _jax
    }  # fmt: skip
    if framework not in makers:
        raise refusal(
            "out",
            f"nothing, and an input of type {type(like).__qualname__}",
            "must be given: how to allocate in that framework is unknown",
            fix="pass out=",
        )
    return makers[framework](tuple(shape), row, like, stream)


def fresh(name: str, x: object, *, stream: int | None = None) -> ArrayRef:
    """An array that `empty_like` has just made, as a writable reference.

    Nobody else has seen it yet, so even a JAX array (immutable by contract) may be filled.
    """
    ref = borrow(name, x, stream=stream)
    return replace(ref, meta=replace(ref.meta, writable=True))


def _numpy(shape: tuple[int, ...], row: DType, like: Any, stream: int | None) -> object:
    return np.empty(shape, row.np_dtype)


def _torch(shape: tuple[int, ...], row: DType, like: Any, stream: int | None) -> object:
    torch = sys.modules["torch"]
    torch_dtype = getattr(torch, row.numpy, None)
    if torch_dtype is None:
        raise _no_type("torch", row)
    if stream is None or like.device.type != "cuda":
        return torch.empty(shape, dtype=torch_dtype, device=like.device)
    # The caching allocator reuses memory in the order of the stream it was allocated on.
    if same(stream, LEGACY):
        owner = torch.cuda.default_stream(like.device)
    else:
        owner = torch.cuda.ExternalStream(stream, device=like.device)
    with torch.cuda.stream(owner):
        return torch.empty(shape, dtype=torch_dtype, device=like.device)


def _cupy(shape: tuple[int, ...], row: DType, like: Any, stream: int | None) -> object:
    cupy = sys.modules["cupy"]
    try:
        with like.device:
            if stream is None:
                return cupy.empty(shape, dtype=row.np_dtype)
            with cupy.cuda.ExternalStream(stream):
                return cupy.empty(shape, dtype=row.np_dtype)
    except (TypeError, ValueError) as error:
        raise _no_type("CuPy", row) from error


def _jax(shape: tuple[int, ...], row: DType, like: Any, stream: int | None) -> object:
    numpy_like = sys.modules["jax"].numpy
    array = numpy_like.empty(shape, dtype=row.np_dtype, device=like.sharding)
    return array.block_until_ready()  # written by us from now on, so XLA must be done with it


def _no_type(framework: str, row: DType) -> Exception:
    return refusal("out", row.name, f"is a type that {framework} does not have", fix="pass out=")
