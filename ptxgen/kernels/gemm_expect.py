"""What the SASS of a GEMM must hold, from the same numbers that filled its template."""

from __future__ import annotations

from ptxgen.configs.gemm import WGMMA_M, Gemm
from ptxgen.toolchain.verify import (
    ALWAYS_WGMMA,
    BARRIER_BEFORE_TMA_STORE,
    FENCE_BEFORE_TMA_STORE,
    WAIT_BEFORE_RELEASE,
    Count,
    Elected,
    Expectation,
    GroupSize,
    Promise,
    Resource,
    Setmaxnreg,
)


def expectation(g: Gemm, entry: str) -> Expectation:
    """Promises about tensor cores, TMA, barriers, registers and the stores of D."""
    return Expectation(
        entry=entry, promises=(*_math(g), *_copies(g), *_roles(g), *_ORDER, *ALWAYS_WGMMA)
    )


_ORDER: tuple[Promise, ...] = (
    Elected(),
    WAIT_BEFORE_RELEASE,
    FENCE_BEFORE_TMA_STORE,
    BARRIER_BEFORE_TMA_STORE,
)


def _math(g: Gemm) -> tuple[Promise, ...]:
    kind = {"bf16": ".BF16", "f16": ""}[g.problem.input.name]
    hgmma = f"HGMMA.64x{g.tile_n}x16.F32{kind}"
    per_stage = g.wgmma_per_stage
    return (
        Count(
            pattern=hgmma, where="mma_loop", multiple_of=per_stage, at_least=per_stage,
            why="one pass of the main loop multiplies one stage (ptxas may unroll it)",
        ),
        Count(pattern="HGMMA", where="mma_loop", multiple_of=per_stage, why="no other wgmma shape"),
        GroupSize(pattern="HGMMA", size=per_stage),
        Count(
            pattern="WARPGROUP.DEPBAR", where="mma_loop", at_least=1,
            why="wait_group bounds the wgmmas in flight",
        ),
        Count(
            pattern="SYNCS.PHASECHK", where="mma_loop", at_least=1,
            why="the consumer waits for full[s]",
        ),
        Count(
            pattern="SYNCS.ARRIVE", where="mma_loop", at_least=1,
            why="the consumer releases a stage in the loop",
        ),
    )  # fmt: skip


def _copies(g: Gemm) -> tuple[Promise, ...]:
    boxes = g.k_boxes
    multicast = boxes if g.cluster_size > 1 else 0
    stores = g.slabs_per_tile * (g.store_n // g.store_box_n)
    return (
        Count(
            pattern="UTMALDG.2D", multiple_of=2 * boxes, at_least=2 * boxes,
            why="A and B come by TMA, one box a swizzle row of K",
        ),
        Count(
            pattern="UTMALDG.2D.MULTICAST", multiple_of=max(multicast, 1), at_least=multicast,
            at_most=None if multicast else 0, why="what the cluster shares is multicast",
        ),
        Count(pattern="UTMASTG.2D", exactly=stores, why="D leaves by TMA, one box a store"),
        Count(
            pattern="UTMACMDFLUSH", exactly=g.slabs_per_tile, why="one bulk group a slab of D"
        ),
        *_slab_writes(g),
    )  # fmt: skip


def _slab_writes(g: Gemm) -> tuple[Promise, ...]:
    """How D gets from registers to shared memory."""
    blocks = g.rows // WGMMA_M
    if g.problem.output.bytes == 4:
        return (
            Count(
                pattern="STS.64", exactly=blocks * g.tile_n // 4,
                why="f32 pairs, two rows a pair of columns",
            ),
        )  # fmt: skip
    wide = 8 if g.store_box_n == 8 else 16
    return (
        Count(
            pattern="STSM", exactly=blocks * g.tile_n // wide,
            why=f"one stmatrix stores {wide} columns of 16 rows a warp",
        ),
        Count(pattern="F2FP", at_least=blocks * g.tile_n // 4, why="pairs are rounded once"),
    )  # fmt: skip


def _roles(g: Gemm) -> tuple[Promise, ...]:
    producer, consumer = g.registers.roles
    return (
        Setmaxnreg(dec=(producer.registers,), inc=(consumer.registers,)),
        Resource(
            field="registers", exactly=g.registers.entry,
            why="the pool that setmaxnreg shares out is entry registers x threads",
        ),
        Count(pattern="ELECT", at_least=2, why="one lane initialises barriers, one issues TMA"),
        Count(
            pattern="SYNCS.EXCH", exactly=2 * g.stages, why="every mbarrier is initialised once"
        ),
    )  # fmt: skip
