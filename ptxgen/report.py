"""Everything there is to say about one kernel, as data and as one page of text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ptxgen.kernels.base import BarrierRow, Role
from ptxgen.layout.smem_plan import SmemPlan
from ptxgen.models.occupancy import Occupancy, occupancy
from ptxgen.models.record import Record
from ptxgen.models.registers import RegisterPool
from ptxgen.spec import KernelSpec
from ptxgen.toolchain.assemble import Cubin
from ptxgen.toolchain.sass import mix

if TYPE_CHECKING:
    from ptxgen.api import Kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelReport:
    """Config, memory, roles, registers, barriers, models, ptxas's report, SASS mix."""

    reference: str
    problem: Mapping[str, object]
    config: Mapping[str, object]
    spec: KernelSpec
    smem: SmemPlan
    roles: tuple[Role, ...]
    registers: RegisterPool
    barriers: tuple[BarrierRow, ...]
    occupancy: Occupancy
    models: tuple[tuple[str, Record], ...]
    cubin: Cubin
    sass_mix: Mapping[str, Mapping[str, int]]

    @classmethod
    def of(cls, kernel: Kernel) -> KernelReport:
        source = kernel.source
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
                registers=source.registers.entry,
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
            "registers": self.registers.to_dict(),
            "barriers": [asdict(row) for row in self.barriers],
            "occupancy": self.occupancy.to_dict(),
            "models": {title: record.to_dict() for title, record in self.models},
            "cubin": self.cubin.to_dict(),
            "sass_mix": {kind: dict(counts) for kind, counts in self.sass_mix.items()},
        }

    def sections(self) -> tuple[tuple[str, str], ...]:
        """(title, text) in reading order, for whoever draws them."""
        fields = {**self.problem, **self.config}
        width = max(map(len, fields))
        s = self.spec
        return (
            ("config", "\n".join(f"{name:{width}}  {_plain(v)}" for name, v in fields.items())),
            (
                "launch",
                f"entry {s.entry}\nblock {s.block}, cluster {s.cluster}, "
                f"{s.smem_bytes:,} B dynamic shared memory, "
                f"PTX {s.ptx_version[0]}.{s.ptx_version[1]}",
            ),
            ("roles", "\n".join(f"{r.name:10} warps {r.warps:6} {r.does}" for r in self.roles)),
            ("registers", str(self.registers)),
            ("shared memory", str(self.smem)),
            ("barriers", _barrier_table(self.barriers)),
            ("occupancy", str(self.occupancy)),
            *((title, str(record)) for title, record in self.models),
            ("ptxas", str(self.cubin)),
            ("SASS", _mix_table(self.sass_mix)),
        )

    def __str__(self) -> str:
        parts = [f"{title}\n{_indent(text)}" for title, text in self.sections()]
        return "\n\n".join([self.reference, *parts])


def _plain(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _barrier_table(rows: tuple[BarrierRow, ...]) -> str:
    header = ("barrier", "count", "arrivals", "bytes", "who arrives", "who waits")
    table = [
        header,
        *(
            (r.name, str(r.count), str(r.arrivals), f"{r.tx_bytes:,}", r.arrivers, r.waiters)
            for r in rows
        ),
    ]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in table
    )


def _mix_table(kinds: Mapping[str, Mapping[str, int]]) -> str:
    return "\n".join(
        f"{kind:10} " + ", ".join(f"{n} {opcode}" for opcode, n in counts.items())
        for kind, counts in kinds.items()
    )
