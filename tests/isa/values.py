"""Seeded inputs: bit patterns of a domain, as unsigned integers.

A domain is what the table writes after `~`. "" tries the edges of the type and random bits.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

import ml_dtypes
import numpy as np

FLOATS: Mapping[str, np.dtype] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "tf32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
}
UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
# 2:4 metadata: the nibbles that name two different elements of four, in ascending order; of tf32
# those that name one element of two.
_PAIRS = np.array([0x4, 0x8, 0xC, 0x9, 0xD, 0xE], np.uint64)
_PAIRS_TF32 = np.array([0x4, 0xE], np.uint64)


def generator(case_id: str, seed: int, name: str) -> np.random.Generator:
    """The random numbers of one operand of one case: independent of all others."""
    return np.random.default_rng([seed, zlib.crc32(case_id.encode()), zlib.crc32(name.encode())])


def patterns(
    rng: np.random.Generator, type_: str, domain: str, shape: tuple[int, ...]
) -> np.ndarray:
    """Bit patterns (u64) of values of a PTX type from a domain."""
    if domain.startswith("small."):
        bits = _width(type_)
        return _packed_small(rng, domain.removeprefix("small."), bits, shape)
    kind, _, step = domain.partition(".")
    if step:  # coordinates, of which the innermost counts in steps
        raw = patterns(rng, type_, kind, shape)
        raw[0] = raw[0] * np.uint64(step) & np.uint64((1 << _width(type_)) - 1)
        return raw
    if domain in _INTEGER_DOMAINS:
        raw = _INTEGER_DOMAINS[domain](rng, shape)
        return raw.astype(np.uint64) & np.uint64((1 << _width(type_)) - 1)
    base, _, packed = type_.partition("x")
    if base in FLOATS:
        halves = [_float(rng, base, domain, shape) for _ in range(int(packed or 1))]
        width = 8 * FLOATS[base].itemsize
        return sum(
            (h << np.uint64(i * width) for i, h in enumerate(halves)), np.zeros((), np.uint64)
        )
    return _integer(rng, type_, domain, shape)


def memory(rng: np.random.Generator, domain: str, size: int) -> np.ndarray:
    """`size` bytes of memory: "bytes", or values of a domain, "small.f16", "sparse.u64", "few"."""
    if domain in ("", "bytes"):
        return rng.integers(0, 256, size, np.uint8)
    if domain == "few":
        return rng.integers(0, 4, size // 4).astype(np.uint32).view(np.uint8)
    kind, _, type_ = domain.partition(".")
    if kind == "sparse":
        words = patterns(rng, type_, "sparse", (size // 8,))
        return words.astype(np.uint64).view(np.uint8)
    return patterns(rng, "b64", domain, (size // 8,)).view(np.uint8)


def _width(type_: str) -> int:
    base, _, packed = type_.partition("x")
    if base == "pred":
        return 1
    if base in FLOATS:
        return 8 * FLOATS[base].itemsize * int(packed or 1)
    return int(base.lstrip("usb")) * int(packed or 1)


def _pick(rng: np.random.Generator, pool: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return pool[rng.integers(0, len(pool), shape)]


def _integer(
    rng: np.random.Generator, type_: str, domain: str, shape: tuple[int, ...]
) -> np.ndarray:
    bits = _width(type_)
    top = 1 << (bits - 1) if bits > 1 else 1
    mask = (1 << bits) - 1
    edges = np.array(
        sorted(
            {v & mask for v in (0, 1, 2, 3, -1, -2, top, top - 1, top + 1, 0x55 << (bits // 2))}
        ),
        np.uint64,
    )
    noise = rng.integers(0, 1 << 64, shape, np.uint64, endpoint=False) & np.uint64(mask)
    if domain == "near":
        return _pick(rng, edges, shape)
    if domain == "sparse":
        return np.where(rng.random(shape) < 0.5, np.uint64(0), noise)
    if domain == "ramp":
        return noise >> rng.integers(0, bits + 1, shape).astype(np.uint64) if bits < 64 else (
            np.where(rng.random(shape) < 0.1, np.uint64(0),
                     noise >> rng.integers(0, 64, shape).astype(np.uint64))
        )  # fmt: skip
    if domain == "divisor":
        legal = edges[(edges != 0) & (edges != mask)]
        small = rng.integers(2, 100, shape).astype(np.uint64)
        mixed = np.where(rng.random(shape) < 0.5, small, noise | np.uint64(1 << (bits - 2)))
        mixed = np.where(mixed == mask, np.uint64(3), mixed)
        return np.where(rng.random(shape) < 0.3, _pick(rng, legal, shape), mixed)
    return np.where(rng.random(shape) < 0.4, _pick(rng, edges, shape), noise)


def _specials(dtype: np.dtype) -> np.ndarray:
    """Zeros, infinities, NaN, the edges of the subnormals, ties, and the largest, both signs."""
    info = ml_dtypes.finfo(dtype)
    one = np.ones((), dtype)
    listed = [
        0.0, 1.0, 0.5, 1.5, 2.5, 127.5, float(info.tiny), float(info.smallest_subnormal),
        float(info.tiny) - float(info.smallest_subnormal), float(info.max), float("inf"),
        float(one) + float(info.eps), float("nan"),
    ]  # fmt: skip
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.array([s * v for v in listed for s in (1, -1)]).astype(dtype)
    return values.view(UNSIGNED[8 * dtype.itemsize]).astype(np.uint64)


def _float(rng: np.random.Generator, base: str, domain: str, shape: tuple[int, ...]) -> np.ndarray:
    dtype = FLOATS[base]
    unsigned = UNSIGNED[8 * dtype.itemsize]

    def bits(values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            return values.astype(dtype).view(unsigned).astype(np.uint64)

    sign = np.where(rng.random(shape) < 0.5, -1.0, 1.0)
    if domain in _FLOAT_DOMAINS:
        return bits(_FLOAT_DOMAINS[domain](rng, shape, sign))
    specials = _specials(dtype)
    if domain == "near":
        return _pick(rng, specials, shape)
    mantissa = 1 + rng.random(shape)
    span = 40 if dtype.itemsize > 2 else 8
    if domain == "wide":
        values = (
            sign * mantissa * np.exp2(rng.integers(-4, 36 if dtype.itemsize > 2 else 15, shape))
        )
        halves = sign * (rng.integers(0, 300, shape) + 0.5)
        values = np.where(rng.random(shape) < 0.4, halves, values)
    else:
        values = sign * mantissa * np.exp2(rng.integers(-span, span, shape))
    return np.where(rng.random(shape) < 0.35, _pick(rng, specials, shape), bits(values))


def _packed_small(
    rng: np.random.Generator, dtype: str, bits: int, shape: tuple[int, ...]
) -> np.ndarray:
    """Registers of `bits` bits, packed with small exact numbers: sums of products stay exact."""
    if dtype in ("s8", "u8"):
        return rng.integers(0, 1 << 64, shape, np.uint64, endpoint=False) & np.uint64(
            (1 << bits) - 1
        )
    if dtype == "s32":  # near the ends too, so that saturation and wrapping show
        ends = np.array([0x7FFFFF00, 0x80000010, 0, 1000], np.uint64)
        return _pick(rng, ends, shape)
    float_dtype = FLOATS[dtype]
    width = 8 * float_dtype.itemsize
    out = np.zeros(shape, np.uint64)
    for i in range(bits // width):
        values = rng.integers(-4, 5, shape).astype(np.float32).astype(float_dtype)
        out |= values.view(UNSIGNED[width]).astype(np.uint64) << np.uint64(i * width)
    return out


def _nibbles(pool: np.ndarray) -> Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]:
    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        out = np.zeros(shape, np.uint64)
        for i in range(8):
            out |= _pick(rng, pool, shape) << np.uint64(4 * i)
        return out

    return draw


def _shift(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    edges = np.array([0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 1 << 31, (1 << 32) - 1])
    return np.where(rng.random(shape) < 0.5, _pick(rng, edges, shape), rng.integers(0, 40, shape))


_INTEGER_DOMAINS: Mapping[str, Callable[..., np.ndarray]] = {
    "shift": _shift,
    "lane": lambda rng, shape: rng.integers(0, 32, shape),
    "few": lambda rng, shape: rng.integers(0, 4, shape),
    "upto4": lambda rng, shape: rng.integers(0, 5, shape),
    "small_int": lambda rng, shape: rng.integers(-3, 4, shape),
    "coordinate": lambda rng, shape: rng.integers(-2, 5, shape),
    "corner": lambda rng, shape: rng.integers(0, 4, shape),
    "map": lambda rng, shape: 16 * rng.integers(1, 200, shape),
    "pairs": _nibbles(_PAIRS),
    "pairs_tf32": _nibbles(_PAIRS_TF32),
}
_FLOAT_DOMAINS: Mapping[str, Callable[..., np.ndarray]] = {
    "moderate": lambda rng, shape, sign: sign * np.exp2(rng.uniform(-10, 10, shape)),
    "positive": lambda rng, shape, sign: np.exp2(rng.uniform(-12, 12, shape)),
    "angle": lambda rng, shape, sign: rng.uniform(-6, 6, shape),
    "exponent": lambda rng, shape, sign: rng.uniform(-12, 10, shape),
    "addend": lambda rng, shape, sign: rng.integers(-4, 5, shape).astype(np.float64),
}
