"""GEMM: what is fixed by the problem, what we choose, and every number that follows from the two.

The rules that a choice must keep are in `gemm_rules`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd
from typing import Literal

from ptxgen.configs.base import extents, integer, option, require, violations
from ptxgen.configs.gemm_rules import RULES
from ptxgen.errors import Violation
from ptxgen.isa import arch
from ptxgen.isa.dtypes import DType, dtype
from ptxgen.layout.smem_plan import Buffer, SmemPlan
from ptxgen.layout.swizzle import Swizzle, largest_swizzle
from ptxgen.layout.tensor_map import box_bytes
from ptxgen.models.pipeline import Ring, RingBarriers
from ptxgen.models.registers import RegisterPool, accumulator_registers, producer_consumer, split

WGMMA_M, WGMMA_K = 64, 16  # rows and 16-bit k of one wgmma; PTX ISA 9.7.15.2
SWIZZLE = Swizzle(128)  # of A and B: one row of a box is one 128-byte span
SLAB_RING_BYTES = 16_384  # default D staging a consumer: 2 slabs of 16-bit, 1 of 32-bit columns
SLAB_COLUMNS = 64  # default width of a slab of D, where tile_n has whole ones


def _dtype_name(text: str) -> str:
    try:
        return dtype(text).name
    except KeyError as error:
        raise ValueError(error.args[0]) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmProblem:
    """D[M,N] = A[M,K] B[N,K]^T with both inputs K-major and f32 accumulation."""

    dtype: str = option("bf16", parse=_dtype_name, legal="bf16, f16", help="type of A and B")
    out_dtype: str = option(
        "same", parse=lambda t: t if t == "same" else _dtype_name(t),
        legal="same, bf16, f16, f32", help="type of D; same: that of A and B",
    )  # fmt: skip

    @property
    def input(self) -> DType:
        return dtype(self.dtype)

    @property
    def output(self) -> DType:
        return dtype(self.dtype if self.out_dtype == "same" else self.out_dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmConfig:
    """Our choice for a GEMM. 0 means "derive it": see `Gemm.resolved`."""

    tile: tuple[int, int, int] = option(
        (128, 256, 64), parse=extents(3),
        legal="M: 64..384 step 64, N: 8..256 step 8, K: 64..256 step 64",
        help="elements of D a CTA computes, and of K a stage holds",
    )  # fmt: skip
    stages: int | Literal["max"] = option(
        4, parse=integer("max"), legal="1.. as many as fit, or max", help="depth of the TMA ring"
    )
    cluster: tuple[int, int] = option(
        (2, 1), parse=extents(2), legal="1x1, 2x1, 1x2",
        help="CTAs along M x N that share loads: 2x1 shares B, 1x2 shares A",
    )  # fmt: skip
    consumers: int = option(
        0, parse=integer(), legal="1..3; 0: derive",
        help="consumer warpgroups; each takes tile M / consumers rows",
    )  # fmt: skip
    wait_depth: int = option(
        1, parse=integer(), legal="0, 1",
        help="wgmma groups in flight while the next stage is awaited",
    )  # fmt: skip
    store_n: int = option(
        0, parse=integer(), legal="divisors of tile N; 0: derive, at most 64",
        help="columns of D staged at once for the TMA store",
    )  # fmt: skip
    store_slabs: int = option(
        0, parse=integer(), legal="1.. ; 0: derive", help="D slabs a consumer may have in flight"
    )


@dataclass(frozen=True)  # no slots: some numbers are cached
class Gemm:
    """A problem with a config, and everything that follows from the two."""

    problem: GemmProblem
    config: GemmConfig

    # ------------------------------------------------------------------ tile and roles

    @property
    def tile_m(self) -> int:
        return self.config.tile[0]

    @property
    def tile_n(self) -> int:
        return self.config.tile[1]

    @property
    def tile_k(self) -> int:
        return self.config.tile[2]

    @property
    def consumers(self) -> int:
        """Consumer warpgroups: as told, else as many as share the 64-row blocks of the tile."""
        if self.config.consumers:
            return self.config.consumers
        return max(n for n in (1, 2, 3) if self.tile_m // WGMMA_M % n == 0)

    @property
    def threads(self) -> int:
        return arch.WARPGROUP_THREADS * (1 + self.consumers)

    @property
    def rows(self) -> int:
        """Rows of the tile that one consumer computes."""
        return self.tile_m // self.consumers

    @property
    def accumulators(self) -> int:
        """f32 accumulator registers of a consumer thread."""
        return accumulator_registers(self.rows, self.tile_n)

    @cached_property
    def registers(self) -> RegisterPool:
        """The split by setmaxnreg: what the producer gives up, the consumers get."""
        producer, consumer = split(self.consumers)
        return producer_consumer(
            consumers=self.consumers,
            producer_registers=producer,
            consumer_registers=consumer,
            accumulators=self.accumulators,
        )

    @property
    def wgmma_per_stage(self) -> int:
        """wgmma instructions of one consumer for one stage."""
        return (self.rows // WGMMA_M) * (self.tile_k // WGMMA_K)

    # ------------------------------------------------------------------ cluster

    @property
    def cluster_m(self) -> int:
        return self.config.cluster[0]

    @property
    def cluster_n(self) -> int:
        return self.config.cluster[1]

    @property
    def cluster_size(self) -> int:
        return self.cluster_m * self.cluster_n

    # ------------------------------------------------------------------ loads

    @property
    def a_bytes(self) -> int:
        """Bytes of A in one stage."""
        return self.tile_m * self.tile_k * self.problem.input.bytes

    @property
    def b_bytes(self) -> int:
        return self.tile_n * self.tile_k * self.problem.input.bytes

    @property
    def k_boxes(self) -> int:
        """TMA boxes along K of one stage: one for each swizzle row."""
        return self.tile_k * self.problem.input.bytes // SWIZZLE.span

    @property
    def a_box(self) -> tuple[int, int]:
        """One TMA box of A in NumPy order: this CTA's share of the rows by one swizzle span."""
        return (self.tile_m // self.cluster_n, SWIZZLE.span // self.problem.input.bytes)

    @property
    def b_box(self) -> tuple[int, int]:
        return (self.tile_n // self.cluster_m, SWIZZLE.span // self.problem.input.bytes)

    @property
    def tx_bytes(self) -> int:
        """Bytes that complete full[s]: every box that lands in a stage, whichever CTA loads it."""
        a = self.cluster_n * box_bytes(self.problem.dtype, self.a_box)
        b = self.cluster_m * box_bytes(self.problem.dtype, self.b_box)
        return self.k_boxes * (a + b)

    # ------------------------------------------------------------------ stores

    @property
    def store_box_n(self) -> int:
        """Columns of one TMA store box: a swizzle span, or what divides tile_n."""
        return gcd(self.tile_n, SWIZZLE.span // self.problem.output.bytes)

    @property
    def store_swizzle(self) -> Swizzle:
        return largest_swizzle(self.store_box_n * self.problem.output.bytes)

    @property
    def store_n(self) -> int:
        """Columns of a slab: as told, else the most up to 64 that divide tile_n in whole boxes."""
        if self.config.store_n:
            return self.config.store_n
        return max(n for n in self.legal_store_n() if n <= SLAB_COLUMNS)

    def legal_store_n(self) -> tuple[int, ...]:
        """Slab widths that divide tile_n into whole store boxes."""
        box = self.store_box_n
        return tuple(n for n in range(box, self.tile_n + 1, box) if self.tile_n % n == 0)

    @property
    def slab_bytes(self) -> int:
        return WGMMA_M * self.store_n * self.problem.output.bytes

    @property
    def slabs_per_tile(self) -> int:
        """Slabs that one consumer writes for one tile."""
        return (self.rows // WGMMA_M) * (self.tile_n // self.store_n)

    @property
    def store_slabs(self) -> int:
        """Slabs in a consumer's ring: as told, else two if they come in pairs and are small."""
        if self.config.store_slabs:
            return self.config.store_slabs
        return 2 if self.slabs_per_tile % 2 == 0 and 2 * self.slab_bytes <= SLAB_RING_BYTES else 1

    # ------------------------------------------------------------------ shared memory, ring

    def smem_with(self, stages: int) -> SmemPlan:
        """The shared-memory map with that many stages."""
        atom = SWIZZLE.atom_bytes
        return SmemPlan.of(
            Buffer(name="A", bytes=self.a_bytes, align=atom, count=stages, note="ring of A tiles"),
            Buffer(name="B", bytes=self.b_bytes, align=atom, count=stages, note="ring of B tiles"),
            Buffer(
                name="D slabs", bytes=self.slab_bytes, align=atom,
                count=self.consumers * self.store_slabs,
                note=f"{self.store_slabs} of {self.store_n} columns a consumer",
            ),
            Buffer(name="full", bytes=8, align=8, count=stages, note="mbarriers"),
            Buffer(name="empty", bytes=8, align=8, count=stages, note="mbarriers"),
        )  # fmt: skip

    @cached_property
    def most_stages(self) -> int:
        """The deepest ring that fits."""
        each = self.smem_with(1).total - self.smem_with(0).total
        return max((arch.SMEM_PER_CTA_BYTES - self.smem_with(0).total) // each, 0)

    @property
    def stages(self) -> int:
        return self.most_stages if self.config.stages == "max" else self.config.stages

    @cached_property
    def smem(self) -> SmemPlan:
        return self.smem_with(self.stages)

    @property
    def least_stages(self) -> int:
        """The smallest ring that makes progress at this wait depth."""
        return Ring(stages=0, wait_depth=self.config.wait_depth).least_stages

    @property
    def ring(self) -> Ring:
        return Ring(stages=self.stages, wait_depth=self.config.wait_depth)

    @property
    def barriers(self) -> RingBarriers:
        return RingBarriers(
            consumers=self.consumers, destinations=self.cluster_size, tx_bytes=self.tx_bytes
        )

    # ------------------------------------------------------------------ the whole

    def check(self) -> tuple[Violation, ...]:
        """Every broken rule, with the numbers and a legal choice."""
        return violations(RULES, self)

    def require(self) -> Gemm:
        """This object, or a ConfigError that lists every broken rule."""
        require("gemm config", RULES, self)
        return self

    def resolved(self) -> GemmConfig:
        """The config with every derived field written out."""
        return replace(
            self.config,
            stages=self.stages,
            consumers=self.consumers,
            store_n=self.store_n,
            store_slabs=self.store_slabs,
        )
