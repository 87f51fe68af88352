"""Integer functions of rows (32 lanes) that have no single NumPy equivalent.

Names here are what generated code calls; `NAMESPACE` at the end of `compile` collects them.
"""

from __future__ import annotations

import numpy as np

from .values import Array

U32, I32, U64, I64 = np.uint32, np.int32, np.uint64, np.int64


def lane_bits(mask: Array) -> int:
    """A bool row as a 32-bit lane mask."""
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")


def lanes_of(bits: int) -> Array:
    """A 32-bit lane mask as a bool row."""
    raw = np.frombuffer((bits & 0xFFFFFFFF).to_bytes(4, "little"), np.uint8)
    return np.unpackbits(raw, bitorder="little").view(np.bool_)


def div_int(a: int, b: int) -> int:
    """Quotient towards zero; x / 0 is all ones, as the hardware gives."""
    if b == 0:
        return -1
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def rem_int(a: int, b: int) -> int:
    return a if b == 0 else a - b * div_int(a, b)


def div_rows(a: Array, b: Array) -> Array:
    zero = b == 0
    safe = np.where(zero, b.dtype.type(1), b)
    if a.dtype.kind == "u":
        q = a // safe
    else:  # NumPy floors; PTX truncates
        magnitude = np.abs(a).view(f"u{a.itemsize}") // np.abs(safe).view(f"u{a.itemsize}")
        q = magnitude.view(a.dtype)
        q = np.where((a < 0) != (b < 0), -q, q)
    return np.where(
        zero, a.dtype.type(0) - a.dtype.type(1) if a.dtype.kind == "i" else ~q.dtype.type(0), q
    )


def rem_rows(a: Array, b: Array) -> Array:
    return np.where(b == 0, a, a - b * div_rows(a, b))


def shl_rows(a: Array, n: Array) -> Array:
    bits = a.itemsize * 8
    small = np.minimum(n, bits - 1).astype(a.dtype)
    return np.asarray(np.where(n < bits, np.left_shift(a, small), a.dtype.type(0)))


def shr_rows(a: Array, n: Array) -> Array:
    bits = a.itemsize * 8
    shifted = np.right_shift(a, np.minimum(n, bits - 1).astype(a.dtype))
    if a.dtype.kind == "i":
        return np.asarray(shifted)  # the sign fills, so width - 1 is as good as width
    return np.asarray(np.where(n < bits, shifted, a.dtype.type(0)))


def _funnel(lo: Array, hi: Array, n: Array, wrap: int) -> tuple[Array, Array]:
    count = (n & 31) if wrap else np.minimum(n, 32)
    return (hi.astype(U64) << U64(32)) | lo, count.astype(U64)


def funnel_l(lo: Array, hi: Array, n: Array, wrap: int) -> Array:
    """The upper word of hi:lo << n."""
    pair, count = _funnel(lo, hi, n, wrap)
    return ((pair << count) >> U64(32)).astype(U32)


def funnel_r(lo: Array, hi: Array, n: Array, wrap: int) -> Array:
    """The lower word of hi:lo >> n."""
    pair, count = _funnel(lo, hi, n, wrap)
    return (pair >> count).astype(U32)


def low24_u(a: Array) -> Array:
    return (a & 0xFFFFFF).astype(U64)


def low24_s(a: Array) -> Array:
    return ((a << U32(8)).view(I32) >> 8).astype(I64)


def high_product_u64(a: Array, b: Array) -> Array:
    """The upper 64 bits of 64 x 64, by 32-bit halves."""
    a, b = np.broadcast_arrays(a.astype(U64), np.asarray(b).astype(U64))
    a0, a1, b0, b1 = a & 0xFFFFFFFF, a >> U64(32), b & 0xFFFFFFFF, b >> U64(32)
    middle = a1 * b0 + (a0 * b0 >> U64(32))
    carry = a0 * b1 + (middle & 0xFFFFFFFF)
    return np.asarray(a1 * b1 + (middle >> U64(32)) + (carry >> U64(32)))


