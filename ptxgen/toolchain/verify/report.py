"""All promises of one kernel, held against its SASS."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ptxgen.errors import SassMismatch
from ptxgen.toolchain.diagnostics import AssemblyReport, Resources
from ptxgen.toolchain.flow import flow
from ptxgen.toolchain.sass import Sass
from ptxgen.toolchain.verify.facts import Facts, Promise, Row
from ptxgen.view import Heading, Shown, Stack, Table, View
from ptxgen.view.table import Row as TableRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """All promises of one kernel. `entry` names it; empty means the only one of its cubin."""

    promises: tuple[Promise, ...]
    entry: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport(Shown):
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

    @property
    def headline(self) -> str:
        """What was checked, and whether it holds."""
        bad = sum(not row.ok for row in self.rows)
        verdict = (
            f"{bad} of {len(self.rows)} checks fail" if bad else f"{len(self.rows)} checks hold"
        )
        return (
            f"SASS of {self.entry} (cubin {self.cubin_sha256[:12]}, ptxas {self.ptxas}): {verdict}"
        )

    def view(self) -> View:
        """The verdict and a row a check; a failed one says why it matters."""
        return Stack(
            (
                Heading(words=self.headline, tone="good" if self.ok else "bad"),
                Table(
                    title=str(self.resources),
                    columns=("", "check", "want", "got"),
                    rows=tuple(_shown(row) for row in self.rows),
                    left=frozenset(range(4)),
                ),
            ),
            gap="\n",
        )

    def __str__(self) -> str:
        names = max((len(row.name) for row in self.rows), default=0)
        wants = max((len(row.want) for row in self.rows), default=0)
        body = [f"  {row.render(names, wants)}" for row in self.rows]
        return "\n".join([self.headline, f"  {self.resources}", *body])


def _shown(row: Row) -> TableRow:
    mark = "ok" if row.ok else "BAD"
    why = "" if row.ok or not row.why else f"why: {row.why}"
    return TableRow((mark, row.name, row.want, row.got), why, "plain" if row.ok else "bad")


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
