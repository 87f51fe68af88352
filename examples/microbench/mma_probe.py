"""One mma.sync a warp, on matrices that the host has put into fragments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from lab import Array, Lab, kernel
from wgmma_probe import TYPES

from ptxgen.layout.fragments import wgmma_a, wgmma_d

M, N, LANES = 16, 8, 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Mma:
    """m16n8k`k`. Of a sparse A the first two of every four elements are there (tf32: the first of
    two), and `k` counts the others, too."""

    input: str
    k: int
    d: str = "f32"
    sparse: bool = False

    @property
    def per(self) -> int:
        return 4 // TYPES[self.input].itemsize

    @property
    def kept(self) -> int:
        return self.k // 2 if self.sparse else self.k


@cache
def _kernel(op: Mma) -> Any:
    counts = {
        "na": M * op.kept // op.per // LANES,
        "nb": N * op.k // op.per // LANES,
        "nd": 2 if op.d == "f16" else 4,
    }
    registers = {
        name: "{" + ", ".join(f"%{name}{i}" for i in range(counts[f"n{name}"])) + "}"
        for name in "abd"
    }
    types = f"{op.d}.{op.input}.{op.input}.{op.d}"
    return kernel(
        "mma_probe", type=f"m16n8k{op.k}.row.col.{types}", regs=registers, sparse=op.sparse,
        **counts,
    )  # fmt: skip


def kept_columns(op: Mma) -> Array:
    """Where the elements of A lie along the K of B."""
    j = np.arange(op.kept)
    if not op.sparse:
        return j
    return 2 * j if op.input == "tf32" else 4 * (j // 2) + j % 2


def _indices(*counts: int) -> list[Array]:
    return list(np.indices(counts))


def products(lab: Lab, op: Mma, a: Array, b: Array, c: Array) -> Array:
    """D `[tiles, 16, 8]` of A `[tiles, 16, kept]`, B `[tiles, 8, k]` and C `[tiles, 16, 8]`."""
    tiles, bits = len(a), 32 // op.per
    register, lane, slot = _indices(M * op.kept // op.per // LANES, LANES, op.per)
    row, k = wgmma_a(bits, lane, register, slot)
    words_a = _packed(np.ascontiguousarray(a, TYPES[op.input])[:, row, k])
    register, lane, slot = _indices(N * op.k // op.per // LANES, LANES, op.per)
    k, column = op.per * (4 * register + lane % 4) + slot, lane // 4
    words_b = _packed(np.ascontiguousarray(b, TYPES[op.input])[:, column, k])
    per = 2 if op.d == "f16" else 1
    register, lane, slot = _indices(4 // per, LANES, per)
    row, column = wgmma_d(lane, per * register + slot)
    words = _packed(c[:, row, column])
    lab.run(_kernel(op), grid=(tiles, 1, 1), a=words_a, b=words_b, d=words)
    result = np.empty_like(c)
    result[:, row, column] = words.view(c.dtype).reshape(tiles, *row.shape)
    return result


def _packed(values: Array) -> Array:
    """`[tiles, registers, lanes, per]` to 32-bit words `[tiles, registers, lanes]`."""
    return np.ascontiguousarray(values).view(np.uint32)[..., 0].copy()
