"""Emitters of tensormap.replace and tensormap.cp_fenceproxy (PTX ISA 9.7.9.28, 9.7.9.29), and of
the fences of the tensormap proxy."""

from __future__ import annotations

from .clocks import SCOPES
from .emit import Emitter
from .isa import opcode
from .operands import Imm, Mem, Op

_AXES = {"box_dim": 5, "global_dim": 5, "element_stride": 5, "global_stride": 4}
_ENUMS = frozenset({"elemtype", "interleave_layout", "swizzle_mode", "fill_mode"})
_WIDE = frozenset({"global_address", "global_stride"})
_WHOLE = frozenset({"global_address", "rank"})


@opcode("tensormap", dests=0)
def tensormap(e: Emitter, op: Op) -> None:
    if op.quals[0] == "cp_fenceproxy":
        target, source = op.operands[:2]
        places = f"{_address(e, op, target, 64)}, {_address(e, op, source, 32)}"
        e.line(f"map_copy(p, {places}, {_scope(op)}, {op.line})")
        return
    if op.quals[:2] != ("replace", "tile"):
        raise op.unsupported("there is no such tensormap instruction")
    field = op.quals[2]
    if field not in _WHOLE | _ENUMS | frozenset(_AXES):
        raise op.unsupported(f"maps of sm_90a have no field {field}")
    mem, *values = op.operands
    axis = 0
    if field in _AXES:
        number = values.pop(0)
        if not isinstance(number, Imm) or not 0 <= number.value < _AXES[field]:
            raise op.unsupported(f"the axis must be an immediate below {_AXES[field]}")
        axis = number.value
    space = "shared" if op.has("shared::cta") else "global" if op.has("global") else ""
    bits = 64 if field in _WIDE else 32
    (value,) = values
    number_text = (
        e.scalar(value, bits)
        if e.uniform(value)
        else f"one_of(p, {e.bits_row(value, bits)}, {e.mask_argument()}, {op.line})"
    )
    at = _address(e, op, mem, 32 if space == "shared" else 64)
    call = f"map_replace(p, '{space}', {at}, '{field}', {axis}, {number_text}, {op.line})"
    guard = e.mask_argument()
    e.line(call if guard == "None" else f"if {guard}.any(): {call}")


def emit_map_fence(e: Emitter, op: Op) -> None:
    """fence.proxy.tensormap::generic, .release or .acquire."""
    if op.quals[2] == "release":
        e.line(f"if C.watch: map_release(p, {_scope(op)})")
        return
    mem = op.operands[0]
    assert isinstance(mem, Mem)
    at, _ = e.address(mem, 64)
    e.line(f"if C.watch: map_acquire(p, {at}, {_scope(op)}, {e.mask_argument()}, {op.line})")


def _scope(op: Op) -> int:
    return SCOPES[next(q for q in op.quals if q in SCOPES)]


def _address(e: Emitter, op: Op, mem: object, bits: int) -> str:
    """The one address that the active lanes name."""
    assert isinstance(mem, Mem)
    base_bits = getattr(mem.base, "bits", bits)
    text, one = e.address(mem, base_bits)
    return text if one else f"one_of(p, {text}, {e.mask_argument()}, {op.line})"
