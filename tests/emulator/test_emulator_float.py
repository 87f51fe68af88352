"""Float instructions against rational arithmetic, and conversions at their edges."""

from __future__ import annotations

import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from emulate import evaluate

pytestmark = pytest.mark.emu


def f32(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def nearest_f32(x: Fraction) -> int:
    """The bits of the f32 nearest to a rational, ties to even."""
    if x == 0:
        return 0
    sign, x = (1 << 31 if x < 0 else 0), abs(x)
    exponent = max(_floor_log2(x), -126)
    scaled = x / Fraction(2) ** (exponent - 23)
    mantissa = scaled.numerator // scaled.denominator
    rest = scaled - mantissa
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and mantissa & 1):
        mantissa += 1
    value = Fraction(mantissa) * Fraction(2) ** (exponent - 23)
    if value >= Fraction(2) ** 128:
        return sign | 0x7F800000
    return sign | struct.unpack("<I", struct.pack("<f", float(value)))[0]


def _floor_log2(x: Fraction) -> int:
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


TIE = (0x39800001, 0x397FFFFE, 0x3F800001)  # (1+2^-23)2^-12, (1-2^-23)2^-12, 1+2^-23


def float_inputs(seed: int) -> np.ndarray:
    """f32 bits: ordinary numbers, powers of two that make ties, subnormals."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0x30000000, 0x50000000, 32, dtype=np.uint32)
    bits[::3] ^= 0x80000000
    bits[:4] = [0x00000001, 0x007FFFFF, 0x3F800000, 0xBF800001]
    bits[4 + seed] = TIE[seed]
    bits[7] = TIE[seed]
    return bits


@pytest.mark.parametrize(
    ("text", "count", "reference"),
    [
        ("add.rn.f32 D, A, B;", 2, lambda a, b: a + b),
        ("sub.f32 D, A, B;", 2, lambda a, b: a - b),
        ("mul.rn.f32 D, A, B;", 2, lambda a, b: a * b),
        ("div.rn.f32 D, A, B;", 2, lambda a, b: a / b),
        ("rcp.rn.f32 D, A;", 1, lambda a: 1 / a),
        ("fma.rn.f32 D, A, B, C;", 3, lambda a, b, c: a * b + c),
        ("mad.f32 D, A, B, C;", 3, lambda a, b, c: a * b + c),
    ],
)
def test_f32_is_exactly_rounded(text: str, count: int, reference: Callable[..., Fraction]) -> None:
    """Against rational arithmetic. The tie is the one that f64 alone gets wrong in fma."""
    inputs = [float_inputs(i) for i in range(count)]
    got = evaluate(text, 32, (32,) * count, inputs, "BODY", uniform=False)
    for i in range(32):
        exact = reference(*(Fraction(f32(int(x[i]))) for x in inputs))
        want = nearest_f32(exact)
        assert got[i] == want or (exact == 0 and got[i] in (0, 1 << 31)), (
            i,
            hex(got[i]),
            hex(want),
        )


def test_fma_tie_that_double_rounding_misses() -> None:
    """a = (1+2^-23)2^-12, b = (1-2^-23)2^-12, c = 1+2^-23: the answer is c, f64 alone says more."""
    inputs = [np.full(32, b, np.uint32) for b in TIE]
    got = evaluate("fma.rn.f32 D, A, B, C;", 32, (32,) * 3, inputs, "BODY", uniform=False)
    assert set(got) == {0x3F800001}


@pytest.mark.parametrize(
    ("name", "function", "low", "high"),
    [
        ("ex2.approx.f32", np.exp2, -20, 20),
        ("lg2.approx.f32", np.log2, 0.01, 100),
        ("rsqrt.approx.f32", lambda x: 1 / np.sqrt(x), 0.01, 100),
        ("sqrt.approx.f32", np.sqrt, 0.01, 100),
        ("rcp.approx.f32", lambda x: 1 / x, 0.01, 100),
        ("sin.approx.f32", np.sin, -3, 3),
        ("cos.approx.f32", np.cos, -3, 3),
        ("tanh.approx.f32", np.tanh, -3, 3),
    ],
)
def test_approximations(name: str, function: Any, low: float, high: float) -> None:
    x = np.random.default_rng(1).uniform(low, high, 32).astype(np.float32)
    got = np.array(
        evaluate(f"{name} D, A;", 32, (32,), [x.view(np.uint32)], "BODY", False), np.uint32
    )
    want = function(x.astype(np.float64)).astype(np.float32)
    ulp = np.spacing(np.abs(want))
    assert (np.abs(got.view(np.float32) - want) <= 2 * ulp).all()


SPECIAL = np.array(
    [0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x3F800000, 0xBF800000, 0x42FE0000] * 4,
    np.uint32,
)  # +0 -0 inf -inf nan 1 -1 127


def test_min_and_max_ignore_nan_unless_asked() -> None:
    other = np.repeat(np.array([0, 0x80000000, 0x7FC00000, 0x40000000], np.uint32), 8)
    a, b = SPECIAL.view(np.float32), other.view(np.float32)
    got = np.array(
        evaluate("min.f32 D, A, B;", 32, (32, 32), [SPECIAL, other], "BODY", False), np.uint32
    )
    want = np.where(np.isnan(a), b, np.where(np.isnan(b), a, np.minimum(a, b)))
    finite = ~np.isnan(want)
    assert (got.view(np.float32)[finite] == want[finite]).all()
    zeros = (a == 0) & (b == 0)  # -0 is the smaller one
    assert (got[zeros] == np.where(np.signbit(a) | np.signbit(b), 0x80000000, 0)[zeros]).all()
    got = np.array(
        evaluate("max.NaN.f32 D, A, B;", 32, (32, 32), [SPECIAL, other], "BODY", False), "u4"
    )
    assert (np.isnan(got.view(np.float32)) == (np.isnan(a) | np.isnan(b))).all()


@pytest.mark.parametrize(
    ("compare", "on_nan"),
    [("eq", False), ("ne", False), ("lt", False), ("equ", True), ("neu", True), ("gtu", True),
     ("nan", True), ("num", False)],
)  # fmt: skip
def test_float_comparisons_with_nan(compare: str, on_nan: bool) -> None:
    text = f"setp.{compare}.f32 %p1, A, B; selp.b32 D, 1, 0, %p1;"
    one = np.full(32, 0x3F800000, np.uint32)
    nan = np.full(32, 0x7FC00000, np.uint32)
    assert set(evaluate(text.replace("A", "%f1").replace("B", "%f2").replace(
        "setp", "mov.b32 %f1, A; mov.b32 %f2, B; setp"), 32, (32, 32), [nan, one], "BODY",
        False)) == {int(on_nan)}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("cvt.rzi.s32.f32 D, A;", np.trunc),
        ("cvt.rni.s32.f32 D, A;", np.rint),
        ("cvt.rmi.s32.f32 D, A;", np.floor),
        ("cvt.rpi.s32.f32 D, A;", np.ceil),
    ],
)
def test_float_to_integer_saturates(text: str, reference: Any) -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 3e9, -3e9, np.inf, -np.inf, np.nan, 1e20, -7.9,
                  2147483520.0, -2147483648.0, 7.5, 8.5] * 2, np.float32)  # fmt: skip
    got = np.array(evaluate(text, 32, (32,), [x.view("u4")], "BODY", False), np.uint32).view(
        np.int32
    )
    want = np.clip(np.nan_to_num(reference(x.astype(np.float64)), nan=0), -(2**31), 2**31 - 1)
    assert got.tolist() == want.astype(np.int64).tolist()


def test_packed_conversions_put_the_first_source_high() -> None:
    import ml_dtypes

    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(32).astype(np.float32) for _ in range(2))
    inputs = [a.view("u4"), b.view("u4")]
    for name, dtype in (("bf16x2", ml_dtypes.bfloat16), ("f16x2", np.float16)):
        got = np.array(
            evaluate(f"cvt.rn.{name}.f32 D, A, B;", 32, (32, 32), inputs, "BODY", False), "u4"
        )
        high, low = a.astype(dtype).view(np.uint16), b.astype(dtype).view(np.uint16)
        assert (got == (high.astype(np.uint32) << 16 | low)).all()


@pytest.mark.parametrize("name", ["f16x2", "bf16x2"])
def test_packed_arithmetic_rounds_once(name: str) -> None:
    """fma of halves: exact rational result, rounded to the type."""
    import ml_dtypes

    dtype = np.dtype(np.float16 if name == "f16x2" else ml_dtypes.bfloat16)
    rng = np.random.default_rng(3)
    values = [rng.standard_normal(64).astype(dtype) for _ in range(3)]
    inputs = [v.view(np.uint32) for v in values]
    text = f"fma.rn.{name} D, A, B, C;"
    got = np.array(evaluate(text, 32, (32,) * 3, inputs, "BODY", False), np.uint32).view(dtype)
    a, b, c = (v.astype(np.longdouble) for v in values)
    exact = a * b + c  # 64 mantissa bits hold it
    distance = np.abs(got.astype(np.longdouble) - exact)
    for other in (np.nextafter(got, dtype.type(np.inf)), np.nextafter(got, dtype.type(-np.inf))):
        assert (distance <= np.abs(other.astype(np.longdouble) - exact)).all()


def test_f64_fma_is_exact() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal(32), rng.standard_normal(32)
    c = -a * b + rng.standard_normal(32) * 1e-17  # cancellation: only a fused result is right
    got = np.array(
        evaluate("fma.rn.f64 D, A, B, C;", 64, (64,) * 3, [x.view("u8") for x in (a, b, c)], "BODY",
             False), np.uint64).view(np.float64)  # fmt: skip
    want = [float(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in zip(a, b, c, strict=True)]
    assert got.tolist() == want


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("e4m3", (448, 448, 448, 448, -448, 448, -448, np.nan)),
        ("e5m2", (448, 448, 448, 1024, -1024, 57344, -57344, np.nan)),
    ],
)
def test_fp8_overflow_is_the_largest_number(name: str, wanted: tuple[float, ...]) -> None:
    """.satfinite clamps, infinities too, where a cast of ml_dtypes to e4m3 makes NaN above 464."""
    import ml_dtypes

    dtype = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}[name]
    x = np.array([448, 464, 465, 1000, -1000, np.inf, -np.inf, np.nan] * 4, np.float32)
    inputs = [x.view(np.uint32), np.zeros(32, np.uint32)]
    text = f"cvt.rn.satfinite.{name}x2.f32 D, B, A;"  # A is the low half
    got = np.array(evaluate(text, 16, (32, 32), inputs, "BODY", False), np.uint16)
    assert np.array_equal(
        got.astype(np.uint8).view(dtype).astype(np.float32)[:8], wanted, equal_nan=True
    )
