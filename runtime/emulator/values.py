"""Bit patterns: how the registers of a warp are stored, and conversions of single values.

A register class has one array a warpgroup, a row a register and a column a thread. Every class can
be viewed with each of its codes:

    P  bool     predicates
    H  u16      J  s16   E  f16
    U  u32      I  s32   F  f32
    W  u64      X  s64   D  f64
"""

from __future__ import annotations

import struct
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

CODE_DTYPE: dict[str, np.dtype[Any]] = {
    "P": np.dtype(np.bool_),
    "H": np.dtype(np.uint16), "J": np.dtype(np.int16), "E": np.dtype(np.float16),
    "U": np.dtype(np.uint32), "I": np.dtype(np.int32), "F": np.dtype(np.float32),
    "W": np.dtype(np.uint64), "X": np.dtype(np.int64), "D": np.dtype(np.float64),
}  # fmt: skip
CODE_BITS = {
    "P": 1,
    "H": 16,
    "J": 16,
    "E": 16,
    "U": 32,
    "I": 32,
    "F": 32,
    "W": 64,
    "X": 64,
    "D": 64,
}
BITS_CODE = {1: "P", 16: "H", 32: "U", 64: "W"}  # the untyped code of a width
SIGNED_CODE = {16: "J", 32: "I", 64: "X"}
FLOAT_CODE = {16: "E", 32: "F", 64: "D"}

BF16 = np.dtype(ml_dtypes.bfloat16)
E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)
E5M2 = np.dtype(ml_dtypes.float8_e5m2)

# What a register holds before anything is written to it. As f32 this is a NaN.
POISON = 0xFFDEAD01


def type_bits(type_: str) -> int:
    """Width in bits of a PTX scalar type name such as "u32" or "bf16x2"."""
    widths = {"pred": 1, "f16x2": 32, "bf16x2": 32, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8,
              "e4m3x2": 16, "e5m2x2": 16, "u16x2": 32, "s16x2": 32}  # fmt: skip
    return widths[type_] if type_ in widths else int(type_[1:])


def type_code(type_: str) -> str:
    """The code that a value of this PTX type is computed with."""
    if type_ in ("f16", "f32", "f64"):
        return FLOAT_CODE[int(type_[1:])]
    bits = max(type_bits(type_), 16) if type_ != "pred" else 1
    return SIGNED_CODE[bits] if type_[0] == "s" and type_[1:].isdigit() else BITS_CODE[bits]


def f32_bits(value: float) -> int:
    """The bit pattern of the f32 nearest to a Python float."""
    with np.errstate(over="ignore"):
        return int(np.float32(value).view(np.uint32))


def f64_from_bits(bits: int) -> float:
    value: float = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    return value


def f32_from_bits(bits: int) -> np.float32:
    return np.uint32(bits).view(np.float32)


def float_bits(value: int, kind: str, type_: str) -> int:
    """A PTX constant (bits, or an integer, by `kind`) as the bits of a value of type `type_`."""
    if kind == "f64":
        number: Any = f64_from_bits(value)
    elif kind == "f32":
        if type_ == "f32":
            return value
        number = float(f32_from_bits(value))
    else:
        number = float(value)
    with np.errstate(over="ignore"):
        if type_ == "f64":
            return int(np.float64(number).view(np.uint64))
        if type_ == "f32":
            return f32_bits(number)
        dtype = BF16 if type_ == "bf16" else np.dtype(np.float16)
        return int(np.asarray(number).astype(dtype).view(np.uint16))


def signed(value: int, bits: int) -> int:
    """An unsigned pattern read as two's complement."""
    half = 1 << (bits - 1)
    return (value ^ half) - half
