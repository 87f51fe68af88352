"""GEMM: what is fixed by the problem, what we choose, and every rule of the hardware it touches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd
from typing import Literal

from ptxgen.configs.base import extents, integer, option, require
from ptxgen.errors import Violation
from ptxgen.isa import arch
from ptxgen.isa.dtypes import DTYPES, DType, dtype
from ptxgen.layout.smem_plan import Buffer, SmemPlan
from ptxgen.layout.swizzle import Swizzle, largest_swizzle
from ptxgen.models.pipeline import Ring, RingBarriers
from ptxgen.models.registers import RegisterPool, accumulator_registers, producer_consumer, split

INPUTS = ("bf16", "f16")
OUTPUTS = ("bf16", "f16", "f32")
CLUSTERS = ((1, 1), (2, 1), (1, 2))
WGMMA_M, WGMMA_K = 64, 16  # rows and 16-bit k of one wgmma; PTX ISA 9.7.15.2
SWIZZLE = Swizzle(128)  # of A and B: one row of a box is one 128-byte span
SLAB_RING_BYTES = 16_384  # default D staging a consumer: 2 slabs of 16-bit, 1 of 32-bit columns


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
    """Our choice for a GEMM. 0 means "derive it": see `resolve`."""

    tile: tuple[int, int, int] = option(
        (128, 256, 64), parse=extents(3),
        legal="M: 64..384 step 64, N: 8..256 step 8, K: 64..256 step 64",
        help="elements of D a CTA computes, and of K a stage holds",
    )  # fmt: skip
    stages: int | Literal["max"] = option(
        4, parse=integer("max"), legal="2.. as many as fit, or max", help="depth of the TMA ring"
    )
    cluster: tuple[int, int] = option(
        (2, 1), parse=extents(2), legal="1x1, 2x1, 1x2",
        help="CTAs along M x N that share loads: 2x1 shares B, 1x2 shares A",
    )  # fmt: skip
    consumers: int = option(
        0,
        parse=integer(),
        legal="1..3; 0: derive",
        help="consumer warpgroups; each takes tile M / consumers rows",
    )
    wait_depth: int = option(
        1,
        parse=integer(),
        legal="0, 1",
        help="wgmma groups in flight while the next stage is awaited",
    )
    store_n: int = option(
        0, parse=integer(), legal="divisors of tile N; 0: derive, at most 64",
        help="columns of D staged at once for the TMA store",
    )  # fmt: skip
    store_slabs: int = option(
        0, parse=integer(), legal="1.. ; 0: derive", help="D slabs a consumer may have in flight"
    )


@dataclass(frozen=True)
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
        """Consumer warpgroups: as told, else one for 64 rows, three for 192, else two."""
        if self.config.consumers:
            return self.config.consumers
        return {64: 1, 192: 3}.get(self.tile_m, 3 if self.tile_m == 384 else 2)

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
        """Columns of a slab: as told, else the most up to 64 that divide tile_n into whole boxes."""
        if self.config.store_n:
            return self.config.store_n
        whole = range(self.store_box_n, min(self.tile_n, 64) + 1, self.store_box_n)
        return max((n for n in whole if self.tile_n % n == 0), default=self.store_box_n)

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
        each = self.a_bytes + self.b_bytes + 16
        return max((arch.SMEM_PER_CTA_BYTES - self.smem_with(0).total) // each, 0)

    @property
    def stages(self) -> int:
        return self.most_stages if self.config.stages == "max" else self.config.stages

    @cached_property
    def smem(self) -> SmemPlan:
        return self.smem_with(self.stages)

    @property
    def ring(self) -> Ring:
        return Ring(stages=self.stages, wait_depth=self.config.wait_depth)

    @property
    def barriers(self) -> RingBarriers:
        return RingBarriers(
            consumers=self.consumers,
            destinations=self.cluster_size,
            tx_bytes=self.a_bytes + self.b_bytes,
        )

    # ------------------------------------------------------------------ rules

    def check(self) -> tuple[Violation, ...]:
        """All broken rules. The second group is only meaningful once the first one holds."""
        broken = tuple(_shape_rules(self))
        return broken or tuple(_resource_rules(self))

    def require(self) -> Gemm:
        """This object, or a ConfigError that lists every broken rule."""
        require("gemm config", self.check(), RULES)
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


RULES = 14


def _nearest(value: int, low: int, high: int, step: int) -> int:
    return min(max(-(-value // step) * step, low), high)


def _shape_rules(g: Gemm) -> Iterator[Violation]:
    """Rules on single fields, and those that make the derived numbers whole."""
    for name, value, legal in (
        ("dtype", g.problem.dtype, INPUTS),
        ("out_dtype", g.problem.out_dtype, ("same", *OUTPUTS)),
    ):
        if value not in legal:
            known = "" if value in DTYPES else " (unknown type)"
            yield Violation(
                field=name, got=value, rule=f"must be one of {', '.join(legal)}{known}",
                why="this kernel multiplies 16-bit floats with f32 accumulation",
            )  # fmt: skip
    extents_ok = True
    for name, value, low, high, step, why in (
        ("tile_m", g.tile_m, 64, 384, 64, "a wgmma computes 64 rows"),
        ("tile_n", g.tile_n, 8, 256, 8, "wgmma N is 8..256 in steps of 8"),
        (
            "tile_k",
            g.tile_k,
            64,
            256,
            64,
            "a stage holds whole 128-byte swizzle rows of 64 elements",
        ),
    ):
        if value % step or not low <= value <= high:
            extents_ok = False
            yield Violation(
                field=name, got=str(value), rule=f"must be {low}..{high} in steps of {step}",
                why=why, fix=f"use {_nearest(value, low, high, step)}",
            )  # fmt: skip
    if g.config.cluster not in CLUSTERS:
        extents_ok = False
        yield Violation(
            field="cluster", got=f"{g.cluster_m}x{g.cluster_n}", rule="must be 1x1, 2x1 or 1x2",
            why="one operand is shared by the CTAs of a cluster",
        )  # fmt: skip
    if not 1 <= g.consumers <= 3:
        extents_ok = False
        yield Violation(
            field="consumers", got=str(g.consumers), rule="must be 1, 2 or 3",
            why="with the producer that makes at most 512 threads and 128 registers a thread",
        )  # fmt: skip
    if g.config.wait_depth not in (0, 1):
        yield Violation(
            field="wait_depth", got=str(g.config.wait_depth), rule="must be 0 or 1",
            why="two groups in flight need two sets of accumulators",
        )  # fmt: skip
    if g.config.stages != "max" and g.stages < 1:
        yield Violation(field="stages", got=str(g.stages), rule="must be at least 1")
    if not extents_ok:
        return
    if g.tile_m % (WGMMA_M * g.consumers):
        fits = [n for n in (1, 2, 3) if g.tile_m % (WGMMA_M * n) == 0]
        yield Violation(
            field="consumers", got=str(g.consumers), rule=f"must share {g.tile_m} rows in multiples of 64",
            why="a consumer warpgroup computes whole wgmmas", fix=f"use {' or '.join(map(str, fits))}",
        )  # fmt: skip
    for name, rows, ctas in (("tile_n", g.tile_n, g.cluster_m), ("tile_m", g.tile_m, g.cluster_n)):
        if rows % (8 * ctas):
            yield Violation(
                field=name, got=str(rows), rule=f"must be a multiple of {8 * ctas} in cluster {g.cluster_m}x{g.cluster_n}",
                why=f"each of {ctas} CTAs loads an equal share of whole 8-row swizzle atoms",
                fix=f"use {_nearest(rows, 8 * ctas, 256, 8 * ctas)}",
            )  # fmt: skip
        elif rows // ctas > arch.TENSOR_MAP_BOX_MAX:
            yield Violation(
                field=name, got=str(rows), rule=f"needs a TMA box of {rows // ctas} rows, the limit is {arch.TENSOR_MAP_BOX_MAX}",
                fix=f"use {name}<={arch.TENSOR_MAP_BOX_MAX * ctas}",
            )  # fmt: skip
    if g.config.store_n and (g.tile_n % g.store_n or g.store_n % g.store_box_n):
        legal_n = [
            n for n in range(g.store_box_n, g.tile_n + 1, g.store_box_n) if g.tile_n % n == 0
        ]
        yield Violation(
            field="store_n", got=str(g.store_n),
            rule=f"must divide tile_n={g.tile_n} into whole store boxes of {g.store_box_n} columns",
            fix=f"use one of {', '.join(map(str, legal_n))}",
        )  # fmt: skip
    elif g.config.store_slabs < 0 or g.slabs_per_tile % g.store_slabs:
        legal_slabs = [n for n in range(1, g.slabs_per_tile + 1) if g.slabs_per_tile % n == 0]
        yield Violation(
            field="store_slabs", got=str(g.config.store_slabs),
            rule=f"must divide the {g.slabs_per_tile} slabs of a tile",
            why="every tile starts with the first slab of the ring",
            fix=f"use one of {', '.join(map(str, legal_slabs))}",
        )  # fmt: skip


def _resource_rules(g: Gemm) -> Iterator[Violation]:
    """Rules on sums: registers, shared memory, ring depth, barrier limits."""
    yield from g.registers.violations()
    if g.stages < g.ring.least_stages:
        if g.most_stages >= g.ring.least_stages:
            yield Violation(
                field="stages", got=str(g.stages), rule=f"must be at least {g.ring.least_stages} with wait_depth={g.config.wait_depth}",
                why="a stage is released only after the next one has been multiplied",
                fix=f"use stages={g.ring.least_stages}..{g.most_stages}, or wait_depth=0",
            )  # fmt: skip
    if not g.smem.fits() or g.most_stages < g.ring.least_stages:
        plan = g.smem if not g.smem.fits() else g.smem_with(g.ring.least_stages)
        yield from plan.violations(
            field="stages", got=str(max(g.stages, g.ring.least_stages)), fix=_smaller(g)
        )
    if g.barriers.tx_bytes >= 2**20:
        yield Violation(
            field="tile", got="x".join(map(str, g.config.tile)),
            rule=f"expects {g.barriers.tx_bytes:,} bytes a stage, an mbarrier counts to {2**20 - 1:,}",
        )  # fmt: skip


def _smaller(g: Gemm) -> str:
    """What would fit: fewer stages, or the widest tile at the stages asked for."""
    choices = []
    if g.most_stages >= g.ring.least_stages:
        choices.append(f"stages<={g.most_stages}")
    step = 8 * g.cluster_m
    for tile_n in range(g.tile_n - step, 0, -step):
        smaller = Gemm(
            g.problem,
            replace(g.config, tile=(g.tile_m, tile_n, g.tile_k), store_n=0, store_slabs=0),
        )
        if smaller.smem_with(max(g.stages, g.ring.least_stages)).fits():
            choices.append(f"tile_n<={tile_n}")
            break
    return "use " + ", or ".join(choices) if choices else "use a smaller tile_m or tile_k"
