"""What promises are held against, and the row that each of them becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from ptxgen.toolchain.diagnostics import AssemblyReport, Resources
from ptxgen.toolchain.flow import Flow, Loop
from ptxgen.toolchain.sass import GMMA, Instruction, SassFunction

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


def shown(instructions: Sequence[Instruction], most: int = 3) -> str:
    """A few of the instructions, by address and PTX line."""
    if not instructions:
        return ""
    texts = [
        f"0x{i.address:04x} {i.opcode}" + (f" (PTX line {i.line})" if i.line is not None else "")
        for i in instructions[:most]
    ]
    more = [f"and {len(instructions) - most} more"] if len(instructions) > most else []
    return ": " + ", ".join([*texts, *more])
