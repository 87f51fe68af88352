"""The numbers of consumers that take turns, for `blocks/pingpong.ptx.j2`."""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.configs.gemm_shape import Gemm
from ptxgen.isa.arch import WARPGROUP_THREADS
from ptxgen.kernels.base import BarrierRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Whether consumers take whole tiles in turns, and the named barriers that say whose it is."""

    taken: bool
    barrier: int  # consumer c waits at barrier + c; those below are for slabs
    threads: int  # that meet there: who waits and who tells


def turns(g: Gemm) -> Turns:
    return Turns(taken=g.turns, barrier=1 + g.consumers, threads=2 * WARPGROUP_THREADS)


def turn_rows(g: Gemm) -> tuple[BarrierRow, ...]:
    """The barrier table's row of the turns, if there are any."""
    if not g.turns:
        return ()
    numbers = turns(g)
    return (
        BarrierRow(
            name=f"bar {numbers.barrier}+c", count=g.consumers, arrivals=numbers.threads,
            arrivers="consumer c, and the other one", tx_bytes=0,
            waiters="consumer c, before its tile",
        ),
    )  # fmt: skip


def empty_arrivers(g: Gemm) -> str:
    """Who reports a free stage, in words."""
    if g.turns:
        owner = "every CTA" if g.destinations > 1 else "the tile"
        return f"one thread of {owner}'s consumer"
    return "one thread a consumer" + (" of every CTA" if g.destinations > 1 else "")
