"""Shifts, bit fields, permutes, three-input logic, dot products (PTX ISA 9.7.1 and 9.7.8)."""

from __future__ import annotations

from .alu_int import check_qualifiers, vector_result
from .emit import Emitter
from .functions_bits import PERMUTES
from .isa import all_sources, opcode
from .operands import Imm, Op, Two
from .values import BITS_CODE, SIGNED_CODE, type_bits, type_code


@opcode("shl", "shr", uniform=all_sources, pure=True)
def shift(e: Emitter, op: Op) -> None:
    """Shift counts above the width act as the width (PTX ISA 9.7.8.7)."""
    check_qualifiers(op)
    d, a, count = op.operands
    type_ = op.quals[-1]
    bits, is_signed = type_bits(type_), type_[0] == "s"
    if e.uniform(d):
        value = e.scalar(a, bits, is_signed)
        n = e.scalar(count, 32)
        if not isinstance(count, Imm):
            n = f"min({n}, {bits})"
        elif count.value > bits:
            n = str(bits)
        form = f"{value} << {n}" if op.opcode == "shl" else f"{value} >> {n}"
        e.set_scalar(d, f"({form}) & {(1 << bits) - 1}")
        return
    code = SIGNED_CODE[bits] if is_signed else BITS_CODE[bits]
    if isinstance(count, Imm) and count.value < bits:
        ufunc = "left_shift" if op.opcode == "shl" else "right_shift"
        e.apply(ufunc, d, code, [e.vector(a, code, array=e.uniform(a)), str(count.value)])
        return
    row = e.vector(a, code, array=True)
    e.assign(d, f"{op.opcode}_rows({row}, {e.bits_row(count, 32)})", code)


@opcode("shf", uniform=all_sources, pure=True)
def funnel_shift(e: Emitter, op: Op) -> None:
    check_qualifiers(op)
    d, a, b, c = op.operands
    direction, mode = op.quals[0], op.quals[1]
    rows = ", ".join(e.bits_row(v, 32) for v in (a, b, c))
    vector_result(e, d, f"funnel_{direction}({rows}, {int(mode == 'wrap')})", "U")


@opcode("bfe", "bfi", "bfind", "brev", "clz", "popc", uniform=all_sources, pure=True)
def bit_field(e: Emitter, op: Op) -> None:
    """Bit-field and bit-counting instructions, computed on rows by `functions`."""
    check_qualifiers(op)
    d, *sources = op.operands
    type_ = op.quals[-1]
    bits, out = type_bits(type_), type_bits(type_)
    wide = {"bfe": 1, "bfi": 2}.get(op.opcode, 1)  # the operands that have the instruction's type
    rows = [e.bits_row(s, bits if i < wide else 32) for i, s in enumerate(sources)]
    if op.opcode in ("bfind", "clz", "popc"):
        out = 32
    arguments = ", ".join(rows)
    if op.opcode == "bfe" or op.opcode == "bfind":
        arguments += f", {int(type_[0] == 's')}"
    if op.opcode == "bfind":
        arguments += f", {int(op.has('shiftamt'))}"
    vector_result(e, d, f"{op.opcode}_rows({arguments})", BITS_CODE[out])


@opcode("fns", "szext", "bmsk", uniform=all_sources, pure=True)
def bit_mask(e: Emitter, op: Op) -> None:
    d, *sources = op.operands
    modes = {"fns": ("b32",), "szext": ("clamp", "wrap"), "bmsk": ("clamp", "wrap")}[op.opcode]
    if op.quals[0] not in modes or op.quals[-1] not in ("b32", "u32", "s32"):
        raise op.unsupported("this mode is not known here")
    arguments = [e.bits_row(s, 32) for s in sources]
    if op.opcode != "fns":
        arguments.append(str(int(op.has("clamp"))))
    if op.opcode == "szext":
        arguments.append(str(int(op.has("s32"))))
    vector_result(e, d, f"{op.opcode}_rows({', '.join(arguments)})", "U")


@opcode("prmt", uniform=all_sources, pure=True)
def permute(e: Emitter, op: Op) -> None:
    d, *sources = op.operands
    a, b, selector = (e.bits_row(s, 32) for s in sources)
    if len(op.quals) == 2 and op.quals[1] in PERMUTES:
        selector = f"permute_selector('{op.quals[1]}', {selector})"
    elif len(op.quals) != 1:
        raise op.unsupported("this mode is not known here")
    vector_result(e, d, f"prmt_rows({a}, {b}, {selector})", "U")