def high_product_s64(a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(a, np.asarray(b, I64))
    ua, ub = a.view(U64) if a.flags.c_contiguous else a.astype(U64), b.astype(U64)
    high = high_product_u64(ua, ub)
    high = high - np.where(a < 0, ub, U64(0)) - np.where(b < 0, ua, U64(0))
    return high.view(I64)


def _field_operands(position: Array, length: Array, bits: int) -> list[tuple[int, int]]:
    """Position and length of each lane. Of 32 bits the hardware reads eight of each; 64 bits are
    done by shifts, which take all of them, as far as the width."""
    pairs = zip(position.tolist(), length.tolist(), strict=True)
    if bits == 32:
        return [(pos & 255, n & 255) for pos, n in pairs]
    return [(min(pos, bits), min(n, bits)) for pos, n in pairs]


def bfe_rows(a: Array, position: Array, length: Array, is_signed: int) -> Array:
    """Bit field extract (PTX ISA 9.7.1.19): zero or sign extended."""
    bits = a.itemsize * 8
    out = np.zeros_like(a)
    for i, (pos, n) in enumerate(_field_operands(position, length, bits)):
        value = int(a[i])
        sign = 0
        if is_signed and n:
            sign = (value >> min(pos + n - 1, bits - 1)) & 1
        field = (value >> pos) & ((1 << n) - 1)
        have = max(min(n, bits - pos), 0)
        if sign:
            field |= ((1 << bits) - 1) & ~((1 << have) - 1)
        out[i] = field & ((1 << bits) - 1)
    return out


def bfi_rows(a: Array, b: Array, position: Array, length: Array) -> Array:
    """Insert the low bits of a into b (PTX ISA 9.7.1.20)."""
    bits = a.itemsize * 8
    full = (1 << bits) - 1
    out = np.empty_like(b)
    for i, (pos, n) in enumerate(_field_operands(position, length, bits)):
        field = ((1 << n) - 1) << pos & full
        out[i] = (int(b[i]) & ~field) | (int(a[i]) << pos & field)
    return out


def _bit_length(a: Array) -> Array:
    return np.array([int(v).bit_length() for v in a], np.int64)


def clz_rows(a: Array) -> Array:
    return (a.itemsize * 8 - _bit_length(a)).astype(U32)


def popc_rows(a: Array) -> Array:
    return np.array([int(v).bit_count() for v in a], U32)


def bfind_rows(a: Array, is_signed: int, shift_amount: int) -> Array:
    bits = a.itemsize * 8
    if is_signed:
        negative = (a >> a.dtype.type(bits - 1)) & 1
        a = np.where(negative == 1, ~a, a)
    top = _bit_length(a) - 1
    found = np.where(top < 0, -1, bits - 1 - top if shift_amount else top)
    return found.astype(U32)


def brev_rows(a: Array) -> Array:
    raw = a.view(np.uint8).reshape(-1, a.itemsize)
    reversed_ = np.packbits(np.unpackbits(raw, axis=1)[:, ::1], axis=1, bitorder="little")
    return np.ascontiguousarray(reversed_[:, ::-1]).view(a.dtype).ravel()


def prmt_rows(a: Array, b: Array, selector: Array) -> Array:
    """Pick four of the eight bytes b:a; the top bit of a selector nibble replicates the sign."""
    pool = np.stack([a, b], axis=1).view(np.uint8).reshape(-1, 8)
    nibbles = np.stack([(selector >> U32(4 * i)) & 15 for i in range(4)], axis=1)
    picked = np.take_along_axis(pool, (nibbles & 7).astype(np.intp), axis=1)
    signs = np.where(picked & 0x80, 0xFF, 0).astype(np.uint8)
    out = np.where(nibbles & 8, signs, picked)
    return np.ascontiguousarray(out).view(U32).ravel()


def _parts(a: Array, dtype: str, count: int) -> Array:
    return a.view(dtype).reshape(-1, count).astype(I64)


def dp4a_rows(a: Array, b: Array, c: Array, a_signed: int, b_signed: int) -> Array:
    x = _parts(a, "i1" if a_signed else "u1", 4)
    y = _parts(b, "i1" if b_signed else "u1", 4)
    return np.asarray(((x * y).sum(axis=1) + c.astype(I64)).astype(U32))


def dp2a_rows(a: Array, b: Array, c: Array, a_signed: int, b_signed: int, part: int) -> Array:
    x = _parts(a, "i2" if a_signed else "u2", 2)
    y = _parts(b, "i1" if b_signed else "u1", 4)[:, part : part + 2]
    return np.asarray(((x * y).sum(axis=1) + c.astype(I64)).astype(U32))


def saturate_s32(value: int) -> int:
    return max(-(1 << 31), min(value, (1 << 31) - 1))
