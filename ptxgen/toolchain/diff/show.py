"""A comparison to look at: verdict, numbers, opcodes, then the code region by region."""

from __future__ import annotations

from collections.abc import Mapping

from ptxgen.toolchain.diff.model import KINDS, Diff, FunctionDiff, RegionDiff, Side
from ptxgen.toolchain.sass import CATEGORY_NAMES, Instruction, category
from ptxgen.view.base import Stack, View
from ptxgen.view.compare import Beside, Comparison, Folded, Heading, Pair
from ptxgen.view.compare import Side as Column
from ptxgen.view.palette import Role, Tone
from ptxgen.view.table import Row, Table

_ROLES: Mapping[str, Role] = {"tensor": "tensor", "tma": "tma", "mbarrier": "mbarrier"}
_OPEN_ROWS = 16  # a longer table of opcodes is folded away on a page


def diff_view(diff: Diff) -> View:
    """Everything there is to see."""
    parts: list[View] = [Heading(words=diff.verdict, level=1, tone="good" if diff.equal else "bad")]
    for function in diff.functions:
        parts += _function(function)
    for name, which in [*((n, "A") for n in diff.only_a), *((n, "B") for n in diff.only_b)]:
        parts.append(Heading(words=f"{name}: only in {which}", tone="bad"))
    return Stack(tuple(parts))


def _function(function: FunctionDiff) -> list[View]:
    parts: list[View] = [_sides(function)]
    tables: list[View] = [_numbers(function), _where(function)]
    differ = sum(row.delta != 0 for row in function.opcodes)
    if differ > _OPEN_ROWS:
        words = f"Opcodes that differ in number: {differ}"
        parts += [Beside(tuple(tables)), Folded(words=words, inner=_opcodes(function))]
    else:
        parts.append(Beside((*tables, _opcodes(function)) if differ else tuple(tables)))
    parts += [_region(r, function) for r in function.regions if not r.equal]
    return parts


def _sides(function: FunctionDiff) -> View:
    rows = [_side("A", function.a), _side("B", function.b)]
    return Table(
        columns=("", "what", "function", "ptxas", "cubin"), rows=tuple(rows),
        left=frozenset(range(5)),
    )  # fmt: skip


def _side(label: str, side: Side) -> Row:
    return Row((label, side.name, side.function.name, side.ptxas, side.cubin_sha256[:12]))


def _numbers(function: FunctionDiff) -> View:
    rows = [
        Row(
            (row.name, _number(row.a), _number(row.b), _signed(row.delta)),
            tone=_tone(row.delta, row.name.startswith(("spill", "stack"))),
        )
        for row in function.resources
        if row.a is not None or row.b is not None
    ]
    return Table(title="Resources", columns=("", "A", "B", "B - A"), rows=tuple(rows))


def _tone(delta: int | None, hurts: bool) -> Tone:
    if not delta:
        return "plain"
    return "bad" if hurts and delta > 0 else "muted"


def _opcodes(function: FunctionDiff) -> View:
    """Opcodes whose number differs, and the sum of each group."""
    rows: list[Row] = []
    for name in CATEGORY_NAMES:
        group = [row for row in function.opcodes if row.category == name]
        changed = [row for row in group if row.delta]
        if changed:
            a, b = sum(row.a for row in group), sum(row.b for row in group)
            rows.append(Row((name, str(a), str(b), _signed(b - a)), tone="muted"))
            rows += [
                Row((f"  {row.opcode}", str(row.a), str(row.b), _signed(row.delta)))
                for row in changed
            ]
    return Table(title="Opcodes that differ in number", columns=("", "A", "B", "B - A"),
                 rows=tuple(rows))  # fmt: skip


def _where(function: FunctionDiff) -> View:
    rows = [
        Row(
            (f"{'  ' * region.depth}{region.name}", *(str(region.count(k)) for k in KINDS)),
            tone="plain" if region.equal else "muted",
        )
        for region in function.regions
    ]
    return Table(title="Instructions by place", columns=("", *KINDS), rows=tuple(rows))


def _region(region: RegionDiff, function: FunctionDiff) -> View:
    a, b = function.a, function.b
    versions = (f", ptxas {a.ptxas}", f", ptxas {b.ptxas}") if a.ptxas != b.ptxas else ("", "")
    return Comparison(
        title=" › ".join([*region.inside, region.name]),
        left=f"A  {a.name}{versions[0]}",
        right=f"B  {b.name}{versions[1]}",
        rows=tuple(
            Pair(kind=x.kind, left=_column(x.a), right=_column(x.b), note=x.note)
            for x in region.lines
        ),
    )


def _column(instruction: Instruction | None) -> Column | None:
    if instruction is None:
        return None
    operands = ", ".join(instruction.operand_list)
    text = f"{instruction.predicate} {instruction.opcode} {operands}".strip()
    return Column(
        label=f"{instruction.address:04x}",
        text=text,
        role=_ROLES.get(category(instruction.opcode), ""),
    )


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _signed(value: int | None) -> str:
    return "?" if value is None else f"{value:+,}" if value else "0"
