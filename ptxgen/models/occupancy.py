"""Occupancy: how many CTAs of a kernel one SM holds, and which resource says so.

The rules are those of the CUDA occupancy calculator for compute capability 9.0:

* registers are given to whole warps, 256 at a time, from the quarter of the SM that runs the warp;
* shared memory is rounded up to 128 bytes, and each CTA costs 1,024 bytes more.

Co-residency of clusters depends on where SMs sit in the chip; ask the device for that.
CUDA C++ Programming Guide, "Compute Capability 9.0".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from ptxgen.errors import ConfigError, Violation
from ptxgen.isa.arch import (
    CHIPS,
    CTAS_PER_SM,
    HOPPER,
    REGISTER_ALLOCATION_PER_WARP,
    REGISTERS_PER_SM,
    REGISTERS_PER_THREAD,
    SM_PARTITIONS,
    SMEM_ALLOCATION_BYTES,
    SMEM_PER_CTA_BYTES,
    SMEM_PER_SM_BYTES,
    SMEM_RESERVED_BYTES,
    THREADS_PER_CTA,
    THREADS_PER_SM,
    WARP_THREADS,
    Chip,
)
from ptxgen.layout.rounding import align_up
from ptxgen.models.record import Bars, Record, one_of
from ptxgen.view import Row, Table, count


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One resource: what a CTA takes, what an SM has, and how many CTAs that allows."""

    resource: str
    per_cta: int
    per_sm: int
    ctas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy(Record):
    """CTAs per SM, itemised, and over a whole chip. Made by `occupancy`."""

    threads: int
    limits: tuple[Limit, ...]
    chip: Chip

    @property
    def ctas(self) -> int:
        """CTAs that one SM holds at a time; 0 where not even one fits."""
        return min(limit.ctas for limit in self.limits)

    @property
    def limiters(self) -> tuple[str, ...]:
        """The resources that allow no more CTAs than `ctas`."""
        return tuple(limit.resource for limit in self.limits if limit.ctas == self.ctas)

    @property
    def warps(self) -> int:
        """Resident warps of an SM."""
        return self.ctas * -(-self.threads // WARP_THREADS)

    @property
    def fraction(self) -> float:
        """Resident warps over the most that an SM holds."""
        return self.warps * WARP_THREADS / THREADS_PER_SM

    @property
    def resident_ctas(self) -> int:
        """CTAs that the whole chip holds at a time, clusters aside."""
        return self.ctas * self.chip.sms

    def bars(self) -> Bars:
        return Bars(unit="CTAs an SM", values={x.resource: x.ctas for x in self.limits})

    def headline(self) -> Mapping[str, float | str]:
        return {
            "CTAs": self.ctas,
            "warps": self.warps,
            "occupancy": round(self.fraction, 4),
            "limited by": ", ".join(self.limiters),
        }

    def table(self) -> Table:
        return Table(
            columns=("resource", "per CTA", "per SM", "CTAs"),
            rows=tuple(
                Row(
                    (x.resource, f"{x.per_cta:,}", f"{x.per_sm:,}", str(x.ctas)),
                    "<- limits" if x.resource in self.limiters else "",
                )
                for x in self.limits
            ),
            notes=(
                f"{count(self.ctas, 'CTA')} an SM, {self.warps} of "
                f"{THREADS_PER_SM // WARP_THREADS} warps; {count(self.resident_ctas, 'CTA')} on "
                f"{self.chip.title}",
            ),
        )


def occupancy(
    *,
    threads: Annotated[int, "threads of a CTA"] = 384,
    registers: Annotated[int, "registers of a thread, as in the cubin"] = 168,
    smem_bytes: Annotated[int, "shared memory of a CTA, static and dynamic"] = 0,
    chip: Annotated[str, "chip of compute capability 9.0: h200, h100_sxm, h800_pcie"] = "h200",
) -> Occupancy:
    """CTAs of a kernel that one SM holds at a time, and which resource says so.

    `registers` is the count in the cubin (the entry count of a kernel with setmaxnreg) and
    `smem_bytes` is static plus dynamic. Raises ConfigError with every value that no CTA may have,
    and for a chip that is not of compute capability 9.0.
    """
    one_of("chip", chip, HOPPER)
    broken = [
        Violation(field=name, got=f"{value:,}", rule=f"must be {least}..{most:,} a {unit}")
        for name, value, least, most, unit in (
            ("threads", threads, 1, THREADS_PER_CTA, "CTA"),
            ("registers", registers, 1, REGISTERS_PER_THREAD, "thread"),
            ("smem_bytes", smem_bytes, 0, SMEM_PER_CTA_BYTES, "CTA"),
        )
        if not least <= value <= most
    ]
    if broken:
        raise ConfigError("no CTA can have these resources", broken)

    warps = -(-threads // WARP_THREADS)
    per_warp = align_up(registers * WARP_THREADS, REGISTER_ALLOCATION_PER_WARP)
    warps_per_partition = REGISTERS_PER_SM // SM_PARTITIONS // per_warp
    smem = align_up(smem_bytes, SMEM_ALLOCATION_BYTES) + SMEM_RESERVED_BYTES
    resident = align_up(threads, WARP_THREADS)
    return Occupancy(
        threads=threads,
        chip=CHIPS[chip],
        limits=(
            Limit(
                resource="threads",
                per_cta=resident,
                per_sm=THREADS_PER_SM,
                ctas=THREADS_PER_SM // resident,
            ),
            Limit(
                resource="registers",
                per_cta=warps * per_warp,
                per_sm=REGISTERS_PER_SM,
                ctas=warps_per_partition * SM_PARTITIONS // warps,
            ),
            Limit(
                resource="shared memory",
                per_cta=smem,
                per_sm=SMEM_PER_SM_BYTES,
                ctas=SMEM_PER_SM_BYTES // smem,
            ),
            Limit(resource="CTA slots", per_cta=1, per_sm=CTAS_PER_SM, ctas=CTAS_PER_SM),
        ),
    )
