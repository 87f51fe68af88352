"""The table of opcodes: what each does to registers and control, and which function emits it.

An opcode is looked up by its first word. Its row says how many leading operands are destinations,
when the destinations are the same in all lanes of a warp (so that the compiler may keep them as one
Python integer), and whether the instruction may have to wait. Modules add rows with `@opcode`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ptxgen.errors import UnsupportedPtx

from .operands import Negated, Op, Reg, Special, Two, Value, Vec

if TYPE_CHECKING:
    from .emit import Emitter

# Given an op and "is this value uniform?", may the destination be kept as one integer?
UniformRule: TypeAlias = Callable[[Op, Callable[[Value], bool]], bool]
EmitFunction: TypeAlias = Callable[["Emitter", Op], None]


def all_sources(op: Op, uniform: Callable[[Value], bool]) -> bool:
    """Pure functions of their operands: uniform in, uniform out."""
    return all(uniform(o) for o in op.operands[1:])


def integer_sources(op: Op, uniform: Callable[[Value], bool]) -> bool:
    """As `all_sources`, but only for integer, bit and predicate types: floats stay rows."""
    type_ = op.quals[-1]
    integer = type_ == "pred" or (type_[0] in "usb" and type_[1:].split("x")[0].isdigit())
    return integer and not op.has("cc") and all_sources(op, uniform)  # the flag is a row


def never(op: Op, uniform: Callable[[Value], bool]) -> bool:
    """Results that differ between lanes, or that are only computed on arrays."""
    return False


def always(op: Op, uniform: Callable[[Value], bool]) -> bool:
    """Results that are one value a warp, whatever the operands."""
    return True


@dataclass(frozen=True, slots=True)
class Row:
    """One opcode. `waits` decides from the op whether executing it may block the warp."""

    emit: EmitFunction
    dests: Callable[[Op], int]
    uniform: UniformRule
    waits: Callable[[Op], bool]
    pure: bool  # an ALU op: garbage in, garbage out, no error of its own


TABLE: dict[str, Row] = {}


def opcode(
    *names: str,
    dests: int | Callable[[Op], int] = 1,
    uniform: UniformRule = never,
    waits: Callable[[Op], bool] = lambda op: False,
    pure: bool = False,
) -> Callable[[EmitFunction], EmitFunction]:
    """Register the emitter of some opcodes."""

    count = dests if callable(dests) else (lambda op: dests)

    def add(function: EmitFunction) -> EmitFunction:
        for name in names:
            TABLE[name] = Row(function, count, uniform, waits, pure)
        return function

    return add


def row(op: Op) -> Row:
    """The row of an op. UnsupportedPtx for an opcode without one."""
    found = TABLE.get(op.opcode)
    if found is None:
        raise UnsupportedPtx(
            f"{op.mnemonic}: the emulator does not execute {op.opcode}",
            line=op.line,
            opcode=op.opcode,
        )
    return found


def registers_of(value: Value) -> list[int]:
    """The registers that an operand names, addresses included."""
    if isinstance(value, Reg):
        return [value.id]
    if isinstance(value, Negated):
        return [value.reg.id]
    if isinstance(value, Two):
        return registers_of(value.first) + registers_of(value.second)
    if isinstance(value, Vec):
        return [r for item in value.items for r in registers_of(item)]
    base = getattr(value, "base", None)
    if base is None:
        return []
    coordinates = getattr(value, "coordinates", ())
    return registers_of(base) + [r for item in coordinates for r in registers_of(item)]


def definitions(op: Op) -> list[int]:
    """Registers that an op writes."""
    return [r for o in op.operands[: row(op).dests(op)] for r in registers_of(o)]


def uses(op: Op) -> list[int]:
    """Registers that an op reads, its guard included. The accumulators of wgmma are not: whether
    they are read is decided at run time by scale-d."""
    reads = [r for o in op.operands[row(op).dests(op) :] for r in registers_of(o)]
    return reads + ([op.guard[0].id] if op.guard else [])


def matrix_registers(op: Op) -> list[int]:
    """Registers that a wgmma owns while it is in flight: D, an A fragment, sparse metadata."""
    if op.opcode != "wgmma" or op.quals[0] != "mma_async":
        return []
    vectors = [r for o in op.operands[:2] if isinstance(o, Vec) for r in registers_of(o)]
    return vectors + (registers_of(op.operands[3]) if op.has("sp") else [])


# Special registers that have one value in all lanes of a warp.
UNIFORM_SPECIALS = frozenset(
    f"%{name}"
    for name in (
        *(f"{base}.{axis}" for axis in "xyz" for base in (
            "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid",
        )),
        "cluster_ctarank", "cluster_nctarank", "is_explicit_cluster", "warpid", "nwarpid", "smid",
        "nsmid", "gridid", "clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo",
        "globaltimer_hi", "dynamic_smem_size", "total_smem_size", "aggr_smem_size",
        "reserved_smem_offset_begin", "reserved_smem_offset_end", "reserved_smem_offset_cap",
        "reserved_smem_offset_0", "reserved_smem_offset_1",
    )
) | {"WARP_SZ"}  # fmt: skip
LANE_SPECIALS = frozenset(
    {"%tid.x", "%tid.y", "%tid.z", "%laneid"}
    | {f"%lanemask_{c}" for c in ("eq", "le", "lt", "ge", "gt")}
)


def is_special_uniform(value: Special) -> bool:
    return value.name in UNIFORM_SPECIALS
