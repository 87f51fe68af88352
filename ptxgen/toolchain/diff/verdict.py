"""The difference in one line of plain words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ptxgen.toolchain.diff.align import key
from ptxgen.toolchain.diff.model import Line, OpcodeRow, RegionDiff, ResourceRow
from ptxgen.toolchain.sass import Instruction, category

_NAMED = 3  # differences that the line spells out; the page has all of them
_TOLD = {  # numbers whose change is worth a word
    "registers": "registers",
    "spill stores (STL)": "spill stores",
    "spill loads (LDL)": "spill loads",
    "dynamic shared memory, bytes": "bytes of dynamic shared memory",
}


def verdict(
    regions: Sequence[RegionDiff],
    opcodes: Sequence[OpcodeRow],
    resources: Sequence[ResourceRow],
) -> str:
    """`same tensor and TMA code; 12 more IMAD in the producer loop`."""
    if all(region.equal for region in regions):
        return "; ".join(["the same code", *_numbers(resources)])
    parts = [*_units(regions, opcodes), *_deltas(regions)]
    if len(parts) <= _NAMED:  # else there is more to say than what only moved
        parts += _rearranged(regions)
    return "; ".join([*parts, *_numbers(resources)])


def _units(regions: Sequence[RegionDiff], opcodes: Sequence[OpcodeRow]) -> list[str]:
    """What became of the tensor and TMA instructions."""
    names = {"tensor": "tensor", "tma": "TMA"}
    present = [c for c in names if any(row.category == c for row in opcodes)]
    differ = [c for c in present if any(r.delta for r in opcodes if r.category == c)]
    same = [names[c] for c in present if c not in differ]
    parts = []
    if same:
        kept = {c for c in present if c not in differ}
        what = "opcodes, other operands" if _operands_differ(regions, kept) else "code"
        where = "" if _placement(regions, kept) else ", in other places"
        parts.append(f"same {' and '.join(same)} {what}{where}")
    for unit in differ:
        rows = [row for row in opcodes if row.category == unit and row.delta]
        gone = [f"{-row.delta} {row.opcode}" for row in rows if row.delta < 0]
        come = [f"{row.delta} {row.opcode}" for row in rows if row.delta > 0]
        parts.append(_became(gone, come))
    return parts


def _became(gone: list[str], come: list[str]) -> str:
    if gone and come:
        return f"{_some(gone)} became {_some(come)}"
    return f"{_some(gone)} fewer" if gone else f"{_some(come)} more"


def _some(names: list[str]) -> str:
    if len(names) <= _NAMED:
        return " + ".join(names)
    return f"{' + '.join(names[: _NAMED - 1])} and {len(names) - _NAMED + 1} other kinds"


def _operands_differ(regions: Sequence[RegionDiff], units: set[str]) -> bool:
    """Has one of these instructions another modifier or immediate?

    Another register alone does not count: where code around it moved, names say little.
    """
    return any(
        category(line.a.opcode) in units and key(line.a) != key(line.b)
        for region in regions
        for line in region.lines
        if line.a is not None and line.b is not None
    )


def _placement(regions: Sequence[RegionDiff], units: set[str]) -> bool:
    """Does each region hold the same number of them on both sides?"""

    def held(instructions: Iterable[Instruction | None]) -> int:
        return sum(i is not None and category(i.opcode) in units for i in instructions)

    return all(
        held(line.a for line in region.lines) == held(line.b for line in region.lines)
        for region in regions
    )


def _net(regions: Iterable[RegionDiff]) -> list[tuple[float, int, str, RegionDiff]]:
    """How many more of an opcode (without modifiers) each region has; weightiest first.

    An instruction in a loop weighs more than one outside: it runs more often.
    """
    found = []
    for region in regions:
        net: Counter[str] = Counter()
        for line in region.lines:
            if line.a is not None and category(line.a.opcode) not in ("tensor", "tma"):
                net[line.a.base] -= 1
            if line.b is not None and category(line.b.opcode) not in ("tensor", "tma"):
                net[line.b.base] += 1
        found += [(abs(n) * (1.0 + region.depth), n, name, region) for name, n in net.items() if n]
    return sorted(found, key=lambda item: (-item[0], item[2]))


def _deltas(regions: Sequence[RegionDiff]) -> list[str]:
    net = _net(regions)
    parts = [
        f"{abs(n)} {'more' if n > 0 else 'fewer'} {name} {_in(region)}"
        for _, n, name, region in net[:_NAMED]
    ]
    rest = sum(abs(n) for _, n, _, _ in net[_NAMED:])
    return [*parts, f"{rest} smaller differences"] if rest else parts


def _in(region: RegionDiff) -> str:
    return region.name if region.name == "outside loops" else f"in the {region.name}"


def _rearranged(regions: Sequence[RegionDiff]) -> list[str]:
    """What moved, and what works on other operands."""
    lines = [line for region in regions for line in region.lines]
    moved = sum(line.kind == "moved" for line in lines) // 2
    became = Counter(
        f"{x.a.opcode} -> {x.b.opcode}"
        for x in lines
        if x.a is not None and x.b is not None and x.a.opcode != x.b.opcode and not _unit(x)
    )
    others = [r for r in regions for x in r.lines if x.kind == "changed" and not _other_opcode(x)]
    parts = [f"{n} {note}" for note, n in became.most_common(_NAMED)]
    if moved:
        parts.append(f"{moved} instruction{'s' if moved > 1 else ''} in another order")
    if others:
        names = list(dict.fromkeys(region.name for region in others))
        more = ", ..." if len(names) > _NAMED else ""
        parts.append(f"{len(others)} with other operands ({', '.join(names[:_NAMED])}{more})")
    return parts


def _other_opcode(line: Line) -> bool:
    return line.a is not None and line.b is not None and line.a.opcode != line.b.opcode


def _unit(line: Line) -> bool:
    """Is it one of the instructions that `_units` speaks of?"""
    return line.a is not None and category(line.a.opcode) in ("tensor", "tma")


def _numbers(resources: Sequence[ResourceRow]) -> list[str]:
    return [
        f"{row.a:,} -> {row.b:,} {_TOLD[row.name]}"
        for row in resources
        if row.name in _TOLD and row.delta
    ]
