"""Promises about how much of something there is: opcodes, groups, registers, remarks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from ptxgen.toolchain.diagnostics import Resources
from ptxgen.toolchain.sass import GMMA, Instruction
from ptxgen.toolchain.verify.facts import Facts, Row, Where, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How often an opcode appears. `pattern` is an opcode pattern as in `sass.py`.

    Give `exactly`, or any of `multiple_of`, `at_least`, `at_most`. `operand` counts only
    instructions that have this text among their operands. `where="mma_loop"` counts inside each
    innermost loop that holds a warpgroup MMA, and each must agree; there must be one.
    """

    pattern: str
    where: Where = "kernel"
    operand: str = ""
    exactly: int | None = None
    multiple_of: int | None = None
    at_least: int | None = None
    at_most: int | None = None
    why: str = ""

    def __post_init__(self) -> None:
        if {self.exactly, self.multiple_of, self.at_least, self.at_most} == {None}:
            raise ValueError(f"Count({self.pattern!r}) wants nothing: give a number to hold it to")

    def row(self, facts: Facts) -> Row:
        places = facts.places(self.where)
        hits = [self._hits(code) for _, code in places]
        good = bool(places) and all(self._agrees(len(found)) for found in hits)
        got = ", ".join(
            str(len(found)) if name == "kernel" else f"{len(found)} in the {name}"
            for (name, _), found in zip(places, hits, strict=True)
        )
        if not good and hits:
            got += shown([i for found in hits for i in found])
        return Row(
            name=f"{self.pattern}{f' with {self.operand}' if self.operand else ''}"
            f"{' in the MMA loop' if self.where == 'mma_loop' else ''}",
            want=self._wanted(),
            got=got or "no loop that holds a warpgroup MMA",
            ok=good,
            why=self.why,
        )

    def _hits(self, code: Iterable[Instruction]) -> list[Instruction]:
        return [
            i
            for i in code
            if i.matches(self.pattern) and (not self.operand or self.operand in i.operand_list)
        ]

    def _agrees(self, n: int) -> bool:
        return (
            (self.exactly is None or n == self.exactly)
            and (self.multiple_of is None or n % self.multiple_of == 0)
            and (self.at_least is None or n >= self.at_least)
            and (self.at_most is None or n <= self.at_most)
        )

    def _wanted(self) -> str:
        if self.exactly == 0 or self.at_most == 0:
            return "none"
        if self.exactly is not None:
            return str(self.exactly)
        parts = [
            (self.multiple_of, "a multiple of"), (self.at_least, "at least"),
            (self.at_most, "at most"),
        ]  # fmt: skip
        return ", ".join(f"{words} {n}" for n, words in parts if n is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSize:
    """How many MMAs one wgmma group has. ptxas marks the last of a group with `gsb0`.

    When wgmma is serialised every MMA closes a group of its own, whatever the log says.
    """

    pattern: str = GMMA
    size: int
    why: str = "more groups than the PTX has means that ptxas waits between MMAs"

    def row(self, facts: Facts) -> Row:
        mmas = [i for i in facts.function.code if i.matches(self.pattern)]
        groups = sum("gsb0" in i.operand_list for i in mmas)
        return Row(
            name=f"{'wgmma' if self.pattern == GMMA else self.pattern} per group",
            want=str(self.size),
            got=f"{len(mmas)} in {groups} group{'' if groups == 1 else 's'}",
            ok=groups > 0 and len(mmas) == self.size * groups,
            why=self.why,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Setmaxnreg:
    """The immediates of setmaxnreg in the PTX, each as often as it stands there."""

    dec: tuple[int, ...] = ()
    inc: tuple[int, ...] = ()
    why: str = "ptxas drops setmaxnreg without an error when it cannot tell the entry count"

    def row(self, facts: Facts) -> Row:
        got = [
            (i.opcode.split(".")[1], int(i.operand_list[-1], 16))
            for i in facts.function.code
            if i.matches("USETMAXREG")
        ]
        want = [("DEALLOC", n) for n in self.dec] + [("TRY_ALLOC", n) for n in self.inc]
        return Row(
            name="USETMAXREG",
            want=_listed(want),
            got=_listed(got),
            ok=Counter(got) == Counter(want),
            why=self.why,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A number of ptxas's report: `field` names one of `diagnostics.Resources`."""

    field: str
    exactly: int | None = None
    at_most: int | None = None
    why: str = ""

    def __post_init__(self) -> None:
        known = [f.name for f in fields(Resources)]
        if self.field not in known:
            raise ValueError(f"Resource({self.field!r}): the report has {', '.join(known)}")
        if self.exactly is None and self.at_most is None:
            raise ValueError(f"Resource({self.field!r}) wants nothing: give a number to hold it to")

    def row(self, facts: Facts) -> Row:
        got = int(getattr(facts.resources, self.field))
        want = str(self.exactly) if self.exactly is not None else f"at most {self.at_most}"
        good = (self.exactly is None or got == self.exactly) and (
            self.at_most is None or got <= self.at_most
        )
        return Row(name=self.field, want=want, got=str(got), ok=good, why=self.why)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoLosses:
    """ptxas gave nothing up: no advisory, no spill, no stack frame."""

    why: str = "see ptxas's own words in the report of the cubin"

    def row(self, facts: Facts) -> Row:
        heads = [loss.splitlines()[0] for loss in facts.report.losses]
        return Row(
            name="ptxas advisories, spills, stack frames",
            want="none",
            got="; ".join(heads) or "none",
            ok=not heads,
            why=self.why,
        )


def forbidden(pattern: str, why: str) -> Count:
    """The promise that an opcode does not appear at all."""
    return Count(pattern=pattern, exactly=0, why=why)


NO_LOCAL_MEMORY = forbidden("LDL|STL", "registers or arrays in local memory are slow")
NO_CALLS = forbidden("CALL|RET", "a call ends the wgmma pipeline and makes ptxas drop setmaxnreg")
NO_WARP_MMA = forbidden(
    "HMMA|IMMA|DMMA|BMMA|QMMA", "the warp-wide MMA has half the rate of wgmma on Hopper"
)


def _listed(numbers: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{kind} {n}" for kind, n in sorted(numbers)) or "none"
