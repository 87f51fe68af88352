"""A home-made DLPack producer over NumPy memory, which can claim any device, type and version."""

from __future__ import annotations

import ctypes

import numpy as np

from runtime import dlpack

_new = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))  # fmt: skip


class _Managed(ctypes.Structure):
    _fields_ = (
        ("tensor", dlpack._Tensor),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class Producer:
    """`asked` collects the keywords of every export. `legacy`: knows nothing of DLPack 1.0."""

    def __init__(
        self,
        array: np.ndarray,
        *,
        dtype: tuple[int, int, int],
        device: tuple[int, int] = (dlpack.CPU, 0),
        read_only: bool = False,
        legacy: bool = False,
        strides: bool = True,
        offset: int = 0,
        major: int = 1,
    ) -> None:
        self.array = array
        self.asked: list[dict[str, object]] = []
        self._device = device
        self._legacy = legacy
        self._keep: list[object] = []
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        steps = (ctypes.c_int64 * array.ndim)(*(s // array.itemsize for s in array.strides))
        self._keep += [shape, steps]
        tensor = dlpack._Tensor(
            data=array.ctypes.data - offset,
            device=dlpack._Device(*device),
            ndim=array.ndim,
            dtype=dlpack._DataType(*dtype),
            shape=shape,
            strides=steps if strides else None,
            byte_offset=offset,
        )
        if legacy:
            self._struct: ctypes.Structure = _Managed(tensor=tensor)
        else:
            self._struct = dlpack._ManagedVersioned(
                major=major, minor=0, flags=int(read_only), tensor=tensor
            )

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(self, **keywords: object) -> object:
        if self._legacy and "max_version" in keywords:
            raise TypeError("unexpected keyword argument 'max_version'")
        self.asked.append(keywords)
        name = b"dltensor" if self._legacy else b"dltensor_versioned"
        return _new(ctypes.addressof(self._struct), name, None)
