"""mov: registers, packing and unpacking, pairs of 64 bits (PTX ISA 9.7.9.5 and 9.7.9.6)."""

from __future__ import annotations

from .alu_float import typed
from .alu_int import check_qualifiers
from .emit import Emitter, flatten
from .isa import all_sources, opcode
from .operands import Op, Reg, Value, Vec
from .values import BITS_CODE, type_bits


@opcode("mov", uniform=all_sources, pure=True)
def move(e: Emitter, op: Op) -> None:
    """mov, including packing `mov.b64 d, {lo, hi}` and unpacking `mov.b64 {lo, hi}, d`."""
    d, a = op.operands
    check_qualifiers(op)
    if op.quals[-1] == "b128":
        _move_halves(e, op)
        return
    if isinstance(d, Vec) or isinstance(a, Vec):
        _move_vector(e, op, d, a)
        return
    type_ = op.quals[-1]
    a = typed(a, type_)
    bits = d.bits if isinstance(d, Reg) else type_bits(type_)
    if e.uniform(d) or e.uniform(a):
        e.set_scalar(d, e.scalar(a, bits))
    else:
        code = BITS_CODE[bits]
        e.assign(d, e.vector(a, code), code)


def _move_vector(e: Emitter, op: Op, d: Value, a: Value) -> None:
    total = type_bits(op.quals[-1])
    parts = flatten(d) if isinstance(d, Vec) else flatten(a)
    bits = total // len(parts)
    held = BITS_CODE[max(bits, 16)]  # 8-bit registers have 16
    if isinstance(d, Vec):
        for i, part in enumerate(parts):
            if e.uniform(part) and e.uniform(a):
                e.set_scalar(part, f"{e.scalar(a, total)} >> {i * bits} & {(1 << bits) - 1}")
            else:
                row = f"({e.bits_row(a, total)} >> {i * bits} & {(1 << bits) - 1})"
                e.assign(part, f"{row}.astype(DT_{held})", held)
        return
    if e.uniform(d):
        pieces = [f"{e.scalar(p, bits)} << {i * bits}" for i, p in enumerate(parts)]
        e.set_scalar(d, " | ".join(pieces))
        return
    code = BITS_CODE[total]
    pieces = [
        f"(({e.bits_row(p, max(bits, 16))}.astype(DT_{code}) & {(1 << bits) - 1}) << {i * bits})"
        for i, p in enumerate(parts)
    ]
    e.assign(d, " | ".join(pieces), code)


def _move_halves(e: Emitter, op: Op) -> None:
    """mov.b128: a register of 128 bits is a pair of 64."""
    for d, a in zip(flatten(op.operands[0]), flatten(op.operands[1]), strict=True):
        if e.uniform(d):
            e.set_scalar(d, e.scalar(a, 64))
        else:
            e.assign(d, e.bits_row(a, 64), "W")
