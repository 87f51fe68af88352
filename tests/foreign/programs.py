"""The CUDA programs beside this file: their arguments, launch and result, each as NumPy says it.

NAME.ptx is what `nvcc -std=c++17 -arch=sm_90a -ptx NAME.cu` of CUDA 13.0 makes, unchanged.

Sizes are the smallest that reach every branch: ragged last blocks, more than one block, more turns
of a ring than it has stages. Floats are small integers wherever sums are taken, so that every order
of adding gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
from machines import poisoned

BF16 = np.dtype(ml_dtypes.bfloat16)
Make = Callable[[np.random.Generator], "Case"]


@dataclass(frozen=True, kw_only=True)
class Box:
    """An array that is passed as a tensor map."""

    array: np.ndarray
    box: tuple[int, ...]
    swizzle: int = 0


@dataclass(frozen=True, kw_only=True)
class Case:
    """One launch. `arguments` in `.param` order: arrays, numbers, bytes, boxes.

    `expected` names what must be in some of the arrays afterwards: all bits, or within `rtol`
    (relative, and absolute) where the hardware approximates. Arrays that a kernel writes hold
    poison, or what the kernel is to find there.
    """

    arguments: Mapping[str, Any]
    expected: Mapping[str, np.ndarray]
    grid: tuple[int, ...]
    block: tuple[int, ...] | None = None
    smem: int = 0
    rtol: float = 0.0


PROGRAMS: dict[str, Make] = {}


def program(make: Make) -> Make:
    PROGRAMS[make.__name__] = make
    return make


def integers(rng: np.random.Generator, shape: Any, low: int, high: int, dtype: Any) -> np.ndarray:
    return rng.integers(low, high, shape).astype(dtype)


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray, dtype: Any) -> np.ndarray:
    """a b + c, rounded once: float64 alone rounds twice."""
    exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
             for x, y, z in zip(a.flat, b.flat, c.flat, strict=True)]  # fmt: skip
    return np.array([_nearest(value, dtype) for value in exact], dtype).reshape(a.shape)


def _nearest(value: Fraction, dtype: Any) -> Any:
    """The nearest number of a type, ties to the even one."""
    guess = np.dtype(dtype).type(float(value))
    near = [np.nextafter(guess, guess.dtype.type(side)) for side in (-np.inf, np.inf)]
    return min(
        (guess, *near),
        key=lambda x: (abs(Fraction(float(x)) - value), int(x.view(f"u{x.itemsize}")) & 1),
    )


def wrap(value: int, bits: int = 32) -> int:
    """Two's complement."""
    half = 1 << bits - 1
    return (value + half) % (1 << bits) - half


# --- sums ----------------------------------------------------------------------------------------


@program
def block_sum(rng: np.random.Generator) -> Case:
    x = integers(rng, 1000, -99, 99, np.float32)  # the last block is 24 threads short
    sums = np.pad(x, (0, 24)).reshape(4, 256).sum(1)
    out = poisoned((4,), np.float32)
    return Case(arguments={"x": x, "out": out, "n": 1000}, expected={"out": sums}, grid=(4,))


@program
def cluster_sum(rng: np.random.Generator) -> Case:
    x = integers(rng, 500, -(2**30), 2**30, np.int32)  # sums wrap; two clusters of 4 x 64
    with np.errstate(over="ignore"):
        sums = np.pad(x, (0, 12)).reshape(2, 256).sum(1, dtype=np.int32)
    out = poisoned((2,), np.int32)
    return Case(
        arguments={"x": x, "out": out, "n": 500}, expected={"out": sums}, grid=(8,), block=(64,)
    )


@program
def last_block(rng: np.random.Generator) -> Case:
    x = integers(rng, 700, -1000, 1000, np.int32)
    partial, total = poisoned((4,), np.int32), poisoned((1,), np.int32)
    return Case(
        arguments={"x": x, "partial": partial, "total": total, "n": 700},
        expected={"total": x.sum(keepdims=True, dtype=np.int32)},
        grid=(4,),
        block=(64,),
    )


@program
def prefix_scan(rng: np.random.Generator) -> Case:
    x = integers(rng, 200, -(2**62), 2**62, np.int64)  # two blocks, the second one ragged
    y = np.concatenate([np.cumsum(x[:128]), np.cumsum(x[128:])])
    return Case(
        arguments={"x": x, "y": poisoned((200,), np.int64), "n": 200},
        expected={"y": y},
        grid=(2,),
        block=(128,),
    )


@program
def histogram(rng: np.random.Generator) -> Case:
    x = integers(rng, 1000, 0, 16, np.uint8) ** 2  # few bins, so that lanes collide
    counts = np.bincount(x, minlength=256).astype(np.uint32)
    return Case(
        arguments={"x": x, "counts": np.zeros(256, np.uint32), "n": 1000},
        expected={"counts": counts},
        grid=(2,),
        block=(128,),
    )


