"""Lines of the contract on top of the kernel that only some members have, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptxgen.configs.gemm_shape import Gemm
from ptxgen.kernels.gemm_schedule import turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """Each a part of the contract: lines from the column in which its text starts."""

    extents: str  # of arrays: any, up to what TMA wants of rows
    stores: str  # how D leaves
    order: tuple[str, ...]  # what TMA does at the edges, and the order of summation
    arrays: tuple[str, ...]
    grid: tuple[str, ...]
    roles: tuple[str, ...]
    producer: str
    full_arrivers: str
    empty_arrivers: str
    cta_barriers: tuple[str, ...]  # rows of the barrier table
    named_barriers: tuple[str, ...]


# Which arrays a kernel takes and what it does beyond their edges, by (load, direct): two lines.
_EDGES = {
    ("tma", False): (
        "Any M, N, K whose row pitches are multiples of 16 bytes: TMA fills with zeros on",
        "load and clips on store.",
    ),
    ("tma", True): (
        "Any M, N, K, any rows of D; A's and B's lie multiples of 16 bytes apart. TMA fills",
        "with zeros on load.",
    ),
    ("cp_async", False): (
        "Any M, N, K; rows of A and B lie multiples of 4 bytes apart, D's of 16. TMA clips D,",
        "copies fill with zeros.",
    ),
    ("cp_async", True): (
        "Any M, N, K, any rows of D; those of A and B lie multiples of 4 bytes apart.",
        "Copies fill with zeros.",
    ),
    ("ld", False): (
        "Any M, N, K, any rows of A and B; D's lie multiples of 16 bytes apart. TMA clips D,",
        "copies fill with zeros.",
    ),
    ("ld", True): ("Any M, N, K, and any rows of all.", "Copies fill with zeros."),
}

_PRODUCERS = {
    "tma": "one lane of warp 0 issues every TMA load, the others leave",
    "cp_async": "all threads copy A and B by cp.async",
    "ld": "all threads copy A and B by ld and st",
}


def contract(g: Gemm) -> Contract:
    return Contract(
        extents=_EDGES[g.config.load, g.direct][0],
        stores="one by one" if g.direct else "by TMA",
        order=tuple(_order(g)),
        arrays=tuple(_arrays(g)),
        grid=_grid(g),
        roles=("They take turns, tile by tile: one stores while the other multiplies.",)
        if g.turns
        else (),
        producer=_PRODUCERS[g.config.load],
        full_arrivers="producer threads, behind copies"
        if g.copies
        else "producer lane, with expect_tx",
        empty_arrivers=empty_arrivers(g),
        cta_barriers=tuple(_cta_barriers(g)),
        named_barriers=tuple(_named_barriers(g)),
    )


def meets(g: Gemm) -> bool:
    """Whether the threads of a consumer wait for each other: around slabs, parts of sums, rows."""
    return not g.direct or g.split_k > 1 or g.streams or g.through_registers


def empty_arrivers(g: Gemm) -> str:
    """Who reports a free stage, in words."""
    if g.turns:
        owner = "every CTA" if g.destinations > 1 else "the tile"
        return f"one thread of {owner}'s consumer"
    return "one thread a consumer" + (" of every CTA" if g.destinations > 1 else "")


def _order(g: Gemm) -> Iterator[str]:
    edges = _EDGES[g.config.load, g.direct][1]
    if g.streams:
        yield f"{edges} An element is summed by one warpgroup in ascending k, or in"
        yield "parts where clusters share its tile, added in ascending k: the same bits every run"
        yield "of one grid; another one cuts elsewhere."
        return
    yield f"{edges} An element is summed by one warpgroup in ascending k: the"
    yield "same bits every run, on any grid."
    if g.split_k > 1:
        yield (
            f"Here {g.split_k} warpgroups sum a part of k each, and add the parts in ascending "
            "order."
        )


def _arrays(g: Gemm) -> Iterator[str]:
    if g.swapped:
        yield "Swapped: the rows of a tile run along N of D, its columns along M."
    if g.problem.batched:
        yield "Arrays have a batch axis in front: D[i] = A[i] B[i]."


def _grid(g: Gemm) -> tuple[str, ...]:
    if g.streams:
        return (
            "1-D and persistent: clusters share out the stages of the first stream_tiles cluster",
            "tiles, and cluster c computes the tiles c, c + clusters, ... behind them. With",
        )
    return ("1-D and persistent: cluster c computes cluster tiles c, c + clusters, ... With",)


def _cta_barriers(g: Gemm) -> Iterator[str]:
    if g.split_k > 1:
        arrivals = g.split_k * g.consumers
        for name, waiters in (
            ("shown", "consumers, before they add up"),
            ("seen", "consumers, before the next partials"),
        ):
            yield f"{name:<10} {arrivals:<3} one thread a consumer of every CTA  0        {waiters}"


def _named_barriers(g: Gemm) -> Iterator[str]:
    if meets(g):
        around = "" if g.direct else ", around its D slabs"
        yield f"bar 1+c    128 threads of consumer c               -        the same{around}"
    if g.turns:
        numbers = turns(g)
        yield (
            f"bar {numbers.barrier}+c    {numbers.threads} threads: c waits, the other tells  -"
            "        consumer c, before its tile"
        )
    if g.streams:
        yield "flags      a helper's consumer, behind its sums    -        the owner, same consumer"
