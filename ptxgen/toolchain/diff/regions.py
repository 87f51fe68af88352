"""Where code is, in words: loops by what they do, and which loop of A is which of B.

A region is the code of one loop without the loops inside it, or the code outside loops. Names come
from what a region holds, so that they are the same for two kernels whose addresses have nothing in
common.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ptxgen.toolchain.flow import Flow, Loop
from ptxgen.toolchain.sass import GMMA, category, count

_MMA = f"{GMMA}|HMMA|IMMA|DMMA|BMMA|QMMA"
_LOADS = "UTMALDG|UBLKCP.S.G|LDGSTS"
_STORES = "UTMASTG|UTMAREDG|STG|STSM"
_SPIN_WAIT_LENGTH = 8  # try_wait, branch, a sleep or a yield: anything longer does other work too
_SAME_LOOP = 0.3  # share of opcodes in common below which two loops are different loops
_ROLE_BONUS = 1.0  # what a role in common is worth beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A loop of a flow graph (None: outside loops), its name, and its own blocks by address."""

    name: str
    loop: Loop | None
    depth: int
    blocks: tuple[int, ...]


def regions(flow: Flow) -> tuple[Region, ...]:
    """Every region that has code, in the order of addresses."""
    found = []
    for loop in (None, *flow.loops):
        blocks = tuple(b for b in range(len(flow.blocks)) if flow.enclosing(b) == loop)
        if blocks:
            name = "outside loops" if loop is None else _role(flow, loop, blocks)
            found.append(Region(name=name, loop=loop, depth=flow.depth(loop), blocks=blocks))
    return tuple(sorted(found, key=lambda region: (region.blocks[0], region.depth)))


def outer_names(flow: Flow, of: tuple[Region, ...], region: Region) -> tuple[str, ...]:
    """The names of the loops around a region, the outermost first."""
    names: list[str] = []
    loop = region.loop
    while loop is not None and (loop := flow.parent(loop)) is not None:
        names += [r.name for r in of if r.loop == loop]
    return tuple(reversed(names))


def _role(flow: Flow, loop: Loop, blocks: tuple[int, ...]) -> str:
    everything = flow.instructions(loop)
    own = tuple(i for b in blocks for i in flow.code[flow.blocks[b].start : flow.blocks[b].end])
    if any(i.matches("BRA.U.ANY") for i in flow.latch_instructions(loop)):
        return "loop over lanes"
    if count(everything, "USETMAXREG"):
        return "setmaxnreg retry"
    works = any(category(i.opcode) in ("tensor", "tma") for i in everything)
    if count(everything, "SYNCS.PHASECHK") and not works and len(everything) <= _SPIN_WAIT_LENGTH:
        return "spin-wait"
    if count(own, _MMA):
        return "MMA loop"
    if count(own, _LOADS):
        return "producer loop"
    if count(everything, _MMA):
        return "consumer tile loop" if count(own, _STORES) else "loop around the MMA loop"
    if count(everything, _LOADS):
        return "producer tile loop"
    if count(own, _STORES):
        return "store loop"
    return "load loop" if count(own, "LDG") else "loop"


def paired(
    a: Flow, b: Flow, of_a: tuple[Region, ...], of_b: tuple[Region, ...]
) -> Iterator[tuple[Region | None, Region | None]]:
    """Which region of A is which of B: outside loops first, then loop by loop, outer before inner.

    Loops pair only inside loops that pair. The likeliest pairs are made first: the same role and
    the most opcodes in common, and among equals those at the same place in the order.
    """
    outside_a = next((r for r in of_a if r.loop is None), None)
    outside_b = next((r for r in of_b if r.loop is None), None)
    if outside_a or outside_b:
        yield outside_a, outside_b
    yield from _children(a, b, of_a, of_b, None, None)


def _children(
    a: Flow,
    b: Flow,
    of_a: tuple[Region, ...],
    of_b: tuple[Region, ...],
    parent_a: Loop | None,
    parent_b: Loop | None,
) -> Iterator[tuple[Region | None, Region | None]]:
    """The regions of the loops right inside two loops that pair, and everything inside those."""
    inner_a = [r for r in of_a if r.loop is not None and a.parent(r.loop) == parent_a]
    inner_b = [r for r in of_b if r.loop is not None and b.parent(r.loop) == parent_b]
    scores = sorted(
        (
            (-_likeness(a, b, x, y), abs(i - j), i, j)
            for i, x in enumerate(inner_a)
            for j, y in enumerate(inner_b)
        )
    )
    partner: dict[int, int] = {}
    for score, _, i, j in scores:
        if -score > _SAME_LOOP and i not in partner and j not in partner.values():
            partner[i] = j
    for i, x in enumerate(inner_a):
        y = inner_b[partner[i]] if i in partner else None
        yield x, y
        if y is None:
            yield from ((inside, None) for inside in _inside(of_a, x))
        else:
            yield from _children(a, b, of_a, of_b, x.loop, y.loop)
    for j, y in enumerate(inner_b):
        if j not in partner.values():
            yield None, y
            yield from ((None, inside) for inside in _inside(of_b, y))


def _inside(of: tuple[Region, ...], outer: Region) -> Iterator[Region]:
    assert outer.loop is not None
    for region in of:
        if region.loop is not None and region.loop.blocks < outer.loop.blocks:
            yield region


def _likeness(a: Flow, b: Flow, x: Region, y: Region) -> float:
    assert x.loop is not None
    assert y.loop is not None
    share = in_common(
        Counter(i.opcode for i in a.instructions(x.loop)),
        Counter(i.opcode for i in b.instructions(y.loop)),
    )
    return share + (_ROLE_BONUS if x.name == y.name else 0.0)


def in_common(x: Counter[str], y: Counter[str]) -> float:
    """The share of two bags that is in both: 1 where they are equal, 0 with nothing in common."""
    total = x.total() + y.total()
    return 2 * (x & y).total() / total if total else 1.0
