"""Ways to break a pipeline: mutants of a PTX text, one synchronisation instruction at a time.

A mutant is the whole text with one change, and says which. Lines keep their numbers. Whatever
checks programs should see every mutant that matters: the share that it sees is its score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from . import ast
from .edit import replace
from .parser import parse

TX_STEP = 16  # bytes: the least that a copy can be off by


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change. `operator` names the kind, `was` and `now` are the instruction before and after;
    `line` is its PTX line and `source` the whole text."""

    operator: str
    line: int
    was: str
    now: str
    source: str

    def __str__(self) -> str:
        return f"{self.operator}: line {self.line}: {self.was}"


Edit = tuple[str, str]  # operator, new text of the instruction
Operator = Callable[[ast.Instruction], Iterator[Edit]]


def mutants(source: str, entry: str | None = None) -> Iterator[Mutant]:
    """Every mutant of an entry, in the order of its lines."""
    module = parse(source)
    instructions = list(module.entry(entry).instructions())
    for at, op in enumerate(instructions):
        for operator in OPERATORS:
            for name, new in operator(op):
                yield _mutant(module, name, op, {op.span: new}, new)
        yield from _swapped(module, instructions, at)
        yield from _cluster_barrier(module, instructions, at)


def _mutant(
    module: ast.Module, name: str, op: ast.Instruction, edits: dict[ast.Span, str], now: str
) -> Mutant:
    return Mutant(
        operator=name, line=op.line, was=_short(str(op)), now=_short(now) or "(nothing)",
        source=replace(module, edits),
    )  # fmt: skip


def _short(text: str) -> str:
    """A wgmma without its hundred registers."""
    words = " ".join(text.split())
    return words if len(words) <= 100 else words[:97] + "..."


# -- one instruction -------------------------------------------------------------------------------


def _starts(op: ast.Instruction, *names: str) -> bool:
    return any(op.mnemonic == n or op.mnemonic.startswith(n + ".") for n in names)


def _with(op: ast.Instruction, index: int, value: int) -> str:
    """The instruction with an immediate operand replaced."""
    operands = list(op.operands)
    operands[index] = ast.Immediate(value, "int", str(value))
    guard = f"{op.guard} " if op.guard else ""
    return f"{guard}{op.mnemonic} {', '.join(map(str, operands))};"


def _immediate(op: ast.Instruction, index: int) -> int | None:
    if not -len(op.operands) <= index < len(op.operands):
        return None
    operand = op.operands[index]
    is_int = isinstance(operand, ast.Immediate) and operand.kind == "int"
    return operand.value if is_int else None  # type: ignore[union-attr]


def _off(op: ast.Instruction, index: int, step: int, bits: str = "b32") -> str:
    """The instruction with an operand of it off by `step`: an immediate, or a register copied."""
    value = _immediate(op, index)
    if value is not None:
        return _with(op, index, value + step)
    return _computed(op, index, bits, f"add.{bits.replace('b', 'u')} %off, {{0}}, {step};")


def _computed(op: ast.Instruction, index: int, bits: str, compute: str) -> str:
    """The instruction with a register operand replaced by %off, which `compute` makes of {0}."""
    operands = [str(o) for o in op.operands]
    code = compute.format(operands[index])
    operands[index] = "%off"
    guard = f"{op.guard} " if op.guard else ""
    return f"{{ .reg .{bits} %off; {code} {guard}{op.mnemonic} {', '.join(operands)}; }}"


def _is_register(op: ast.Instruction, index: int) -> bool:
    return -len(op.operands) <= index < len(op.operands) and isinstance(
        op.operands[index], ast.Name
    )


def _fences(op: ast.Instruction) -> Iterator[Edit]:
    if _starts(op, "fence", "membar"):
        yield "drop fence", ""
    if _starts(op, "wgmma.fence"):
        yield "drop wgmma.fence", ""


