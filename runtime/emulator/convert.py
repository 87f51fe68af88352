"""cvt (PTX ISA 9.7.9.21): every width, rounding mode, saturation, and the packed forms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .alu_float import typed
from .emit import Emitter
from .functions_float import (
    HALF_NAN,
    f64_to_bf16,
    f64_to_f16,
    ftz,
    one_nan,
    relu,
    round_f32,
    saturate,
)
from .isa import all_sources, opcode
from .operands import Op, Reg, Value
from .space import WINDOWS
from .values import BF16, BITS_CODE, E4M3, E5M2, Array, type_bits

F32, F64, U16, U32 = np.float32, np.float64, np.uint16, np.uint32
F64_NAN_AS_F16 = U16(0x7E00)
TF32_NAN = 0x7FFFE000
INTEGER_ROUNDING = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
FLOAT_TYPES = frozenset({"f16", "bf16", "f32", "f64"})
PACKED = frozenset({"f16x2", "bf16x2", "e4m3x2", "e5m2x2"})
KNOWN = frozenset({"rn", "rz", "rm", "rp", "rna", "ftz", "sat", "satfinite", "relu", "pack"})


def _is_integer(type_: str) -> bool:
    return type_[0] in "us" and type_[1:].isdigit()


def _uniform(op: Op, uniform: Callable[[Value], bool]) -> bool:
    """Integer to integer stays one integer; anything with a float is a row."""
    dst, src = op.quals[-2:]
    return _is_integer(dst) and _is_integer(src) and all_sources(op, uniform)


@opcode("cvt", uniform=_uniform, pure=True)
def convert(e: Emitter, op: Op) -> None:
    dst, src = op.quals[-2:]
    modifiers = op.quals[:-2]
    unknown = [q for q in modifiers if q not in KNOWN and q not in INTEGER_ROUNDING]
    d, *sources = op.operands
    if op.has("pack"):
        _pack(e, op)
        return
    if unknown:
        raise op.unsupported(f".{unknown[0]} is not executed")
    if dst in PACKED or src in PACKED:
        _packed(e, op, dst, src)
    elif dst == "tf32":
        _to_tf32(e, op)
    elif _is_integer(dst) and _is_integer(src):
        _integer(e, op, d, sources[0], dst, src)
    elif _is_integer(src):
        source = sources[0]
        row = e.bits_row(
            source, source.bits if isinstance(source, Reg) else max(type_bits(src), 16)
        )
        row = f"int_row({row}, '{src}')"
        _write(e, d, f"int_to_float({row}, '{dst}', '{_mode(op, 'rn')}', {_flags(op)})", dst)
    elif _is_integer(dst):
        row = _float_row(e, sources[0], src)
        mode = next((q for q in modifiers if q in INTEGER_ROUNDING), None)
        if mode is None:
            raise op.unsupported("a float-to-integer conversion needs .rni, .rzi, .rmi or .rpi")
        row = f"float_to_int({row}, '{dst}', '{src}', '{mode}', {_flags(op)})"
        _write(e, d, row, dst)
    elif dst in FLOAT_TYPES and src in FLOAT_TYPES:
        row = _float_row(e, sources[0], src)
        mode = next((q for q in modifiers if q in INTEGER_ROUNDING), _mode(op, "rn"))
        _write(e, d, f"float_to_float({row}, '{dst}', '{src}', '{mode}', {_flags(op)})", dst)
    else:
        raise op.unsupported(f"{src} to {dst}")


def _mode(op: Op, default: str) -> str:
    return next((q for q in op.quals if q in ("rn", "rz", "rm", "rp", "rna")), default)


def _pack(e: Emitter, op: Op) -> None:
    """cvt.pack: two s32, saturated to 16 or 8 bits, the first above the second; of 8 bits under the
    lower half of a third register (PTX ISA 9.7.9.22)."""
    d, *sources = op.operands
    to = next((q for q in op.quals if q in ("u16", "s16", "u8", "s8")), "")
    if not to or op.quals[:2] != ("pack", "sat") or (len(sources) == 3) != to.endswith("8"):
        raise op.unsupported("only .sat of s32 to 16 and 8 bits is known here")
    rows = ", ".join(e.bits_row(s, 32) for s in sources)
    e.assign(d, f"pack_integers('{to}', {rows})", "U")


def pack_integers(to: str, high: Array, low: Array, above: Array | None = None) -> Array:
    """See `_pack`."""
    bits = type_bits(to)
    least = 0 if to[0] == "u" else -(1 << (bits - 1))
    pair = np.clip(np.stack([high, low]).view(np.int32), least, least + (1 << bits) - 1)
    upper, lower = pair.view(U32) & U32((1 << bits) - 1)
    packed = upper << U32(bits) | lower
    return np.asarray(packed if above is None else above << U32(16) | packed)


def _flags(op: Op) -> int:
    """1 ftz, 2 sat, 4 relu, 8 satfinite."""
    names = ("ftz", "sat", "relu", "satfinite")
    return sum(1 << i for i, name in enumerate(names) if op.has(name))


def _float_row(e: Emitter, value: Value, src: str) -> str:
    bits = type_bits(src)
    return e.bits_row(typed(value, src), bits)


def _write(e: Emitter, d: Value, row: str, dst: str) -> None:
    """Write result bits, extended to the register's width, which may exceed the type's."""
    bits = d.bits if isinstance(d, Reg) else max(type_bits(dst), 16)
    e.assign(d, f"extend({row}, '{dst}', {bits})", BITS_CODE[bits])


def _integer(e: Emitter, op: Op, d: Value, a: Value, dst: str, src: str) -> None:
    in_bits, out_bits = type_bits(src), type_bits(dst)
    register = d.bits if isinstance(d, Reg) else max(out_bits, 16)
    mask = (1 << register) - 1
    if e.uniform(d):
        text = e.scalar(a, in_bits, signed=src[0] == "s")
        if op.has("sat"):
            lo, hi = _limits(dst)
            text = f"max({lo}, min({text}, {hi}))"
        else:
            text = f"({text} & {(1 << out_bits) - 1})"
            if dst[0] == "s":
                half = 1 << (out_bits - 1)
                text = f"(({text} ^ {half}) - {half})"
        e.set_scalar(d, f"{text} & {mask}")
        return
    width = a.bits if isinstance(a, Reg) else max(in_bits, 16)
    row = e.bits_row(a, width)
    e.assign(
        d, f"int_to_int({row}, '{src}', '{dst}', {register}, {int(op.has('sat'))})",
        BITS_CODE[register],
    )  # fmt: skip


def _limits(type_: str) -> tuple[int, int]:
    bits = type_bits(type_)
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if type_[0] == "s" else (0, (1 << bits) - 1)


def _to_tf32(e: Emitter, op: Op) -> None:
    d, a = op.operands
    row = e.bits_row(typed(a, "f32"), 32)
    e.assign(d, f"f32_to_tf32({row}, '{_mode(op, 'rna')}', {_flags(op)})", "U")


def _packed(e: Emitter, op: Op, dst: str, src: str) -> None:
    d, *sources = op.operands
    mode = _mode(op, "rn")
    if dst in ("f16x2", "bf16x2") and src == "f32":
        hi, lo = (e.vector(s, "F", array=True) for s in sources)
        name = {"f16x2": "pack_f16", "bf16x2": "pack_bf16"}[dst]
        e.assign(d, f"{name}({lo}, {hi}, '{mode}', {_flags(op)})", "U")
    elif dst in ("e4m3x2", "e5m2x2") and src == "f32":
        hi, lo = (e.vector(s, "F", array=True) for s in sources)
        e.assign(d, f"pack_fp8({lo}, {hi}, '{dst}', {_flags(op)})", "H")
    elif dst in ("e4m3x2", "e5m2x2") and src == "f16x2":
        row = e.bits_row(sources[0], 32)
        e.assign(d, f"pack_fp8_from_f16({row}, '{dst}', {_flags(op)})", "H")
    elif dst == "f16x2" and src in ("e4m3x2", "e5m2x2"):
        row = e.bits_row(sources[0], 16)
        e.assign(d, f"unpack_fp8({row}, '{src}', {_flags(op)})", "U")
    else:
        raise op.unsupported(f"{src} to {dst}")


@opcode("cvta", uniform=all_sources, pure=True)
def convert_address(e: Emitter, op: Op) -> None:
    """Generic address from one of a state space, or `.to` the reverse. Global is the identity."""
    d, a = op.operands
    space = next(q for q in op.quals if q != "to").partition("::")[0]
    if op.quals[-1] != "u64":
        raise op.unsupported("generic addresses have 64 bits on sm_90a")
    if space not in ("shared", "global", "local", "param", "const"):
        raise op.unsupported(f"state space {space}")
    base = 0 if space == "global" else WINDOWS[space]
    sign = "-" if op.has("to") else "+"
    if e.uniform(d):
        mask = 0xFFFFFFFF if op.has("to") and space == "shared" else 0xFFFFFFFFFFFFFFFF
        e.set_scalar(d, f"({e.scalar(a, 64)} {sign} {base}) & {mask}")
    else:
        e.apply("subtract" if op.has("to") else "add", d, "W",
                [e.vector(a, "W", array=e.uniform(a)), str(base)])  # fmt: skip


# -- functions of rows ---------------------------------------------------------------------------


def int_row(bits: Array, src: str) -> Array:
    """Register bits as the integers that they stand for."""
    narrow = np.dtype(f"{'i' if src[0] == 's' else 'u'}{type_bits(src) // 8}")
    return bits.astype(f"u{narrow.itemsize}").view(narrow)


def int_to_int(bits: Array, src: str, dst: str, register: int, sat: int) -> Array:
    value = int_row(bits, src)
    if sat:
        lo, hi = _limits(dst)
        info = np.iinfo(value.dtype)
        value = np.clip(value, max(lo, int(info.min)), min(hi, int(info.max)))
    narrow = np.dtype(f"{'i' if dst[0] == 's' else 'u'}{type_bits(dst) // 8}")
    wide = np.dtype(f"{narrow.kind}{register // 8}")
    return value.astype(narrow).astype(wide).view(f"u{register // 8}")


def extend(bits: Array, dst: str, register: int) -> Array:
    """Result bits to the register's width, by sign for signed types."""
    out = np.dtype(f"u{register // 8}")
    if bits.itemsize == out.itemsize:
        return bits.view(out)
    if dst[0] == "s":
        return bits.view(f"i{bits.itemsize}").astype(f"i{out.itemsize}").view(out)
    return bits.astype(out)