@program
def warp_match(rng: np.random.Generator) -> Case:
    keys = integers(rng, 100, 0, 7, np.int32)  # the last warp has 4 threads
    return Case(
        arguments={"keys": keys, "counts": np.zeros(7, np.uint32), "n": 100},
        expected={"counts": np.bincount(keys, minlength=7).astype(np.uint32)},
        grid=(2,),
        block=(64,),
    )


@program
def cas_max(rng: np.random.Generator) -> Case:
    x = rng.standard_normal(90).astype(np.float32)
    return Case(
        arguments={"x": x, "largest": np.full(1, -np.inf, np.float32), "n": 90},
        expected={"largest": x.max(keepdims=True)},
        grid=(2,),
        block=(64,),
    )


@program
def softmax_row(rng: np.random.Generator) -> Case:
    x = rng.standard_normal((3, 150)).astype(np.float32)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return Case(
        arguments={"x": x, "y": poisoned((3, 150), np.float32), "columns": 150},
        expected={"y": (e / e.sum(1, keepdims=True)).astype(np.float32)},
        grid=(3,),
        block=(128,),
        smem=4 * 150,
        rtol=1e-6,  # expf ends in ex2.approx
    )


# --- data that moves -----------------------------------------------------------------------------


@program
def transpose_pad(rng: np.random.Generator) -> Case:
    x = rng.standard_normal((40, 70)).astype(np.float32)
    return Case(
        arguments={"x": x, "y": poisoned((70, 40), np.float32), "rows": 40, "columns": 70},
        expected={"y": x.T.copy()},
        grid=(3, 2),
        block=(32, 8),
    )


