"""An array and a tensor-map parameter -> the 128 bytes, by our own encoder.

The emulator runs on these; a GPU gets the bytes of the driver's encoder (runtime.cuda.tensor_map),
checked by the same rules first, so that both refuse the same arrays in the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ptxgen.isa import arch
from ptxgen.layout import tensor_map as layout
from ptxgen.spec import TensorMapParam
from ptxgen.view import Heading, Shown, View
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorMap(Shown):
    """What a tensor map will describe: the array, and how a box is cut from it.

    A launch encodes it for the backend that it runs on, with the address that the array has there.
    `bytes(...)` are our encoder's 128 bytes for the array where it is, for looking at.
    """

    array: object
    dtype: str
    box: tuple[int, ...]
    axes: tuple[int, ...]
    swizzle: int
    l2: int
    fill: Literal["zero", "nan"]

    def param(self, name: str, use: Literal["load", "store", "reduce"] = "load") -> TensorMapParam:
        """The parameter `name` that takes this map."""
        return TensorMapParam(
            name=name, arg=name, dtype=self.dtype, axes=self.axes, box=self.box,
            swizzle=self.swizzle, l2=self.l2, fill=self.fill, use=use,
        )  # fmt: skip

    def view(self) -> View:
        """The map of the array where it is. Raises TensorMapError as a launch would."""
        spec = spec_of(borrow("array", self.array), self.param("array"))
        return Heading(words="no map: the array has no elements") if spec is None else spec.view()

    def __bytes__(self) -> bytes:
        return encode(borrow("array", self.array), self.param("array"))


def tensor_map(
    array: object,
    *,
    box: Sequence[int],
    axes: Sequence[int] | None = None,
    dtype: str | None = None,
    swizzle: int = 0,
    l2: int = 128,
    fill: Literal["zero", "nan"] = "zero",
) -> TensorMap:
    """The tensor map of an array of any framework, for a 128-byte parameter of foreign PTX.

    `box` is in elements, outermost first; `axes` are the array axes that the map walks (default:
    all, in order); `swizzle` and `l2` are in bytes; `dtype` names another element type of the same
    width, e.g. "TFLOAT32". Pass the result to `runtime.launch`; kernels of the catalogue take the
    array itself. Nothing is encoded yet: TensorMapError, with every rule that is broken, comes from
    the launch or from `bytes(...)`.
    """
    ref = borrow("array", array)
    return TensorMap(
        array=array,
        dtype=ref.meta.dtype if dtype is None else dtype,
        box=tuple(box),
        axes=tuple(range(len(ref.meta.shape)) if axes is None else axes),
        swizzle=swizzle,
        l2=l2,
        fill=fill,
    )