def int_to_float(value: Array, dst: str, mode: str, flags: int) -> Array:
    if flags & 2:  # .sat: to [0, 1]
        value = np.clip(value, 0, 1)
    if dst == "f64":
        return _directed(value, mode).view(np.uint64)
    odd = _int_to_odd(value)
    if dst == "f32":
        return round_f32(odd, mode).view(U32)
    return f64_to_f16(odd, mode, 0) if dst == "f16" else f64_to_bf16(odd, mode, 0)


def _int_to_odd(value: Array) -> Array:
    """Integers as f64: exact, or of 53 bits and more cut, the last bit set where bits were lost."""
    negative = value < 0
    wide = value.astype(np.uint64 if value.dtype.kind == "u" else np.int64)
    magnitude = np.where(negative, -wide, wide).astype(np.uint64)
    lost = (magnitude & np.uint64(0x7FF)) != 0
    cut = magnitude >> np.uint64(11) << np.uint64(11) | lost.astype(np.uint64) << np.uint64(11)
    out = np.where(magnitude >> np.uint64(53), cut, magnitude).astype(F64)
    return np.where(negative, -out, out)


def _directed(value: Array, mode: str) -> Array:
    """Integers of up to 64 bits to f64, exactly rounded."""
    out = value.astype(F64)
    if mode == "rn":
        return out
    for i, v in enumerate(value.tolist()):
        near = int(out[i])
        if (mode == "rp" and near < v) or (mode == "rz" and near < v < 0):
            out[i] = np.nextafter(out[i], np.inf)
        elif (mode == "rm" and near > v) or (mode == "rz" and near > v > 0):
            out[i] = np.nextafter(out[i], -np.inf)
    return out


