"""The Triton kernels of `triton/`: their launches and results, as `programs` has those of CUDA.

Triton adds two parameters of its own to every kernel, pointers to scratch memory that these kernels
do not use: null.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from machines import poisoned
from programs import BF16, Case, integers

KERNELS: dict[str, Callable[[np.random.Generator], Case]] = {}
SCRATCH = {"global_scratch": 0, "profile_scratch": 0}


def kernel(make: Callable[[np.random.Generator], Case]) -> Callable[[np.random.Generator], Case]:
    KERNELS[make.__name__] = make
    return make


@kernel
def vector_add(rng: np.random.Generator) -> Case:
    x, y = (rng.standard_normal(1000).astype(np.float32) for _ in range(2))  # 24 short of 2 x 512
    return Case(
        arguments={"x": x, "y": y, "out": poisoned((1000,), np.float32), "n": 1000, **SCRATCH},
        expected={"out": x + y},
        grid=(2,),
    )


@kernel
def row_softmax(rng: np.random.Generator) -> Case:
    x = rng.standard_normal((3, 200)).astype(np.float32)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return Case(
        arguments={"x": x, "out": poisoned((3, 200), np.float32), "columns": 200, **SCRATCH},
        expected={"out": (e / e.sum(1, keepdims=True)).astype(np.float32)},
        grid=(3,),
        smem=16,
        rtol=1e-6,  # ex2.approx, div.full
    )


@kernel
def layer_norm(rng: np.random.Generator) -> Case:
    x, weight, bias = (rng.standard_normal(s).astype(BF16) for s in ((3, 250), 250, 250))
    wide = x.astype(np.float64)
    scale = 1 / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    y = (wide - wide.mean(1, keepdims=True)) * scale * weight.astype(float) + bias.astype(float)
    return Case(
        arguments={
            "x": x,
            "weight": weight,
            "bias": bias,
            "out": poisoned((3, 250), BF16),
            "columns": 250,
            "eps": 1e-5,
            **SCRATCH,
        },
        expected={"out": y.astype(BF16)},
        grid=(3,),
        smem=512,
        rtol=2**-7,  # the last bit of bf16
    )


@kernel
def matmul_mma(rng: np.random.Generator) -> Case:
    a, b = integers(rng, (20, 70), -9, 9, np.float16), integers(rng, (70, 30), -9, 9, np.float16)
    return Case(
        arguments={
            "a": a,
            "b": b,
            "c": poisoned((20, 30), np.float32),
            "m": 20,
            "n": 30,
            "k": 70,
            **SCRATCH,
        },
        expected={"c": a.astype(np.float32) @ b.astype(np.float32)},
        grid=(2, 2),
        smem=2048,
    )


@kernel
def matmul_wgmma(rng: np.random.Generator) -> Case:
    # 5 steps along k, so that the ring of three stages wraps; rows and columns end inside a tile
    a, b = integers(rng, (80, 304), -9, 9, BF16), integers(rng, (304, 96), -9, 9, BF16)
    return Case(
        arguments={
            "a": a,
            "b": b,
            "c": poisoned((80, 96), np.float32),
            "m": 80,
            "n": 96,
            "k": 304,
            **SCRATCH,
        },
        expected={"c": a.astype(np.float32) @ b.astype(np.float32)},
        grid=(2, 2),
        smem=49152,
    )


@kernel
def column_sums(rng: np.random.Generator) -> Case:
    x = integers(rng, (40, 80), -(2**30), 2**30, np.int32)
    with np.errstate(over="ignore"):
        sums = x.sum(0, dtype=np.int32)
    return Case(
        arguments={
            "x": x,
            "out": poisoned((80,), np.int32),
            "rows": 40,
            "columns": 80,
            **SCRATCH,
        },
        expected={"out": sums},
        grid=(2,),
        smem=1024,
    )


@kernel
def bin_counts(rng: np.random.Generator) -> Case:
    x = integers(rng, 400, 0, 5, np.int32)
    return Case(
        arguments={"x": x, "counts": np.zeros(5, np.int32), "n": 400, **SCRATCH},
        expected={"counts": np.bincount(x, minlength=5).astype(np.int32)},
        grid=(2,),
        smem=2048,
    )
