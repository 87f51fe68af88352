"""Each scalar instruction against its definition in plain Python, on rows, on uniform values, and
under a mask. Values are the ones at which definitions bend: 0, 1, all ones, sign changes, and some
random ones."""

from __future__ import annotations

import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from emulate import module, run

pytestmark = pytest.mark.emu

Reference = Callable[..., int]
REGISTER = {16: "%h", 32: "%r", 64: "%rd"}


def s(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value ^ half) - half


def quotient(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def interesting(bits: int, seed: int, count: int = 32) -> np.ndarray:
    top = (1 << bits) - 1
    fixed = [0, 1, 2, 3, top, top - 1, top >> 1, (top >> 1) + 1, 31, 32, 33, bits - 1, bits, 5, 8, 16]
    rng = np.random.default_rng(seed)
    random = rng.integers(0, top, count - len(fixed), dtype=np.uint64, endpoint=True).tolist()
    rng.shuffle(values := fixed + random)
    return np.array(values, f"u{bits // 8}")


def pairs(t: str) -> tuple[int, bool]:
    return int(t[1:]), t[0] == "s"


def case(text: str, out: int, ins: tuple[int, ...], reference: Reference) -> Any:
    return pytest.param(text, out, ins, reference, id=text.split(" ")[0])


def binary(op: str, t: str, f: Callable[[int, int], int]) -> Any:
    bits, is_signed = pairs(t)

    def reference(a: int, b: int) -> int:
        x, y = (s(a, bits), s(b, bits)) if is_signed else (a, b)
        return f(x, y)

    return case(f"{op}.{t} D, A, B;", bits, (bits, bits), reference)


def brev(a: int) -> int:
    return int(f"{a:032b}"[::-1], 2)


def prmt(a: int, b: int, sel: int) -> int:
    pool = (b << 32 | a).to_bytes(8, "little")
    out = []
    for i in range(4):
        nibble = sel >> (4 * i) & 15
        byte = pool[nibble & 7]
        out.append((0xFF if byte & 0x80 else 0) if nibble & 8 else byte)
    return int.from_bytes(bytes(out), "little")


def bfe_u(a: int, pos: int, n: int) -> int:
    return (a >> (pos & 255)) & ((1 << (n & 255)) - 1)


def bfe_s(a: int, pos: int, n: int) -> int:
    pos, n = pos & 255, n & 255
    if n == 0:
        return 0
    sign = a >> min(pos + n - 1, 31) & 1
    out = 0
    for i in range(32):
        bit = a >> (pos + i) & 1 if i < n and pos + i < 32 else sign
        out |= bit << i
    return out


def bfi(a: int, b: int, pos: int, n: int) -> int:
    pos, n = pos & 255, n & 255
    mask = ((1 << n) - 1) << pos & 0xFFFFFFFF
    return (b & ~mask) | (a << pos & mask)


def funnel_l(lo: int, hi: int, n: int) -> int:
    return ((hi << 32 | lo) << min(n, 32)) >> 32


def funnel_r_wrap(lo: int, hi: int, n: int) -> int:
    return (hi << 32 | lo) >> (n & 31)


CASES = [
    *(binary("add", t, lambda a, b: a + b) for t in ("u32", "s32", "u64", "s64", "u16", "s16")),
    *(binary("sub", t, lambda a, b: a - b) for t in ("u32", "s64", "u16")),
    *(binary("min", t, min) for t in ("u32", "s32", "u64", "s64", "s16")),
    *(binary("max", t, max) for t in ("u32", "s32", "u64", "s64", "u16")),
    *(binary("mul.lo", t, lambda a, b: a * b) for t in ("u32", "s32", "u64", "s64", "u16")),
    *(binary("mul.hi", t, lambda a, b: a * b >> 32) for t in ("u32", "s32")),
    *(binary("mul.hi", t, lambda a, b: a * b >> 64) for t in ("u64", "s64")),
    *(binary("and", f"b{n}", lambda a, b: a & b) for n in (16, 32, 64)),
    *(binary("or", f"b{n}", lambda a, b: a | b) for n in (16, 32, 64)),
    *(binary("xor", f"b{n}", lambda a, b: a ^ b) for n in (16, 32, 64)),
    # x / 0 is all ones and x % 0 is x on the hardware
    binary("div", "u32", lambda a, b: a // b if b else -1),
    binary("div", "s32", lambda a, b: quotient(a, b) if b else -1),
    binary("div", "u64", lambda a, b: a // b if b else -1),
    binary("div", "s64", lambda a, b: quotient(a, b) if b else -1),
    binary("rem", "u32", lambda a, b: a % b if b else a),
    binary("rem", "s32", lambda a, b: a - b * quotient(a, b) if b else a),
    binary("add.sat", "s32", lambda a, b: max(-(2**31), min(2**31 - 1, a + b))),
    case("mul.wide.u32 D, A, B;", 64, (32, 32), lambda a, b: a * b),
    case("mul.wide.s32 D, A, B;", 64, (32, 32), lambda a, b: s(a, 32) * s(b, 32)),
    case("mul.wide.u16 D, A, B;", 32, (16, 16), lambda a, b: a * b),
    case("mad.lo.u32 D, A, B, C;", 32, (32, 32, 32), lambda a, b, c: a * b + c),
    case("mad.wide.s32 D, A, B, C;", 64, (32, 32, 64), lambda a, b, c: s(a, 32) * s(b, 32) + c),
    case("mad.hi.u32 D, A, B, C;", 32, (32, 32, 32), lambda a, b, c: (a * b >> 32) + c),
    case("mul24.lo.u32 D, A, B;", 32, (32, 32), lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF)),
    case("neg.s32 D, A;", 32, (32,), lambda a: -a),
    case("abs.s32 D, A;", 32, (32,), lambda a: abs(s(a, 32))),
    case("not.b32 D, A;", 32, (32,), lambda a: ~a),
    case("not.b64 D, A;", 64, (64,), lambda a: ~a),
    case("cnot.b32 D, A;", 32, (32,), lambda a: int(a == 0)),
    # shift counts above the width act as the width
    case("shl.b32 D, A, B;", 32, (32, 32), lambda a, n: a << n if n < 32 else 0),
    case("shl.b64 D, A, B;", 64, (64, 32), lambda a, n: a << n if n < 64 else 0),
    case("shr.u32 D, A, B;", 32, (32, 32), lambda a, n: a >> n if n < 32 else 0),
    case("shr.s32 D, A, B;", 32, (32, 32), lambda a, n: s(a, 32) >> min(n, 31)),
    case("shr.s64 D, A, B;", 64, (64, 32), lambda a, n: s(a, 64) >> min(n, 63)),
    case("shl.b32 D, A, 7;", 32, (32,), lambda a: a << 7),
    case("shr.s32 D, A, 31;", 32, (32,), lambda a: s(a, 32) >> 31),
    case("shr.u32 D, A, 32;", 32, (32,), lambda a: 0),
    case("shf.l.clamp.b32 D, A, B, C;", 32, (32, 32, 32), funnel_l),
    case("shf.r.wrap.b32 D, A, B, C;", 32, (32, 32, 32), funnel_r_wrap),
    case("bfe.u32 D, A, B, C;", 32, (32, 32, 32), bfe_u),
    case("bfe.s32 D, A, B, C;", 32, (32, 32, 32), bfe_s),
    case("bfi.b32 D, A, B, C, E;", 32, (32, 32, 32, 32), bfi),
    case("bfind.u32 D, A;", 32, (32,), lambda a: a.bit_length() - 1),
    case("bfind.shiftamt.u32 D, A;", 32, (32,), lambda a: 32 - a.bit_length() if a else -1),
    case("clz.b32 D, A;", 32, (32,), lambda a: 32 - a.bit_length()),
    case("clz.b64 D, A;", 32, (64,), lambda a: 64 - a.bit_length()),
    case("popc.b32 D, A;", 32, (32,), lambda a: a.bit_count()),
    case("popc.b64 D, A;", 32, (64,), lambda a: a.bit_count()),
    case("brev.b32 D, A;", 32, (32,), brev),
    case("prmt.b32 D, A, B, C;", 32, (32, 32, 32), prmt),
    case("lop3.b32 D, A, B, C, 0xca;", 32, (32, 32, 32), lambda a, b, c: (a & b) | (~a & c)),
    case("lop3.b32 D, A, B, C, 0x96;", 32, (32, 32, 32), lambda a, b, c: a ^ b ^ c),
    case("sad.u32 D, A, B, C;", 32, (32, 32, 32), lambda a, b, c: abs(a - b) + c),
    case(
        "dp4a.s32.s32 D, A, B, C;", 32, (32, 32, 32),
        lambda a, b, c: c + sum(s(a >> i & 255, 8) * s(b >> i & 255, 8) for i in (0, 8, 16, 24)),
    ),
    case("mov.b32 D, A;", 32, (32,), lambda a: a),
    case("mov.b64 D, {A, B};", 64, (32, 32), lambda a, b: b << 32 | a),
    case("mov.b32 {%h1, %h2}, A; mov.b32 D, {%h2, %h1};", 32, (32,),
         lambda a: a >> 16 | a << 16),
    case("setp.lt.s32 %p1, A, B; selp.b32 D, A, B, %p1;", 32, (32, 32),
         lambda a, b: a if s(a, 32) < s(b, 32) else b),
    case("setp.hi.u32 %p1|%p2, A, B; selp.u32 D, 1, 2, %p2;", 32, (32, 32),
         lambda a, b: 2 if a > b else 1),
    case("setp.ne.b32 %p3, A, 0; setp.ge.and.u32 %p1, A, B, %p3; selp.b32 D, 7, 9, %p1;", 32,
         (32, 32), lambda a, b: 7 if a >= b and a != 0 else 9),
    case("setp.eq.u32 %p1, A, B; not.pred %p2, %p1; xor.pred %p3, %p1, %p2; selp.b32 D, 1, 0, %p3;",
         32, (32, 32), lambda a, b: 1),
    case("set.lt.u32.s32 D, A, B;", 32, (32, 32), lambda a, b: -1 if s(a, 32) < s(b, 32) else 0),
    case("slct.b32.s32 D, A, B, C;", 32, (32, 32, 32), lambda a, b, c: a if s(c, 32) >= 0 else b),
    case("min.s16x2 D, A, B;", 32, (32, 32), lambda a, b: sum(
        (min(s(a >> i & 0xFFFF, 16), s(b >> i & 0xFFFF, 16)) & 0xFFFF) << i for i in (0, 16))),
    case("cvt.u64.u32 D, A;", 64, (32,), lambda a: a),
    case("cvt.s64.s32 D, A;", 64, (32,), lambda a: s(a, 32)),
    case("cvt.u32.u64 D, A;", 32, (64,), lambda a: a),
    case("cvt.s32.s8 D, A;", 32, (32,), lambda a: s(a & 255, 8)),
    case("cvt.u16.u32 D, A;", 16, (32,), lambda a: a),
    case("cvt.sat.s8.s32 D, A;", 32, (32,), lambda a: max(-128, min(127, s(a, 32)))),
    case("cvt.sat.u8.s32 D, A;", 32, (32,), lambda a: max(0, min(255, s(a, 32)))),
]  # fmt: skip


def _body(text: str, out: int, ins: tuple[int, ...], wrap: str, uniform: bool) -> str:
    """Load the operands of a lane (or of lane 0), run the text, store the result."""
    names = {"D": f"{REGISTER[out]}20"}
    lines = ["mov.u32 %r50, %tid.x;", "mov.u32 %r51, 0;" if uniform else "mov.u32 %r51, %r50;"]
    for i, bits in enumerate(ins):
        names["ABCE"[i]] = f"{REGISTER[bits]}{21 + i}"
        lines += [
            f"ld.param.u64 %rd50, [x{i}]; mad.wide.u32 %rd50, %r51, {bits // 8}, %rd50;",
            f"ld.global.b{bits} {names['ABCE'[i]]}, [%rd50];",
        ]
    for key, name in names.items():
        text = text.replace(f" {key}", f" {name}").replace(f"{{{key}", f"{{{name}")
    lines += [f"mov.b{out} {names['D']}, 0;", wrap.replace("BODY", text)]
    lines += [
        f"ld.param.u64 %rd51, [d]; mad.wide.u32 %rd51, %r50, {out // 8}, %rd51;",
        f"st.global.b{out} [%rd51], {names['D']};",
    ]
    return "\n".join(lines)


def _run(text: str, out: int, ins: tuple[int, ...], inputs: list[np.ndarray], wrap: str,
         uniform: bool) -> list[int]:  # fmt: skip
    params = [f".u64 x{i}" for i in range(len(ins))] + [".u64 d"]
    result = np.zeros(32, f"u{out // 8}")
    arrays = {f"x{i}": x for i, x in enumerate(inputs)} | {"d": result}
    run(module(_body(text, out, ins, wrap, uniform), params), arrays)
    return [int(v) for v in result]


@pytest.mark.parametrize(("text", "out", "ins", "reference"), CASES)
def test_integer_rows(text: str, out: int, ins: tuple[int, ...], reference: Reference) -> None:
    inputs = [interesting(bits, seed) for seed, bits in enumerate(ins)]
    got = _run(text, out, ins, inputs, "BODY", uniform=False)
    want = [reference(*(int(x[i]) for x in inputs)) & ((1 << out) - 1) for i in range(32)]
    assert got == want


@pytest.mark.parametrize(("text", "out", "ins", "reference"), CASES)
def test_integer_uniform(text: str, out: int, ins: tuple[int, ...], reference: Reference) -> None:
    """Operands loaded from one address are one integer, and take the other half of the compiler."""
    for i in range(6):
        inputs = [np.roll(interesting(bits, seed), i) for seed, bits in enumerate(ins)]
        got = _run(text, out, ins, inputs, "BODY", uniform=True)
        assert got == [reference(*(int(x[0]) for x in inputs)) & ((1 << out) - 1)] * 32


@pytest.mark.parametrize(("text", "out", "ins", "reference"), CASES[::5])
def test_integer_masked(text: str, out: int, ins: tuple[int, ...], reference: Reference) -> None:
    """Inside a divergent branch only the lanes that are there may be written."""
    inputs = [interesting(bits, seed) for seed, bits in enumerate(ins)]
    wrap = "and.b32 %r52, %r50, 1; setp.eq.u32 %p9, %r52, 0; @%p9 bra $SKIP;\nBODY\n$SKIP:"
    got = _run(text, out, ins, inputs, wrap, uniform=False)
    for i in range(32):
        want = reference(*(int(x[i]) for x in inputs)) & ((1 << out) - 1)
        assert got[i] == (want if i % 2 else 0)


# -- floats ----------------------------------------------------------------------------------------


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
    got = _run(text, 32, (32,) * count, inputs, "BODY", uniform=False)
    for i in range(32):
        exact = reference(*(Fraction(f32(int(x[i]))) for x in inputs))
        want = nearest_f32(exact)
        assert got[i] == want or (exact == 0 and got[i] in (0, 1 << 31)), (i, hex(got[i]), hex(want))


def test_fma_tie_that_double_rounding_misses() -> None:
    """a = (1+2^-23)2^-12, b = (1-2^-23)2^-12, c = 1+2^-23: the answer is c, f64 alone says more."""
    inputs = [np.full(32, b, np.uint32) for b in TIE]
    got = _run("fma.rn.f32 D, A, B, C;", 32, (32,) * 3, inputs, "BODY", uniform=False)
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
    got = np.array(_run(f"{name} D, A;", 32, (32,), [x.view(np.uint32)], "BODY", False), np.uint32)
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
    got = np.array(_run("min.f32 D, A, B;", 32, (32, 32), [SPECIAL, other], "BODY", False), np.uint32)
    want = np.where(np.isnan(a), b, np.where(np.isnan(b), a, np.minimum(a, b)))
    finite = ~np.isnan(want)
    assert (got.view(np.float32)[finite] == want[finite]).all()
    zeros = (a == 0) & (b == 0)  # -0 is the smaller one
    assert (got[zeros] == np.where(np.signbit(a) | np.signbit(b), 0x80000000, 0)[zeros]).all()
    got = np.array(_run("max.NaN.f32 D, A, B;", 32, (32, 32), [SPECIAL, other], "BODY", False), "u4")
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
    assert set(_run(text.replace("A", "%f1").replace("B", "%f2").replace(
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
    got = np.array(_run(text, 32, (32,), [x.view("u4")], "BODY", False), np.uint32).view(np.int32)
    want = np.clip(np.nan_to_num(reference(x.astype(np.float64)), nan=0), -(2**31), 2**31 - 1)
    assert got.tolist() == want.astype(np.int64).tolist()


def test_packed_conversions_put_the_first_source_high() -> None:
    import ml_dtypes

    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(32).astype(np.float32) for _ in range(2))
    inputs = [a.view("u4"), b.view("u4")]
    for name, dtype in (("bf16x2", ml_dtypes.bfloat16), ("f16x2", np.float16)):
        got = np.array(_run(f"cvt.rn.{name}.f32 D, A, B;", 32, (32, 32), inputs, "BODY", False), "u4")
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
    got = np.array(_run(text, 32, (32,) * 3, inputs, "BODY", False), np.uint32).view(dtype)
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
        _run("fma.rn.f64 D, A, B, C;", 64, (64,) * 3, [x.view("u8") for x in (a, b, c)], "BODY",
             False), np.uint64).view(np.float64)  # fmt: skip
    want = [float(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in zip(a, b, c, strict=True)]
    assert got.tolist() == want