def _groups(op: ast.Instruction) -> Iterator[Edit]:
    kinds = ("wgmma", "cp.async.bulk", "cp.async")
    if _starts(op, *(f"{k}.commit_group" for k in kinds)):
        yield "drop commit", ""
    if _starts(op, *(f"{k}.wait_group" for k in kinds), "cp.async.wait_all"):
        yield "drop wait", ""
        depth = _immediate(op, 0)
        if depth is not None:
            yield "wait depth + 1", _with(op, 0, depth + 1)


def _barriers(op: ast.Instruction) -> Iterator[Edit]:
    if not _starts(op, "bar", "barrier") or _starts(op, "barrier.cluster", "bar.warp"):
        return
    if "red" not in op.qualifiers:
        yield "drop barrier", ""
    count = _immediate(op, 1)
    if count is not None and "red" not in op.qualifiers:
        yield "barrier count + 32", _with(op, 1, count + 32)
        if count > 32:
            yield "barrier count - 32", _with(op, 1, count - 32)


def _mbarriers(op: ast.Instruction) -> Iterator[Edit]:
    if _starts(op, "mbarrier.init"):
        yield "drop init", ""
        count = _immediate(op, 1)
        if count is not None or _is_register(op, 1):
            yield "count + 1", _off(op, 1, 1)
        if (count is not None and count > 1) or _is_register(op, 1):
            yield "count - 1", _off(op, 1, -1)
    elif _starts(op, "mbarrier.arrive", "mbarrier.arrive_drop", "cp.async.mbarrier.arrive"):
        yield "drop arrive", ""
        if "expect_tx" in op.qualifiers:
            yield from _bytes(op)
            yield "drop expect_tx", _without_expect(op)
    elif _starts(op, "mbarrier.expect_tx"):
        yield from _bytes(op)
        yield "drop expect_tx", ""


def _bytes(op: ast.Instruction) -> Iterator[Edit]:
    if _immediate(op, -1) is not None or _is_register(op, -1):
        yield f"expect_tx + {TX_STEP}", _off(op, -1, TX_STEP)
        yield f"expect_tx - {TX_STEP}", _off(op, -1, -TX_STEP)


def _without_expect(op: ast.Instruction) -> str:
    guard = f"{op.guard} " if op.guard else ""
    kept = ", ".join(map(str, op.operands[:-1]))
    return f"{guard}{op.mnemonic.replace('.expect_tx', '')} {kept};"


def _waits(op: ast.Instruction) -> Iterator[Edit]:
    if not _starts(op, "mbarrier.try_wait", "mbarrier.test_wait"):
        return
    done, barrier, parity, *rest = op.operands
    yield "drop mbarrier wait", f"setp.eq.u32 {done}, 0, 0;"
    if "parity" in op.qualifiers:
        tail = "".join(f", {r}" for r in rest)
        yield (
            "flip parity",
            f"{{ .reg .b32 %flipped; xor.b32 %flipped, {parity}, 1; "
            f"{op.mnemonic} {done}, {barrier}, %flipped{tail}; }}",
        )


def _elect(op: ast.Instruction) -> Iterator[Edit]:
    if _starts(op, "elect.sync") and isinstance(op.operands[0], ast.Pair):
        yield "drop elect", f"setp.eq.u32 {op.operands[0].second}, 0, 0;"


def _registers(op: ast.Instruction) -> Iterator[Edit]:
    count = _immediate(op, 0)
    if _starts(op, "setmaxnreg") and count is not None:
        yield "drop setmaxnreg", ""
        for step in (8, -8):
            yield f"setmaxnreg {step:+}", _with(op, 0, count + step)


def _multicast(op: ast.Instruction) -> Iterator[Edit]:
    if "multicast::cluster" not in op.qualifiers:
        return
    index = -2 if "L2::cache_hint" in op.qualifiers else -1
    mask = _immediate(op, index)
    if _is_register(op, index):
        lost = "sub.u16 %off, {0}, 1; and.b16 %off, %off, {0};"
        yield "multicast mask, bit lost", _computed(op, index, "b16", lost)
        added = "add.u16 %off, {0}, 1; or.b16 %off, %off, {0};"
        yield "multicast mask, bit added", _computed(op, index, "b16", added)
    elif mask:
        yield "multicast mask, bit lost", _with(op, index, mask & (mask - 1) or mask << 1)
        yield "multicast mask, bit added", _with(op, index, mask | mask + 1)


