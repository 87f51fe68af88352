"""Each scalar instruction against its definition in plain Python, on rows, on uniform values, and
under a mask. Values are the ones at which definitions bend: 0, 1, all ones, sign changes, and some
random ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from emulate import evaluate

pytestmark = pytest.mark.emu

Reference = Callable[..., int]


def s(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value ^ half) - half


def quotient(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def interesting(bits: int, seed: int, count: int = 32) -> np.ndarray:
    top = (1 << bits) - 1
    fixed = [
        0,
        1,
        2,
        3,
        top,
        top - 1,
        top >> 1,
        (top >> 1) + 1,
        31,
        32,
        33,
        bits - 1,
        bits,
        5,
        8,
        16,
    ]
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


@pytest.mark.parametrize(("text", "out", "ins", "reference"), CASES)
def test_integer_rows(text: str, out: int, ins: tuple[int, ...], reference: Reference) -> None:
    inputs = [interesting(bits, seed) for seed, bits in enumerate(ins)]
    got = evaluate(text, out, ins, inputs, "BODY", uniform=False)
    want = [reference(*(int(x[i]) for x in inputs)) & ((1 << out) - 1) for i in range(32)]
    assert got == want


@pytest.mark.parametrize(("text", "out", "ins", "reference"), CASES)
def test_integer_uniform(text: str, out: int, ins: tuple[int, ...], reference: Reference) -> None:
    """Operands loaded from one address are one integer, and take the other half of the compiler."""
    for i in range(6):
        inputs = [np.roll(interesting(bits, seed), i) for seed, bits in enumerate(ins)]
        got = evaluate(text, out, ins, inputs, "BODY", uniform=True)
        assert got == [reference(*(int(x[0]) for x in inputs)) & ((1 << out) - 1)] * 32


@pytest.mark.parametrize(("text", "out", "ins", "reference"), CASES[::5])
def test_integer_masked(text: str, out: int, ins: tuple[int, ...], reference: Reference) -> None:
    """Inside a divergent branch only the lanes that are there may be written."""
    inputs = [interesting(bits, seed) for seed, bits in enumerate(ins)]
    wrap = "and.b32 %r52, %r50, 1; setp.eq.u32 %p9, %r52, 0; @%p9 bra $SKIP;\nBODY\n$SKIP:"
    got = evaluate(text, out, ins, inputs, wrap, uniform=False)
    for i in range(32):
        want = reference(*(int(x[i]) for x in inputs)) & ((1 << out) - 1)
        assert got[i] == (want if i % 2 else 0)