def _as_float(bits: Array, src: str) -> Array:
    """Register bits as f64 (f32 stays f32: its integers are found in f32)."""
    if src == "f64":
        return bits.view(F64)
    if src == "f32":
        return bits.view(F32)
    if src == "f16":
        return bits.view(np.float16).astype(F64)
    return (bits.astype(U32) << U32(16)).view(F32).astype(F64)


def float_to_int(bits: Array, dst: str, src: str, mode: str, flags: int) -> Array:
    """Round, then saturate. NaN gives 0, or the top bit alone for 64-bit sources or results."""
    value = _as_float(bits, src)
    value = (ftz(value) if flags & 1 else value).astype(F64)
    rounded = INTEGER_ROUNDING[mode](value)
    lo, hi = _limits(dst)
    width = type_bits(dst)
    out_dtype = np.dtype(f"{'i' if dst[0] == 's' else 'u'}{width // 8}")
    # The largest 64-bit integers are no doubles: clip on the float side, then patch the ends.
    inside = np.clip(rounded, float(lo), float(hi) if width < 64 else float(hi - 2**11 + 1))
    nan = np.isnan(value)
    out = np.where(nan, 0.0, inside).astype(out_dtype)
    out = np.where(rounded >= float(hi), out_dtype.type(hi), out)
    if src == "f64" or width == 64:
        out = np.where(nan, out_dtype.type(lo if dst[0] == "s" else 1 << (width - 1)), out)
    return np.asarray(out).view(f"u{width // 8}")