def _descriptors(op: ast.Instruction) -> Iterator[Edit]:
    """The constant parts of a matrix descriptor: in the high word the stride in the low bits and
    the swizzle in the top two; in the low word, over the address, the leading stride. That is 1
    where nothing reads it."""
    value = _immediate(op, 1)
    leading = _immediate(op, 2)
    if op.mnemonic == "or.b32" and leading and not leading & ~0x3FFF0000 and leading != 0x10000:
        yield "descriptor leading stride", _with(op, 2, 2 * leading)
    if op.mnemonic != "mov.b32" or value is None:
        return
    swizzle, stride = (value & 0xFFFFFFFF) >> 30, value & 0x3FFF
    if swizzle and stride and not value & 0x3FFF0000 & ~0x1C0000 and stride >= 8:
        rest = value & 0x3FFFFFFF
        yield "descriptor swizzle", _with(op, 1, (swizzle % 3 + 1) << 30 | rest)
        yield "descriptor stride", _with(op, 1, swizzle << 30 | rest + stride)


def _swizzles(op: ast.Instruction) -> Iterator[Edit]:
    """An address whose 16-byte unit is swizzled by XOR: bits 4 to 6."""
    value = _immediate(op, 2)
    if op.mnemonic == "xor.b32" and value and not value & ~0x70:
        yield "swizzle bit", _with(op, 2, value ^ 0x10)


def _cluster_halves(op: ast.Instruction) -> Iterator[Edit]:
    if _starts(op, "barrier.cluster.arrive"):
        yield "drop cluster arrive", ""
    if _starts(op, "barrier.cluster.wait"):
        yield "drop cluster wait", ""


def _grids(op: ast.Instruction) -> Iterator[Edit]:
    if _starts(op, "griddepcontrol.wait"):
        yield "drop grid wait", ""


OPERATORS: Sequence[Operator] = (
    _fences, _groups, _barriers, _mbarriers, _waits, _elect, _registers, _multicast, _descriptors,
    _swizzles, _cluster_halves, _grids,
)  # fmt: skip


# -- two instructions ------------------------------------------------------------------------------

_REACH = 8  # instructions between a wait and the release that it guards


def _swapped(
    module: ast.Module, instructions: Sequence[ast.Instruction], at: int
) -> Iterator[Mutant]:
    """A release in front of the wait that it should come after."""
    op = instructions[at]
    if not _starts(op, "mbarrier.arrive") or "expect_tx" in op.qualifiers:
        return
    for before in range(at - 1, max(at - _REACH, -1), -1):
        wait = instructions[before]
        if _starts(wait, "wgmma.wait_group"):
            # What computes the address and the guard moves along.
            moved = [str(i) for i in instructions[before + 1 : at + 1]]
            if any(i.opcode in ("bra", "ret", "exit") for i in instructions[before + 1 : at]):
                return
            edits = {wait.span: " ".join([*moved, str(wait)])}
            edits.update({i.span: "" for i in instructions[before + 1 : at + 1]})
            yield _mutant(module, "release before wait", op, edits, f"{op} {wait}")
            return


def _cluster_barrier(
    module: ast.Module, instructions: Sequence[ast.Instruction], at: int
) -> Iterator[Mutant]:
    """Arrive and wait of the cluster barrier, which only make sense together."""
    op = instructions[at]
    if not _starts(op, "barrier.cluster.arrive"):
        return
    for wait in instructions[at + 1 :]:
        if _starts(wait, "barrier.cluster.wait"):
            edits = {op.span: "", wait.span: ""}
            yield _mutant(module, "drop cluster barrier", op, edits, "")
            return
