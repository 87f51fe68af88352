"""Rules on single fields of a GEMM config: what wgmma, clusters and the ring can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ptxgen.configs.base import Rule, spell
from ptxgen.configs.gemm import LOADS, PROMOTIONS, SPAN, STORES, SWITCH
from ptxgen.errors import Violation
from ptxgen.isa import arch

if TYPE_CHECKING:
    from ptxgen.configs.gemm_shape import Gemm

Check = Callable[["Gemm"], Iterator[Violation]]

CLUSTERS = ((1, 1), (2, 1), (1, 2), (2, 2))
SPLITS = (1, 2, 4, 8)
CONSUMERS = (1, 2, 3)


def nearest(value: int, low: int, high: int, step: int) -> int:
    """The next legal value upwards, or the largest one."""
    return min(max(-(-value // step) * step, low), high)


def _extent(index: int, low: int, high: int, step: int, why: str) -> Check:
    name = ("tile_m", "tile_n", "tile_k")[index]

    def check(g: Gemm) -> Iterator[Violation]:
        value = g.config.tile[index]
        if value % step or not low <= value <= high:
            yield Violation(
                field=name, got=str(value), rule=f"must be {low}..{high} in steps of {step}",
                why=why, fix=f"use {name}={nearest(value, low, high, step)}",
            )  # fmt: skip

    return check


def among(field: str, words: tuple[str, ...], why: str) -> Check:
    """The check that a field is one of some words, the first of which is its default."""

    def check(g: Gemm) -> Iterator[Violation]:
        got: str = getattr(g.config, field)
        if got not in words:
            yield Violation(
                field=field, got=got, rule=f"must be {' or '.join(words)}", why=why,
                fix=f"use {field}={words[0]}",
            )  # fmt: skip

    return check


def _tile_k(g: Gemm) -> Iterator[Violation]:
    row = g.row_k
    if g.tile_k % row or not row <= g.tile_k <= 4 * row:
        yield Violation(
            field="tile_k", got=str(g.tile_k), rule=f"must be {row}..{4 * row} in steps of {row}",
            why=f"a stage holds whole {SPAN}-byte swizzle rows of {row} elements",
            fix=f"use tile_k={nearest(g.tile_k, row, 4 * row, row)}",
        )  # fmt: skip


def _tile_n_of_integers(g: Gemm) -> Iterator[Violation]:
    if not g.problem.a.legal_n(g.tile_n):
        yield Violation(
            field="tile_n", got=str(g.tile_n),
            rule=f"must be 8, 16, 24 or a multiple of 16 for {g.problem.dtype}",
            why="wgmma on 8-bit integers has no other N",
            fix=f"use tile_n={nearest(g.tile_n, 16, 256, 16)}",
        )  # fmt: skip


def _cluster(g: Gemm) -> Iterator[Violation]:
    if g.config.cluster not in CLUSTERS:
        yield Violation(
            field="cluster", got=spell(g.config.cluster), rule="must be 1x1, 2x1, 1x2 or 2x2",
            why="CTAs of a cluster share the loads of an operand in pairs",
            fix="use cluster=2x2, cluster=2x1, cluster=1x2 or cluster=1x1",
        )  # fmt: skip


def _split_k(g: Gemm) -> Iterator[Violation]:
    if g.config.split_k not in SPLITS:
        nearest = min(SPLITS, key=lambda n: abs(n - g.config.split_k))
        yield Violation(
            field="split_k", got=str(g.config.split_k), rule="must be 1, 2, 4 or 8",
            why=f"the CTAs that share K are one cluster, of at most {arch.CLUSTER_PORTABLE}, and "
            "each stores an equal part of the columns",
            fix=f"use split_k={nearest}",
        )  # fmt: skip


def _switch(name: str, why: str) -> Check:
    def check(g: Gemm) -> Iterator[Violation]:
        value = getattr(g.config, name)
        if value not in SWITCH:
            yield Violation(
                field=name, got=str(value), rule="must be 0 or 1", why=why, fix=f"use {name}=1"
            )

    return check


def _consumers(g: Gemm) -> Iterator[Violation]:
    if g.config.consumers and g.config.consumers not in CONSUMERS:
        yield Violation(
            field="consumers", got=str(g.config.consumers), rule="must be 1, 2 or 3",
            why="with the producer, three make 512 threads of 128 registers; a fourth would leave "
            "no room for accumulators",
            fix=f"use consumers={nearest(g.config.consumers, 1, 3, 1)}, or 0 to derive it",
        )  # fmt: skip


def _stages(g: Gemm) -> Iterator[Violation]:
    if g.config.stages != "max" and g.config.stages < 1:
        yield Violation(
            field="stages", got=str(g.config.stages), rule="must be at least 1, or max",
            why="TMA needs a stage to fill", fix="use stages=max",
        )  # fmt: skip


def _l2_promotion(g: Gemm) -> Iterator[Violation]:
    if g.config.l2_promotion not in PROMOTIONS:
        yield Violation(
            field="l2_promotion", got=str(g.config.l2_promotion),
            rule=f"must be one of {', '.join(map(str, PROMOTIONS))}",
            why="a tensor map has no other promotion",
            fix=f"use l2_promotion={min(PROMOTIONS, key=lambda n: abs(n - g.config.l2_promotion))}",
        )  # fmt: skip


FIELD_RULES: tuple[Rule[Gemm], ...] = (
    Rule(
        name="tile_m", text="tile M is 64..384 in steps of 64",
        check=_extent(0, 64, 384, 64, "a wgmma computes 64 rows"),
    ),
    Rule(
        name="tile_n", text="tile N is 8..256 in steps of 8",
        check=_extent(1, 8, 256, 8, "wgmma N is 8..256 in steps of 8"),
    ),
    Rule(
        name="tile_n of int8", text="tile N of int8 is 8, 16, 24 or a multiple of 16",
        check=_tile_n_of_integers, needs=("dtype", "tile_n"),
    ),
    Rule(
        name="tile_k", text="tile K is 1 to 4 rows of 128 bytes", check=_tile_k, needs=("dtype",),
    ),
    Rule(name="cluster", text="clusters are 1x1, 2x1, 1x2 or 2x2", check=_cluster),
    Rule(name="split_k", text="K is split among 1, 2, 4 or 8 CTAs", check=_split_k),
    Rule(
        name="swap_ab", text="operands are swapped or not",
        check=_switch("swap_ab", "it says which operand gives the rows of a tile"),
    ),
    Rule(name="consumers", text="1 to 3 consumer warpgroups", check=_consumers),
    Rule(
        name="wait_depth", text="0 or 1 wgmma groups in flight",
        check=_switch("wait_depth", "wgmma groups on the same accumulators finish in order, so a "
                      "third has nothing to overlap with"),
    ),
    Rule(name="stages", text="at least one stage", check=_stages),
    Rule(
        name="load", text="A and B come by TMA or are copied by threads",
        check=among("load", LOADS, "TMA brings A and B, or threads copy them"),
    ),
    Rule(
        name="store", text="D leaves by TMA or from registers",
        check=among("store", STORES, "D leaves through shared memory, or from registers"),
    ),
    Rule(
        name="l2_promotion", text="L2 is asked for nothing, 64, 128 or 256 bytes",
        check=_l2_promotion,
    ),
)  # fmt: skip
