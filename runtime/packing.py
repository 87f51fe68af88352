"""A Python or NumPy number -> the bytes of a scalar `.param`, by the type that the PTX declares.

The value's own type never decides the width: 2.0 for a `.u32` is refused, True for a `.u32` is four
bytes, and a number that the type cannot hold is refused rather than wrapped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from ptxgen.errors import ArgumentError, Violation
from ptxgen.isa.dtypes import dtype
from ptxgen.spec import ScalarParam

Packer = Callable[[object], bytes]
"""Bytes of one value. Raises ValueError with the rule and the cure, in words."""

_AGGREGATE = re.compile(r"b8\[(\d+)\]")
_EXACT_CURE = "pass a number that the type holds"


def pack(param: ScalarParam, value: object) -> bytes:
    """The bytes of `value` for one scalar parameter, little endian.

    Raises ArgumentError naming the parameter, its declared type and the value.
    """
    try:
        return packer(param)(value)
    except ValueError as error:
        raise ArgumentError(
            f"scalar {param.name!r} cannot be packed", [violation(param, value, error)]
        ) from None


def violation(param: ScalarParam, value: object, error: ValueError) -> Violation:
    """What `pack` refuses, as data."""
    return Violation(
        field=param.name,
        got=f"{value!r} ({type(value).__name__})",
        rule=f"is declared .param .{param.ptx_type}: {error}",
        fix=_EXACT_CURE,
    )


def packer(param: ScalarParam) -> Packer:
    """The packing function of a parameter. ArgumentError for a type that has none."""
    if aggregate := _AGGREGATE.fullmatch(param.ptx_type):
        return _raw(int(aggregate[1]))
    try:
        return _PACKERS[param.ptx_type]
    except KeyError:
        raise ArgumentError(
            "a scalar parameter has an unsupported type",
            [
                Violation(
                    field=param.name,
                    got=f".{param.ptx_type}",
                    rule=f"must be one of {', '.join(_PACKERS)}",
                    fix="pass larger things in memory, by a pointer parameter",
                )
            ],
        ) from None


def scalar_bytes(ptx_type: str) -> int:
    """Size of a scalar parameter: 4 for "u32", 12 for "b8[12]"."""
    if aggregate := _AGGREGATE.fullmatch(ptx_type):
        return int(aggregate[1])
    return int(ptx_type.lstrip("usbf")) // 8


def _raw(size: int) -> Packer:
    """An aggregate: its bytes, or a NumPy scalar or array of exactly that many."""

    def pack_raw(value: object) -> bytes:
        if isinstance(value, (np.generic, np.ndarray)):
            value = value.tobytes()
        if not isinstance(value, (bytes, bytearray)):
            raise ValueError("needs bytes, or a NumPy value of a structured type")
        if len(value) != size:
            raise ValueError(f"holds {size} bytes, not {len(value)}")
        return bytes(value)

    return pack_raw


def _integer(bits: int, low: int, high: int) -> Packer:
    size = bits // 8

    def pack_integer(value: object) -> bytes:
        if not isinstance(value, (int, np.integer, np.bool_)):
            raise ValueError("needs an integer")
        number = int(value)
        if not low <= number <= high:
            raise ValueError(f"holds {low:,} .. {high:,}")
        return (number & (1 << bits) - 1).to_bytes(size, "little")

    return pack_integer


def _bits(bits: int) -> Packer:
    """Untyped bits: an integer of either sign, or a NumPy scalar of exactly that width."""
    integer = _integer(bits, -(1 << bits - 1), (1 << bits) - 1)

    def pack_bits(value: object) -> bytes:
        if isinstance(value, (int, np.integer, np.bool_)):
            return integer(value)
        if isinstance(value, np.generic) and value.itemsize * 8 == bits:
            return value.tobytes()
        raise ValueError(
            f"needs an integer or a NumPy scalar of {bits} bits (a bare float has no width)"
        )

    return pack_bits


def _float(name: str) -> Packer:
    np_dtype = dtype(name).np_dtype

    def pack_float(value: object) -> bytes:
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.generic)):
            raise ValueError("needs a real number")
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError("needs a real number in range") from None
        with np.errstate(over="ignore"):
            packed = np.asarray(number).astype(np_dtype)
        stored = float(packed)
        if np.isinf(stored) and not np.isinf(number):
            raise ValueError("overflows to infinity")
        if isinstance(value, (int, np.integer)) and stored != value:
            raise ValueError(f"cannot hold this integer exactly (the nearest is {stored:.17g})")
        return packed.tobytes()

    return pack_float


def _table() -> Mapping[str, Packer]:
    table: dict[str, Packer] = {}
    for bits in (8, 16, 32, 64):
        table[f"u{bits}"] = _integer(bits, 0, (1 << bits) - 1)
        table[f"s{bits}"] = _integer(bits, -(1 << bits - 1), (1 << bits - 1) - 1)
        table[f"b{bits}"] = _bits(bits)
    for name in ("f16", "bf16", "f32", "f64"):
        table[name] = _float(name)
    return MappingProxyType(table)


_PACKERS = _table()