def float_to_float(bits: Array, dst: str, src: str, mode: str, flags: int) -> Array:
    value = _as_float(bits, src)
    flush = flags & 1
    if src == "f32" and dst != "f16" and (flush or mode in INTEGER_ROUNDING):
        # Done by instructions of f32 arithmetic, which make one NaN of all. To f16 nothing is
        # flushed: rounded up or down, the least subnormal still gives one.
        value = one_nan(ftz(value) if flush else value)
    if mode in INTEGER_ROUNDING:
        value = INTEGER_ROUNDING[mode](value)
        mode = "rn"
    if flags & 2:
        value = saturate(value)
    if flags & 4:
        value = relu(value)
    if dst == "f64":
        return value.astype(F64).view(np.uint64)
    if dst == "f32":
        if src == "f32":
            return value.view(U32)
        single = round_f32(value.astype(F64), mode)
        if src != "f64":  # an exact one, by arithmetic again
            return one_nan(single).view(U32)
        return (ftz(single) if flush else single).view(U32)
    if dst == "f16":
        half = f64_to_f16(value.astype(F64), mode, 0)
        return np.where(np.isnan(value), F64_NAN_AS_F16, half) if src == "f64" else half
    return f64_to_bf16(value.astype(F64), mode, 0)


def pack_bf16(lo: Array, hi: Array, mode: str, flags: int) -> Array:
    """cvt.bf16x2.f32: `lo` goes to the low half."""
    pair = np.empty((32, 2), F32)
    pair[:, 0] = lo
    pair[:, 1] = hi
    if flags & 4:
        pair = relu(pair)
    if mode == "rz":
        half = (pair.view(U32) >> U32(16)).astype(U16)
    else:
        half = pair.astype(BF16).view(U16)
    half = _canonical_nan(pair, half)
    if flags & 8:
        half = _finite(half, 0x7F7F, 0x7F80)
    packed: Array = half.view(U32)[:, 0]
    return packed