@opcode("lop3", uniform=all_sources, pure=True)
def lop3(e: Emitter, op: Op) -> None:
    """Any function of three bits; with .and or .or also a predicate: d != 0, joined with another
    predicate."""
    check_qualifiers(op)
    d, a, b, c, table, *joined = op.operands
    if not isinstance(table, Imm) or bool(joined) != op.has("and", "or"):
        raise op.unsupported("the truth table must be an immediate, and a predicate needs .and/.or")
    terms = []
    for i in range(8):
        if (table.value >> i) & 1:
            signs = [("" if (i >> s) & 1 else "~") for s in (2, 1, 0)]
            terms.append("({}A & {}B & {}C)".format(*signs))
    form = " | ".join(terms) or "A & 0"
    if e.uniform(d):
        for name, value in zip("ABC", (a, b, c), strict=True):
            form = form.replace(name, e.scalar(value))
        form = f"({form}) & 0xFFFFFFFF"
    else:
        for name, value in zip("ABC", (a, b, c), strict=True):
            form = form.replace(name, e.temporary(e.bits_row(value, 32)))
    if not joined:
        e.set_scalar(d, form) if e.uniform(d) else e.assign(d, form, "U")
        return
    assert isinstance(d, Two)
    name, (join, q) = e.temporary(form), (op.quals[0], joined[0])
    if e.uniform(d):
        e.set_scalar(d.first, name)
        e.set_scalar(d.second, f"{name} != 0 {join} bool({e.scalar(q, 1)})")
    else:
        e.assign(d.first, name, "U")
        e.assign(d.second, f"logical_{join}({name} != 0, {e.vector(q, 'P')})", "P")


@opcode("vadd", "vsub", "vabsdiff", "vmin", "vmax", uniform=all_sources, pure=True)
def video(e: Emitter, op: Op) -> None:
    """The scalar video instructions of whole words (PTX ISA 9.7.17.1): operands of either sign, an
    exact result of 34 bits, saturated to the type of d or cut."""
    types, rest = op.quals[:3], op.quals[3:]
    if set(types) - {"u32", "s32"} or rest not in ((), ("sat",)) or len(op.operands) != 3:
        raise op.unsupported("only whole words, without a second operation, are known here")
    unknown = types[1] != types[2] or (op.opcode == "vadd" and types[1] == "u32")
    if rest and types[0] == "u32" and unknown:
        raise op.unsupported("how the H200 saturates this to u32 is not understood")
    d, *sources = op.operands
    x, y = (
        f"{e.bits_row(v, 32)}.view(DT_{'I' if t == 's32' else 'U'}).astype(DT_X)"
        for v, t in zip(sources, types[1:], strict=True)
    )
    ufunc = {"vadd": "add", "vsub": "subtract", "vmin": "minimum", "vmax": "maximum"}
    row = f"{ufunc.get(op.opcode, 'subtract')}({x}, {y})"
    row = f"absolute({row})" if op.opcode == "vabsdiff" else row
    if rest:
        low = -(1 << 31) if types[0] == "s32" else 0
        row = f"clip({row}, {low}, {low + (1 << 32) - 1})"
    vector_result(e, d, f"{row}.astype(DT_U)", "U")


@opcode("sad", uniform=all_sources, pure=True)
def sum_absolute_difference(e: Emitter, op: Op) -> None:
    check_qualifiers(op)
    d, a, b, c = op.operands
    code = type_code(op.quals[-1])
    x, y = (e.vector(v, code, array=True) for v in (a, b))
    row = f"subtract(maximum({x}, {y}), minimum({x}, {y}))"
    vector_result(e, d, f"({row} + {e.vector(c, code)})", code)


@opcode("dp4a", "dp2a", uniform=all_sources, pure=True)
def dot_product(e: Emitter, op: Op) -> None:
    check_qualifiers(op)
    d, a, b, c = op.operands
    types = [q for q in op.quals if q in ("u32", "s32")]
    part = 2 if op.has("hi") else 0
    arguments = ", ".join(e.bits_row(v, 32) for v in (a, b, c))
    flags = f"{int(types[0] == 's32')}, {int(types[1] == 's32')}"
    tail = f", {part}" if op.opcode == "dp2a" else ""
    vector_result(e, d, f"{op.opcode}_rows({arguments}, {flags}{tail})", "U")
