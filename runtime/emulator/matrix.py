"""ldmatrix, stmatrix, movmatrix (PTX ISA 9.7.14): 8x8 matrices of 16-bit elements.

Lanes 8j .. 8j+7 give the row addresses of matrix j. Register j of lane l holds row l / 4, columns
2 (l % 4) and 2 (l % 4) + 1; with .trans, rows and columns change places.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .access import load_rows, store_values
from .emit import Emitter, flatten
from .isa import opcode
from .operands import Mem, Op
from .state import Path
from .values import Array
from .whole_warp import require_whole_warp


def _count(op: Op) -> tuple[int, int]:
    """(matrices, transposed)."""
    known = {"sync", "aligned", "m8n8", "x1", "x2", "x4", "trans", "shared", "shared::cta", "b16"}
    if set(op.quals) - known:
        raise op.unsupported("only m8n8 of b16 exists on sm_90a")
    return int(next(q for q in op.quals if q in ("x1", "x2", "x4"))[1:]), int(op.has("trans"))


def _address(e: Emitter, mem: Mem) -> str:
    bits = 64 if getattr(mem.base, "bits", 32) == 64 else 32
    text, one = e.address(mem, bits)
    return f"full_{'U' if bits == 32 else 'W'}({text})" if one else text


def _space(op: Op) -> str:
    return "shared" if op.has("shared", "shared::cta") else ""


@opcode("ldmatrix")
def load_matrix(e: Emitter, op: Op) -> None:
    count, trans = _count(op)
    mem = op.operands[1]
    assert isinstance(mem, Mem)
    name = e.temporary(
        f"load_matrices(p, '{_space(op)}', {_address(e, mem)}, {count}, {trans}, {op.line})"
    )
    for i, d in enumerate(flatten(op.operands[0])):
        e.assign(d, f"{name}[{i}]", "U")


@opcode("stmatrix", dests=0)
def store_matrix(e: Emitter, op: Op) -> None:
    count, trans = _count(op)
    mem, source = op.operands
    assert isinstance(mem, Mem)
    rows = ", ".join(e.bits_row(v, 32) for v in flatten(source))
    e.line(
        f"store_matrices(p, '{_space(op)}', {_address(e, mem)}, [{rows}], {count}, {trans}, "
        f"{op.line})"
    )


@opcode("movmatrix")
def move_matrix(e: Emitter, op: Op) -> None:
    d, a = op.operands
    if not op.has("trans"):
        raise op.unsupported("movmatrix without .trans")
    e.assign(d, f"transposed(p, {e.bits_row(a, 32)}, {op.line})", "U")


def _row_lanes(count: int) -> Array | None:
    """The lanes whose addresses are used, or None for all."""
    return None if count == 4 else np.arange(32) < 8 * count


def load_matrices(p: Path, space: str, address: Array, count: int, trans: int, line: int) -> Array:
    require_whole_warp(p, line, "ldmatrix")
    words = load_rows(p, space, address, 4, 4, _row_lanes(count), line)  # [4 words, 32 rows]
    matrices = np.ascontiguousarray(words.T).reshape(4, 8, 4)[:count]  # [matrix, row, word]
    if trans:
        halves = np.ascontiguousarray(matrices).view(np.uint16)  # [matrix, 8, 8]
        matrices = np.ascontiguousarray(halves.transpose(0, 2, 1)).view(np.uint32)
    return matrices.reshape(count, 32)


def store_matrices(
    p: Path, space: str, address: Array, rows: Sequence[Array], count: int, trans: int, line: int
) -> None:
    require_whole_warp(p, line, "stmatrix")
    fragment = np.zeros((4, 32), np.uint32)
    fragment[:count] = rows
    matrices = fragment.reshape(4, 8, 4)
    if trans:
        halves = matrices.view(np.uint16)
        matrices = np.ascontiguousarray(halves.transpose(0, 2, 1)).view(np.uint32)
    store_values(p, space, address, 4, matrices.reshape(32, 4), _row_lanes(count), line)


def transposed(p: Path, row: Array, line: int) -> Array:
    require_whole_warp(p, line, "movmatrix")
    halves = np.ascontiguousarray(row).view(np.uint16).reshape(8, 8)
    moved: Array = np.ascontiguousarray(halves.T).view(np.uint32).ravel()
    return moved
