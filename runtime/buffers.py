"""Any array object -> what is known of it (ArrayMeta) and who owns its memory. Nothing is copied.

    NumPy                          read directly: arrays of ml_dtypes types cannot pass DLPack
    torch, CuPy                    read directly: their attributes are cheaper than DLPack
    `__dlpack__`                   JAX and all others; the header is read with ctypes, so that bf16
                                   and fp8 need no NumPy type
    `__cuda_array_interface__`     Numba and others
    the buffer protocol            bytearray, array.array, memoryview: through NumPy, zero-copy

Element types are identified by DLPack's (code, bits, lanes) or by name; one that this project has
no row for is refused by name, never guessed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ptxgen.errors import ArgumentError, Violation
from ptxgen.isa import dtypes
from ptxgen.isa.dtypes import DType
from ptxgen.spec import ArrayMeta
from runtime import dlpack
from runtime.backend import ArrayRef

ROW_BYTES = 16  # what TMA stores is a multiple of
_UNKNOWN_CUDA = "cuda"  # `__cuda_array_interface__` does not say which GPU; the cuda backend asks


def borrow(name: str, x: object, *, stream: int | None = None) -> ArrayRef:
    """Metadata and owner of array `x`, passed as argument `name`.

    `stream` is the driver handle of the stream that will use the array: a DLPack producer on a GPU
    orders its pending work before it. ArgumentError names the argument and what is wrong with it.
    An `ArrayRef` passes through unchanged.
    """
    if isinstance(x, ArrayRef):
        return x
    return _READERS[framework_of(name, x)](name, x, stream)


def framework_of(name: str, x: object) -> str:
    """Which reader understands `x`: a key of the table at the top of this module."""
    if isinstance(x, ArrayRef):
        return x.framework
    for cls in type(x).__mro__:
        framework = _BY_CLASS.get((cls.__module__.partition(".")[0], cls.__name__))
        if framework is not None:
            return framework
    if not isinstance(x, np.generic):  # a NumPy scalar pretends to be an array of no axes
        for attribute, framework in _BY_PROTOCOL:
            if hasattr(x, attribute):
                return framework
        if _is_buffer(x):
            return "buffer"
    raise refusal(
        name,
        f"{type(x).__module__}.{type(x).__qualname__}",
        "must be an array: NumPy, torch, CuPy, JAX, or any object with __dlpack__, "
        "__cuda_array_interface__ or the buffer protocol",
        fix="wrap it first, e.g. numpy.asarray(x)",
    )


def device_of(name: str, x: object) -> str:
    """ "cpu", "cuda:N", or "cuda" where the object does not say which; without exporting it."""
    if isinstance(x, ArrayRef):
        return x.meta.device
    framework = framework_of(name, x)
    if framework in ("dlpack", "jax"):
        return _dlpack_device(name, *dlpack.device(x))
    if framework == "cuda_array_interface":
        return _UNKNOWN_CUDA
    return borrow(name, x).meta.device


def host_bytes(ref: ArrayRef) -> np.ndarray:
    """The memory that a host array spans, as a writable NumPy array of bytes (a view).

    Meant for a backend that runs on the CPU. The view keeps the array's owner alive.
    """
    low, high = span(ref.meta)
    interface = {"shape": (high - low,), "typestr": "|u1", "data": (low, False), "version": 3}
    return np.asarray(_Memory(interface, ref.owner))


def span(meta: ArrayMeta) -> tuple[int, int]:
    """The address range [low, high) that the elements of an array touch; empty for no elements.

    The rows of a padded array count to the end of their last 16 bytes.
    """
    if meta.size == 0:
        return meta.address, meta.address
    low = high = meta.address
    for extent, stride in zip(meta.shape, meta.strides, strict=True):
        reach = (extent - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    high += dtypes.dtype(meta.dtype).bytes
    return low, high + -high % ROW_BYTES if meta.padded else high


def padded(x: object) -> ArrayRef:
    """Array `x` for a launch that may also write what lies behind its rows.

    TMA stores whole 16-byte units, so rows of another length are written up to the end of their
    last one. Launches refuse such results, unless this says that the bytes behind the rows (the
    last one's too) are there and belong to nobody else: `padded(numpy.empty((M, 72))[:, :71])`.
    PTX ISA: 9.7.9.27 cp.async.bulk.tensor; that it is so was measured.
    """
    ref = borrow("x", x)
    return replace(ref, meta=replace(ref.meta, padded=True))


def overlap(a: ArrayMeta, b: ArrayMeta) -> bool:
    """Whether two arrays share a byte. Exact for strided views, but for absurdly tangled ones,
    which count as overlapping."""
    (a_low, a_high), (b_low, b_high) = span(a), span(b)
    if a_low >= b_high or b_low >= a_high or not a.size or not b.size:
        return False
    try:  # NumPy solves the equation for the strides; the bound keeps hard cases short
        return bool(np.shares_memory(_shadow(a), _shadow(b), max_work=1_000_000))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def refusal(name: str, got: str, rule: str, *, why: str = "", fix: str = "") -> ArgumentError:
    """An ArgumentError about one argument."""
    return ArgumentError(
        f"argument {name!r} cannot be used",
        [Violation(field=name, got=got, rule=rule, why=why, fix=fix)],
    )


def _meta(
    shape: Sequence[int],
    strides: Sequence[int],
    dtype: DType,
    *,
    address: int,
    device: str,
    writable: bool,
) -> ArrayMeta:
    return ArrayMeta(
        shape=tuple(shape),
        strides=tuple(strides),
        dtype=dtype.name,
        address=address,
        device=device,
        writable=writable,
    )


class _Memory:
    """A carrier of `__array_interface__`; NumPy views keep it, and so the owner, alive."""

    def __init__(self, interface: Mapping[str, object], owner: object) -> None:
        self.__array_interface__ = interface
        self._owner = owner


def _shadow(meta: ArrayMeta) -> np.ndarray:
    """A NumPy array with the same addresses. It is never read: the memory may be a GPU's."""
    interface = {
        "shape": meta.shape,
        "strides": meta.strides,
        "typestr": f"|V{dtypes.dtype(meta.dtype).bytes}",
        "data": (meta.address, True),
        "version": 3,
    }
    return np.asarray(_Memory(interface, None))


# --- one reader a framework ----------------------------------------------------------------------


def _numpy(name: str, x: Any, stream: int | None) -> ArrayRef:
    return _from_numpy(name, np.asarray(x), x, "numpy")


def _from_numpy(name: str, array: np.ndarray, owner: object, framework: str) -> ArrayRef:
    dtype = dtypes.from_numpy(array.dtype)
    if dtype is None or not array.dtype.isnative:
        raise _unknown_dtype(name, f"NumPy dtype {array.dtype.str!r} ({array.dtype})")
    meta = _meta(
        array.shape,
        array.strides,
        dtype,
        address=array.__array_interface__["data"][0],
        device="cpu",
        writable=bool(array.flags.writeable),
    )
    return ArrayRef(meta=meta, owner=owner, framework=framework)


def _torch(name: str, x: Any, stream: int | None) -> ArrayRef:
    torch = sys.modules["torch"]
    if x.layout is not torch.strided:
        raise refusal(name, str(x.layout), "must be a strided tensor", fix="use x.to_dense()")
    if x.is_neg():
        raise refusal(name, "a lazy negative view", "must be plain", fix="use x.resolve_neg()")
    spelling = str(x.dtype).removeprefix("torch.")
    try:
        dtype = dtypes.dtype(spelling)
    except KeyError:
        raise _unknown_dtype(name, str(x.dtype)) from None
    if x.device.type not in ("cpu", "cuda"):
        raise refusal(name, f"device {x.device}", "must live on the host or on a CUDA device")
    meta = _meta(
        x.shape,
        [s * dtype.bytes for s in x.stride()],
        dtype,
        address=x.data_ptr(),
        device="cpu" if x.device.type == "cpu" else f"cuda:{x.get_device()}",
        writable=True,
    )
    return ArrayRef(meta=meta, owner=x, framework="torch")


def _cupy(name: str, x: Any, stream: int | None) -> ArrayRef:
    dtype = dtypes.from_numpy(x.dtype)
    if dtype is None or not x.dtype.isnative:
        raise _unknown_dtype(name, f"dtype {x.dtype}")
    meta = _meta(
        x.shape,
        x.strides,
        dtype,
        address=x.data.ptr,
        device=f"cuda:{x.device.id}",
        writable=True,
    )
    return ArrayRef(meta=meta, owner=x, framework="cupy")


def _dlpack(name: str, x: Any, stream: int | None) -> ArrayRef:
    return _from_dlpack(name, x, stream, "dlpack")


def _jax(name: str, x: Any, stream: int | None) -> ArrayRef:
    # A JAX array is immutable by contract, whatever its capsule says; on the CPU its value may
    # still be on the way.
    x.block_until_ready()
    return _from_dlpack(name, x, stream, "jax")


def _from_dlpack(name: str, x: Any, stream: int | None, framework: str) -> ArrayRef:
    device = _dlpack_device(name, *dlpack.device(x))
    try:
        tensor = dlpack.read(dlpack.export(x, stream=None if device == "cpu" else stream or 0))
    except (BufferError, ValueError, RuntimeError) as error:
        got = f"{type(x).__qualname__}, whose __dlpack__ said: {error}"
        raise refusal(name, got, "must be exportable by DLPack") from error
    dtype = dtypes.from_dlpack(*tensor.dtype)
    if dtype is None:
        raise _unknown_dtype(name, f"DLPack (code, bits, lanes) = {tensor.dtype}")
    meta = _meta(
        tensor.shape,
        [s * dtype.bytes for s in tensor.strides],
        dtype,
        address=tensor.address,
        device=device,
        writable=not tensor.read_only and framework != "jax",
    )
    return ArrayRef(meta=meta, owner=(tensor.capsule, x), framework=framework)


def _dlpack_device(name: str, device_type: int, device_id: int) -> str:
    if device_type in (dlpack.CPU, dlpack.CUDA_HOST):
        return "cpu"
    if device_type in (dlpack.CUDA, dlpack.CUDA_MANAGED):
        return f"cuda:{device_id}"
    got = dlpack.DEVICE_NAMES.get(device_type, "unknown")
    raise refusal(
        name,
        f"DLPack device type {device_type} ({got})",
        "must live on the host or on a CUDA device",
    )


def _cuda_array_interface(name: str, x: Any, stream: int | None) -> ArrayRef:
    interface = x.__cuda_array_interface__
    np_dtype = np.dtype(interface["typestr"])
    dtype = dtypes.from_numpy(np_dtype)
    if dtype is None or not np_dtype.isnative:
        raise _unknown_dtype(name, f"__cuda_array_interface__ typestr {interface['typestr']!r}")
    address, read_only = interface["data"]
    shape = tuple(interface["shape"])
    strides = interface.get("strides") or dlpack.row_major(shape, dtype.bytes)
    meta = _meta(
        shape,
        strides,
        dtype,
        address=address or 0,
        device=_UNKNOWN_CUDA,
        writable=not read_only,
    )
    return ArrayRef(meta=meta, owner=x, framework="cuda_array_interface")


def _buffer(name: str, x: Any, stream: int | None) -> ArrayRef:
    source = x if hasattr(x, "__array_interface__") else memoryview(x)
    return _from_numpy(name, np.asarray(source), x, "buffer")


def _is_buffer(x: object) -> bool:
    if isinstance(x, (bytes, str)):  # bytes are text-like: an accident as an argument
        return False
    try:
        memoryview(x)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def _unknown_dtype(name: str, got: str) -> ArgumentError:
    return refusal(
        name,
        got,
        f"has no known element type; known: {', '.join(dtypes.DTYPES)}",
        fix="convert it, or view it as an integer type of the same width",
    )


_BY_CLASS: Mapping[tuple[str, str], str] = {
    ("numpy", "ndarray"): "numpy",
    ("torch", "Tensor"): "torch",
    ("cupy", "ndarray"): "cupy",
    ("jaxlib", "ArrayImpl"): "jax",
}
_BY_PROTOCOL = (
    ("__dlpack__", "dlpack"),
    ("__cuda_array_interface__", "cuda_array_interface"),
    ("__array_interface__", "buffer"),
)
_READERS: Mapping[str, Callable[[str, Any, int | None], ArrayRef]] = {
    "numpy": _numpy,
    "torch": _torch,
    "cupy": _cupy,
    "jax": _jax,
    "dlpack": _dlpack,
    "cuda_array_interface": _cuda_array_interface,
    "buffer": _buffer,
}
