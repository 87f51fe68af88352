"""Triton kernels and how they were compiled to the PTX files beside this one.

`python kernels.py`, with Triton installed, writes the files again. It needs no GPU. The constants
of each kernel are those of its `KERNELS` row.
"""

from __future__ import annotations

import os
from pathlib import Path

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # no paths and no debug sections in the PTX

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside)
    tl.store(out + at, total, mask=inside)


@triton.jit
def row_softmax(x, out, columns, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    inside = column < columns
    v = tl.load(x + row * columns + column, mask=inside, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * columns + column, e / tl.sum(e, axis=0), mask=inside)


@triton.jit
def layer_norm(x, weight, bias, out, columns, eps, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    inside = column < columns
    v = tl.load(x + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / columns
    centred = tl.where(inside, v - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    w = tl.load(weight + column, mask=inside).to(tl.float32)
    b = tl.load(bias + column, mask=inside).to(tl.float32)
    tl.store(out + row * columns + column, (centred * scale * w + b).to(tl.bfloat16), mask=inside)


@triton.jit
def matmul(a, b, c, m, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    rows = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    columns = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    inner = tl.arange(0, TILE_K)
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for k0 in range(0, k, TILE_K):
        at = k0 + inner
        left = tl.load(a + rows[:, None] * k + at[None, :],
                       mask=(rows[:, None] < m) & (at[None, :] < k), other=0.0)  # fmt: skip
        right = tl.load(b + at[:, None] * n + columns[None, :],
                        mask=(at[:, None] < k) & (columns[None, :] < n), other=0.0)  # fmt: skip
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total,
             mask=(rows[:, None] < m) & (columns[None, :] < n))  # fmt: skip


@triton.jit
def column_sums(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), tl.int32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row[:, None] < rows) & (column[None, :] < columns)
        part = tl.load(x + row[:, None] * columns + column[None, :], mask=inside, other=0)
        total += tl.sum(part, axis=0)
    tl.store(out + column, total, mask=column < columns)


@triton.jit
def bin_counts(x, counts, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.atomic_add(counts + tl.load(x + at, mask=inside, other=0), 1, mask=inside)


# name: (kernel, parameter types, constants, warps). 16-byte alignment is promised for pointers that
# end in a colon, which is what makes vector loads, cp.async and wgmma possible.
KERNELS = {
    "vector_add": (vector_add, {"x": "*fp32:", "y": "*fp32:", "out": "*fp32:", "n": "i32"},
                   {"BLOCK": 512}, 4),
    "row_softmax": (row_softmax, {"x": "*fp32:", "out": "*fp32:", "columns": "i32"},
                    {"BLOCK": 256}, 4),
    "layer_norm": (layer_norm, {"x": "*bf16:", "weight": "*bf16:", "bias": "*bf16:",
                                "out": "*bf16:", "columns": "i32", "eps": "fp32"},
                   {"BLOCK": 256}, 2),
    "matmul_mma": (matmul, {"a": "*fp16", "b": "*fp16", "c": "*fp32", "m": "i32", "n": "i32",
                            "k": "i32"},
                   {"TILE_M": 16, "TILE_N": 16, "TILE_K": 32}, 2),
    "matmul_wgmma": (matmul, {"a": "*bf16:", "b": "*bf16:", "c": "*fp32:", "m": "i32", "n": "i32:",
                              "k": "i32:"},
                     {"TILE_M": 64, "TILE_N": 64, "TILE_K": 64}, 4),
    "column_sums": (column_sums, {"x": "*i32:", "out": "*i32:", "rows": "i32", "columns": "i32:"},
                    {"ROWS": 16, "COLUMNS": 64}, 4),
    "bin_counts": (bin_counts, {"x": "*i32:", "counts": "*i32", "n": "i32"}, {"BLOCK": 256}, 4),
}  # fmt: skip


PTX_VERSION = 87  # ptxas 13.0 takes it; the default of this Triton is for a newer one


def compile_all(folder: Path) -> None:
    """Write NAME.ptx for every row, for sm_90."""
    target = GPUTarget("cuda", 90, 32)
    for name, (kernel, types, constants, warps) in KERNELS.items():
        aligned = {
            (i,): [["tt.divisibility", 16]] for i, t in enumerate(types.values()) if t[-1] == ":"
        }
        signature = {p: t.rstrip(":") for p, t in types.items()} | dict.fromkeys(
            constants, "constexpr"
        )
        source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=aligned)
        options = {"num_warps": warps, "ptx_version": PTX_VERSION}
        compiled = triton.compile(source, target=target, options=options)
        text = compiled.asm["ptx"]
        (folder / f"{name}.ptx").write_text(text, encoding="utf-8")
        lines, shared = text.count("\n"), compiled.metadata.shared
        print(f"{name}: {lines} lines, {shared} B shared, {32 * warps} threads")


if __name__ == "__main__":
    compile_all(Path(__file__).parent)
