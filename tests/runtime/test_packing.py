"""Scalars are packed by their declared type, and never lose anything."""

from __future__ import annotations

import math
import struct

import ml_dtypes
import numpy as np
import pytest

from ptxgen.errors import ArgumentError
from ptxgen.spec import ScalarParam
from runtime.packing import pack

pytestmark = pytest.mark.unit


def packed(ptx_type: str, value: object) -> bytes:
    return pack(ScalarParam(name="s", ptx_type=ptx_type), value)


@pytest.mark.parametrize(
    ("ptx_type", "value", "expected"),
    [
        ("f32", 2.0, struct.pack("<f", 2.0)),
        ("f32", 2, struct.pack("<f", 2.0)),
        ("f32", 0.1, struct.pack("<f", 0.1)),
        ("f32", np.float64(0.1), struct.pack("<f", 0.1)),
        ("f32", -0.0, struct.pack("<f", -0.0)),
        ("f32", math.inf, struct.pack("<f", math.inf)),
        ("f64", 0.1, struct.pack("<d", 0.1)),
        ("f16", 1.5, np.float16(1.5).tobytes()),
        ("bf16", 1.5, ml_dtypes.bfloat16(1.5).tobytes()),
        ("bf16", ml_dtypes.bfloat16(3), ml_dtypes.bfloat16(3).tobytes()),
        ("b16", np.float16(1.5), np.float16(1.5).tobytes()),
        ("b16", ml_dtypes.bfloat16(1.5), ml_dtypes.bfloat16(1.5).tobytes()),
        ("b16", 0xFFFF, b"\xff\xff"),
        ("b16", -1, b"\xff\xff"),
        ("b32", np.float32(1), struct.pack("<f", 1)),
        ("u8", True, b"\1"),
        ("u32", True, b"\1\0\0\0"),
        ("u32", 2**32 - 1, b"\xff" * 4),
        ("s32", -1, b"\xff" * 4),
        ("u64", 2**40, struct.pack("<Q", 2**40)),
        ("s64", -(2**63), struct.pack("<q", -(2**63))),
        ("s16", np.int64(-5), struct.pack("<h", -5)),
    ],
)
def test_values(ptx_type: str, value: object, expected: bytes) -> None:
    assert packed(ptx_type, value) == expected


def test_nan_stays_nan() -> None:
    assert math.isnan(struct.unpack("<f", packed("f32", math.nan))[0])


@pytest.mark.parametrize(
    ("ptx_type", "value"),
    [
        ("u32", -1), ("u32", 2**32), ("s32", 2**31), ("u8", 256), ("s8", -129), ("u64", 2**64),
        ("u32", 2.0), ("u32", "7"), ("u32", np.float32(7)), ("u32", None),  # not integers
        ("f32", 1e39), ("f16", 65_520.0), ("bf16", 3.4e38 * 1.01), ("f64", 10**400),  # overflow
        ("f32", 2**24 + 1), ("f16", 2_049),  # integers between two floats
        ("f32", True), ("f32", "1"), ("f32", 1j),
        ("b32", 1.0), ("b16", np.float32(1)), ("b16", 2**16), ("b16", -(2**15) - 1),
    ],
)  # fmt: skip
def test_refusals_name_parameter_type_and_value(ptx_type: str, value: object) -> None:
    with pytest.raises(ArgumentError) as caught:
        packed(ptx_type, value)
    (violation,) = caught.value.violations
    assert violation.field == "s"
    assert f".{ptx_type}" in violation.rule
    assert repr(value) in violation.got


def test_unknown_type() -> None:
    with pytest.raises(ArgumentError, match=r"\.f16x2"):
        packed("f16x2", 1)
