"""What the SASS of a GEMM must hold, from the same numbers that filled its template."""

from __future__ import annotations

from collections.abc import Iterator

from ptxgen.configs.gemm_shape import Gemm
from ptxgen.isa.wgmma import sass_opcode
from ptxgen.kernels.gemm_copies import turn
from ptxgen.kernels.gemm_finish import EXPONENTIAL
from ptxgen.kernels.gemm_store import Store, store
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
    order = (
        *(() if g.copies and g.direct else (Elected(),)),
        WAIT_BEFORE_RELEASE,
        *(() if g.direct else (FENCE_BEFORE_TMA_STORE, BARRIER_BEFORE_TMA_STORE)),
    )
    return Expectation(
        entry=entry, promises=(*_math(g), *_copies(g), *_roles(g), *order, *ALWAYS_WGMMA)
    )


def _math(g: Gemm) -> tuple[Promise, ...]:
    a, b = g.a.math, g.b.math
    per_stage = g.wgmma_per_stage
    return (
        Count(
            pattern=sass_opcode(a.name, b.name, g.problem.accumulator, g.tile_n),
            where="mma_loop", multiple_of=per_stage, at_least=per_stage,
            why="one pass of the main loop multiplies one stage (ptxas may unroll it)",
        ),
        Count(
            pattern="LDSM", where="mma_loop", multiple_of=max(g.fragments // 4, 1),
            at_least=g.fragments // 4, at_most=None if g.fragments else 0,
            why="rows go through registers only where they are told to",
        ),
        Count(pattern=a.sass, where="mma_loop", multiple_of=per_stage, why="no other wgmma shape"),
        GroupSize(pattern=a.sass, size=per_stage),
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
    loads = _copied(g) if g.copies else _loads(g)
    return (*loads, *(_direct(g) if g.direct else _slabs(g)), *_finish(g), *_parts(g))


def _copied(g: Gemm) -> tuple[Promise, ...]:
    """A and B are copied by threads, some rows at once, in loops that ptxas may unroll."""
    return (
        *(_loaded(g) if g.by_elements else _grouped(g)),
        Count(pattern="UTMALDG", exactly=0, why="nothing comes by TMA"),
        Count(
            pattern="FENCE.VIEW.ASYNC", at_least=2 if g.copy_lag else 1,
            why="what threads copied is made visible to wgmma before they arrive",
        ),
    )  # fmt: skip


def _grouped(g: Gemm) -> tuple[Promise, ...]:
    rows = 2 * g.a.boxes
    return (
        Count(
            pattern="LDGSTS", multiple_of=rows, at_least=2 * rows,
            why="A and B go past registers to shared memory",
        ),
    )  # fmt: skip


def _loaded(g: Gemm) -> tuple[Promise, ...]:
    """Epilogues load and stage by the same instructions."""
    batches = [batch for operand in (g.a, g.b) for batch in turn(g, operand).batches]
    words = sum(len(row.words) for batch in batches for row in batch.rows)
    return (
        Count(
            pattern="LDG", at_least=sum(batch.elements for batch in batches),
            why="A and B are loaded element by element",
        ),
        Count(pattern="STS", at_least=words, why="and stored word by word"),
        Count(pattern="LDGSTS", exactly=0, why="since none need lie where cp.async may read it"),
    )  # fmt: skip


def _direct(g: Gemm) -> tuple[Promise, ...]:
    """D goes from registers to memory; others who store are helpers that hand over sums."""
    elements, helper = g.blocks * g.out_n // 2, g.accumulators // 4 + 2
    return (
        Count(
            pattern="STG", exactly=elements + helper * g.streams,
            why="an element of D is stored by itself, once a thread that has it",
        ),
        Count(pattern="UTMASTG", exactly=0, why="nothing leaves by TMA"),
        Count(pattern="STSM", exactly=0, why="nothing is staged in shared memory"),
    )  # fmt: skip


def _slabs(g: Gemm) -> tuple[Promise, ...]:
    rank = "3D" if g.problem.batched else "2D"
    return (
        Count(
            pattern=f"UTMASTG.{rank}", exactly=g.slabs_per_tile * g.boxes_per_slab,
            why="D leaves by TMA, one box a store",
        ),
        Count(
            pattern="UTMACMDFLUSH", exactly=g.slabs_per_tile, why="one bulk group a slab of D"
        ),
        *_slab_writes(g, store(g)),
    )  # fmt: skip


def _loads(g: Gemm) -> Iterator[Promise]:
    """Loads by the rank of their maps: B of a gated problem has an axis more."""
    lead = 1 if g.problem.batched else 0
    ranks = {op.arg: 2 + lead + (op.arg == "b" and bool(g.problem.gated)) for op in (g.a, g.b)}
    for rank in sorted(set(ranks.values())):
        operands = [op for op in (g.a, g.b) if ranks[op.arg] == rank]
        loads = sum(op.boxes for op in operands)
        multicast = sum(op.boxes for op in operands if op.sharers > 1)
        yield Count(
            pattern=f"UTMALDG.{rank}D", multiple_of=loads, at_least=loads,
            why="A and B come by TMA, one box a swizzle row",
        )  # fmt: skip
        yield Count(
            pattern=f"UTMALDG.{rank}D.MULTICAST", multiple_of=max(multicast, 1),
            at_least=multicast, at_most=None if multicast else 0,
            why="what the cluster shares is multicast",
        )  # fmt: skip


def _finish(g: Gemm) -> tuple[Promise, ...]:
    """What is done to the sums before they are rounded."""
    p = g.problem
    elements = g.blocks * g.out_n // 2  # that a thread stores
    promises: list[Promise] = []
    if p.activation in EXPONENTIAL:
        promises += (
            Count(
                pattern=f"MUFU.{name}", at_least=elements,
                why=f"{p.activation} takes one {what} an element",
            )
            for name, what in (("EX2", "power of two"), ("RCP", "reciprocal"))
        )  # fmt: skip
    if p.beta or p.bias != "none" or p.scales != "none" or p.out_scale:
        promises.append(Count(pattern="LDG", at_least=1, why="C, bias and scales come from memory"))
    if p.promoted:
        promises.append(
            Count(
                pattern="FADD", where="mma_loop", multiple_of=g.accumulators,
                at_least=g.accumulators, why="the sums of a stage leave the tensor core",
            )
        )  # fmt: skip
    if p.amax:
        promises += (
            Count(pattern="FMNMX", at_least=elements, why="every element may be the largest"),
            Count(pattern="REDUX", at_least=1, why="the largest of a warp"),
            Count(pattern="REDG", exactly=1, why="the largest of all, by one atomic a warp"),
        )
    return tuple(promises)


def _parts(g: Gemm) -> tuple[Promise, ...]:
    """Sums of tiles that are shared out, written by helpers and read by owners, four at a time."""
    if not g.streams:
        return ()
    fours = g.accumulators // 4
    return (
        Count(pattern="STG.E.128", exactly=fours, why="a helper writes its sums once"),
        Count(pattern="STG.E.STRONG.GPU", exactly=2, why="a flag is raised, and lowered"),
        Count(pattern="LDG.E.128", exactly=fours, why="an owner reads them once a helper"),
        Count(pattern="LDG.E.STRONG.GPU", at_least=1, why="an owner waits for a helper's flag"),
    )


def _slab_writes(g: Gemm, out: Store) -> tuple[Promise, ...]:
    """How D gets from registers to shared memory."""
    pieces = sum(len(slab.pieces) for slab in out.slabs)
    matrices = Count(
        pattern="STSM", exactly=pieces, why="one stmatrix stores the 8x8 matrices of a piece"
    )
    rounded = Count(pattern="F2FP", at_least=g.blocks * g.out_n // 4, why="pairs are rounded once")
    singles = 4 * pieces + (g.accumulators if g.split_k > 1 else 0)
    return {
        "matrix": (matrices, rounded),
        "packed": (matrices,),
        "pair32": (Count(pattern="STS.64", exactly=2 * pieces, why="pairs of rows g and g + 8"),),
        "pair8": (
            Count(pattern="STS.U16", exactly=2 * pieces, why="fp8 pairs of rows g and g + 8"),
        ),
        "single32": (
            Count(
                pattern="STS",
                exactly=None if g.by_elements else singles,
                at_least=singles,
                why="transposed one by one",
            ),
        ),
    }[out.kind]


def _elected(g: Gemm) -> tuple[Promise, ...]:
    """Who is elected. Barriers that no TMA signals are initialised by a warp as one."""
    if not g.copies:
        why = "one lane initialises barriers, one issues TMA"
        return (Count(pattern="ELECT", at_least=2, why=why),)
    return () if g.direct else (Count(pattern="ELECT", at_least=1, why="one lane issues TMA"),)


def _roles(g: Gemm) -> tuple[Promise, ...]:
    producer, consumer = g.registers.roles
    barriers = 2 * g.stages + (2 if g.split_k > 1 else 0)
    return (
        Setmaxnreg(dec=(producer.registers,), inc=(consumer.registers,)),
        Resource(
            field="registers", exactly=g.registers.entry,
            why="the pool that setmaxnreg shares out is entry registers x threads",
        ),
        Count(
            pattern="BAR.ARV", exactly=1 if g.turns else 0,
            why="consumers that take turns tell each other, and nobody else arrives without a wait",
        ),
        *_elected(g),
        Count(pattern="SYNCS.EXCH", exactly=barriers, why="every mbarrier is initialised once"),
        Count(pattern="ACQBULK", exactly=1, why="the grid before this one is waited for"),
    )  # fmt: skip
