"""What a run tells: counts when it went well, findings when it did not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ptxgen.errors import Finding, HazardError
from ptxgen.isa.rules import RULES
from ptxgen.view import Beside, Heading, Row, Stack, Table, View, count
from runtime import backend

if TYPE_CHECKING:
    from .state import Path

_MOST_EXECUTED = 10  # mnemonics shown


@dataclass(frozen=True, slots=True)
class RegisterUse:
    """What setmaxnreg made of the registers of a CTA: a thread's count at entry, and by warp the
    count at exit and how often it was changed."""

    entry: int
    held: tuple[int, ...]
    changes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(backend.Report):
    """One launch (or, from `EmulatorBackend.wait`, the last one).

    `executed` counts warp instructions by mnemonic (an instruction counts once a warp, whatever its
    guard). `events` counts what happened: "wgmma" (a warpgroup), "tma_load", "tma_store",
    "tma_load_bytes", "tma_store_bytes", "mbarrier_phase", "bulk_load", "bulk_store".
    """

    entry: str
    ctas: int
    executed: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    advice: tuple[Finding, ...] = ()  # disputed findings of a run with hazards=True
    registers: tuple[RegisterUse, ...] = ()  # of CTAs, each different one once; () if not known

    def count(self, opcode: str) -> int:
        """Warp instructions whose mnemonic is `opcode` or starts with `opcode.`."""
        return sum(n for k, n in self.executed.items() if k == opcode or k.startswith(opcode + "."))

    @property
    def instructions(self) -> int:
        """All warp instructions."""
        return sum(self.executed.values())

    def view(self) -> View:
        """What happened, and how many warp instructions of which kind made it happen."""
        return Stack(
            (
                Heading(
                    words=f"{self.entry}: {count(self.ctas, 'CTA')}, {self.instructions:,} warp "
                    f"instructions, {self.elapsed_s:.3f} s on the {self.backend}"
                ),
                Beside(
                    (
                        _counts("what happened", sorted(self.events.items())),
                        _counts("most executed", self.executed.most_common(_MOST_EXECUTED)),
                    )
                ),
            )
        )

    def __str__(self) -> str:
        rows = [f"{self.entry}: {self.ctas} CTAs, {self.instructions:,} warp instructions"]
        rows += [f"  {n:>9,} {name}" for name, n in sorted(self.events.items())]
        return "\n".join([*rows, *self.notes])


def _counts(title: str, rows: Iterable[tuple[str, int]]) -> Table:
    return Table(
        title=title,
        columns=("", ""),
        rows=tuple(Row((name.replace("_", " "), f"{n:,}")) for name, n in rows),
    )


def hazard(
    code: str,
    message: str,
    *,
    path: Path | None = None,
    line: int = 0,
    reason: str = "",
    cure: str = "",
    isa: str = "",
    bytes_: str = "",
    lines: tuple[int, ...] = (),
    where: str = "",
) -> HazardError:
    """The error for one finding of a rule of `ptxgen.isa.rules`.

    Where it happened comes from the path, if there is one. `line` is the PTX line of the access at
    hand, `lines` are those of earlier ones. What is not given comes from the rule.
    """
    rule = RULES[code]
    return HazardError(
        [
            Finding(
                code=code,
                severity=rule.severity,
                message=message,
                lines=tuple(n for n in (line, *lines) if n),
                where=path.where() if path is not None else where,
                bytes_=bytes_,
                reason=reason or rule.reason,
                cure=cure or rule.cure,
                isa=isa or rule.isa,
            )
        ]
    )
