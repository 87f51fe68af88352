"""Every number that follows from a GEMM problem and a config: roles, boxes, stores, shared memory.

"Rows" and "columns" are those of the tile of accumulators. With swap_ab they run along N and M of
the problem, and its B takes the place of A in the tensor core.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd

from ptxgen.configs import slabs
from ptxgen.configs.base import require, violations
from ptxgen.configs.gemm import SPAN, GemmConfig, GemmProblem
from ptxgen.configs.gemm_rules import RULES
from ptxgen.errors import Violation
from ptxgen.isa import arch
from ptxgen.isa.dtypes import DType, dtype
from ptxgen.isa.wgmma import WGMMA_M, WgmmaInput
from ptxgen.layout.smem_desc import OperandLayout, k_major, mn_major
from ptxgen.layout.smem_plan import Buffer, SmemPlan
from ptxgen.layout.swizzle import Swizzle, largest_swizzle
from ptxgen.layout.tensor_map import box_bytes
from ptxgen.models.pipeline import Ring, RingBarriers
from ptxgen.models.registers import RegisterPool, accumulator_registers, producer_consumer, split

CONSUMERS_IN_TURN = 2  # one multiplies while the other stores
SLAB_RING_BYTES = 16_384  # default D staging a consumer: 2 slabs of 16-bit, 1 of 32-bit columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """One side of the product as the tensor core sees it: A gives rows of the tile, B columns."""

    arg: str  # the launch argument that is read: "a" or "b"
    math: WgmmaInput
    major: str
    extent: int  # rows (A) or columns (B) of the tile
    tile_k: int
    sharers: int  # CTAs of the cluster that share this operand, each loading an equal part

    @property
    def storage(self) -> DType:
        return dtype(self.math.storage)

    @property
    def part(self) -> int:
        """Rows or columns that this CTA loads."""
        return self.extent // self.sharers

    @property
    def swizzle(self) -> Swizzle:
        """K-major rows are whole spans; an MN-major row is what divides every CTA's part."""
        if self.major == "k":
            return Swizzle(SPAN)
        return largest_swizzle(gcd(self.part * self.storage.bytes, SPAN))

    @property
    def bytes(self) -> int:
        """Bytes of one stage."""
        return self.extent * self.tile_k * self.storage.bytes

    @property
    def layout(self) -> OperandLayout:
        """Where the elements of one stage lie in shared memory."""
        make = k_major if self.major == "k" else mn_major
        return make(self.storage.name, self.swizzle, mn=self.extent, k=self.tile_k)

    @property
    def box(self) -> tuple[int, int]:
        """One TMA box in NumPy order: [part, row of K], or [tile K, row of M or N]."""
        row = self.swizzle.row_bytes // self.storage.bytes
        return (self.part if self.major == "k" else self.tile_k, row)

    @property
    def boxes(self) -> int:
        """Boxes that this CTA loads for one stage."""
        return (self.tile_k if self.major == "k" else self.part) // self.box[1]

    @property
    def tx_bytes(self) -> int:
        """Bytes of this operand that land in a stage, whichever CTA loads them."""
        return self.sharers * self.boxes * box_bytes(self.storage.name, self.box)


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
    def row_k(self) -> int:
        """Elements of K in one 128-byte row."""
        return SPAN * 8 // self.problem.a.bits

    @property
    def tile_k(self) -> int:
        """K of a stage: as told, else one 128-byte row."""
        return self.config.tile[2] if len(self.config.tile) == 3 else self.row_k

    @property
    def swapped(self) -> bool:
        return bool(self.config.swap_ab)

    @property
    def turns(self) -> bool:
        """Whether consumers take whole tiles in turns, instead of sharing each."""
        return self.config.schedule == "pingpong"

    @property
    def streams(self) -> bool:
        """Whether clusters share out the stages of the last wave's tiles."""
        return self.config.schedule == "stream_k"

    @property
    def consumers(self) -> int:
        """Consumer warpgroups: as told, else as many as share the 64-row blocks of the tile."""
        if self.config.consumers:
            return self.config.consumers
        if self.turns:
            return CONSUMERS_IN_TURN
        return max(n for n in (1, 2, 3) if self.tile_m // WGMMA_M % n == 0)

    @property
    def threads(self) -> int:
        return arch.WARPGROUP_THREADS * (1 + self.consumers)

    @property
    def readers(self) -> int:
        """Consumers that multiply one stage."""
        return 1 if self.turns else self.consumers

    @property
    def rows(self) -> int:
        """Rows of the tile that one consumer computes."""
        return self.tile_m // self.readers

    @property
    def blocks(self) -> int:
        """wgmma instructions that cover a consumer's rows."""
        return self.rows // WGMMA_M

    @property
    def accumulator_bits(self) -> int:
        return 16 if self.problem.accumulator == "f16" else 32

    @property
    def block_accumulators(self) -> int:
        """Accumulator registers of one wgmma, a thread."""
        return accumulator_registers(WGMMA_M, self.tile_n, self.accumulator_bits)

    @property
    def accumulators(self) -> int:
        """Accumulator registers of a consumer thread."""
        return self.blocks * self.block_accumulators

    @property
    def through_registers(self) -> bool:
        """Whether wgmma takes the rows of a tile from registers."""
        return self.config.a_source == "registers"

    @property
    def fragments(self) -> int:
        """Registers that hold a stage of a consumer's rows: four of each wgmma, or none."""
        return 4 * self.wgmma_per_stage if self.through_registers else 0

    @cached_property
    def registers(self) -> RegisterPool:
        """The split by setmaxnreg: what the producer gives up, the consumers get."""
        producer, consumer = split(self.consumers)
        return producer_consumer(
            consumers=self.consumers,
            producer_registers=producer,
            consumer_registers=consumer,
            accumulators=self.accumulators * (2 if self.problem.promoted else 1),
            fragments=self.fragments,
        )

    @property
    def wgmma_per_stage(self) -> int:
        """wgmma instructions of one consumer for one stage."""
        return self.blocks * (self.tile_k // self.problem.a.k)

    # ------------------------------------------------------------------ cluster

    @property
    def cluster_m(self) -> int:
        return self.config.cluster[0]

    @property
    def cluster_n(self) -> int:
        return self.config.cluster[1]

    @property
    def split_k(self) -> int:
        return self.config.split_k

    @property
    def cluster_size(self) -> int:
        """CTAs of a cluster: those that share loads, or those that share K."""
        return self.cluster_m * self.cluster_n * self.split_k

    @property
    def destinations(self) -> int:
        """CTAs that receive what one producer loads, itself included."""
        return self.cluster_m + self.cluster_n - 1

    # ------------------------------------------------------------------ loads

    @property
    def a(self) -> Operand:
        """What gives rows: A of the problem, or B when swapped."""
        p = self.problem
        arg, math, major = ("b", p.b, p.b_major) if self.swapped else ("a", p.a, p.a_major)
        return Operand(
            arg=arg, math=math, major=major, extent=self.tile_m, tile_k=self.tile_k,
            sharers=self.cluster_n,
        )  # fmt: skip

    @property
    def b(self) -> Operand:
        """What gives columns: B of the problem, or A when swapped."""
        p = self.problem
        arg, math, major = ("a", p.a, p.a_major) if self.swapped else ("b", p.b, p.b_major)
        return Operand(
            arg=arg, math=math, major=major, extent=self.tile_n, tile_k=self.tile_k,
            sharers=self.cluster_m,
        )  # fmt: skip

    @property
    def copies(self) -> bool:
        """Whether the producer's threads copy A and B themselves, instead of TMA."""
        return self.config.load != "tma"

    @property
    def by_elements(self) -> bool:
        """Whether they load element by element, and have a stage once it is stored."""
        return self.config.load == "ld"

    @property
    def copy_lag(self) -> int:
        """Stages whose cp.async are on their way while the next one is copied.

        Consumers must have what they release a stage for, and should have one more.
        """
        if self.config.load != "cp_async":
            return 0
        return max(self.stages - self.config.wait_depth, 0) // 2

    # ------------------------------------------------------------------ stores

    @property
    def out_n(self) -> int:
        """Columns of D that this CTA stores: all, or its share when K is split."""
        return self.d_columns // self.split_k

    @property
    def d_columns(self) -> int:
        """Columns of D in a tile: those of the tile, or half as many where two make one."""
        return self.tile_n // self.problem.halves

    def accumulator_column(self, column: int, half: int = 0) -> int:
        """Which column of the tile has the sums of a column of D.

        Every part of B that one CTA loads holds rows of its first half, then as many of its second.
        """
        if not self.problem.gated:
            return column
        part, inside = divmod(column, self.b.part // 2)
        return part * self.b.part + half * self.b.part // 2 + inside

    @property
    def direct(self) -> bool:
        """Whether D is stored from registers, without slabs in shared memory."""
        return self.config.store == "direct"

    @cached_property
    def store_box(self) -> tuple[int, int]:
        """One TMA store box in NumPy order: [64 rows, columns], or swapped [columns, rows].

        Where D is stored from registers, all of a slab.
        """
        if self.swapped:
            return (self.store_n, min(SPAN // self.problem.output.bytes, WGMMA_M))
        if self.direct:
            return (WGMMA_M, self.store_n)
        return (WGMMA_M, slabs.box_columns(self.store_n, self.problem.output.bytes))

    @property
    def store_box_bytes(self) -> int:
        return box_bytes(self.problem.output.name, self.store_box)

    @property
    def store_swizzle(self) -> Swizzle:
        return largest_swizzle(self.store_box[1] * self.problem.output.bytes)

    @cached_property
    def store_n(self) -> int:
        """Columns of a slab: as told, else see `slabs.default`; without rows in boxes, up to 64."""
        if self.config.store_n:
            return self.config.store_n
        if not self.swapped and not self.direct:
            return slabs.default(self.out_n, self.problem.output.bytes)
        return max((n for n in self.legal_store_n() if n <= slabs.COLUMNS), default=slabs.EIGHT)

    @cached_property
    def store_unit(self) -> int:
        """Columns of the narrowest slab."""
        if self.swapped or self.direct:
            return slabs.EIGHT
        return slabs.least(self.problem.output.bytes)

    def legal_store_n(self) -> tuple[int, ...]:
        """Slab widths that divide the columns of a CTA."""
        unit = self.store_unit
        return tuple(n for n in range(unit, self.out_n + 1, unit) if self.out_n % n == 0)

    @property
    def slab_bytes(self) -> int:
        return WGMMA_M * self.store_n * self.problem.output.bytes

    @property
    def slabs_per_tile(self) -> int:
        """Slabs that one consumer writes for one tile."""
        return self.blocks * (self.out_n // self.store_n)

    @property
    def boxes_per_slab(self) -> int:
        return self.slab_bytes // self.store_box_bytes

    @property
    def store_slabs(self) -> int:
        """Slabs in a consumer's ring: as told, else two if they come in pairs and are small.

        None where D is stored from registers.
        """
        if self.direct:
            return 0
        if self.config.store_slabs:
            return self.config.store_slabs
        return 2 if self.slabs_per_tile % 2 == 0 and 2 * self.slab_bytes <= SLAB_RING_BYTES else 1

    # ------------------------------------------------------------------ shared memory, ring

    @property
    def partial_bytes(self) -> int:
        """What a consumer shows its peers when K is split or shared out: all its accumulators."""
        return self.accumulators * 4 * arch.WARPGROUP_THREADS

    def smem_with(self, stages: int) -> SmemPlan:
        """The shared-memory map with that many stages."""
        atom = Swizzle(SPAN).atom_bytes
        return SmemPlan.of(
            Buffer(name="A", bytes=self.a.bytes, align=atom, count=stages, note="ring of A tiles"),
            Buffer(name="B", bytes=self.b.bytes, align=atom, count=stages, note="ring of B tiles"),
            *(() if self.direct else self._slab_buffers()),
            *(self._split_buffers() if self.split_k > 1 else ()),
            Buffer(name="full", bytes=8, align=8, count=stages, note="mbarriers"),
            Buffer(name="empty", bytes=8, align=8, count=stages, note="mbarriers"),
        )  # fmt: skip

    def _slab_buffers(self) -> tuple[Buffer, ...]:
        return (
            Buffer(
                name="D slabs", bytes=self.slab_bytes, align=Swizzle(SPAN).atom_bytes,
                count=self.consumers * self.store_slabs,
                note=f"{self.store_slabs} of {self.store_n} columns a consumer",
            ),
        )  # fmt: skip

    def _split_buffers(self) -> tuple[Buffer, ...]:
        return (
            Buffer(
                name="partials", bytes=self.partial_bytes, align=SPAN, count=self.consumers,
                note="accumulators that the CTAs of a cluster add up",
            ),
            Buffer(name="shown", bytes=8, align=8, note="mbarrier: all partials are written"),
            Buffer(name="seen", bytes=8, align=8, note="mbarrier: all partials are read"),
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
            consumers=self.readers,
            destinations=self.destinations,
            tx_bytes=0 if self.copies else self.a.tx_bytes + self.b.tx_bytes,
            full_arrivals=arch.WARPGROUP_THREADS if self.copies else 1,
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
            tile=(self.tile_m, self.tile_n, self.tile_k),
            stages=self.stages,
            consumers=self.consumers,
            store_n=self.store_n,
            store_slabs=self.store_slabs,
        )
