"""Integer, bit and predicate instructions (PTX ISA 9.7.1, 9.7.6, 9.7.8 and 9.7.9.1).

Every emitter has two halves: Python integers where the destination is uniform, else NumPy rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .alu_carry import emit_carry
from .alu_float import float_binary, float_unary, typed
from .emit import Emitter
from .isa import all_sources, integer_sources, never, opcode
from .operands import Op, Reg, Two, Value
from .values import BITS_CODE, SIGNED_CODE, type_bits, type_code

# ufunc, and the scalar expression over a, b (signed or unsigned by type) before masking.
BINARY: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "add": ("add", "{a} + {b}"),
        "sub": ("subtract", "{a} - {b}"),
        "and": ("bitwise_and", "{a} & {b}"),
        "or": ("bitwise_or", "{a} | {b}"),
        "xor": ("bitwise_xor", "{a} ^ {b}"),
        "min": ("minimum", "min({a}, {b})"),
        "max": ("maximum", "max({a}, {b})"),
    }
)


# Qualifiers that each instruction may have besides its types.
QUALIFIERS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "add": frozenset({"sat", "cc"}), "sub": frozenset({"sat", "cc"}),
        "min": frozenset({"relu"}), "max": frozenset({"relu"}),
        "mul": frozenset({"lo", "hi", "wide"}), "mad": frozenset({"lo", "hi", "wide", "sat", "cc"}),
        "mul24": frozenset({"lo", "hi"}), "mad24": frozenset({"lo", "hi", "sat"}),
        "setp": frozenset(
            {
                "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "num", "nan",
                "equ", "neu", "ltu", "leu", "gtu", "geu", "and", "or", "xor", "ftz",
            }
        ),
        "shf": frozenset({"l", "r", "clamp", "wrap"}), "bfind": frozenset({"shiftamt"}),
        "slct": frozenset({"ftz"}), "lop3": frozenset({"and", "or"}),
        "dp2a": frozenset({"lo", "hi"}),
        "testp": frozenset({"finite", "infinite", "number", "notanumber", "normal", "subnormal"}),
    }
)  # fmt: skip
TYPES = frozenset(
    {f"{kind}{bits}" for kind in "usb" for bits in (8, 16, 32, 64)}
    | {"f16", "f32", "f64", "bf16", "f16x2", "bf16x2", "u16x2", "s16x2", "pred", "b128"}
)


def check_qualifiers(op: Op) -> None:
    """UnsupportedPtx for a qualifier that is neither a type nor known for the instruction."""
    known = QUALIFIERS.get("setp" if op.opcode == "set" else op.opcode, frozenset())
    for q in op.quals:
        if q not in known and q not in TYPES:
            raise op.unsupported(f"qualifier .{q} is not known here")


def integer_type(op: Op) -> str | None:
    """The integer type qualifier (u32, s64, b16, u16x2, ...), or None for a float instruction."""
    last = op.quals[-1]
    return last if last[0] in "usb" and last[1:].split("x")[0].isdigit() else None


@opcode("add", "sub", "and", "or", "xor", "min", "max", uniform=integer_sources, pure=True)
def binary(e: Emitter, op: Op) -> None:
    type_ = op.quals[-1]
    if type_ == "pred" or integer_type(op) is not None:
        check_qualifiers(op)
    if type_ == "pred":
        _predicate_binary(e, op)
    elif integer_type(op) is None:
        float_binary(e, op)
    elif type_.endswith("x2"):
        _packed_binary(e, op, type_)
    else:
        _integer_binary(e, op, type_)


def _integer_binary(e: Emitter, op: Op, type_: str) -> None:
    if op.has("cc"):
        emit_carry(e, op)
        return
    d, a, b = op.operands
    bits, ordered = type_bits(type_), op.opcode in ("min", "max")
    is_signed = type_[0] == "s" and (ordered or op.has("sat"))
    ufunc, scalar = BINARY[op.opcode]
    if op.has("sat"):  # add.sat.s32, sub.sat.s32
        wide = [e.vector(v, "I", array=True) + ".astype(DT_X)" for v in (a, b)]
        clamped = f"clip({ufunc}({wide[0]}, {wide[1]}), -2147483648, 2147483647).astype(DT_I)"
        _either(e, d, f"saturate_s32({_scalar_form(e, scalar, a, b, bits, True)})", clamped, "I")
    elif op.has("relu"):
        rows = e.vectors((a, b), "I")
        text = f"max(0, {_scalar_form(e, scalar, a, b, bits, True)})"
        _either(e, d, text, f"maximum({ufunc}({rows[0]}, {rows[1]}), 0)", "I")
    elif e.uniform(d):
        text = _scalar_form(e, scalar, a, b, bits, is_signed)
        needs_mask = op.opcode in ("add", "sub") or is_signed
        e.set_scalar(d, f"{text} & {(1 << bits) - 1}" if needs_mask else text)
    else:
        code = SIGNED_CODE[bits] if is_signed else BITS_CODE[bits]
        e.apply(ufunc, d, code, e.vectors((a, b), code))


def _scalar_form(e: Emitter, form: str, a: Value, b: Value, bits: int, is_signed: bool) -> str:
    """A scalar expression over two uniform operands, or "" where one of them is a vector."""
    if not e.any_lane and not (e.uniform(a) and e.uniform(b)):
        return ""
    return "(" + form.format(a=e.scalar(a, bits, is_signed), b=e.scalar(b, bits, is_signed)) + ")"


def _either(e: Emitter, d: Value, scalar: str, row: str, code: str) -> None:
    """Write the scalar form to a uniform destination, the row to any other."""
    if e.uniform(d):
        bits = {"I": 32, "U": 32, "W": 64, "X": 64, "H": 16, "J": 16}[code]
        e.set_scalar(d, f"{scalar} & {(1 << bits) - 1}")
    else:
        e.assign(d, row, code)


def _predicate_binary(e: Emitter, op: Op) -> None:
    d, a, b = op.operands
    if e.uniform(d):
        symbol = {"and": "and", "or": "or", "xor": "!="}[op.opcode]
        e.set_scalar(d, f"bool({e.scalar(a, 1)}) {symbol} bool({e.scalar(b, 1)})")
    else:
        ufunc = {"and": "logical_and", "or": "logical_or", "xor": "logical_xor"}[op.opcode]
        e.apply(ufunc, d, "P", e.vectors((a, b), "P"))


def _packed_binary(e: Emitter, op: Op, type_: str) -> None:
    """Two 16-bit lanes in 32 bits: add, min, max of u16x2 and s16x2."""
    d, a, b = op.operands
    half = "DT_J" if type_[0] == "s" else "DT_H"
    rows = [f"{e.bits_row(v, 32)}.view({half})" for v in (a, b)]
    result = f"{BINARY[op.opcode][0]}({rows[0]}, {rows[1]})"
    if op.has("relu"):
        result = f"maximum({result}, 0)"
    vector_result(e, d, f"{result}.view(DT_U)", "U")


def vector_result(e: Emitter, d: Value, row: str, code: str) -> None:
    """Write a row; a uniform destination takes lane 0 (all lanes agree by construction)."""
    if e.uniform(d) and isinstance(d, Reg):
        e.set_scalar(d, f"int({row}[0]) & {(1 << d.bits) - 1}")
    else:
        e.assign(d, row, code)


@opcode("mul", "mad", uniform=integer_sources, pure=True)
def multiply(e: Emitter, op: Op) -> None:
    if integer_type(op) is None:
        float_binary(e, op)
        return
    check_qualifiers(op)
    type_, operands = op.quals[-1], op.operands
    if op.has("cc"):
        emit_carry(e, op)
        return
    bits, is_signed = type_bits(type_), type_[0] == "s"
    d, a, b = operands[:3]
    c = operands[3] if op.opcode == "mad" else None
    part = op.quals[0]
    out_bits = 2 * bits if part == "wide" else bits
    if e.uniform(d):
        product = f"{e.scalar(a, bits, is_signed)} * {e.scalar(b, bits, is_signed)}"
        if part == "hi":
            product = f"({product} >> {bits})"
        if c is not None:
            product = f"{product} + {e.scalar(c, out_bits, op.has('sat'))}"
        if op.has("sat"):  # mad.hi.sat.s32: the sum is what saturates
            product = f"saturate_s32({product})"
        e.set_scalar(d, f"{product} & {(1 << out_bits) - 1}")
        return
    code = SIGNED_CODE[bits] if is_signed else BITS_CODE[bits]
    rows = e.vectors((a, b), code)
    if part == "lo":
        product = f"multiply({rows[0]}, {rows[1]})"
    elif bits == 64:
        product = f"high_product_{'s' if is_signed else 'u'}64({rows[0]}, {rows[1]})"
        if part == "wide":
            raise op.unsupported("there is no 128-bit register")
    else:
        wide = SIGNED_CODE[2 * bits] if is_signed else BITS_CODE[2 * bits]
        product = f"multiply({rows[0]}, {rows[1]}, dtype=DT_{wide})"
        if part == "hi":
            product = f"({product} >> {bits}).astype(DT_{code})"
    out_code = (SIGNED_CODE if is_signed else BITS_CODE)[out_bits]
    if c is None:
        e.assign(d, product, out_code)
    elif op.has("sat"):
        total = f"{product}.astype(DT_X) + {e.vector(c, 'I', array=True)}"
        e.assign(d, f"clip({total}, -2147483648, 2147483647).astype(DT_I)", "I")
    else:
        name = e.temporary(product)
        e.apply("add", d, out_code, [name, e.vector(c, out_code)])


@opcode("mul24", "mad24", uniform=all_sources, pure=True)
def multiply24(e: Emitter, op: Op) -> None:
    check_qualifiers(op)
    d, a, b = op.operands[:3]
    is_signed = op.quals[-1] == "s32"
    rows = [f"low24_{'s' if is_signed else 'u'}({e.bits_row(v, 32)})" for v in (a, b)]
    shift = 16 if op.quals[0] == "hi" else 0
    product = f"(({rows[0]} * {rows[1]}) >> {shift})"
    if op.has("sat"):  # mad24.hi.sat.s32
        total = f"({product} + {e.bits_row(op.operands[3], 32)}.view(DT_I))"
        row = f"clip({total}, -2147483648, 2147483647).astype(DT_I).view(DT_U)"
        vector_result(e, d, row, "U")
        return
    product = f"{product}.astype(DT_U)"
    if op.opcode == "mad24":
        product = f"({product} + {e.bits_row(op.operands[3], 32)})"
    vector_result(e, d, product, "U")


@opcode("div", "rem", uniform=integer_sources, pure=True)
def divide(e: Emitter, op: Op) -> None:
    if integer_type(op) is None:
        float_binary(e, op)
        return
    check_qualifiers(op)
    d, a, b = op.operands
    type_ = op.quals[-1]
    bits, is_signed = type_bits(type_), type_[0] == "s"
    if e.uniform(d):
        text = f"{op.opcode}_int({e.scalar(a, bits, is_signed)}, {e.scalar(b, bits, is_signed)})"
        e.set_scalar(d, f"{text} & {(1 << bits) - 1}")
        return
    code = SIGNED_CODE[bits] if is_signed else BITS_CODE[bits]
    rows = [e.vector(v, code, array=True) for v in (a, b)]
    e.assign(d, f"{op.opcode}_rows({rows[0]}, {rows[1]})", code)


@opcode("neg", "abs", "not", "cnot", uniform=integer_sources, pure=True)
def unary(e: Emitter, op: Op) -> None:
    d, a = op.operands
    type_ = op.quals[-1]
    if type_ == "pred":
        if e.uniform(d):
            e.set_scalar(d, f"not {e.scalar(a, 1)}")
        else:
            e.apply("logical_not", d, "P", e.vectors((a,), "P"))
        return
    if integer_type(op) is None:
        float_unary(e, op)
        return
    check_qualifiers(op)
    bits = type_bits(type_)
    mask = (1 << bits) - 1
    if e.uniform(d):
        value = e.scalar(a, bits, op.opcode == "abs")
        form = {"neg": f"-{value}", "abs": f"abs({value})", "not": f"~{value}",
                "cnot": f"int({value} == 0)"}[op.opcode]  # fmt: skip
        e.set_scalar(d, f"{form} & {mask}")
        return
    code = SIGNED_CODE[bits] if op.opcode in ("neg", "abs") else BITS_CODE[bits]
    (row,) = e.vectors((a,), code)
    if op.opcode == "cnot":
        e.assign(d, f"equal({row}, 0).astype(DT_{code})", code)
    else:
        ufunc = {"neg": "negative", "abs": "absolute", "not": "invert"}[op.opcode]
        e.apply(ufunc, d, code, [row])


@opcode("selp", uniform=all_sources, pure=True)
def select(e: Emitter, op: Op) -> None:
    check_qualifiers(op)
    d, a, b, condition = op.operands
    type_ = op.quals[-1]
    bits = type_bits(type_)
    a, b = (typed(v, type_) for v in (a, b))
    if e.uniform(d):
        choice = f"{e.scalar(a, bits)} if {e.scalar(condition, 1)} else {e.scalar(b, bits)}"
        e.set_scalar(d, choice)
        return
    code = BITS_CODE[bits]
    x, y = e.vectors((a, b), code)
    e.assign(d, f"where({e.vector(condition, 'P')}, {x}, {y})", code)


@opcode("slct", uniform=never, pure=True)
def select_by_sign(e: Emitter, op: Op) -> None:
    check_qualifiers(op)
    d, a, b, c = op.operands
    bits = type_bits(op.quals[-2])
    code = BITS_CODE[bits]
    x, y = (e.bits_row(typed(v, op.quals[-2]), bits) for v in (a, b))
    sign = e.vector(c, type_code(op.quals[-1]), array=True)
    if op.has("ftz"):
        sign = f"ftz({sign})"
    vector_result(e, d, f"where({sign} >= 0, {x}, {y})", code)


PACKED_HALVES = frozenset({"f16x2", "bf16x2"})
# Comparison: ufunc, Python operator, and whether a NaN makes it true ("unordered").
COMPARE: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "eq": ("equal", "=="), "ne": ("not_equal", "!="), "lt": ("less", "<"),
        "le": ("less_equal", "<="), "gt": ("greater", ">"), "ge": ("greater_equal", ">="),
        "lo": ("less", "<"), "ls": ("less_equal", "<="), "hi": ("greater", ">"),
        "hs": ("greater_equal", ">="),
    }
)  # fmt: skip


@opcode("setp", uniform=integer_sources, pure=True)
def set_predicate(e: Emitter, op: Op) -> None:
    check_qualifiers(op)
    dst, a, b, *rest = op.operands
    first, second = (dst.first, dst.second) if isinstance(dst, Two) else (dst, None)
    combine = next((q for q in op.quals if q in ("and", "or", "xor")), None)
    compare, type_ = op.quals[0], op.quals[-1]
    if e.uniform(dst):
        bits, is_signed = type_bits(type_), type_[0] == "s"
        symbol = COMPARE[compare][1]
        text = f"{e.scalar(a, bits, is_signed)} {symbol} {e.scalar(b, bits, is_signed)}"
        result = text if second is None and not combine else e.temporary(text)
        for d, value in ((first, result), (second, f"not {result}")):
            if d is not None:
                if combine:
                    word = {"and": "and", "or": "or", "xor": "!="}[combine]
                    value = f"({value}) {word} bool({e.scalar(rest[0], 1)})"
                e.set_scalar(d, value)
        return
    row = _comparison(e, op, compare, type_, a, b)
    if combine is None and second is None:
        e.assign(first, row, "P")
        return
    name = e.temporary(row)
    values = (name, f"(~{name})")
    if type_ in PACKED_HALVES:  # p|q are the low and the high halves, not a result and its inverse
        values = (f"{name}[0::2]", f"{name}[1::2]")
    for d, value in zip((first, second), values, strict=True):
        if d is not None:
            if combine:
                value = f"logical_{combine}({value}, {e.vector(rest[0], 'P')})"
            e.assign(d, value, "P")


def _comparison(e: Emitter, op: Op, compare: str, type_: str, a: Value, b: Value) -> str:
    """A bool row: a compared with b. Of packed halves, 64 values: low, high, low, high, ..."""
    if type_ in PACKED_HALVES:
        type_ = type_.removesuffix("x2")
        x, y = (f"{e.bits_row(v, 32)}.view(DT_{'E' if type_ == 'f16' else 'H'})" for v in (a, b))
        if type_ == "bf16":
            x, y = f"bf16_to_f32({x})", f"bf16_to_f32({y})"
    elif type_ == "bf16":
        x, y = (f"bf16_to_f32({e.bits_row(typed(v, type_), 16)})" for v in (a, b))
    else:
        x, y = e.vectors((a, b), type_code(type_))
    if op.has("ftz"):
        x, y = f"ftz({x})", f"ftz({y})"
    if compare in ("num", "nan"):
        nan = f"(isnan({x}) | isnan({y}))"
        return nan if compare == "nan" else f"(~{nan})"
    is_float = type_ in ("f16", "f32", "f64", "bf16")
    unordered = is_float and compare.endswith("u") and compare != "u"
    name = compare[:-1] if unordered else compare
    row = f"{COMPARE[name][0]}({x}, {y})"
    if is_float and name == "ne" and not unordered:
        return f"({row} & ~(isnan({x}) | isnan({y})))"  # `ne` is false on NaN, unlike C's !=
    if unordered and name != "ne":
        return f"({row} | isnan({x}) | isnan({y}))"
    return row


@opcode("set", uniform=never, pure=True)
def set_value(e: Emitter, op: Op) -> None:
    check_qualifiers(op)
    d, a, b, *rest = op.operands
    combine = next((q for q in op.quals if q in ("and", "or", "xor")), None)
    out, type_ = op.quals[-2], op.quals[-1]
    row = _comparison(e, op, op.quals[0], type_, *(a, b))
    if combine:
        row = f"logical_{combine}({row}, {e.vector(rest[0], 'P')})"
    if type_ in PACKED_HALVES:
        if combine:
            raise op.unsupported("a predicate combined with packed comparisons")
        half = {"f16x2": "0x3C00", "bf16x2": "0x3F80"}.get(out, "0xFFFF")
        vector_result(e, d, f"where({row}, DT_H.type({half}), DT_H.type(0)).view(DT_U)", "U")
        return
    if e.uniform(d):
        row = f"broadcast_to({row}, 32)"
    one = {"f32": "0x3F800000"}.get(out, "0xFFFFFFFF")
    if out not in ("f32", "u32", "s32", "b32"):
        raise op.unsupported("only 32-bit results of set")
    vector_result(e, d, f"where({row}, full_U({one}), full_U(0))", "U")


@opcode("testp", uniform=never, pure=True)
def test_property(e: Emitter, op: Op) -> None:
    d, a = op.operands
    row = e.vector(a, type_code(op.quals[-1]), array=True)
    form = {"finite": f"isfinite({row})", "infinite": f"isinf({row})", "number": f"(~isnan({row}))",
            "notanumber": f"isnan({row})", "normal": f"is_normal({row})",
            "subnormal": f"is_subnormal({row})"}[op.quals[0]]  # fmt: skip
    if e.uniform(d):
        e.set_scalar(d, f"bool({form}[0])")
    else:
        e.assign(d, form, "P")
