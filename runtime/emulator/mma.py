"""mma.sync and mma.sp: a warp multiplies matrices that lie in its registers (PTX ISA 9.7.14.5, .6).

Lane l = 4 g + t. A register of 32 bits holds `per` elements. A: register j has row g + 8 (j & 1)
and columns per * (4 (j >> 1) + t) + i; B: register j has column g and rows per * (4 j + t) + i;
C and D: rows g and g + 8, columns 2 t and 2 t + 1. Sums as `sums` says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .emit import Emitter, flatten
from .isa import opcode
from .operands import Imm, Op
from .sparse import expand
from .state import Path
from .sums import hardware_sum, one_nan, widened_sum
from .values import E4M3, E5M2, Array
from .whole_warp import require_whole_warp

NARROW = {"e4m3": E4M3, "e5m2": E5M2, "s8": np.dtype(np.int8), "u8": np.dtype(np.uint8)}
ELEMENT_BITS = {
    "f64": 64,
    "tf32": 32,
    "f16": 16,
    "bf16": 16,
    "e4m3": 8,
    "e5m2": 8,
    "s8": 8,
    "u8": 8,
}
S32_MIN, S32_MAX = -(1 << 31), (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Product:
    """One form: the rows of D, the types, and the selector of a sparse A (-1: dense)."""

    m: int
    d_type: str
    a_type: str
    b_type: str
    saturates: bool
    selector: int


@opcode("mma")
def multiply(e: Emitter, op: Op) -> None:
    if op.has("m8n8k4") and op.quals[-1] == "f32":
        _multiply_quads(e, op)
        return
    known = re.fullmatch(
        r"(?:(sp|sp::ordered_metadata)\.)?sync\.aligned\.m(\d+)n8k(\d+)\.row\.col(\.satfinite)?"
        r"\.(\w+)\.(\w+)\.(\w+)\.(\w+)",
        ".".join(op.quals),
    )
    if known is None:
        raise op.unsupported("this shape, layout or modifier of mma is not known here")
    sparse, m, k, saturates, d_type, a_type, b_type, c_type = known.groups()
    if {a_type, b_type} - set(ELEMENT_BITS) or d_type != c_type:
        raise op.unsupported(f"matrices of {a_type}, {b_type}, {c_type} are not executed")
    d, a, b, c, *rest = op.operands
    registers = _registers(int(m), int(k), a_type, bool(sparse))
    found = tuple(len(flatten(v)) for v in (a, b))
    if found != registers:
        raise op.unsupported(f"A and B have {found} registers where the shape has {registers}")
    selector, metadata = -1, "None"
    if sparse:
        words, chosen = rest
        if not isinstance(chosen, Imm):
            raise op.unsupported("the sparsity selector must be an immediate")
        selector, metadata = chosen.value, e.bits_row(words, 32)
    form = Product(int(m), d_type, a_type, b_type, bool(saturates), selector)
    bits = 64 if a_type == "f64" else 32
    lists = ["[" + ", ".join(e.bits_row(v, bits) for v in flatten(x)) + "]" for x in (a, b, c)]
    name = e.temporary(
        f"mma_rows(p, {e.constant(form, form)}, {', '.join(lists)}, {metadata}, {op.line})"
    )
    for i, register in enumerate(flatten(d)):
        e.assign(register, f"{name}[{i}]", "W" if bits == 64 else "U")


def _multiply_quads(e: Emitter, op: Op) -> None:
    """m8n8k4: four products at once, one in every quad pair (lanes 4 q .. and 16 + 4 q ..)."""
    left, right = op.quals[3:5]
    if op.quals[:3] != ("sync", "aligned", "m8n8k4") or op.quals[5:] != (
        "f32",
        "f16",
        "f16",
        "f32",
    ):
        raise op.unsupported("m8n8k4 is known of f16 with f32 sums")
    d, *sources = op.operands
    lists = ["[" + ", ".join(e.bits_row(v, 32) for v in flatten(x)) + "]" for x in sources]
    name = e.temporary(
        f"mma_quads(p, {left == 'row'}, {right == 'col'}, {', '.join(lists)}, {op.line})"
    )
    for i, register in enumerate(flatten(d)):
        e.assign(register, f"{name}[{i}]", "U")


def _registers(m: int, k: int, a_type: str, sparse: bool) -> tuple[int, int]:
    """How many registers A and B have."""
    bits = ELEMENT_BITS[a_type]
    register = max(bits, 32)
    a_elements = m * (k // 2 if sparse else k)
    return a_elements * bits // (32 * register), 8 * k * bits // (32 * register)


def mma_rows(
    p: Path,
    form: Product,
    a: Sequence[Array],
    b: Sequence[Array],
    c: Sequence[Array],
    metadata: Array | None,
    line: int,
) -> Array:
    """D as rows of 32 lanes."""
    require_whole_warp(p, line, "mma")
    left = _rows_a(np.stack(a), form.a_type, form.m)
    if metadata is not None:
        left = expand(left, metadata, form.a_type, form.selector)
    right = _rows_b(np.stack(b), form.b_type)
    held = _rows_c(np.stack(c), form.d_type)
    sparse = metadata is not None
    if p.C.sums != "hardware" or form.d_type not in ("f32", "f16"):
        total = left @ right.T + held
    elif form.a_type in ("e4m3", "e5m2"):
        total = widened_sum(left, right, held, form.d_type, sparse=sparse)
    else:
        types = form.a_type, form.b_type, form.d_type
        total = hardware_sum(left, right, held, types, sparse=sparse)
    return _to_registers(total, form)


def mma_quads(
    p: Path,
    a_rows: bool,
    b_columns: bool,
    a: Sequence[Array],
    b: Sequence[Array],
    c: Sequence[Array],
    line: int,
) -> Array:
    """D of m8n8k4 (PTX ISA 9.7.14.5.1). A thread of a pair, the first four or the last, holds four
    elements: of one row (column) where they lie along K, else of one k."""
    require_whole_warp(p, line, "mma")
    left, right = (_quad_factor(np.stack(x), along) for x, along in ((a, a_rows), (b, b_columns)))
    lane, i = np.arange(32)[None, :], np.arange(8)[:, None]
    pair, high = lane % 16 // 4, lane // 16 * 4
    row, column = high + (lane & 1) + (i & 2), (i & 4) + (lane & 2) + (i & 1)
    total = (left @ right.transpose(0, 2, 1))[pair, row, column]
    total = total + np.stack(c).view(np.float32).astype(np.float64)
    return one_nan(total.astype(np.float32)).view(np.uint32)


def _quad_factor(words: Array, along_k: bool) -> Array:
    """Two registers to `[pair, 8, 4]`: rows of A, or columns of B, by k."""
    values = elements(words, "f16").transpose(1, 0, 2).reshape(2, 4, 4, 4)  # [half, pair, t, i]
    if along_k:  # the thread names the row, i the k
        return values.transpose(1, 0, 2, 3).reshape(4, 8, 4)
    return values.transpose(1, 0, 3, 2).reshape(4, 8, 4)


def elements(words: Array, type_: str) -> Array:
    """Registers `[..., lanes]` to the numbers in them, `[..., lanes, per]`: f64, or i64."""
    words = np.ascontiguousarray(words)[..., None]
    if type_ == "f64":
        return np.asarray(words.view(np.float64))
    if type_ == "tf32":
        return np.asarray((words & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64))
    if type_ == "f16":
        return np.asarray(words.view(np.float16).astype(np.float64))
    if type_ == "bf16":
        wide = words.view(np.uint16).astype(np.uint32) << np.uint32(16)
        return np.asarray(wide.view(np.float32).astype(np.float64))
    values = words.view(np.uint8).view(NARROW[type_])
    return np.asarray(values.astype(np.int64 if type_ in ("s8", "u8") else np.float64))


def _rows_a(words: Array, type_: str, m: int) -> Array:
    """A as `[m, k]`."""
    halves = m // 8
    values = elements(words, type_)
    split = values.reshape(len(words) // halves, halves, 8, 4, -1)  # [chunk, half, g, t, per]
    return split.transpose(1, 2, 0, 3, 4).reshape(m, -1)


def _rows_b(words: Array, type_: str) -> Array:
    """B as `[8, k]`: a row for each of its columns."""
    return elements(words, type_).reshape(len(words), 8, 4, -1).transpose(1, 0, 2, 3).reshape(8, -1)


def _rows_c(words: Array, type_: str) -> Array:
    """C as `[m, 8]`, wide enough for an exact sum."""
    if type_ == "f16":
        return elements(words, type_).reshape(-1, 8)  # [half, g, t, element]
    dtype = {"f32": np.float32, "s32": np.int32, "f64": np.float64}[type_]
    values = words.view(dtype).astype(np.int64 if type_ == "s32" else np.float64)
    return values.reshape(-1, 2, 8, 4).transpose(0, 2, 3, 1).reshape(-1, 8)  # [half, g, t, i]


def _to_registers(values: Array, form: Product) -> Array:
    """D from `[m, 8]`."""
    if form.d_type == "f16":
        halves = one_nan(np.ascontiguousarray(values.astype(np.float16)))
        return halves.view(np.uint32).reshape(-1, 32)
    if form.d_type == "s32":
        if form.saturates:
            values = np.clip(values, S32_MIN, S32_MAX)
        values = values.astype(np.uint32)  # the low 32 bits
    else:
        values = values.astype(np.float32 if form.d_type == "f32" else np.float64)
        values = one_nan(values) if form.d_type == "f32" else values
    split = values.reshape(-1, 8, 4, 2).transpose(0, 3, 1, 2)  # [half, i, g, t]
    unsigned = np.uint64 if form.d_type == "f64" else np.uint32
    return np.ascontiguousarray(split).view(unsigned).reshape(-1, 32)
