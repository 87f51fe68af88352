"""An array and a tensor-map parameter -> the 128 bytes, by our own encoder.

The emulator runs on these; a GPU gets the bytes of the driver's encoder (runtime.cuda.tensor_map),
checked by the same rules first, so that both refuse the same arrays in the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ptxgen.isa import arch
from ptxgen.layout import tensor_map as layout
from ptxgen.spec import TensorMapParam
from runtime.backend import ArrayRef
from runtime.buffers import borrow

EMPTY = bytes(arch.TENSOR_MAP_BYTES)
"""Stands for the map of an array without elements: no map can describe one, and none is read."""


def spec_of(ref: ArrayRef, param: TensorMapParam) -> layout.TensorMapSpec | None:
    """The checked contents of the map, or None for an array without elements.

    TensorMapError lists every rule that is broken, with the numbers and the next legal choice.
    """
    return layout.from_array(ref.meta, param) if ref.meta.size else None


def encode(ref: ArrayRef, param: TensorMapParam) -> bytes:
    """The 128 bytes, by our encoder. Raises TensorMapError as `spec_of`."""
    spec = spec_of(ref, param)
    return EMPTY if spec is None else layout.encode(spec, name=param.arg)


def tensor_map(
    array: object,
    *,
    box: Sequence[int],
    axes: Sequence[int] | None = None,
    swizzle: int = 0,
    l2: int = 128,
    fill: Literal["zero", "nan"] = "zero",
) -> bytes:
    """The 128-byte tensor map of an array of any framework, without a driver.

    `box` is in elements, outermost first; `axes` are the array axes that the map walks (default:
    all, in order); `swizzle` and `l2` are in bytes. Made for looking at and comparing: launches
    build their own. TensorMapError lists every rule that is broken.
    """
    ref = borrow("array", array)
    param = TensorMapParam(
        name="array",
        arg="array",
        dtype=ref.meta.dtype,
        axes=tuple(range(len(ref.meta.shape)) if axes is None else axes),
        box=tuple(box),
        swizzle=swizzle,
        l2=l2,
        fill=fill,
    )
    return encode(ref, param)
