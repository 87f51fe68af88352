"""Control flow of SASS: basic blocks, dominators, natural loops.

ptxas moves the slow path of a spin-wait behind the kernel's EXIT, so that address ranges do not
show loops. They are found from the graph: a branch back to a block that dominates it closes one,
and its body is every block that reaches the branch without passing that header.

Two edges are not in the text. BSYNC continues at the point that its BSSY names. An indirect branch
(BRX) goes through a table that the disassembly does not show; its targets are taken to be the
blocks that nothing else leads to. Bodies of called functions are not part of the caller's graph.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from ptxgen.toolchain.sass import Instruction, SassFunction, count

# Opcodes after which a warp does not fall through, unless the instruction is predicated.
_INDIRECT = frozenset({"BRX", "BRXU", "JMX", "JMXU"})
_ENDS = frozenset({"EXIT", "RET", "BRA", "JMP", "KILL"}) | _INDIRECT
_SPLITS = _ENDS | {"BSYNC", "WARPSYNC"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A basic block: instructions [start, end) of the function's code, and the blocks after it."""

    start: int
    end: int
    successors: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A natural loop. `blocks` are indices into Flow.blocks; inner loops' blocks are among them."""

    header: int
    latches: tuple[int, ...]
    blocks: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """The flow graph of one function. Loops are sorted: inner before outer."""

    code: tuple[Instruction, ...]
    blocks: tuple[Block, ...]
    loops: tuple[Loop, ...]

    def instructions(self, loop: Loop) -> tuple[Instruction, ...]:
        """The loop's instructions by address, inner loops included."""
        return tuple(
            i
            for b in sorted(loop.blocks)
            for i in self.code[self.blocks[b].start : self.blocks[b].end]
        )

    def innermost(self, pattern: str) -> tuple[Loop, ...]:
        """Loops that hold a match of an opcode pattern while no loop inside them does."""
        holding = [x for x in self.loops if count(self.instructions(x), pattern)]
        return tuple(
            loop for loop in holding if not any(inner.blocks < loop.blocks for inner in holding)
        )

    def block_of(self, index: int) -> int:
        """The number of the block that holds code[index]."""
        return bisect_right([block.start for block in self.blocks], index) - 1

    def enclosing(self, block: int) -> Loop | None:
        """The innermost loop that a block is in."""
        return next((loop for loop in self.loops if block in loop.blocks), None)

    def parent(self, loop: Loop) -> Loop | None:
        """The innermost loop around a loop."""
        return next((outer for outer in self.loops if loop.blocks < outer.blocks), None)

    def depth(self, loop: Loop | None) -> int:
        """How many loops a loop is part of, itself included; 0 outside loops."""
        return 0 if loop is None else 1 + self.depth(self.parent(loop))

    def latch_instructions(self, loop: Loop) -> tuple[Instruction, ...]:
        """The branches that close the loop."""
        return tuple(self.code[self.blocks[b].end - 1] for b in loop.latches)


def flow(function: SassFunction) -> Flow:
    """The flow graph of a function's code."""
    code = function.code
    blocks = _blocks(code)
    return Flow(code=code, blocks=blocks, loops=_loops(blocks))


def _blocks(code: tuple[Instruction, ...]) -> tuple[Block, ...]:
    at = {instruction.address: index for index, instruction in enumerate(code)}
    reconvergence = _reconvergence(code)
    leaders = {0} if code else set()
    for index, instruction in enumerate(code):
        target = instruction.target
        if target is not None and target in at:
            leaders.add(at[target])
        if instruction.base in _SPLITS:
            leaders.add(index + 1)
    starts = sorted(leader for leader in leaders if leader < len(code))
    ends = [*starts[1:], len(code)] if code else []
    number = {start: block for block, start in enumerate(starts)}
    blocks = []
    for start, end in zip(starts, ends, strict=True):
        following = code[end].address if end < len(code) else None
        nexts = [at[t] for t in _targets(code[end - 1], following, reconvergence) if t in at]
        if following is not None and _falls_through(code[end - 1]):
            nexts.append(end)
        successors = tuple(dict.fromkeys(number[n] for n in nexts))
        blocks.append(Block(start=start, end=end, successors=successors))
    return _with_tables(code, blocks)


