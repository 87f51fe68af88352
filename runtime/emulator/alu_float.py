"""Floating-point instructions (PTX ISA 9.7.3 to 9.7.5), always on rows of 32 lanes.

f32 and f64 `.rn` map to NumPy directly. Everything else is computed in f64 with the rounding error
kept as a sticky bit ("round to odd"), and then rounded once to the type and mode asked for, so the
result is that of infinite precision. `.approx` functions are computed in f64: within 1 ulp.
"""

from __future__ import annotations

from .emit import Emitter
from .isa import never, opcode
from .operands import Imm, Op, Reg, Value
from .values import float_bits, type_bits

HALF_TYPES = frozenset({"f16", "f16x2", "bf16", "bf16x2"})
ROUNDING = frozenset({"rn", "rz", "rm", "rp", "rna"})
UFUNC = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide"}
EXACT = {"add": "add_odd", "sub": "sub_odd", "mul": "mul_odd", "div": "div_odd"}
KNOWN_QUALIFIERS = ROUNDING | {
    "ftz", "sat", "approx", "full", "NaN", "relu", "noftz", "xorsign", "abs", "oob",
}  # fmt: skip


def _check(op: Op) -> tuple[str, str]:
    """(type, rounding mode). UnsupportedPtx for a qualifier that is not understood."""
    type_ = op.quals[-1]
    unknown = [q for q in op.quals[:-1] if q not in KNOWN_QUALIFIERS]
    if type_ not in HALF_TYPES | {"f32", "f64"} or unknown:
        raise op.unsupported(f"qualifier .{(unknown or [type_])[0]} is not known here")
    ordered = op.opcode in ("min", "max")
    if op.has("abs", "xorsign") and not (ordered and op.has("abs") and op.has("xorsign")):
        raise op.unsupported(".xorsign.abs is for min and max")
    if op.has("oob"):
        raise op.unsupported("what .oob gives is not known: the H200 and the manual differ")
    return type_, next((q for q in op.quals if q in ROUNDING), "rn")


def typed(value: Value, type_: str) -> Value:
    """A float constant as the bit pattern of the instruction's type; other operands as they are."""
    if isinstance(value, Imm) and type_ in ("f32", "f64", "f16", "bf16"):
        return Imm(float_bits(value.value, value.kind, type_), "int")
    return value


def read(e: Emitter, op: Op, value: Value, type_: str) -> str:
    """An operand as a row of its own float type (f64 for the half types)."""
    if type_ in HALF_TYPES:
        row = f"{type_.removesuffix('x2')}_to_f64({_half_bits(e, value, type_)})"
        return f"ftz_half({row})" if op.has("ftz") else row
    row = e.vector(value, {"f32": "F", "f64": "D"}[type_], array=True)
    return f"ftz({row})" if op.has("ftz") and type_ == "f32" else row


def _half_bits(e: Emitter, value: Value, type_: str) -> str:
    bits = type_bits(type_)
    if bits == 16:
        value = typed(value, type_)
    return e.bits_row(value, bits)


def write(e: Emitter, op: Op, d: Value, row: str, type_: str, exact: bool = True) -> None:
    """Write a row computed in the type itself, or in f64 when `exact` is false or it is a half."""
    if op.has("relu"):
        row = f"relu({row})"
    if op.has("sat"):
        row = f"saturate({row})"
    if type_ in HALF_TYPES:
        bits = type_bits(type_)
        name = type_.removesuffix("x2")
        code = "U" if bits == 32 else "H"
        e.assign(
            d, f"f64_to_{name}({row}, '{_mode(op)}', {int(op.has('ftz'))}).view(DT_{code})", code
        )
        return
    if not exact:
        row = f"round_{type_}({row}, '{_mode(op)}')"
    if op.has("ftz"):
        row = f"ftz({row})"
    if type_ == "f32":
        row = f"one_nan({row})"
    e.assign(d, row, {"f32": "F", "f64": "D"}[type_])


def _mode(op: Op) -> str:
    return next((q for q in op.quals if q in ROUNDING), "rn")


