"""A lowered program as data: operands with their names resolved, instructions, memory layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ptxgen.errors import UnsupportedPtx

from .space import align_up


@dataclass(frozen=True, slots=True)
class Reg:
    """A register. 8-bit registers are kept in 16 bits, as the hardware keeps them in 32."""

    id: int
    bits: int


@dataclass(frozen=True, slots=True)
class Imm:
    """A constant; `kind` as in `ast.Immediate`."""

    value: int
    kind: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable: an offset within its state space."""

    space: str  # shared | local | param | global | const
    offset: int


@dataclass(frozen=True, slots=True)
class Special:
    """A special register such as %tid.x."""

    name: str


@dataclass(frozen=True, slots=True)
class Vec:
    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Mem:
    """`[base + offset]`, with the coordinates of a tensor operand."""

    base: Reg | Imm | Symbol
    offset: int = 0
    coordinates: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Negated:
    """`!p`."""

    reg: Reg


@dataclass(frozen=True, slots=True)
class Two:
    """`d|p`."""

    first: Value
    second: Value


@dataclass(frozen=True, slots=True)
class Sink:
    """`_`."""


@dataclass(frozen=True, slots=True)
class Target:
    """A branch target: the index of an op."""

    index: int


Value: TypeAlias = Reg | Imm | Symbol | Special | Vec | Mem | Negated | Two | Sink | Target


@dataclass(frozen=True, slots=True)
class Op:
    """One instruction with resolved operands. `quals` are the qualifiers after the opcode."""

    index: int
    mnemonic: str
    opcode: str
    quals: tuple[str, ...]
    operands: tuple[Value, ...]
    guard: tuple[Reg, bool] | None  # (predicate, negated)
    line: int

    def has(self, *names: str) -> bool:
        return any(name in self.quals for name in names)

    def unsupported(self, reason: str) -> UnsupportedPtx:
        """The error for a form that the emulator does not execute."""
        return UnsupportedPtx(
            f"{self.mnemonic} is not executed by the emulator: {reason}",
            line=self.line,
            opcode=self.opcode,
        )


@dataclass(frozen=True, slots=True)
class Data:
    """Initial contents of a .global or .const variable; `links` are (offset, symbol) addresses."""

    offset: int
    raw: bytes
    links: tuple[tuple[int, Symbol, bool], ...]  # (at, target, generic)


@dataclass(slots=True)
class Segment:
    """A state space that is laid out at compile time: its size so far and its initial contents."""

    size: int = 0
    data: list[Data] = field(default_factory=list)

    def place(self, size: int, align: int) -> int:
        offset = align_up(self.size, max(align, 1))
        self.size = offset + size
        return offset


@dataclass(slots=True, kw_only=True)
class Program:
    """A lowered entry."""

    entry: str
    registers: list[str]  # names, for messages; the index is Reg.id
    bits: list[int]
    ops: list[Op]
    params: dict[str, tuple[int, int]]  # name -> (offset, size) in the parameter block
    param_bytes: int
    shared: Segment
    dynamic_offset: int  # where extern shared memory starts
    local: Segment
    globals: Segment
    consts: Segment
    directives: Mapping[str, tuple[int, ...]]
