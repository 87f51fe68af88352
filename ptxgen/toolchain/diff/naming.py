"""Do two aligned instructions work on the same values, whatever their registers are called?

Registers are renamed consistently when, on the way from a result to its uses, one name of A stands
for one name of B and the other way round. A binding lasts from one write to the next; where paths
meet, those on which all paths agree stay. A name without a binding (a kernel's first use, or a
register written by code that only one side has) takes its partner as it comes. Two registers that
hold the same constant are as good as each other: an accumulator may be cleared from any zero.

A wide result covers registers that no operand names (R24 of an HGMMA stands for up to 128), so a
write also ends the bindings of those behind it: this check may let a difference pass, and does not
invent one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ptxgen.toolchain.registers import REGISTER, result_count
from ptxgen.toolchain.sass import GMMA, Instruction

_WIDE = (("*.128|*.*.128|*.*.*.128|HMMA|LDSM|IMMA|DMMA", 4), (GMMA, 128))
_SPAN = 2  # any result may be a pair: 64-bit loads, IMAD.WIDE, f64
_NAME = re.compile(r"([A-Z]+)(\d+)")
_COPIES = "MOV|UMOV|IMAD.MOV|IMAD.U32"  # the last operand goes to the first
_ZEROS = frozenset({"RZ", "URZ", "0x0"})


@dataclass(slots=True)
class _Side:
    """One side at one point of the code: what its names stand for, and which hold constants."""

    partner: dict[str, str] = field(default_factory=dict)
    constant: dict[str, str] = field(default_factory=dict)

    def meet(self, others: Sequence[_Side]) -> _Side:
        return _Side(
            partner=_common(self.partner, [o.partner for o in others]),
            constant=_common(self.constant, [o.constant for o in others]),
        )

    def value(self, instruction: Instruction) -> str | None:
        """The constant that the instruction copies, if it does."""
        operands = instruction.operand_list
        if not instruction.matches(_COPIES) or len(operands) < 2 or instruction.predicate:
            return None
        if instruction.base == "IMAD" and operands[1:3] != ("RZ", "RZ"):
            return None
        source = operands[-1].removesuffix(".reuse")
        if source in _ZEROS:
            return "0"
        return source if source.startswith("0x") else self.constant.get(source)


@dataclass(slots=True)
class Names:
    """Which name of A stands for which of B, at one point of the code."""

    a: _Side = field(default_factory=_Side)
    b: _Side = field(default_factory=_Side)

    def pair(self, x: Instruction, y: Instruction) -> bool:
        """Walk over two aligned instructions. False when a value that they read differs."""
        reads_a, writes_a = _names(x)
        reads_b, writes_b = _names(y)
        agree = len(reads_a) == len(reads_b) and len(writes_a) == len(writes_b)
        for name, other in zip(reads_a, reads_b, strict=False):
            agree = self._same(name, other) and agree
            self._bind(name, other)  # also after a difference: report it once, not at every use
        constants = self.a.value(x), self.b.value(y)
        self._forget(x, of_a=True)
        self._forget(y, of_a=False)
        for name, other in zip(writes_a, writes_b, strict=False):
            self._bind(name, other)
        self._hold(x, constants[0], of_a=True)
        self._hold(y, constants[1], of_a=False)
        return agree

    def alone(self, instruction: Instruction, *, of_a: bool) -> None:
        """Walk over an instruction that only one side has."""
        constant = (self.a if of_a else self.b).value(instruction)
        self._forget(instruction, of_a=of_a)
        self._hold(instruction, constant, of_a=of_a)

    def meet(self, others: Sequence[Names]) -> Names:
        """What this and all others know. The result is a new object."""
        a = self.a.meet([o.a for o in others])
        b = self.b.meet([o.b for o in others])
        a.partner = {x: y for x, y in a.partner.items() if b.partner.get(y) == x}
        b.partner = {y: x for x, y in a.partner.items()}
        return Names(a=a, b=b)

    def _same(self, x: str, y: str) -> bool:
        if self.a.partner.get(x, y) == y and self.b.partner.get(y, x) == x:
            return True
        return x in self.a.constant and self.a.constant[x] == self.b.constant.get(y)

    def _bind(self, x: str, y: str) -> None:
        self._drop(x, of_a=True)
        self._drop(y, of_a=False)
        self.a.partner[x], self.b.partner[y] = y, x

    def _hold(self, instruction: Instruction, constant: str | None, *, of_a: bool) -> None:
        for name in _names(instruction)[1]:
            if constant is not None:
                (self.a if of_a else self.b).constant[name] = constant

    def _forget(self, instruction: Instruction, *, of_a: bool) -> None:
        for name in _covered(instruction):
            self._drop(name, of_a=of_a)
            (self.a if of_a else self.b).constant.pop(name, None)

    def _drop(self, name: str, *, of_a: bool) -> None:
        mine, theirs = (self.a, self.b) if of_a else (self.b, self.a)
        if (other := mine.partner.pop(name, None)) is not None:
            theirs.partner.pop(other, None)


def _common(first: dict[str, str], others: Sequence[dict[str, str]]) -> dict[str, str]:
    return {k: v for k, v in first.items() if all(o.get(k) == v for o in others)}


def _names(instruction: Instruction) -> tuple[list[str], list[str]]:
    """(read, written) register names, in the order of the text."""
    results = result_count(instruction)
    operands = instruction.operand_list
    reads = f"{instruction.predicate} {' '.join(operands[results:])}"
    return REGISTER.findall(reads), REGISTER.findall(" ".join(operands[:results]))


def _covered(instruction: Instruction) -> list[str]:
    """Names that a write may have changed."""
    span = next((n for pattern, n in _WIDE if instruction.matches(pattern)), _SPAN)
    if instruction.matches(_COPIES):
        span = 1
    names: list[str] = []
    for written in _names(instruction)[1]:
        found = _NAME.fullmatch(written)
        assert found is not None
        wide = span if found[1] in ("R", "UR") else 1
        names += [f"{found[1]}{int(found[2]) + n}" for n in range(wide)]
    return names