@program
def bitonic_sort(rng: np.random.Generator) -> Case:
    keys = rng.permutation(2**32 // 512 * np.arange(512, dtype=np.uint64)).astype(np.uint32)
    values = integers(rng, 512, 0, 2**16, np.uint16)
    order = np.concatenate([np.argsort(keys[:256]), 256 + np.argsort(keys[256:])])
    return Case(
        arguments={
            "keys": keys,
            "values": values,
            "keys_out": poisoned((512,), np.uint32),
            "values_out": poisoned((512,), np.uint16),
        },
        expected={"keys_out": keys[order], "values_out": values[order]},
        grid=(2,),
    )


@program
def ballot_compact(rng: np.random.Generator) -> Case:
    x = integers(rng, 180, -50, 50, np.int32)
    y, counts = np.full(256, -1, np.int32), np.zeros(2, np.int32)
    for block, part in enumerate((x[:128], x[128:])):
        kept = part[part > 0]
        y[128 * block : 128 * block + len(kept)] = kept
        counts[block] = len(kept)
    return Case(
        arguments={
            "x": x,
            "y": np.full(256, -1, np.int32),
            "counts": poisoned((2,), np.int32),
            "n": 180,
        },
        expected={"y": y, "counts": counts},
        grid=(2,),
        block=(128,),
    )


@program
def local_sort(rng: np.random.Generator) -> Case:
    x = integers(rng, (40, 8), -99, 99, np.int32)
    return Case(
        arguments={"x": x, "y": poisoned((40, 8), np.int32), "rows": 40},
        expected={"y": np.sort(x)},
        grid=(1,),
        block=(64,),
    )


@program
def barrier_pipeline(rng: np.random.Generator) -> Case:
    x = integers(rng, (2, 5, 128), -(2**20), 2**20, np.int32)  # 5 chunks: the ring of 2 wraps twice
    return Case(
        arguments={"x": x, "y": poisoned(x.shape, np.int32), "chunks": 5},
        expected={"y": 3 * x + 1},
        grid=(2,),
        block=(32,),
    )


@program
def pipeline_copy(rng: np.random.Generator) -> Case:
    x = rng.standard_normal((7, 64)).astype(np.float32)  # 7 rows: the ring of 3 wraps twice
    return Case(
        arguments={"x": x, "y": poisoned((7, 64), np.float32), "rows": 7},
        expected={"y": x[:, ::-1].copy()},
        grid=(1,),
        block=(64,),
    )


@program
def tma_copy(rng: np.random.Generator) -> Case:
    x = integers(rng, (48, 128), -99, 99, np.float32)  # the lower boxes hang over the edge
    return Case(
        arguments={
            "in": Box(array=x, box=(32, 64)),
            "out": Box(array=poisoned((48, 128), np.float32), box=(32, 64)),
        },
        expected={"out": x + 1},
        grid=(2, 2),
        block=(128,),
    )


@program
def bulk_copy(rng: np.random.Generator) -> Case:
    x = integers(rng, (3, 256), -99, 99, np.int32)
    return Case(
        arguments={"x": x, "y": poisoned((3, 256), np.int32)},
        expected={"y": np.roll(x, -1, axis=1)},
        grid=(3,),
        block=(96,),
    )


# --- matrices and grids --------------------------------------------------------------------------


@program
def gemm_tiled(rng: np.random.Generator) -> Case:
    a, b = integers(rng, (20, 33), -9, 9, np.float32), integers(rng, (33, 40), -9, 9, np.float32)
    return Case(
        arguments={"a": a, "b": b, "c": poisoned((20, 40), np.float32), "m": 20, "n": 40, "k": 33},
        expected={"c": a @ b},
        grid=(3, 2),
        block=(16, 16),
    )


@program
def mma_gemm(rng: np.random.Generator) -> Case:
    a, b = integers(rng, (64, 48), -9, 9, np.float16), integers(rng, (32, 48), -9, 9, np.float16)
    return Case(
        arguments={"a": a, "b": b, "d": poisoned((64, 32), np.float32), "n": 32, "k": 48},
        expected={"d": a.astype(np.float32) @ b.astype(np.float32).T},
        grid=(1, 2),
        block=(128,),
    )


@program
def stencil(rng: np.random.Generator) -> Case:
    x = integers(rng, (20, 30), -99, 99, np.float32)
    p = np.pad(x, 1)
    y = 4 * x - 2 * (p[1:-1, :-2] + p[1:-1, 2:] + p[:-2, 1:-1] + p[2:, 1:-1])
    grid = np.array((20, 30, 4.0, -2.0), np.dtype("i4, i4, f4, f4"))
    return Case(
        arguments={"x": x, "y": poisoned((20, 30), np.float32), "g": grid.tobytes()},
        expected={"y": y},
        grid=(2, 2),
        block=(16, 16),
        smem=4 * 18 * 18,
    )


# --- control -------------------------------------------------------------------------------------


def _machine(code: list[int], value: int, start: int, before: int) -> int:
    for step in range(len(code)):
        match code[(start + step) % len(code)]:
            case 0:
                value = wrap(value * 3 + 1)
            case 7:
                value ^= value >> 3
            case 1000:
                value = value if value & 1 else value // 2
            case _:
                return before  # nothing is stored
    return value


@program
def switch_branches(rng: np.random.Generator) -> Case:
    code = [0, 7, 1000, 0, 7]
    x, y = integers(rng, 70, -(2**31), 2**31, np.int32), poisoned((70,), np.int32)
    expected = [_machine(code, int(v), i, int(y[i])) for i, v in enumerate(x)]
    return Case(
        arguments={"code": np.array(code, np.int32), "x": x, "y": y, "steps": 5, "n": 70},
        expected={"y": np.array(expected, np.int32)},
        grid=(2,),
        block=(64,),
    )


@program
def device_calls(rng: np.random.Generator) -> Case:
    x = integers(rng, (50, 2), 1, 60, np.int32)
    sums = [Fraction(int(top), int(bottom)) + Fraction(1, 6) for top, bottom in x]
    rows = [(*divmod(s.numerator, s.denominator), s.denominator) for s in sums]
    return Case(
        arguments={"x": x, "y": poisoned((50, 3), np.int32), "n": 50},
        expected={"y": np.array(rows, np.int32)},
        grid=(1,),
        block=(64,),
    )


@program
def constant_table(rng: np.random.Generator) -> Case:
    polynomials = ((5, -3), (1, 0, 2), (7, 1, -1, 1))
    which, x = integers(rng, 50, 0, 3, np.int32), integers(rng, 50, -99, 99, np.int32)
    y = [
        sum(c * int(v) ** i for i, c in enumerate(polynomials[w]))
        for w, v in zip(which, x, strict=True)
    ]
    return Case(
        arguments={"which": which, "x": x, "y": poisoned((50,), np.int32), "n": 50},
        expected={"y": np.array(y, np.int32)},
        grid=(1,),
        block=(64,),
    )


@program
def grid_stride(rng: np.random.Generator) -> Case:
    x, y = (rng.standard_normal(300).astype(np.float32) for _ in range(2))
    a = np.float32(1.7)
    return Case(
        arguments={"a": float(a), "x": x, "y": y, "n": 300},
        expected={"y": fma(np.full(300, a), x, y, np.float32)},
        grid=(2,),
        block=(64,),
    )


def _interpreter(code: list[int], v: int, i: int) -> int:
    memory, stored, step = 1, v, 0
    while step < len(code):
        match code[step]:
            case 0:
                v += step
            case 1:
                v *= memory
            case 2:
                memory = v & 15
            case 3:
                step += v % 3 == 0
            case 4:
                v ^= i << 4
            case 5:
                stored = v
            case 6:
                v -= stored
            case 7:
                v = abs(v)
            case 8:
                v = v << 1 | v >> 31 & 1
            case 9:
                memory, v = memory + 1, v - 1
            case _:
                v -= 1
        v, step = wrap(v), step + 1
    return v  # fmt: skip


@program
def switch_dense(rng: np.random.Generator) -> Case:
    code = [9, 1, 0, 3, 8, 2, 5, 4, 1, 6, 3, 7, 9, 0, -1, 8, 1, 3]  # the last one may skip the end
    x = integers(rng, 70, -(2**31), 2**31, np.int32)
    return Case(
        arguments={"code": np.array(code, np.int32), "x": x, "steps": len(code), "n": 70},
        expected={
            "x": np.array([_interpreter(code, int(v), i) for i, v in enumerate(x)], np.int32)
        },
        grid=(2,),
        block=(64,),
    )
