"""The box of a tensor map in memory: where it may start, what of it is inside, what is moved.

Elements outside the tensor read as the fill value and are not written. What the manual leaves open
was measured; see `tma_*` in examples/microbench/FACTS.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .memory import Bank
from .report import hazard
from .state import Path
from .tensor_map import TensorMap
from .values import BF16, Array

ISA = "9.7.9.27 cp.async.bulk.tensor"
UNIT_BYTES = 16
_NUMPY = {"f16": np.dtype(np.float16), "bf16": BF16, "f32": np.dtype(np.float32),
          "f64": np.dtype(np.float64)}  # fmt: skip
_TINY = np.float32(2.0**-126)


def box_start(
    p: Path, tmap: TensorMap, coordinates: Sequence[int], line: int, *, writes: bool = False
) -> list[int]:
    """The start of a box, innermost axis first, if the hardware takes it."""
    start = [((c & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000 for c in coordinates]
    if len(start) != len(tmap.dims):
        raise hazard(
            "tensor-map",
            f"{len(start)} coordinates for a tensor map of rank {len(tmap.dims)}",
            path=p,
            line=line,
            cure="use the .Nd form of the map's rank",
            isa=ISA,
        )
    if start[0] * tmap.element_bytes % UNIT_BYTES:
        raise hazard(
            "tma-coordinate",
            f"a box starts at {tuple(start)}: {start[0] * tmap.element_bytes} bytes into a row, "
            f"of {tmap.element_bytes}-byte elements",
            path=p,
            line=line,
        )
    if writes and min(start) < 0:
        raise hazard(
            "negative-coordinate",
            f"a tensor store starts at {tuple(start)}",
            path=p,
            line=line,
            isa=ISA,
        )
    return start


@dataclass(slots=True)
class Window:
    """The part of a box that lies inside the tensor: slices of the box, and its bytes in memory.

    Shapes are outermost axis first. `view` is None when nothing lies inside.
    """

    shape: tuple[int, ...]
    slices: tuple[slice, ...]
    view: Array | None


def box_window(
    p: Path, tmap: TensorMap, start: Sequence[int], line: int, *, writes: bool = False
) -> tuple[Window, Bank]:
    """The part of a box that is inside the tensor, and the memory that it lies in.

    Writes go by whole 16-byte units: where the extent of the innermost axis ends inside one, they
    reach up to 15 bytes past it.
    """
    bank = p.C.memory.find(tmap.address)
    if bank is None:
        raise hazard(
            "tensor-map",
            f"the tensor map's address {tmap.address:#x} is no array of this launch",
            path=p,
            line=line,
            isa=ISA,
        )
    slices, shape, strides = [], [], []
    offset = tmap.address - bank.base
    unit = UNIT_BYTES // tmap.element_bytes
    dims = (-(-tmap.dims[0] // unit) * unit, *tmap.dims[1:]) if writes else tmap.dims
    for c, count, dim, step, stride in zip(
        start, tmap.counts, dims, tmap.element_strides, tmap.strides, strict=True
    ):
        first = max(0, -(c // step))  # the first k with c + k * step >= 0
        last = min(count, max(-((c - dim) // step), first))
        slices.append(slice(first, last))
        shape.append(last - first)
        strides.append(stride * step)
        offset += (c + first * step) * stride
    window = Window(tmap.counts[::-1], tuple(slices[::-1]), None)
    if all(n > 0 for n in shape):
        dtype = np.dtype(f"u{tmap.element_bytes}")
        try:
            window.view = np.ndarray(
                tuple(shape[::-1]),
                dtype,
                bank.data,
                offset,
                tuple(strides[::-1]),
            )
        except (TypeError, ValueError):
            raise hazard(
                "out-of-bounds",
                f"the tensor map reaches beyond {bank.name} ({bank.size:,} bytes)",
                path=p,
                line=line,
                reason=f"dims {tmap.dims}, strides {tmap.strides}, box at {tuple(start)}"
                + ("; a store writes whole 16-byte units" if dims != tmap.dims else ""),
                cure="encode the map with the shape and strides of the array",
                isa=ISA,
            ) from None
    return window, bank


def load_box(p: Path, tmap: TensorMap, start: Sequence[int], line: int) -> Array:
    """The bytes of a box, packed, out-of-bounds elements filled."""
    window, _ = box_window(p, tmap, start, line)
    inside = window.view
    if inside is not None and tmap.tf32:
        inside = rounded_to_tf32(inside)
    if inside is not None and inside.shape == window.shape:
        return np.ascontiguousarray(inside).reshape(-1).view(np.uint8)
    box = np.full(window.shape, tmap.fill, f"u{tmap.element_bytes}")
    if inside is not None:
        box[window.slices] = inside
    return box.reshape(-1).view(np.uint8)


def rounded_to_tf32(bits: Array) -> Array:
    """f32 bit patterns as a TFLOAT32 map loads them: to nearest even, NaN as 0x7FFFE000."""
    one = np.uint32(1)
    rounded = (bits + np.uint32(0xFFF) + (bits >> np.uint32(13) & one)) & np.uint32(0xFFFFE000)
    is_nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return np.where(is_nan, np.uint32(0x7FFFE000), rounded)


def reduced(old: Array, new: Array, operation: str, element: str) -> Array:
    """The elementwise reduction of cp.reduce.async.bulk, with a tensor map or without, as bits."""
    bits = old.dtype
    dtype = _NUMPY.get(element)
    if dtype is None:
        dtype = np.dtype(f"{'i' if element[0] == 's' else 'u'}{bits.itemsize}")
    x, y = old.copy().view(dtype), np.ascontiguousarray(new).view(dtype)
    wide = np.float32 if dtype.itemsize == 2 and element in _NUMPY else dtype
    x, y = x.astype(wide), y.astype(wide)
    if operation == "add" and element == "f32":
        return _flushed(_flushed(x) + _flushed(y)).view(bits)
    if operation == "inc":
        result = np.where(x >= y, 0, x + 1)
    elif operation == "dec":
        result = np.where((x == 0) | (x > y), y, x - 1)
    else:
        ufunc = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
                 "or": np.bitwise_or, "xor": np.bitwise_xor}[operation]  # fmt: skip
        result = ufunc(x, y)
    return np.asarray(result).astype(dtype).view(bits)


def _flushed(x: Array) -> Array:
    """Subnormals as zeros of their sign: f32 additions of bulk reductions flush."""
    return np.where(np.abs(x) < _TINY, np.copysign(np.float32(0), x), x)
