"""Does the SASS hold what the kernel promises?

A kernel builds an `Expectation` from the same numbers that filled its template; `verify` turns each
promise into one row of a report. All checks are data: a promise is a small frozen record with one
method, `row(facts)`.

ptxas unrolls loops and peels iterations off them, so inside the main loop a count is a multiple of
what one iteration of the PTX has, never an exact number. What is outside loops is exact. How often
an instruction runs is for the emulator's profile to say, not for this file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Literal, Protocol, TypeAlias

from ptxgen.errors import SassMismatch
from ptxgen.toolchain.diagnostics import AssemblyReport, Resources
from ptxgen.toolchain.flow import Flow, Loop, flow
from ptxgen.toolchain.sass import GMMA, Instruction, Sass, SassFunction

Where: TypeAlias = Literal["kernel", "mma_loop"]

# Copies and reductions of the TMA unit. One elected lane issues them.
TMA_ISSUE = "UTMALDG|UTMASTG|UTMAREDG|UBLKCP|UBLKRED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One check: what was wanted, what is there, and why it matters."""

    name: str
    want: str
    got: str
    ok: bool
    why: str = ""

    def render(self, name_width: int = 0, want_width: int = 0) -> str:
        """One line, and a second one that says why a broken promise matters."""
        text = (
            f"{'ok ' if self.ok else 'BAD'} {self.name:<{name_width}}  "
            f"want {self.want:<{want_width}}  got {self.got}"
        )
        return text if self.ok or not self.why else f"{text}\n      why  {self.why}"

    def __str__(self) -> str:
        return self.render()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What promises are held against: one kernel's code, its flow graph, ptxas's numbers."""

    function: SassFunction
    flow: Flow
    resources: Resources
    report: AssemblyReport

    @property
    def mma_loops(self) -> tuple[Loop, ...]:
        """The innermost loops that hold a warpgroup MMA."""
        return self.flow.innermost(GMMA)

    def places(self, where: Where) -> list[tuple[str, tuple[Instruction, ...]]]:
        """The pieces of code that a promise about `where` speaks of, each with its name."""
        if where == "kernel":
            return [("kernel", self.function.code)]
        return [
            (f"loop at 0x{self._address(loop):04x}", self.flow.instructions(loop))
            for loop in self.mma_loops
        ]

    def _address(self, loop: Loop) -> int:
        return self.flow.code[self.flow.blocks[loop.header].start].address


class Promise(Protocol):
    """Anything that can be held against the facts."""

    def row(self, facts: Facts) -> Row: ...


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
            got += _shown([i for found in hits for i in found])
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
class NotPerLane:
    """No match of the pattern stands in a loop over lanes.

    Where ptxas cannot prove that a single lane is active it wraps the instruction in a loop that
    elects one lane after the other and ends in BRA.U.ANY.
    """

    pattern: str = TMA_ISSUE
    why: str = "ptxas cannot prove that one lane issues it; guard it (or branch) by elect.sync"

    def row(self, facts: Facts) -> Row:
        looped = [
            i
            for loop in facts.flow.loops
            if any(b.matches("BRA.U.ANY") for b in facts.flow.latch_instructions(loop))
            for i in facts.flow.instructions(loop)
            if i.matches(self.pattern)
        ]
        return Row(
            name=f"{'TMA' if self.pattern == TMA_ISSUE else self.pattern} issued lane by lane",
            want="none",
            got=(str(len(looped)) + _shown(looped)) if looped else "none",
            ok=not looped,
            why=self.why,
        )


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


# What every kernel promises, and what every kernel with wgmma promises beyond that.
ALWAYS: tuple[Promise, ...] = (NoLosses(), NO_LOCAL_MEMORY, NotPerLane())
ALWAYS_WGMMA: tuple[Promise, ...] = (*ALWAYS, NO_CALLS, NO_WARP_MMA)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """All promises of one kernel. `entry` names it; empty means the only one of its cubin."""

    promises: tuple[Promise, ...]
    entry: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """The rows of one verification, and the resources that every report should show."""

    entry: str
    cubin_sha256: str
    ptxas: str
    resources: Resources
    rows: tuple[Row, ...]

    @property
    def ok(self) -> bool:
        return all(row.ok for row in self.rows)

    def require(self) -> VerifyReport:
        """This report if every row is good; else raises SassMismatch, which shows all rows."""
        if not self.ok:
            raise SassMismatch(str(self))
        return self

    def to_dict(self) -> dict[str, object]:
        return {
            "ok": self.ok,
            "entry": self.entry,
            "cubin_sha256": self.cubin_sha256,
            "ptxas": self.ptxas,
            "resources": asdict(self.resources),
            "rows": [asdict(row) for row in self.rows],
        }

    def __str__(self) -> str:
        bad = sum(not row.ok for row in self.rows)
        verdict = (
            f"{bad} of {len(self.rows)} checks fail" if bad else f"{len(self.rows)} checks hold"
        )
        head = (
            f"SASS of {self.entry} (cubin {self.cubin_sha256[:12]}, ptxas {self.ptxas}): {verdict}"
        )
        names = max((len(row.name) for row in self.rows), default=0)
        wants = max((len(row.want) for row in self.rows), default=0)
        body = [f"  {row.render(names, wants)}" for row in self.rows]
        return "\n".join([head, f"  {self.resources}", *body])


def verify(sass: Sass, report: AssemblyReport, expectation: Expectation) -> VerifyReport:
    """Hold every promise of a kernel against its SASS and ptxas's report.

    Raises SassMismatch when the entry itself is missing; everything else becomes a row.
    """
    try:
        function = sass.function(expectation.entry or None)
        resources = report.entry(function.name)
    except KeyError as error:
        raise SassMismatch(f"the cubin does not hold the kernel: {error.args[0]}") from error
    facts = Facts(function=function, flow=flow(function), resources=resources, report=report)
    return VerifyReport(
        entry=function.name,
        cubin_sha256=sass.cubin_sha256,
        ptxas=sass.ptxas,
        resources=resources,
        rows=tuple(promise.row(facts) for promise in expectation.promises),
    )


def _listed(numbers: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{kind} {n}" for kind, n in sorted(numbers)) or "none"


def _shown(instructions: Sequence[Instruction], most: int = 3) -> str:
    """A few of the instructions, by address and PTX line."""
    if not instructions:
        return ""
    texts = [
        f"0x{i.address:04x} {i.opcode}" + (f" (PTX line {i.line})" if i.line is not None else "")
        for i in instructions[:most]
    ]
    more = [f"and {len(instructions) - most} more"] if len(instructions) > most else []
    return ": " + ", ".join([*texts, *more])
