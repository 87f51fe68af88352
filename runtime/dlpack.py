"""Reading a DLPack capsule: header and flags only, with ctypes, without NumPy and without copying.

A capsule that nobody consumes frees its tensor when it is itself freed, so the capsule object is
the owner of the borrowed memory. Layout: DLPack 1.0 (dlpack.h), DLManagedTensor and
DLManagedTensorVersioned.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType
DEVICE_NAMES = {4: "OpenCL", 7: "Vulkan", 8: "Metal", 9: "VPI", 10: "ROCm", 11: "ROCm host",
                14: "oneAPI", 15: "WebGPU", 16: "Hexagon"}  # fmt: skip
READ_ONLY_FLAG = 1  # DLPACK_FLAG_BITMASK_READ_ONLY
LEGACY_STREAM = 1  # DLPack's name of the legacy default stream; 0 is forbidden there


class _Device(ctypes.Structure):
    _fields_ = (("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _ManagedVersioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DLTensor:
    """What a capsule says. Strides are in elements; `capsule` owns the memory."""

    address: int
    device_type: int
    device_id: int
    dtype: tuple[int, int, int]  # code, bits, lanes
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    read_only: bool
    capsule: object


def _capsule_api(name: str, restype: Any, *argtypes: Any) -> Callable[..., Any]:
    # PYFUNCTYPE keeps the GIL, which these functions of the interpreter need.
    return ctypes.PYFUNCTYPE(restype, *argtypes)((name, ctypes.pythonapi))


_is_valid = _capsule_api("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_pointer = _capsule_api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)


def device(x: Any) -> tuple[int, int]:
    """(device type, device id) of an object that has `__dlpack_device__`."""
    device_type, device_id = x.__dlpack_device__()
    return int(device_type), int(device_id)


def export(x: Any, *, stream: int | None) -> object:
    """A capsule of `x`. `stream` is the stream that will use it; only for CUDA devices.

    Asks for DLPack 1.0 (it can say "read-only"), then for the older form.
    """
    keywords = {} if stream is None else {"stream": stream or LEGACY_STREAM}
    try:
        return x.__dlpack__(max_version=(1, 0), **keywords)
    except TypeError:  # a producer from before DLPack 1.0
        return x.__dlpack__(**keywords)


def read(capsule: object) -> DLTensor:
    """The header of a capsule. ValueError when it is used up or of an unknown major version."""
    read_only = False
    if _is_valid(capsule, b"dltensor_versioned"):
        pointer = _pointer(capsule, b"dltensor_versioned")
        managed = _ManagedVersioned.from_address(pointer)
        if managed.major != 1:
            raise ValueError(f"DLPack {managed.major}.{managed.minor} is unknown; 1.x is read")
        read_only = bool(managed.flags & READ_ONLY_FLAG)
        tensor = managed.tensor
    elif _is_valid(capsule, b"dltensor"):
        tensor = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    else:
        raise ValueError("not a DLPack capsule, or one that was used already")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.strides:
        strides = tuple(tensor.strides[i] for i in range(tensor.ndim))
    else:
        strides = row_major(shape)
    return DLTensor(
        address=(tensor.data or 0) + tensor.byte_offset,
        device_type=tensor.device.device_type,
        device_id=tensor.device.device_id,
        dtype=(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes),
        shape=shape,
        strides=strides,
        read_only=read_only,
        capsule=capsule,
    )


def row_major(shape: tuple[int, ...], step: int = 1) -> tuple[int, ...]:
    """Strides of a C-contiguous array, in units of `step`."""
    strides = []
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))
