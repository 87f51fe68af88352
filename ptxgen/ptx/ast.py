"""PTX as data: what a module consists of.

    Module ─┬─ Directive            .file, .section, .pragma, ... kept as text
            ├─ Variable             .global .const .shared .local .param, with initialisers
            └─ Function             .entry or .func: parameters, performance directives, body
                 └─ statements: Registers, Variable, Label, Block, Directive, Instruction
                                  └─ operands: Name Immediate Vector Address Not Pair Group

Nodes are immutable. Every statement keeps its PTX line (1-based) and its span, the half-open range
of characters in `Module.source`, so that a tool can cut or replace one instruction and leave every
other byte, and every line number, alone (see `edit`).

Names are not resolved here: `%r1`, `smem`, `%tid.x` and `$LOOP` are all `Name`. What a name means
depends on the scope, which is the business of whoever runs or checks the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Literal, NamedTuple, TypeAlias

# Bytes of one element of each PTX type that a variable or parameter can have.
TYPE_BYTES = {
    "b8": 1, "u8": 1, "s8": 1, "e4m3": 1, "e5m2": 1,
    "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2,
    "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "tf32": 4,
    "b64": 8, "u64": 8, "s64": 8, "f64": 8,
    "b128": 16,
    "pred": 1, "texref": 8, "samplerref": 8, "surfref": 8,
}  # fmt: skip


class Span(NamedTuple):
    """Half-open range of characters in `Module.source`."""

    start: int
    end: int


NOWHERE = Span(0, 0)


@dataclass(frozen=True, slots=True)
class Name:
    """A register, variable, label, function or special register, as written. `_` is the sink."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant. `value` is the integer, or the bit pattern of a float.

    `kind` "int" covers every integer spelling, "f32" is `0fXXXXXXXX`, "f64" is `0dX..X` and every
    decimal float (PTX ISA 4.5.2: those are double precision). `text` is the spelling in the source.
    """

    value: int
    kind: Literal["int", "f32", "f64"]
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, ...}`."""

    items: tuple[Operand, ...]

    def __str__(self) -> str:
        return "{" + ", ".join(map(str, self.items)) + "}"


@dataclass(frozen=True, slots=True)
class Address:
    """`[base + offset]`, `[base]`, `[imm]`, or a tensor coordinate `[map, {c0, c1}]`."""

    base: Name | Immediate
    offset: int = 0
    coordinates: Vector | None = None

    def __str__(self) -> str:
        offset = f"+{self.offset}" if self.offset else ""  # ptxas knows [a+-4], not [a-4]
        tail = f", {self.coordinates}" if self.coordinates is not None else ""
        return f"[{self.base}{offset}{tail}]"


@dataclass(frozen=True, slots=True)
class Offset:
    """`symbol + imm` outside brackets, as in `mov.u64 %rd, table+16` or an initialiser."""

    base: Name
    offset: int
    generic: bool = False

    def __str__(self) -> str:
        base = f"generic({self.base})" if self.generic else str(self.base)
        return f"{base}+{self.offset}" if self.offset else base


@dataclass(frozen=True, slots=True)
class Not:
    """`!p`."""

    operand: Name

    def __str__(self) -> str:
        return f"!{self.operand}"


@dataclass(frozen=True, slots=True)
class Pair:
    """`d|p`: two destinations of one instruction."""

    first: Name
    second: Name

    def __str__(self) -> str:
        return f"{self.first}|{self.second}"


@dataclass(frozen=True, slots=True)
class Group:
    """`(a, b)`: the arguments or results of a call."""

    items: tuple[Operand, ...]

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.items)) + ")"


Operand: TypeAlias = Name | Immediate | Vector | Address | Offset | Not | Pair | Group


