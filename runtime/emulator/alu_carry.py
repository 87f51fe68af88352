"""Extended-precision integers: sums that give, and take, the carry flag (PTX ISA 9.7.2).

The flag is one bit a thread, and a subtraction is a sum with the complement: it leaves a carry
where it borrows nothing. The PTX ISA speaks of a borrow and leaves open what addc makes of it; the
H200 answers so (`subc` in tests/golden/isa).
"""

from __future__ import annotations

import numpy as np

from .emit import Emitter
from .isa import opcode
from .operands import Op
from .state import Path
from .values import BITS_CODE, SIGNED_CODE, Array, type_bits


@opcode("addc", "subc", "madc", pure=True)
def emit_carry(e: Emitter, op: Op) -> None:
    """add, sub and mad with `.cc`, and the forms that add the flag."""
    type_ = op.quals[-1]
    if set(op.quals[:-1]) - {"cc", "lo", "hi"} or type_[0] not in "us" or type_[1:] in ("8", "16"):
        raise op.unsupported("only .cc, .lo and .hi of 32 and 64 bits are known here")
    d, *sources = op.operands
    bits = type_bits(type_)
    rows = [e.bits_row(source, bits) for source in sources]
    if op.has("lo", "hi"):
        rows = [e.temporary(_product(rows[0], rows[1], op.quals[0], type_)), rows[2]]
    down = op.opcode.startswith("sub")
    flags = f"{int(down)}, {int(op.opcode.endswith('c'))}, {int(op.has('cc'))}"
    name = e.temporary(f"carry_sum(p, {rows[0]}, {rows[1]}, {flags}, {e.mask_argument()})")
    e.assign(d, name, BITS_CODE[bits])


def _product(a: str, b: str, part: str, type_: str) -> str:
    """The half of a product that mad adds, as unsigned bits."""
    bits = type_bits(type_)
    code = BITS_CODE[bits]
    if part == "lo":
        return f"multiply({a}, {b})"
    is_signed = type_[0] == "s"
    if is_signed:
        a, b = (f"{x}.view(DT_{SIGNED_CODE[bits]})" for x in (a, b))
    if bits == 64:
        high = f"high_product_{type_[0]}64({a}, {b})"
    else:
        wide = (SIGNED_CODE if is_signed else BITS_CODE)[64]
        high = f"(multiply({a}, {b}, dtype=DT_{wide}) >> 32)"
    return f"{high}.astype(DT_{code})"


def carry_sum(
    p: Path, x: Array, y: Array, down: int, takes: int, gives: int, mask: Array | None
) -> Array:
    """x + y, or x - y, with what the flag says; the flag of the active lanes gets the carry."""
    flag = p.w.carry
    total = x - y if down else x + y
    over = x < y if down else total < x
    if takes:
        one = (~flag if down else flag).astype(total.dtype)
        step = total - one if down else total + one
        over = over | ((total < one) if down else (step < total))
        total = step
    if gives:
        np.copyto(flag, ~over if down else over, where=True if mask is None else mask)
    return total