def float_binary(e: Emitter, op: Op) -> None:
    """add sub mul div min max (and mad, which is fma) of every float type."""
    if op.opcode == "mad":
        fused(e, op)
        return
    type_, mode = _check(op)
    d, a, b = op.operands
    if op.opcode in ("min", "max"):
        x, y = (read(e, op, v, type_) for v in (a, b))
        nan = int(op.has("NaN"))
        if op.has("xorsign"):
            x, y = e.temporary(x), e.temporary(y)
            row = f"{op.opcode}_float(absolute({x}), absolute({y}), {nan})"
            write(e, op, d, f"xor_sign({row}, {x}, {y})", type_)
            return
        write(e, op, d, f"{op.opcode}_float({x}, {y}, {nan})", type_)
        return
    if op.opcode not in UFUNC:
        raise op.unsupported("there is no such float instruction")
    if type_ in ("f32", "f64") and mode == "rn":
        if not op.has("ftz", "sat"):
            code = {"f32": "F", "f64": "D"}[type_]
            e.apply(UFUNC[op.opcode], d, code, e.vectors((a, b), code))
            if type_ == "f32" and isinstance(d, Reg):
                e.line(f"settle_nan(F[{e.slots[d.id]}], {e.mask_argument()})")
            return
        x, y = (read(e, op, v, type_) for v in (a, b))
        write(e, op, d, f"{UFUNC[op.opcode]}({x}, {y})", type_)
        return
    if type_ == "f64":
        rows = ", ".join(e.vector(v, "D", array=True) for v in (a, b))
        write(e, op, d, f"directed_f64('{op.opcode}', '{mode}', {rows})", type_)
        return
    x, y = (f"{read(e, op, v, type_)}.astype(DT_D)" for v in (a, b))
    write(e, op, d, f"{EXACT[op.opcode]}({x}, {y}, '{mode}')", type_, exact=False)


def float_unary(e: Emitter, op: Op) -> None:
    """neg and abs: additions to zero in hardware, so a NaN is the one that additions give; of f64
    it passes unchanged."""
    type_, _ = _check(op)
    d, a = op.operands
    function = {"neg": "negative", "abs": "absolute"}[op.opcode]
    row = read(e, op, a, type_)
    if type_ == "f64":
        name = e.temporary(row)
        row = f"where(isnan({name}), {name}, {function}({name}))"
    else:
        row = f"{function}({row})"
    write(e, op, d, row, type_)


@opcode("fma", uniform=never, pure=True)
def fused(e: Emitter, op: Op) -> None:
    """d = a * b + c, rounded once."""
    type_, mode = _check(op)
    d, *sources = op.operands
    x, y, z = (read(e, op, v, type_) for v in sources)
    if type_ in ("f32", "f64") and mode == "rn":
        write(e, op, d, f"fma_{type_}({x}, {y}, {z})", type_)
    elif type_ == "f64":
        write(e, op, d, f"directed_f64('fma', '{mode}', {x}, {y}, {z})", type_)
    else:
        # Products of f32 (24 bits) and of halves are exact in f64, so only the sum is inexact.
        write(e, op, d, f"fma_odd({x}, {y}, {z}, '{mode}')", type_, exact=False)


FUNCTIONS = ("sqrt", "rcp", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh")


@opcode(*FUNCTIONS, uniform=never, pure=True)
def function(e: Emitter, op: Op) -> None:
    """sqrt and rcp with a rounding mode are exact; the others are approximations."""
    type_, mode = _check(op)
    d, a = op.operands
    x = read(e, op, a, type_)
    exact_form = op.opcode in ("sqrt", "rcp") and not op.has("approx")
    if exact_form and type_ in ("f32", "f64") and mode == "rn":
        form = f"sqrt({x})" if op.opcode == "sqrt" else f"reciprocal({x})"
        write(e, op, d, form, type_)
    elif exact_form and type_ == "f64":
        write(e, op, d, f"directed_f64('{op.opcode}', '{mode}', {x})", type_)
    elif exact_form:
        write(e, op, d, f"{op.opcode}_odd({x}.astype(DT_D))", type_, exact=False)
    elif type_ == "f64" and op.has("ftz"):
        write(e, op, d, f"cut_low_word(approx_{op.opcode}(cut_low_word({x})))", type_)
    else:
        wide = x if type_ != "f32" else f"{x}.astype(DT_D)"
        write(e, op, d, f"approx_{op.opcode}({wide})", type_, exact=type_ == "f64")


@opcode("copysign", uniform=never, pure=True)
def copy_sign(e: Emitter, op: Op) -> None:
    d, a, b = op.operands
    bits = type_bits(op.quals[-1])
    code = {32: "U", 64: "W"}[bits]
    sign = 1 << (bits - 1)
    x, y = (e.vector(v, code, array=True) for v in (a, b))
    e.assign(d, f"({x} & {sign}) | ({y} & {sign - 1})", code)