@dataclass(frozen=True, slots=True)
class Guard:
    """`@p` or `@!p`."""

    register: str
    negated: bool = False

    def __str__(self) -> str:
        return f"@{'!' if self.negated else ''}{self.register}"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. `mnemonic` is the opcode with its qualifiers, as written."""

    mnemonic: str
    operands: tuple[Operand, ...]
    guard: Guard | None
    line: int
    span: Span

    @property
    def opcode(self) -> str:
        """The part before the first dot."""
        return self.mnemonic.partition(".")[0]

    @property
    def qualifiers(self) -> tuple[str, ...]:
        """The parts after the opcode, without dots: `ld.shared::cta.v4.f32` has three."""
        return tuple(self.mnemonic.split(".")[1:])

    def __str__(self) -> str:
        guard = f"{self.guard} " if self.guard else ""
        operands = " " + ", ".join(map(str, self.operands)) if self.operands else ""
        return f"{guard}{self.mnemonic}{operands};"


@dataclass(frozen=True, slots=True)
class Label:
    """`name:`. Labels are scoped by the enclosing `{ }`."""

    name: str
    line: int
    span: Span


@dataclass(frozen=True, slots=True)
class RegisterName:
    """One declarator of a `.reg`: `%r<8>` (count 8) stands for %r0..%r7; `%a` has count None."""

    name: str
    count: int | None

    def expand(self) -> Iterator[str]:
        """The register names that this declarator stands for."""
        if self.count is None:
            yield self.name
        else:
            yield from (f"{self.name}{i}" for i in range(self.count))


@dataclass(frozen=True, slots=True)
class Registers:
    """`.reg .b32 %r<8>, %a;`. `vector` is 1, or 2/4/8 for `.v2 .v4 .v8` registers."""

    type: str
    names: tuple[RegisterName, ...]
    line: int
    span: Span
    vector: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable or a parameter.

    `space` is "param", "shared", "global", "const", "local", "reg" (a `.func` parameter) or "tex".
    `shape` is the array shape, () for a scalar; an extent of 0 is `[]` (size given at launch).
    `size` and `align` are in bytes. `initial` holds the flattened initialiser.
    """

    space: str
    type: str
    name: str
    shape: tuple[int, ...] = ()
    align: int = 0
    vector: int = 1
    linkage: str = ""
    initial: tuple[Operand, ...] = ()
    pointer: str = ""  # the attributes after .ptr, as written
    line: int = 0
    span: Span = NOWHERE

    @property
    def element_bytes(self) -> int:
        return TYPE_BYTES[self.type] * self.vector

    @property
    def size(self) -> int:
        return self.element_bytes * prod(self.shape)


@dataclass(frozen=True, slots=True)
class Directive:
    """A directive that carries no meaning for execution, kept as text."""

    text: str
    line: int
    span: Span


@dataclass(frozen=True, slots=True)
class Block:
    """`{ ... }`: a scope for registers, variables and labels."""

    body: tuple[Statement, ...]
    line: int
    span: Span


Statement: TypeAlias = Instruction | Label | Registers | Variable | Directive | Block


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """`.entry` or `.func`. `directives` maps a performance directive to its numbers.

    `.reqntid 384` gives `{"reqntid": (384,)}`, `.explicitcluster` gives `{"explicitcluster": ()}`.
    `body` is None for a prototype.
    """

    name: str
    kind: Literal["entry", "func"]
    params: tuple[Variable, ...]
    results: tuple[Variable, ...] = ()
    linkage: str = ""
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)
    body: Block | None = None
    line: int = 0
    span: Span = NOWHERE

    def dim3(self, directive: str) -> tuple[int, int, int] | None:
        """A directive's numbers as (x, y, z), missing ones 1; None when it is absent."""
        values = self.directives.get(directive)
        return None if values is None else (*values, 1, 1, 1)[:3]  # type: ignore[return-value]

    def instructions(self) -> Iterator[Instruction]:
        """Every instruction in textual order, nested scopes included."""
        if self.body is not None:
            yield from _instructions(self.body)


def _instructions(block: Block) -> Iterator[Instruction]:
    for statement in block.body:
        if isinstance(statement, Instruction):
            yield statement
        elif isinstance(statement, Block):
            yield from _instructions(statement)


Item: TypeAlias = Function | Variable | Directive


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A whole PTX module and the text it came from."""

    version: tuple[int, int]
    target: tuple[str, ...]
    address_size: int
    items: tuple[Item, ...]
    source: str

    @property
    def functions(self) -> tuple[Function, ...]:
        return tuple(item for item in self.items if isinstance(item, Function))

    @property
    def entries(self) -> tuple[Function, ...]:
        return tuple(f for f in self.functions if f.kind == "entry" and f.body is not None)

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(item for item in self.items if isinstance(item, Variable))

    def entry(self, name: str | None = None) -> Function:
        """The entry `name`, or the only one. Raises KeyError listing the entries there are."""
        entries = self.entries
        if name is None and len(entries) == 1:
            return entries[0]
        for entry in entries:
            if entry.name == name:
                return entry
        known = ", ".join(e.name for e in entries) or "none"
        asked = f"no entry {name!r}" if name is not None else "the entry must be named"
        raise KeyError(f"{asked}; entries of this module: {known}")