def _with_tables(code: tuple[Instruction, ...], blocks: list[Block]) -> tuple[Block, ...]:
    """Let indirect branches reach every block that has no other way in."""
    reached = {0, *(s for block in blocks for s in block.successors)}
    orphans = tuple(index for index in range(len(blocks)) if index not in reached)
    return tuple(
        replace(block, successors=(*block.successors, *orphans))
        if code[block.end - 1].base in _INDIRECT
        else block
        for block in blocks
    )


def _reconvergence(code: tuple[Instruction, ...]) -> Mapping[str, set[int]]:
    """Convergence barrier register -> where its BSSY says that the warp comes together again."""
    points: dict[str, set[int]] = {}
    for instruction in code:
        if instruction.base == "BSSY" and instruction.target is not None:
            points.setdefault(instruction.operand_list[0], set()).add(instruction.target)
    return points


def _targets(
    last: Instruction, following: int | None, reconvergence: Mapping[str, set[int]]
) -> Iterator[int]:
    """Addresses that the last instruction of a block may jump to."""
    if last.base == "BSYNC":
        points = reconvergence.get(last.operands, set())
        if following not in points:  # the usual case: BSYNC stands right before its point
            yield from points
    elif last.base not in ("BSSY", "CALL") and last.target is not None:
        yield last.target


def _falls_through(last: Instruction) -> bool:
    if last.base not in _ENDS or last.predicate:
        return True
    # BRA.U UP0, 0x... and BRA.DIV UR4, 0x... carry their condition as an operand.
    return last.base in ("BRA", "JMP") and len(last.operand_list) > 1


def _loops(blocks: tuple[Block, ...]) -> tuple[Loop, ...]:
    dominators = dominators_of(blocks)
    predecessors = predecessors_of(blocks)
    latches: dict[int, list[int]] = {}
    for index, above in dominators.items():
        for successor in blocks[index].successors:
            if successor in above:
                latches.setdefault(successor, []).append(index)
    loops = [
        Loop(header=header, latches=tuple(tails), blocks=_body(header, tails, predecessors))
        for header, tails in latches.items()
    ]
    return tuple(sorted(loops, key=lambda loop: (len(loop.blocks), loop.header)))


def _body(
    header: int, latches: list[int], predecessors: Mapping[int, frozenset[int]]
) -> frozenset[int]:
    body = {header}
    todo = list(latches)
    while todo:
        block = todo.pop()
        if block not in body:
            body.add(block)
            todo.extend(predecessors.get(block, ()))
    return frozenset(body)


def predecessors_of(blocks: tuple[Block, ...]) -> Mapping[int, frozenset[int]]:
    """For every block that can be reached: the reachable blocks that lead to it directly."""
    order = reverse_postorder(blocks)
    found: dict[int, set[int]] = {index: set() for index in order}
    for index in order:
        for successor in blocks[index].successors:
            found[successor].add(index)
    return {index: frozenset(before) for index, before in found.items()}


@lru_cache(maxsize=64)
def dominators_of(blocks: tuple[Block, ...]) -> Mapping[int, frozenset[int]]:
    """For every block that can be reached: the blocks on all paths to it, itself included."""
    order = reverse_postorder(blocks)
    predecessors = predecessors_of(blocks)
    everything = frozenset(order)
    result = {index: everything for index in order}
    if order:
        result[order[0]] = frozenset({order[0]})
    changed = True
    while changed:
        changed = False
        for index in order[1:]:
            above = frozenset.intersection(*(result[p] for p in predecessors[index]))
            if (new := above | {index}) != result[index]:
                result[index] = new
                changed = True
    return result


def reverse_postorder(blocks: tuple[Block, ...]) -> list[int]:
    """Blocks that the first one reaches, each before its successors where there is no loop."""
    if not blocks:
        return []
    seen = {0}
    postorder: list[int] = []
    stack = [(0, iter(blocks[0].successors))]
    while stack:
        index, successors = stack[-1]
        following = next((s for s in successors if s not in seen), None)
        if following is None:
            postorder.append(index)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(blocks[following].successors)))
    return postorder[::-1]
