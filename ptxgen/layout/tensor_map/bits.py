"""The 128 bytes of a tiled tensor map on compute capability 9.0.

    0x00  64     global address
    0x08  4-6    rank - 1              7-10  element type      11-12  interleave
          13-14  swizzle               15    NaN fill          16     TF32
          17-18  L2 promotion
    0x0c  32 x 4 stride[1..4] >> 4, low 32 bits      (dim 0, the innermost, has no stride)
    0x1c  4 x 4  bits 32-35 of the same
    0x20  32 x 5 extent - 1
    0x34  3 x 5  element stride - 1                  24-31  box[0] - 1
    0x38  8 x 4  box[1..4] - 1
    0x40  32     bytes of a box, box // element stride along every axis
    0x48  32     bytes after which the swizzle repeats (16, 256, 512, 1024)

The object is opaque by contract: on a GPU use the driver's own bytes. This layout reproduces every
map that the recorded driver accepted, byte for byte.
"""

from __future__ import annotations

import struct

from ptxgen.errors import TensorMapError, Violation
from ptxgen.isa.arch import TENSOR_MAP_BYTES
from ptxgen.layout.tensor_map.rules import check
from ptxgen.layout.tensor_map.spec import (
    FILLS,
    INTERLEAVES,
    MAP_TYPES,
    PROMOTIONS,
    RANK_MAX,
    SWIZZLE_SPANS,
    TensorMapSpec,
)

_OBJECT = struct.Struct("<QI 4I I 5I I 4B 4x I 4x I 52x")
_REPEAT_BYTES = {0: 0x10, 32: 0x100, 64: 0x200, 128: 0x400}
_BY_BITS = {(row.bits, row.tf32): row for row in MAP_TYPES.values()}


def _padded(values: tuple[int, ...], count: int) -> tuple[int, ...]:
    return values + (0,) * (count - len(values))


def encode(spec: TensorMapSpec, *, name: str = "tensor") -> bytes:
    """The 128-byte object. Raises TensorMapError with every broken rule; `name` names the array."""
    check(spec, name=name)
    element = spec.element
    strides = _padded(tuple(s >> 4 for s in spec.strides[-2::-1]), RANK_MAX - 1)
    extents = _padded(tuple(n - 1 for n in reversed(spec.shape)), RANK_MAX)
    box = _padded(tuple(n - 1 for n in reversed(spec.box)), RANK_MAX)
    steps = _padded(tuple(n - 1 for n in reversed(spec.element_strides)), RANK_MAX)
    head = (
        (spec.rank - 1) << 4
        | element.bits << 7
        | INTERLEAVES.index(spec.interleave) << 11
        | SWIZZLE_SPANS.index(spec.swizzle) << 13
        | FILLS.index(spec.fill) << 15
        | element.tf32 << 16
        | PROMOTIONS.index(spec.l2) << 17
    )
    return _OBJECT.pack(
        spec.address,
        head,
        *(s & 0xFFFFFFFF for s in strides),
        sum((s >> 32) << 4 * i for i, s in enumerate(strides)),
        *extents,
        sum(n << 3 * i for i, n in enumerate(steps)) | box[0] << 24,
        *box[1:],
        spec.encoded_box_bytes,
        _REPEAT_BYTES[spec.swizzle],
    )


def decode(data: bytes) -> TensorMapSpec:
    """The contents of a 128-byte object; `dtype` becomes the map type's name ("BFLOAT16").

    Raises TensorMapError where the bytes are not those of a tiled map that `encode` could make.
    """
    if len(data) != TENSOR_MAP_BYTES:
        raise _not_a_map("size", f"{len(data)} B", f"must be {TENSOR_MAP_BYTES} B")
    address, head, *rest = _OBJECT.unpack(data)
    low, high, extents = rest[0:4], rest[4], rest[5:10]
    steps, box = rest[10] & 0xFFFFFF, (rest[10] >> 24, *rest[11:15])
    rank = (head >> 4 & 7) + 1
    element = _BY_BITS.get((head >> 7 & 15, bool(head >> 16 & 1)))
    if rank > RANK_MAX or element is None or head >> 11 & 3 == 3:
        raise _not_a_map("word 2", f"0x{head:08x}", "has no such rank, type or interleave")
    outer = tuple((low[i] | (high >> 4 * i & 15) << 32) << 4 for i in range(rank - 1))
    spec = TensorMapSpec(
        dtype=element.name,
        address=address,
        shape=tuple(n + 1 for n in reversed(extents[:rank])),
        strides=(*reversed(outer), element.bytes),
        box=tuple(n + 1 for n in reversed(box[:rank])),
        element_strides=tuple((steps >> 3 * i & 7) + 1 for i in reversed(range(rank))),
        interleave=INTERLEAVES[head >> 11 & 3],
        swizzle=SWIZZLE_SPANS[head >> 13 & 3],
        l2=PROMOTIONS[head >> 17 & 3],
        fill=FILLS[head >> 15 & 1],
    )
    if encode(spec) != data:
        raise _not_a_map("bytes", data.hex(), "do not encode back to themselves")
    return spec


def _not_a_map(field: str, got: str, rule: str) -> TensorMapError:
    return TensorMapError(
        "these bytes are not a tiled tensor map",
        [
            Violation(
                field=field,
                got=got,
                rule=rule,
                why="im2col maps and maps of other architectures have another layout",
                fix="pass the 128 bytes of cuTensorMapEncodeTiled on compute capability 9.0",
            )
        ],
    )
