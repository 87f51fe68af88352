"""One warpgroup multiplies operands that the host has laid out byte by byte."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from lab import Array, Lab, kernel

from ptxgen.layout.fragments import wgmma_d
from ptxgen.layout.smem_desc import SmemDesc

TYPES = {
    "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16),
    "tf32": np.dtype(np.float32), "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2), "s8": np.dtype(np.int8), "u8": np.dtype(np.uint8),
}  # fmt: skip
ROWS = 64
SMEM_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Wgmma:
    """The instruction: element types by their PTX names, N, and what distinguishes its forms."""

    input: str
    d: str = "f32"
    n: int = 64
    sparse: bool = False
    selector: int = 0
    a_mn_major: bool = False
    steps: int = 1

    @property
    def k(self) -> int:
        return 32 // TYPES[self.input].itemsize * (2 if self.sparse else 1)

    @property
    def registers(self) -> int:
        return self.n // (4 if self.d == "f16" else 2)


@cache
def _kernel(op: Wgmma) -> Any:
    integers = op.d == "s32"
    transposes = f", {int(op.a_mn_major)}, 0" if op.input in ("f16", "bf16") else ""
    return kernel(
        "wgmma_probe",
        smem=SMEM_BYTES,
        type=f"m64n{op.n}k{op.k}.{op.d}.{op.input}.{op.input}",
        acc="{" + ", ".join(f"%acc{i}" for i in range(op.registers)) + "}",
        registers=op.registers,
        steps=op.steps,
        advance=2,
        sparse=op.sparse,
        selector=op.selector,
        flags="" if integers else ", 1, 1" + transposes,
    )


def probe(
    lab: Lab, op: Wgmma, image: Array, a: SmemDesc, b: SmemDesc,
    c: Array | None = None, metadata: Array | None = None,
) -> Array:  # fmt: skip
    """D `[64, n]` of the operands in `image` (bytes); `c` is what D holds before."""
    dtype = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[op.d]
    per = 4 // np.dtype(dtype).itemsize  # elements of a register
    thread, element = np.meshgrid(np.arange(128), np.arange(op.n // 2), indexing="ij")
    row, column = wgmma_d(thread, element)
    fragment = np.zeros((128, op.n // 2), dtype)
    if c is not None:
        fragment[:] = c[row, column]
    words = np.ascontiguousarray(fragment.reshape(128, -1, per).view(np.uint32)[..., 0].T)
    lab.run(
        _kernel(op), image=np.ascontiguousarray(image), chunks=len(image) // 16, d=words,
        metadata=np.zeros(128, np.uint32) if metadata is None else metadata,
        a_desc=a.encode(), b_desc=b.encode(),
    )  # fmt: skip
    result = np.empty((ROWS, op.n), dtype)
    result[row, column] = np.ascontiguousarray(words.T).view(dtype).reshape(128, -1)
    return result


def k_major(values: Array) -> Array:
    """`[rows, k]`, at most 128 bytes a row, as a K-major tile with 128-byte swizzle: its bytes."""
    rows = values.view(np.uint8).reshape(len(values), -1)
    tile = np.zeros(128 * len(rows), np.uint8)
    at = 128 * np.arange(len(rows))[:, None] + np.arange(rows.shape[1])[None, :]
    tile[at ^ (at >> 3 & 0x70)] = rows
    return tile


def product(
    lab: Lab, op: Wgmma, a: Array, b: Array, c: Array | None = None, metadata: Array | None = None
) -> Array:
    """D = A B^T + C, with A `[64, k]` and B `[n, k]` in ordinary K-major tiles."""
    tiles = [k_major(np.ascontiguousarray(x, TYPES[op.input])) for x in (a, b)]
    return probe(
        lab, op, np.concatenate(tiles), SmemDesc(start=0, sbo=1024),
        SmemDesc(start=len(tiles[0]), sbo=1024), c, metadata,
    )  # fmt: skip
