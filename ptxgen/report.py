"""Everything there is to say about one kernel, as data and as one page of text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ptxgen.kernels.base import BarrierRow, Role
from ptxgen.kernels.show import named_values
from ptxgen.layout.smem_plan import SmemPlan
from ptxgen.models.occupancy import Occupancy, occupancy
from ptxgen.models.record import Record
from ptxgen.models.registers import RegisterPool
from ptxgen.spec import KernelSpec
from ptxgen.toolchain.assemble import Cubin
from ptxgen.toolchain.sass import mix, mix_view
from ptxgen.view import Heading, Row, Shown, Stack, Table, View

if TYPE_CHECKING:
    from ptxgen.api import Kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelReport(Shown):
    """Config, memory, roles, registers, barriers, models, ptxas's report, SASS mix."""

    reference: str
    problem: Mapping[str, object]
    config: Mapping[str, object]
    spec: KernelSpec
    smem: SmemPlan
    roles: tuple[Role, ...]
    registers: RegisterPool | None
    barriers: tuple[BarrierRow, ...]
    occupancy: Occupancy
    models: tuple[tuple[str, Record], ...]
    cubin: Cubin
    sass_mix: Mapping[str, Mapping[str, int]]

    @classmethod
    def of(cls, kernel: Kernel) -> KernelReport:
        source = kernel.source
        pool = source.registers
        return cls(
            reference=kernel.reference,
            problem=asdict(source.problem),  # type: ignore[call-overload]
            config=asdict(source.resolved),  # type: ignore[call-overload]
            spec=source.spec,
            smem=source.smem,
            roles=source.roles,
            registers=source.registers,
            barriers=source.barriers,
            occupancy=occupancy(
                threads=source.spec.block.size,
                registers=pool.entry if pool else _given(kernel),
                smem_bytes=source.spec.smem_bytes,
            ),
            models=source.models,
            cubin=kernel.assembly,
            sass_mix=mix(kernel.sass.function(source.spec.entry).code),
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "reference": self.reference,
            "problem": dict(self.problem),
            "config": dict(self.config),
            "spec": asdict(self.spec),
            "smem": {"total": self.smem.total, "regions": [asdict(r) for r in self.smem]},
            "roles": [asdict(role) for role in self.roles],
            "registers": self.registers.to_dict() if self.registers else None,
            "barriers": [asdict(row) for row in self.barriers],
            "occupancy": self.occupancy.to_dict(),
            "models": {title: record.to_dict() for title, record in self.models},
            "cubin": self.cubin.to_dict(),
            "sass_mix": {kind: dict(counts) for kind, counts in self.sass_mix.items()},
        }

    def parts(self) -> tuple[tuple[str, View], ...]:
        """(title, view) in reading order."""
        return (
            ("config", named_values({**self.problem, **self.config})),
            ("launch", self.spec),
            ("roles", _roles(self.roles)),
            *((("registers", self.registers),) if self.registers else ()),
            *((("shared memory", self.smem),) if self.smem.total else ()),
            *((("barriers", _barriers(self.barriers)),) if self.barriers else ()),
            ("occupancy", self.occupancy),
            *self.models,
            ("ptxas", self.cubin),
            ("SASS", mix_view(self.sass_mix)),
        )

    def sections(self) -> tuple[tuple[str, str], ...]:
        """(title, text) in reading order, for whoever draws them."""
        return tuple((title, str(part)) for title, part in self.parts())

    def view(self) -> View:
        """All parts under their titles."""
        titled = [Stack((Heading(words=title, level=3), part)) for title, part in self.parts()]
        return Stack((Heading(words=self.reference), *titled))

    def __str__(self) -> str:
        parts = [f"{title}\n{_indent(text)}" for title, text in self.sections()]
        return "\n\n".join([self.reference, *parts])


def _given(kernel: Kernel) -> int:
    """Registers a thread, as ptxas gives them."""
    return kernel.assembly.report.entry(kernel.spec.entry).registers


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _roles(roles: tuple[Role, ...]) -> Table:
    return Table(
        columns=("role", "warps", "does"),
        rows=tuple(Row((role.name, role.warps, role.does)) for role in roles),
        left=frozenset({0, 1, 2}),
    )


def _barriers(rows: tuple[BarrierRow, ...]) -> Table:
    return Table(
        columns=("barrier", "count", "arrivals", "bytes", "who arrives", "who waits"),
        rows=tuple(
            Row((r.name, str(r.count), str(r.arrivals), f"{r.tx_bytes:,}", r.arrivers, r.waiters))
            for r in rows
        ),
        left=frozenset({0, 4, 5}),
    )
