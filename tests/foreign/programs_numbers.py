"""More of the CUDA programs: those that are about arithmetic. See `programs`."""

from __future__ import annotations

import math

import numpy as np
from machines import poisoned
from programs import BF16, Case, fma, integers, program, wrap

M32, M64 = 2**32 - 1, 2**64 - 1


@program
def vector_loads(rng: np.random.Generator) -> Case:
    x = integers(rng, (70, 4), -99, 99, np.float32)
    return Case(
        arguments={
            "x": x,
            "y": poisoned((70, 4), np.float32),
            "squares": poisoned((70,), np.float32),
            "n": 70,
        },
        expected={"y": x[:, ::-1].copy(), "squares": (x * x).sum(1)},
        grid=(2,),
        block=(64,),
    )


@program
def int64_math(rng: np.random.Generator) -> Case:
    a, b = (integers(rng, 40, -(2**63), 2**63 - 1, np.int64) for _ in range(2))
    b[::2] >>= 40  # small divisors
    b[b == 0] = 1
    rows = [[wrap(v, 64) for v in _int64(int(p), int(q))] for p, q in zip(a, b, strict=True)]
    return Case(
        arguments={"a": a, "b": b, "y": poisoned((40, 8), np.int64), "n": 40},
        expected={"y": np.array(rows, np.int64)},
        grid=(1,),
        block=(64,),
    )


def _int64(p: int, q: int) -> tuple[int, ...]:
    u, v = p & M64, q & M64
    quotient = abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1)
    leading_zeros = 64 - v.bit_length()
    return (
        p * q,
        quotient,
        p - q * quotient,
        p * q >> 64,
        u * v >> 64,
        (u << (v & 63)) ^ (u >> (v & 31)) ^ (p >> (v & 15)),
        u.bit_count() * 1000 + leading_zeros,
        max(p, q) - min(u, v),
    )


@program
def double_math(rng: np.random.Generator) -> Case:
    a, b = (rng.standard_normal(50) * 10.0 ** rng.integers(-9, 9, 50) for _ in range(2))
    y = np.stack(
        [
            fma(a, b, np.full(50, 1 / 3), np.float64),
            a / b,
            np.sqrt(abs(a)),
            a.astype(np.float32).astype(np.float64),
            np.floor(b) - np.ceil(a),
            np.minimum(a, b),
        ],
        axis=1,
    )
    whole = np.array([round(v) for v in a * 1000.0], np.int64)
    return Case(
        arguments={
            "a": a,
            "b": b,
            "y": poisoned((50, 6), np.float64),
            "whole": poisoned((50,), np.int64),
            "n": 50,
        },
        expected={"y": y, "whole": whole},
        grid=(1,),
        block=(64,),
    )


@program
def half2_axpy(rng: np.random.Generator) -> Case:
    x, y = (rng.standard_normal((40, 2)).astype(np.float16) for _ in range(2))
    a = np.array([1.5, -0.37], np.float16)
    result = fma(np.broadcast_to(a, x.shape), x, y, np.float16)
    return Case(
        arguments={
            "a": a.tobytes(),
            "x": x,
            "y": y,
            "larger": poisoned((40,), np.uint32),
            "pairs": 40,
        },
        expected={
            "y": np.maximum(result, np.float16(0)),
            "larger": (x > y).sum(1).astype(np.uint32),
        },
        grid=(1,),
        block=(64,),
    )


@program
def bf16_math(rng: np.random.Generator) -> Case:
    x = (rng.integers(-32, 32, (40, 2)) / 8).astype(BF16)  # x s + 0.5 is exact in f32: one rounding
    scale = rng.standard_normal((40, 2)).astype(np.float32)
    wide = x.astype(np.float32) * scale.astype(BF16).astype(np.float32) + np.float32(0.5)
    return Case(
        arguments={
            "x": x,
            "scale": scale,
            "y": poisoned((40, 2), BF16),
            "largest": poisoned((40,), BF16),
            "pairs": 40,
        },
        expected={"y": wide.astype(BF16), "largest": x.max(1)},
        grid=(1,),
        block=(64,),
    )


@program
def int_hash(rng: np.random.Generator) -> Case:
    words, seed = integers(rng, (50, 4), 0, 2**32, np.uint32), 0x9747B28C
    hashes = [_murmur([int(w) for w in row], seed) for row in words]
    return Case(
        arguments={"words": words, "hashes": poisoned((50,), np.uint32), "seed": seed, "rows": 50},
        expected={"hashes": np.array(hashes, np.uint32)},
        grid=(1,),
        block=(64,),
    )


def _rotate(x: int, by: int) -> int:
    return (x << by | x >> (32 - by)) & M32


def _murmur(words: list[int], h: int) -> int:
    for word in words:
        h ^= _rotate(word * 0xCC9E2D51 & M32, 15) * 0x1B873593 & M32
        h = _rotate(h, 13) * 5 + 0xE6546B64 & M32
    h ^= 16
    h = (h ^ h >> 16) * 0x85EBCA6B & M32
    h = (h ^ h >> 13) * 0xC2B2AE35 & M32
    return h ^ h >> 16


@program
def bit_tricks(rng: np.random.Generator) -> Case:
    a, b = (integers(rng, 60, 0, 2**32, np.uint32) for _ in range(2))
    b[:3], a[:2] = (0, 1, M32), (0, 1 << 31)  # the ends of clz and ffs
    rows = [[v & M32 for v in _bits(int(p), int(q))] for p, q in zip(a, b, strict=True)]
    return Case(
        arguments={"a": a, "b": b, "y": poisoned((60, 8), np.uint32), "n": 60},
        expected={"y": np.array(rows, np.uint32)},
        grid=(1,),
        block=(64,),
    )


def _bits(p: int, q: int) -> tuple[int, ...]:
    signed_p, signed_q = wrap(p), wrap(q)
    first_set = (p & -p).bit_length()
    eight = [(q << 32 | p) >> 8 * i & 0xFF for i in range(8)]
    bytes_p, bytes_q = p.to_bytes(4, "little"), q.to_bytes(4, "little")
    signed = [wrap(x, 8) * wrap(y, 8) for x, y in zip(bytes_p, bytes_q, strict=True)]
    shift = q & 31
    return (
        p.bit_count() + 100 * (32 - q.bit_length()) + 10000 * first_set,
        int(f"{p:032b}"[::-1], 2),
        sum(eight[at] << 8 * i for i, at in enumerate((5, 7, 1, 3))),
        ((q << 32 | p) << shift) >> 32,
        sum(signed) - 7,
        math.sumprod(bytes_p, bytes_q) + 9
        if hasattr(math, "sumprod")
        else sum(x * y for x, y in zip(bytes_p, bytes_q, strict=True)) + 9,
        (p * q >> 32) ^ (signed_p * signed_q >> 32),
        abs(signed_p - signed_q) + 3 + ((p << 8 & M32) >> 20),
    )
