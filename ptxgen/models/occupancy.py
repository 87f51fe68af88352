"""Occupancy: how many CTAs of a kernel one SM holds, and which resource says so.

The rules are those of the CUDA occupancy calculator for compute capability 9.0:

* registers are given to whole warps, 256 at a time, from the quarter of the SM that runs the warp;
* shared memory is rounded up to 128 bytes, and each CTA costs 1,024 bytes more.

Co-residency of clusters depends on where SMs sit in the chip; ask the device for that.
CUDA C++ Programming Guide, "Compute Capability 9.0".
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.errors import ConfigError, Violation
from ptxgen.isa.arch import (
    CTAS_PER_SM,
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
)
from ptxgen.layout.rounding import align_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One resource: what a CTA takes, what an SM has, and how many CTAs that allows."""

    resource: str
    per_cta: int
    per_sm: int
    ctas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """CTAs per SM, itemised. `str()` prints the table."""

    threads: int
    limits: tuple[Limit, ...]

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

    def __str__(self) -> str:
        lines = [f"{'resource':14} {'per CTA':>9} {'per SM':>9} {'CTAs':>5}"]
        lines += [
            f"{x.resource:14} {x.per_cta:>9,} {x.per_sm:>9,} {x.ctas:>5}"
            + ("  <- limits" if x.resource in self.limiters else "")
            for x in self.limits
        ]
        lines.append(
            f"{self.ctas} CTAs an SM, {self.warps} of {THREADS_PER_SM // WARP_THREADS} warps"
        )
        return "\n".join(lines)


def occupancy(*, threads: int, registers: int, smem_bytes: int) -> Occupancy:
    """CTAs per SM of a kernel with `threads` a CTA, `registers` a thread and `smem_bytes` a CTA.

    `registers` is the count in the cubin (the entry count of a kernel with setmaxnreg) and
    `smem_bytes` is static plus dynamic. Raises ConfigError with every value that no CTA may have.
    """
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

    warps = align_up(-(-threads // WARP_THREADS), SM_PARTITIONS)
    per_warp = align_up(registers * WARP_THREADS, REGISTER_ALLOCATION_PER_WARP)
    warps_per_partition = REGISTERS_PER_SM // SM_PARTITIONS // per_warp
    smem = align_up(smem_bytes, SMEM_ALLOCATION_BYTES) + SMEM_RESERVED_BYTES
    resident = align_up(threads, WARP_THREADS)
    return Occupancy(
        threads=threads,
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
