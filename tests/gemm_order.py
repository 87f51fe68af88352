"""The order in which schedules of a GEMM add: what each states, as a model for tests."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

import numpy as np

TILE, STAGE, STEP = 64, 64, 16  # a square tile of bf16: its extents, K of a stage, K of one wgmma
BIG = 2.0**40  # beside which a 1 is lost, however the tensor core rounds

# Every way to add up: fields of a kernel, and CTAs among which one tile's stages are shared out.
SCHEDULES: dict[str, tuple[str, int]] = {
    "cooperative": ("cluster=2x1", 1),
    "no wgmma in flight": ("cluster=1x1,wait_depth=0", 1),
    "in turns": ("schedule=pingpong,cluster=1x1", 1),
    "swapped": ("swap_ab=1,cluster=1x1", 1),
    "MN-major": ("a_major=mn,b_major=mn,cluster=1x1", 1),
    "rows in registers": ("a_source=registers,wait_depth=0,cluster=1x1", 1),
    "split in 2": ("split_k=2,cluster=1x1", 2),
    "split in 4": ("split_k=4,cluster=1x1", 4),
    "split in 8": ("split_k=8,cluster=1x1", 8),
    "shared out": ("schedule=stream_k,cluster=1x1", 4),
}


def reference_of(name: str) -> str:
    return f"gemm:tile={TILE}x{TILE},stages=3,out_dtype=f32,{SCHEDULES[name][0]}"


def launch_options(name: str) -> dict[str, int]:
    """Stream-K takes what clusters there are: as many as the model has, on any device."""
    return {"grid": SCHEDULES[name][1]} if "stream_k" in SCHEDULES[name][0] else {}


def revealing(rows: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """A [rows, K] and B [rows, K] whose D tells the order of its sum.

    Each wgmma step has one product that is not 0: 1, but +BIG in step i of row i of A, and -BIG in
    step j of row j of B. Between the two every 1 is lost, and so is all that came before.
    """
    a, b = np.zeros((rows, steps, STEP)), np.zeros((rows, steps, STEP))
    a[:, :, 3] = b[:, :, 3] = 1
    row = np.arange(rows)
    a[row, row % steps, 3] = BIG
    b[row, row % steps, 3] = -BIG
    return a.reshape(rows, -1), b.reshape(rows, -1)


def parts(name: str, stages: int) -> Iterator[slice]:
    """The stages of each part of a sum, in the order in which parts are added."""
    share = ceil(stages / SCHEDULES[name][1])
    for first in range(0, stages, share):
        yield slice(first, min(first + share, stages))


def summed(name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """D in f32: each part from its first step to its last, then parts from the first to the last.

    Exact where at most one product of a step is not 0, and sums are rounded to what they were.
    """
    stages = ceil(a.shape[1] / STAGE)
    total = np.zeros((len(a), len(b)), np.float32)
    for part in parts(name, stages):
        sums = np.zeros_like(total)
        for first in range(part.start * STAGE, min(part.stop * STAGE, a.shape[1]), STEP):
            step = a[:, first : first + STEP] @ b[:, first : first + STEP].T
            sums = sums + step.astype(np.float32)
        total = total + sums
    return total
