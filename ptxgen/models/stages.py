"""How deep a ring of A and B tiles fits into shared memory, and what such a depth hides.

    stages x (A + B + two mbarriers) + what else the CTA keeps  <=  232,448 B

While a consumer works on one stage, the loads of the others are in flight. They cover a latency of
(stages - 1) x the time of a stage; more depth than the latency needs only costs shared memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from ptxgen.errors import ConfigError, Violation
from ptxgen.isa.arch import SMEM_PER_CTA_BYTES
from ptxgen.isa.dtypes import DType
from ptxgen.layout.draw_smem import smem_grid
from ptxgen.layout.smem_plan import Buffer, SmemPlan
from ptxgen.models.feed import WGMMA_K_BYTES, WGMMA_M, feed
from ptxgen.models.record import ANY, Bars, Record, element, in_range
from ptxgen.view import Row, Stack, Table, View

ATOM_BYTES = 1_024  # alignment of a tile with 128-byte swizzle
# Cycles from a TMA load that misses L2 to its mbarrier completing, measured by others on H800.
TMA_HBM_CYCLES = 761
_BUFFER = re.compile(r"(?P<name>\w+)=(?:(?P<count>\d+)x)?(?P<bytes>\d+)(?:@(?P<align>\d+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCapacity(Record):
    """A ring in shared memory. Made by `stage_capacity`."""

    tile_m: int
    tile_n: int
    tile_k: int
    dtype: DType
    stages: int
    most_stages: int
    smem: SmemPlan

    @property
    def stage_bytes(self) -> int:
        """Bytes of A and B of one stage: what expect_tx counts."""
        return (self.tile_m + self.tile_n) * self.tile_k * self.dtype.bytes

    @property
    def stage_cycles(self) -> float:
        """Tensor-core cycles of a stage with both operands from shared memory; 0 if not whole."""
        if self.tile_m % WGMMA_M or self.tile_n % 8 or not 8 <= self.tile_n <= 256:
            return 0.0
        steps = self.tile_k * self.dtype.bytes / WGMMA_K_BYTES
        return self.tile_m / WGMMA_M * steps * feed(n=self.tile_n).cycles

    @property
    def fits(self) -> bool:
        return self.smem.fits()

    @property
    def covered_cycles(self) -> float:
        """Latency that the loads in flight cover: all stages but the one being multiplied."""
        return max(self.stages - 1, 0) * self.stage_cycles

    def bars(self) -> Bars:
        return _region_bars(self.smem)

    def headline(self) -> Mapping[str, float | str]:
        return {
            "most stages": self.most_stages,
            "stage B": self.stage_bytes,
            "smem B": self.smem.total,
            "free B": SMEM_PER_CTA_BYTES - self.smem.total,
            "covered cycles": self.covered_cycles,
        }

    def table(self) -> Table:
        free = SMEM_PER_CTA_BYTES - self.smem.total
        hidden = self.covered_cycles >= TMA_HBM_CYCLES
        return Table(
            title=f"ring of {self.tile_m}x{self.tile_n}x{self.tile_k} {self.dtype.name}, "
            f"{self.stages} stages",
            columns=("", "value"),
            rows=(
                Row(("bytes a stage", f"{self.stage_bytes:,}"), "A + B: what expect_tx counts"),
                Row(("deepest ring", f"{self.most_stages}"), "stages that fit"),
                Row(
                    ("shared memory", f"{self.smem.total:,}"),
                    f"of {SMEM_PER_CTA_BYTES:,}, {free:,} free"
                    if self.fits
                    else f"{-free:,} too many",
                    "good" if self.fits else "bad",
                ),
                Row(("cycles a stage", f"{self.stage_cycles:,.0f}"), "tensor cores, SS wgmma"),
                Row(
                    ("latency covered", f"{self.covered_cycles:,.0f}"),
                    f"cycles; a TMA load from HBM takes about {TMA_HBM_CYCLES}"
                    + ("" if hidden else ": it shows"),
                ),
            ),
        )

    def view(self) -> View:
        return Stack.of(self.table(), smem_grid(self.smem))


@dataclass(frozen=True, slots=True, kw_only=True)
class SmemMap(Record):
    """A shared-memory plan against the limit of a CTA. Made by `smem_map`."""

    plan: SmemPlan

    @property
    def total(self) -> int:
        return self.plan.total

    @property
    def free(self) -> int:
        """Bytes below the limit; negative where the plan does not fit."""
        return SMEM_PER_CTA_BYTES - self.plan.total

    def bars(self) -> Bars:
        return _region_bars(self.plan)

    def headline(self) -> Mapping[str, float | str]:
        return {"total": self.total, "free": self.free, "padding": self.plan.padding}

    def table(self) -> Table:
        return self.plan.table()

    def view(self) -> View:
        return Stack.of(self.table(), smem_grid(self.plan))


def _region_bars(plan: SmemPlan) -> Bars:
    values: dict[str, float] = {region.name: region.total for region in plan}
    return Bars(unit="bytes", values={**values, "all": plan.total, "limit": SMEM_PER_CTA_BYTES})


def stage_capacity(
    *,
    tile_m: Annotated[int, "rows of D a CTA computes"] = 128,
    tile_n: Annotated[int, "columns of D a CTA computes"] = 256,
    tile_k: Annotated[int, "k of one stage"] = 64,
    dtype: Annotated[str, "type of A and B"] = "bf16",
    stages: Annotated[int, "ring depth; 0: as many as fit"] = 0,
    other: Annotated[int, "bytes the CTA keeps besides the ring"] = 16_384,
) -> StageCapacity:
    """How many stages of A and B fit into shared memory, and the latency that they cover.

    Raises ConfigError for extents below 1.
    """
    in_range(
        "no such ring",
        ("tile_m", tile_m, 1, ANY),
        ("tile_n", tile_n, 1, ANY),
        ("tile_k", tile_k, 1, ANY),
        ("stages", stages, 0, ANY),
        ("other", other, 0, ANY),
    )
    row = element(dtype)

    def plan(count: int) -> SmemPlan:
        a, b = (extent * tile_k * row.bytes for extent in (tile_m, tile_n))
        return SmemPlan.of(
            Buffer(name="A", bytes=a, align=ATOM_BYTES, count=count),
            Buffer(name="B", bytes=b, align=ATOM_BYTES, count=count),
            Buffer(name="other", bytes=other, align=ATOM_BYTES, count=min(other, 1)),
            Buffer(name="full", bytes=8, align=8, count=count, note="mbarriers"),
            Buffer(name="empty", bytes=8, align=8, count=count, note="mbarriers"),
        )

    most = 0
    while plan(most + 1).fits():
        most += 1
    depth = stages or most
    return StageCapacity(
        tile_m=tile_m,
        tile_n=tile_n,
        tile_k=tile_k,
        dtype=row,
        stages=depth,
        most_stages=most,
        smem=plan(depth),
    )


def smem_map(
    *,
    buffers: Annotated[str, "in order, as NAME=[COUNTx]BYTES[@ALIGN]; bytes before @"] = (
        "A=4x16384,B=4x32768,D=16384,full=4x8@8,empty=4x8@8"
    ),
) -> SmemMap:
    """Where named buffers lie in shared memory, and whether they fit a CTA.

    The alignment is 1,024 B unless given. Raises ConfigError for a buffer that cannot be read.
    """
    wishes = []
    for part in filter(None, buffers.replace(" ", "").replace("_", "").split(",")):
        match = _BUFFER.fullmatch(part)
        if not match:
            raise ConfigError(
                "buffers cannot be read",
                [Violation(field="buffer", got=part, rule="must be NAME=[COUNTx]BYTES[@ALIGN]")],
            )
        wishes.append(
            Buffer(
                name=match["name"],
                bytes=int(match["bytes"]),
                count=int(match["count"] or 1),
                align=int(match["align"] or ATOM_BYTES),
            )
        )
    return SmemMap(plan=SmemPlan.of(*wishes))
