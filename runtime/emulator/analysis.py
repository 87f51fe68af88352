"""What can be known of a program before it runs.

    blocks        basic blocks; an instruction that may wait starts one, so that it can be retried
    post          immediate post-dominators, where diverged lanes meet again
    live          registers that are live at the start of each block
    uniform       registers that hold one value in all active lanes (kept as one Python integer)
    doubtful      registers that some path reads before it writes them, and what they flow into

A register may be written while lanes are apart and still be uniform, since each group of lanes has
its own copy of the uniform registers. It only becomes a vector when it is written between a
divergent branch and its meeting point and is still live there: then the groups may bring different
values to the meeting.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ptxgen.spec import Dim3

from .isa import definitions, is_special_uniform, matrix_registers, registers_of, row, uses
from .operands import Imm, Mem, Negated, Op, Program, Reg, Special, Symbol, Target, Two, Value, Vec

EXIT = -1  # the virtual block behind every `ret`


@dataclass(frozen=True, slots=True)
class Block:
    """Ops start..end-1. `next` are the successors: (taken, fall through), (fall through,) or ()."""

    index: int
    start: int
    end: int
    next: tuple[int, ...]


@dataclass(slots=True)
class Analysis:
    blocks: list[Block]
    post: list[int]  # block index or EXIT
    live: list[int]  # bit sets of registers
    uniform: list[bool]
    doubtful: int
    thread_x: frozenset[int]  # registers that only ever hold %tid.x


def analyse(program: Program, block: Dim3) -> Analysis:
    """All of the above. `block` matters because %tid.x >> 5 is uniform in whole warps only."""
    blocks = basic_blocks(program)
    post = _post_dominators(blocks)
    live = _liveness(program, blocks)
    doubtful = _doubtful(program, blocks)
    thread_x = _copies_of_thread_x(program, block)
    uniform = _uniform(program, blocks, post, live, doubtful, thread_x)
    return Analysis(blocks, post, live, uniform, doubtful, thread_x)


def bits_of(registers: list[int]) -> int:
    mask = 0
    for r in registers:
        mask |= 1 << r
    return mask


def ids_of(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def ends_block(op: Op) -> bool:
    return op.opcode in ("bra", "ret", "exit", "trap")


def _leaders(program: Program) -> list[int]:
    leaders = {0, len(program.ops)}
    async_registers = 0  # registers of wgmmas issued since the last leader
    for op in program.ops:
        if op.operands and isinstance(op.operands[0], Target):
            leaders.add(op.operands[0].index)
        if ends_block(op):
            leaders.add(op.index + 1)
        if row(op).waits(op):
            leaders.add(op.index)
            if op.opcode == "wgmma":  # what follows may touch the accumulators
                leaders.add(op.index + 1)
    for op in program.ops:
        if op.index in leaders:
            async_registers = 0
        touched = bits_of([r for o in op.operands for r in registers_of(o)])
        if op.opcode == "wgmma" and op.quals[0] == "mma_async":
            async_registers |= bits_of(matrix_registers(op))
        elif touched & async_registers:
            # In-flight registers are checked on entry to a block, so touching them starts one.
            leaders.add(op.index)
            async_registers = 0
    return sorted(leaders)


def basic_blocks(program: Program) -> list[Block]:
    """The control-flow graph."""
    leaders = _leaders(program)
    index_of = {start: i for i, start in enumerate(leaders[:-1])}
    blocks = []
    for i, (start, end) in enumerate(pairwise(leaders)):
        last = program.ops[end - 1]
        follows = (i + 1,) if end < len(program.ops) else ()
        successors: tuple[int, ...] = follows
        if last.opcode == "bra":
            target = last.operands[0]
            assert isinstance(target, Target)
            taken = index_of.get(target.index, EXIT)
            successors = (taken, *follows) if last.guard else (taken,)
        elif ends_block(last):
            successors = (EXIT, *follows) if last.guard else (EXIT,)
        blocks.append(Block(i, start, end, successors))
    return blocks


def _post_dominators(blocks: list[Block]) -> list[int]:
    """Immediate post-dominators, by the iterative algorithm on the reversed graph."""
    count = len(blocks)
    exit_ = count  # internal number of the virtual exit
    successors = [[exit_ if n == EXIT else n for n in b.next] or [exit_] for b in blocks] + [[]]
    predecessors: list[list[int]] = [[] for _ in range(count + 1)]
    for node, nexts in enumerate(successors):
        for n in nexts:
            predecessors[n].append(node)
    order, seen, stack = [], {exit_}, [(exit_, iter(predecessors[exit_]))]
    while stack:  # post-order of the reversed graph
        node, iterator = stack[-1]
        for n in iterator:
            if n not in seen:
                seen.add(n)
                stack.append((n, iter(predecessors[n])))
                break
        else:
            order.append(node)
            stack.pop()
    rank = {node: i for i, node in enumerate(order)}
    immediate: dict[int, int] = {exit_: exit_}
    changed = True
    while changed:
        changed = False
        for node in reversed(order[:-1]):
            known = [n for n in successors[node] if n in immediate]
            best = known[0]
            for other in known[1:]:
                a, b = best, other
                while a != b:
                    while rank[a] < rank[b]:
                        a = immediate[a]
                    while rank[b] < rank[a]:
                        b = immediate[b]
                best = a
            if immediate.get(node) != best:
                immediate[node] = best
                changed = True
    # A block that cannot reach the exit (an endless loop) has no meeting point: use the exit.
    return [EXIT if immediate.get(i, exit_) == exit_ else immediate[i] for i in range(count)]


def _liveness(program: Program, blocks: list[Block]) -> list[int]:
    reads, kills = [], []
    for b in blocks:
        read = kill = 0
        for op in program.ops[b.start : b.end]:
            read |= bits_of(uses(op)) & ~kill
            if op.opcode == "wgmma":
                read |= bits_of(definitions(op)) & ~kill
            elif op.guard is None:
                kill |= bits_of(definitions(op))
        reads.append(read)
        kills.append(kill)
    live = [0] * len(blocks)
    changed = True
    while changed:
        changed = False
        for b in reversed(blocks):
            out = 0
            for n in b.next:
                out |= live[n] if n != EXIT else 0
            new = reads[b.index] | (out & ~kills[b.index])
            if new != live[b.index]:
                live[b.index] = new
                changed = True
    return live


def _doubtful(program: Program, blocks: list[Block]) -> int:
    """Registers whose value may be read before it is written, closed under ALU operations."""
    everything = (1 << len(program.bits)) - 1
    predecessors: list[list[int]] = [[] for _ in blocks]
    for b in blocks:
        for n in b.next:
            if n != EXIT:
                predecessors[n].append(b.index)
    writes = [
        bits_of([r for op in program.ops[b.start : b.end] if not op.guard for r in definitions(op)])
        for b in blocks
    ]
    at_start = [0 if b.index == 0 else everything for b in blocks]
    changed = True
    while changed:
        changed = False
        for b in blocks[1:]:
            known = everything
            for p in predecessors[b.index]:
                known &= at_start[p] | writes[p]
            if not predecessors[b.index]:
                known = everything  # unreachable
            if known != at_start[b.index]:
                at_start[b.index] = known
                changed = True
    doubtful = 0
    for b in blocks:
        written = at_start[b.index]
        for op in program.ops[b.start : b.end]:
            doubtful |= bits_of(uses(op)) & ~written
            if op.guard is None:
                written |= bits_of(definitions(op))
    flows = True
    while flows:
        flows = False
        for op in program.ops:
            if row(op).pure and bits_of(uses(op)) & doubtful:
                new = bits_of(definitions(op)) & ~doubtful
                if new:
                    doubtful |= new
                    flows = True
    return doubtful


def _uniform(
    program: Program,
    blocks: list[Block],
    post: list[int],
    live: list[int],
    doubtful: int,
    thread_x: frozenset[int],
) -> list[bool]:
    uniform = [not (doubtful >> r) & 1 for r in range(len(program.bits))]
    for op in program.ops:
        for r in matrix_registers(op):
            uniform[r] = False
    regions = [
        (b.index, _region(blocks, b, post[b.index]), program.ops[b.end - 1].guard)
        for b in blocks
        if len(set(b.next)) > 1
    ]
    written_in = [
        bits_of([r for op in program.ops[b.start : b.end] for r in definitions(op)]) for b in blocks
    ]

    def is_uniform(value: Value) -> bool:
        return _value_uniform(value, uniform)

    changed = True
    while changed:
        changed = False
        for op in program.ops:
            targets = [r for r in definitions(op) if uniform[r]]
            if not targets:
                continue
            guarded = op.guard is None or uniform[op.guard[0].id]
            warp_index = is_warp_index(op, thread_x)
            if not (guarded and (warp_index or row(op).uniform(op, is_uniform))):
                for r in targets:
                    uniform[r] = False
                changed = True
        for index, region, guard in regions:
            assert guard is not None
            meet = post[index]
            if uniform[guard[0].id] or meet == EXIT:
                continue
            written = 0
            for i in region:
                written |= written_in[i]
            for r in ids_of(written & live[meet]):
                if uniform[r]:
                    uniform[r] = False
                    changed = True
    return uniform


def _region(blocks: list[Block], branch: Block, meet: int) -> set[int]:
    """Blocks that lanes may run through between a branch and its meeting point."""
    seen: set[int] = set()
    stack = [n for n in branch.next if n not in (meet, EXIT)]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        stack += [n for n in blocks[node].next if n not in (meet, EXIT)]
    return seen


def _value_uniform(value: Value, uniform: list[bool]) -> bool:
    if isinstance(value, Reg):
        return uniform[value.id]
    if isinstance(value, Negated):
        return uniform[value.reg.id]
    if isinstance(value, Special):
        return is_special_uniform(value)
    if isinstance(value, Two):
        return _value_uniform(value.first, uniform) and _value_uniform(value.second, uniform)
    if isinstance(value, Vec):
        return all(_value_uniform(i, uniform) for i in value.items)
    if isinstance(value, Mem):
        coordinates = all(_value_uniform(c, uniform) for c in value.coordinates)
        return _value_uniform(value.base, uniform) and coordinates
    return isinstance(value, Imm | Symbol) or True


def _copies_of_thread_x(program: Program, block: Dim3) -> frozenset[int]:
    """Registers that only ever hold %tid.x, where the threads of a warp are neighbours in x."""
    if block.y * block.z > 1 and block.x % 32:
        return frozenset()
    writers: dict[int, list[Op]] = {}
    for op in program.ops:
        for r in definitions(op):
            writers.setdefault(r, []).append(op)
    copies: set[int] = set()
    changed = True
    while changed:
        changed = False
        for r, ops in writers.items():
            if r in copies or len(ops) != 1 or ops[0].opcode not in ("mov", "cvt") or ops[0].guard:
                continue
            source = ops[0].operands[1]
            is_x = isinstance(source, Special) and source.name == "%tid.x"
            if is_x or (isinstance(source, Reg) and source.id in copies):
                copies.add(r)
                changed = True
    return frozenset(copies)


def is_warp_index(op: Op, thread_x: frozenset[int]) -> bool:
    """%tid.x shifted right by 5 or more, divided by a multiple of 32, or without its low bits."""
    if len(op.operands) != 3:
        return False
    _, a, b = op.operands
    from_x = isinstance(a, Reg) and a.id in thread_x
    from_x = from_x or (isinstance(a, Special) and a.name == "%tid.x" and bool(thread_x))
    if not from_x or not isinstance(b, Imm):
        return False
    if op.opcode == "shr":
        return b.value >= 5
    if op.opcode == "div":
        return b.value > 0 and b.value % 32 == 0
    return op.opcode == "and" and b.value & 31 == 0