def pack_f16(lo: Array, hi: Array, mode: str, flags: int) -> Array:
    """cvt.f16x2.f32: `lo` goes to the low half."""
    pair = np.empty((32, 2), F32)
    pair[:, 0] = lo
    pair[:, 1] = hi
    if flags & 4:
        pair = relu(pair)
    half = (
        f64_to_f16(pair.astype(F64), mode, 0) if mode == "rz" else pair.astype(np.float16).view(U16)
    )
    half = _canonical_nan(pair, half)
    if flags & 8:
        half = _finite(half, 0x7BFF, 0x7C00)
    packed: Array = np.ascontiguousarray(half).view(U32)[:, 0]
    return packed


def _canonical_nan(pair: Array, half: Array) -> Array:
    """The NaN that the hardware makes, where there is one. A sum of squares finds out cheaply."""
    flat = pair.reshape(-1)
    squares = np.dot(flat, flat)
    if squares == squares:
        return half
    return np.where(np.isnan(pair), U16(HALF_NAN), half)


def _finite(half: Array, largest: int, infinity: int) -> Array:
    return np.where((half & 0x7FFF) == infinity, (half & U16(0x8000)) | U16(largest), half)


def _to_fp8(value: Array, dst: str, flags: int) -> Array:
    """f32 to fp8 with .satfinite: overflow and infinities to the largest finite value."""
    dtype, largest = (E4M3, 448.0) if dst == "e4m3x2" else (E5M2, 57344.0)
    if flags & 4:
        value = relu(value)
    nan = np.isnan(value)
    out = np.clip(value, -largest, largest).astype(dtype).view(np.uint8)
    return np.where(nan, np.uint8(0x7F), out)


def pack_fp8(lo: Array, hi: Array, dst: str, flags: int) -> Array:
    both = np.stack([_to_fp8(lo, dst, flags), _to_fp8(hi, dst, flags)], axis=1)
    return np.ascontiguousarray(both).view(U16)[:, 0]


def pack_fp8_from_f16(pair: Array, dst: str, flags: int) -> Array:
    value = pair.view(np.float16).astype(F32)
    return np.ascontiguousarray(_to_fp8(value, dst, flags)).view(U16)


def unpack_fp8(pair: Array, src: str, flags: int) -> Array:
    dtype = E4M3 if src == "e4m3x2" else E5M2
    value = pair.view(np.uint8).view(dtype).astype(F32)
    half = (relu(value) if flags & 4 else value).astype(np.float16)
    bits = np.where(np.isnan(value), U16(HALF_NAN), half.view(U16))
    return np.ascontiguousarray(bits).view(U32)


def f32_to_tf32(bits: Array, mode: str, flags: int) -> Array:
    """10 mantissa bits: rna rounds ties away from zero, rn to even, rz cuts."""
    if flags & 4:
        bits = relu(bits.view(F32)).view(U32)
    if mode == "rz":
        rounded = bits
    elif mode == "rna":
        rounded = bits + U32(0x1000)
    else:
        rounded = bits + U32(0xFFF) + ((bits >> U32(13)) & U32(1))
    special = (bits & U32(0x7F800000)) == 0x7F800000
    out = np.where(special, bits, rounded) & U32(0xFFFFE000)
    if mode != "rna":
        return np.where(np.isnan(bits.view(F32)), U32(TF32_NAN), out)
    # Integer arithmetic: a NaN passes, and .satfinite takes the number below, of a NaN too.
    if flags & 8:
        finite = np.abs(out.view(F32)) < np.inf
        out = np.where(finite, out, out - U32(0x2000))
    return out
