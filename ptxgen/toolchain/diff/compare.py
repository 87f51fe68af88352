"""Two functions, side by side: align them, name the differences, sum them up."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ptxgen.toolchain.diff.align import Pair, align, key, without_names
from ptxgen.toolchain.diff.model import (
    Diff,
    FunctionDiff,
    Line,
    OpcodeRow,
    RegionDiff,
    ResourceRow,
    Side,
)
from ptxgen.toolchain.diff.naming import Names
from ptxgen.toolchain.diff.regions import Region, outer_names, paired, regions
from ptxgen.toolchain.diff.verdict import verdict
from ptxgen.toolchain.flow import Flow, flow, predecessors_of, reverse_postorder
from ptxgen.toolchain.sass import CATEGORY_NAMES, Instruction, category, count

_NUMBER = re.compile(r"0x[0-9a-f]+")
_NOTED = 2  # differing operands that a note spells out


def diff(a: Sequence[Side], b: Sequence[Side]) -> Diff:
    """Compare two modules, each given as its functions.

    Functions pair by name; where no name is in both, in the order in which they stand.
    """
    by_name = {side.function.name: side for side in b}
    pairs = [(x, by_name[x.function.name]) for x in a if x.function.name in by_name]
    if not pairs:
        pairs = list(zip(a, b, strict=False))
    paired_a = {id(x) for x, _ in pairs}
    paired_b = {id(y) for _, y in pairs}
    return Diff(
        functions=tuple(compare(x, y) for x, y in pairs),
        only_a=tuple(x.function.name for x in a if id(x) not in paired_a),
        only_b=tuple(y.function.name for y in b if id(y) not in paired_b),
    )


def compare(a: Side, b: Side) -> FunctionDiff:
    """Compare two functions."""
    flow_a, flow_b = flow(a.function), flow(b.function)
    aligned = [
        _Aligned(
            region=x or y,
            of_a=x is not None,
            pairs=tuple(align(_blocks(flow_a, x), _blocks(flow_b, y))),
        )
        for x, y in paired(flow_a, flow_b, regions(flow_a), regions(flow_b))
    ]
    notes = _differences(flow_a, aligned)
    found = [_region(item, notes, flow_a if item.of_a else flow_b) for item in aligned]
    found = _with_moves(found)
    opcodes = _opcodes(a.function.code, b.function.code)
    resources = _resources(a, b)
    return FunctionDiff(
        a=a,
        b=b,
        verdict=verdict(found, opcodes, resources),
        regions=tuple(found),
        opcodes=opcodes,
        resources=resources,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Aligned:
    region: Region | None
    of_a: bool  # is `region` one of A's? otherwise A has no such loop
    pairs: tuple[Pair, ...]


def _blocks(graph: Flow, region: Region | None) -> list[tuple[Instruction, ...]]:
    if region is None:
        return []
    return [graph.code[graph.blocks[b].start : graph.blocks[b].end] for b in region.blocks]


def _region(item: _Aligned, notes: Mapping[int, str], graph: Flow) -> RegionDiff:
    assert item.region is not None
    around = outer_names(graph, regions(graph), item.region)
    lines = []
    for x, y in item.pairs:
        if x is None or y is None:
            lines.append(Line(kind="added" if x is None else "removed", a=x, b=y))
        else:
            note = notes.get(x.address, "")
            lines.append(Line(kind="changed" if note else "same", a=x, b=y, note=note))
    return RegionDiff(
        name=item.region.name, depth=item.region.depth, inside=around, lines=tuple(lines)
    )


# --- what differs between two aligned instructions ------------------------------------------------


def _differences(flow_a: Flow, aligned: Sequence[_Aligned]) -> Mapping[int, str]:
    """For pairs that differ, what does: address in A -> words."""
    pairs = [(x, y) for item in aligned for x, y in item.pairs if x is not None and y is not None]
    places = _Places(pairs)
    notes: dict[int, str] = {}
    for x, y in pairs:
        if key(x) != key(y):
            notes[x.address] = _what(x, y)
        elif x.target is not None and y.target is not None and not places.same(x.target, y.target):
            notes[x.address] = "branches elsewhere"
    for address in _renamed(flow_a, aligned):
        notes.setdefault(address, "reads another value")
    return notes


def _what(x: Instruction, y: Instruction) -> str:
    """`0x3 -> 0x4`: the operands that differ by more than a name, or the opcodes."""
    if x.opcode != y.opcode:
        return _opcodes_differ(x, y)
    if without_names(x.predicate) != without_names(y.predicate):
        return f"{x.predicate or 'always'} -> {y.predicate or 'always'}"
    parts = [
        _shortest(p, q)
        for p, q in zip(x.operand_list, y.operand_list, strict=False)
        if without_names(p) != without_names(q)
    ]
    if len(x.operand_list) != len(y.operand_list):
        return "other operands"
    return ", ".join(parts[:_NOTED])


def _opcodes_differ(x: Instruction, y: Instruction) -> str:
    """`.BF16 -> .F16` where one modifier differs, else both opcodes."""
    pairs = [(m, n) for m, n in zip(x.modifiers, y.modifiers, strict=False) if m != n]
    if x.base == y.base and len(x.modifiers) == len(y.modifiers) and len(pairs) == 1:
        return f".{pairs[0][0]} -> .{pairs[0][1]}"
    return f"{x.opcode} -> {y.opcode}"


def _shortest(p: str, q: str) -> str:
    """`0x18 -> 0x20` of `[R3+URZ+0x18]` and `[R3+URZ+0x20]` where only a number differs."""
    numbers = _NUMBER.findall(p), _NUMBER.findall(q)
    if without_names(_NUMBER.sub("#", p)) == without_names(_NUMBER.sub("#", q)):
        pairs = [f"{m} -> {n}" for m, n in zip(*numbers, strict=True) if m != n]
        return ", ".join(pairs)
    return f"{p} -> {q}"


class _Places:
    """Addresses of aligned instructions, to tell whether two branches lead to the same place."""

    def __init__(self, pairs: Iterable[tuple[Instruction, Instruction]]) -> None:
        self._partner = {x.address: y.address for x, y in pairs}
        self._of_a = sorted(self._partner)
        self._of_b = sorted(self._partner.values())

    def same(self, a: int, b: int) -> bool:
        """Is the first aligned instruction from `a` on the partner of the first from `b` on?"""
        there, here = bisect_left(self._of_a, a), bisect_left(self._of_b, b)
        if there == len(self._of_a) or here == len(self._of_b):
            return (there == len(self._of_a)) == (here == len(self._of_b))
        return self._partner[self._of_a[there]] == self._of_b[here]


def _renamed(flow_a: Flow, aligned: Sequence[_Aligned]) -> list[int]:
    """Addresses in A of aligned instructions that read a value other than their partner does."""
    by_block: dict[int, list[Pair]] = defaultdict(list)
    index = {i.address: n for n, i in enumerate(flow_a.code)}
    for item in aligned:
        block = item.region.blocks[0] if item.region is not None and item.region.blocks else 0
        for x, y in item.pairs:
            if x is not None:
                block = flow_a.block_of(index[x.address])
            by_block[block].append((x, y))
    predecessors = predecessors_of(flow_a.blocks)
    ends: dict[int, Names] = {}
    wrong = []
    for block in reverse_postorder(flow_a.blocks):
        before = [ends[p] for p in sorted(predecessors[block]) if p in ends]
        names = before[0].meet(before[1:]) if before else Names()
        for x, y in by_block[block]:
            if x is not None and y is not None:
                if not names.pair(x, y):
                    wrong.append(x.address)
            else:
                instruction = x if x is not None else y
                assert instruction is not None
                names.alone(instruction, of_a=x is not None)
        ends[block] = names
    return wrong


# --- moves ----------------------------------------------------------------------------------------


def _with_moves(found: list[RegionDiff]) -> list[RegionDiff]:
    """Pair what was removed in one place with what was added in another.

    Within a region any two with the same key pair, in order. From one region to another only what
    is the only one of its kind on both sides: many kernels have many a MOV.
    """
    lines = [list(region.lines) for region in found]
    for number, region in enumerate(found):
        _pair_moves(lines, [(number, at) for at in range(len(region.lines))], found, unique=False)
    everywhere = [(n, at) for n, region in enumerate(found) for at in range(len(region.lines))]
    _pair_moves(lines, everywhere, found, unique=True)
    return [replace(r, lines=tuple(changed)) for r, changed in zip(found, lines, strict=True)]


def _pair_moves(
    lines: list[list[Line]],
    places: Iterable[tuple[int, int]],
    found: list[RegionDiff],
    *,
    unique: bool,
) -> None:
    removed: dict[str, list[tuple[int, int]]] = defaultdict(list)
    added: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for n, at in places:
        line = lines[n][at]
        if line.kind == "removed" and line.a is not None:
            removed[key(line.a)].append((n, at))
        elif line.kind == "added" and line.b is not None:
            added[key(line.b)].append((n, at))
    for name, gone in removed.items():
        come = added[name]
        if unique and (len(gone) != 1 or len(come) != 1):
            continue
        for (n, at), (m, to) in zip(gone, come, strict=False):
            a, b = lines[n][at].a, lines[m][to].b
            assert a is not None
            assert b is not None
            lines[n][at] = Line(kind="moved", a=a, note=_place("to", found[m], b, n == m))
            lines[m][to] = Line(kind="moved", b=b, note=_place("from", found[n], a, n == m))


def _place(word: str, region: RegionDiff, instruction: Instruction, same_region: bool) -> str:
    where = "" if same_region else f" in the {region.name}"
    return f"{word} 0x{instruction.address:04x}{where}"


# --- sums -----------------------------------------------------------------------------------------


def _opcodes(a: Iterable[Instruction], b: Iterable[Instruction]) -> tuple[OpcodeRow, ...]:
    """Every opcode of both, by category, the greatest change first."""
    of_a, of_b = Counter(i.opcode for i in a), Counter(i.opcode for i in b)
    rows = [
        OpcodeRow(category=category(name), opcode=name, a=of_a[name], b=of_b[name])
        for name in of_a | of_b
    ]
    order = {name: n for n, name in enumerate(CATEGORY_NAMES)}
    return tuple(sorted(rows, key=lambda r: (order[r.category], -abs(r.delta), -r.a, r.opcode)))


def _resources(a: Side, b: Side) -> tuple[ResourceRow, ...]:
    of_a, of_b = _numbers(a), _numbers(b)
    return tuple(ResourceRow(name=name, a=of_a[name], b=of_b[name]) for name in of_a)


def _numbers(side: Side) -> dict[str, int | None]:
    code, said = side.function.code, side.resources
    return {
        "registers": said.registers if said else None,
        "spill stores (STL)": count(code, "STL"),
        "spill loads (LDL)": count(code, "LDL"),
        "stack, bytes": said.stack_bytes if said else None,
        "static shared memory, bytes": said.smem_bytes if said else None,
        "dynamic shared memory, bytes": side.dynamic_smem_bytes,
        "named barriers": said.barriers if said else None,
        "instructions": len(code),
        "code, bytes": _code_bytes(code),
    }


def _code_bytes(code: Sequence[Instruction]) -> int:
    return code[-1].address + (code[1].address - code[0].address) if len(code) > 1 else 0
