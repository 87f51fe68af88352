"""Tensor maps by the driver's own encoder, cuTensorMapEncodeTiled.

The function is called by its address, into storage that is aligned to 128 bytes: cuda.bindings
would encode into an object of its own, at an address that the encoder may refuse. This is the only
place that hands a map to the driver, and so needs the driver's order (innermost axis first).
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from ptxgen.errors import DriverError, TensorMapError, Violation
from ptxgen.isa.arch import TENSOR_MAP_BYTES
from ptxgen.layout.tensor_map import TensorMapSpec
from ptxgen.layout.tensor_map.spec import FILLS, INTERLEAVES, PROMOTIONS, SWIZZLE_SPANS
from runtime.cuda.driver import api, check, error_of

MAP_ALIGN = 128  # what the type of CUDA 13's cuda.h says; 64 before
_SYMBOL = b"cuTensorMapEncodeTiled"
_SINCE_CUDA = 12_000

_u32, _u64, _pointer = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
_PROTOTYPE = ctypes.CFUNCTYPE(
    ctypes.c_int, _pointer, ctypes.c_int, _u32, _pointer, ctypes.POINTER(_u64),
    ctypes.POINTER(_u64), ctypes.POINTER(_u32), ctypes.POINTER(_u32), ctypes.c_int, ctypes.c_int,
    ctypes.c_int, ctypes.c_int,
)  # fmt: skip


def encode(spec: TensorMapSpec, *, name: str) -> bytes:
    """The driver's 128 bytes for a map that our rules have accepted.

    A context of the array's GPU must be current. TensorMapError shows the map if it is refused.
    """
    buffer, address = aligned(TENSOR_MAP_BYTES)
    rank = spec.rank
    code = _function()(
        address,
        spec.element.code,
        rank,
        spec.address,
        (_u64 * rank)(*reversed(spec.shape)),
        (_u64 * max(rank - 1, 1))(*spec.strides[-2::-1]),
        (_u32 * rank)(*reversed(spec.box)),
        (_u32 * rank)(*reversed(spec.element_strides)),
        INTERLEAVES.index(spec.interleave),
        SWIZZLE_SPANS.index(spec.swizzle),
        PROMOTIONS.index(spec.l2),
        FILLS.index(spec.fill),
    )
    if code:
        raise _refused(spec, name, error_of(api().CUresult(code), "cuTensorMapEncodeTiled"))
    at = address - ctypes.addressof(buffer)
    return bytes(buffer.raw[at : at + TENSOR_MAP_BYTES])


def aligned(size: int, align: int = MAP_ALIGN) -> tuple[Any, int]:
    """A zeroed buffer, and an aligned address in it with `size` bytes after it."""
    buffer = ctypes.create_string_buffer(size + align)
    start = ctypes.addressof(buffer)
    return buffer, -(-start // align) * align


@cache
def _function() -> Any:
    answer = api().cuGetProcAddress(_SYMBOL, _SINCE_CUDA, 0)
    address = check(answer, f"finding {_SYMBOL.decode()} in the driver")[0]
    return _PROTOTYPE(int(address))


def _refused(spec: TensorMapSpec, name: str, error: DriverError) -> TensorMapError:
    return TensorMapError(
        f"the driver refused the tensor map of {name}, which our rules accept",
        [
            Violation(
                field=name,
                got=error.code,
                rule="must be accepted by cuTensorMapEncodeTiled",
                why=spec.describe(),
                fix="please report this map; it may be a rule that we do not know",
            )
        ],
    )
