"""Registers split into webs: one register for each set of writes and reads that belong together.

People reuse names: `%warp` may first be a number that differs between lanes and then, after a
shuffle, one that does not. Two writes belong to one web when some read can see both. Each web
becomes a register of its own (with the same name for messages), which is what makes the analysis of
uniform registers precise.
"""

from __future__ import annotations

from dataclasses import replace

from .analysis import EXIT, Block, ids_of
from .isa import definitions, row, uses
from .operands import Mem, Negated, Op, Program, Reg, Two, Value, Vec


def split_webs(program: Program, blocks: list[Block]) -> None:
    """Rename the registers of a program in place."""
    _Webs(program, blocks).rename()


class _Webs:
    def __init__(self, program: Program, blocks: list[Block]) -> None:
        self.program = program
        self.blocks = blocks
        writes: dict[int, list[int]] = {}
        for op in program.ops:
            for r in definitions(op):
                writes.setdefault(r, []).append(op.index)
        self.parent: list[int] = []  # union-find over writes
        self.write_of: dict[tuple[int, int], int] = {}  # (op, register) -> write
        self.all_of: dict[int, int] = {}  # register -> its writes, as a bit set
        for r, ops in writes.items():
            if len(ops) < 2:
                continue
            for index in ops:
                self.write_of[index, r] = len(self.parent)
                self.all_of[r] = self.all_of.get(r, 0) | 1 << len(self.parent)
                self.parent.append(len(self.parent))
        self.read_of: dict[tuple[int, int], int] = {}  # (op, register) -> a write that it sees

    def find(self, write: int) -> int:
        while self.parent[write] != write:
            self.parent[write] = self.parent[self.parent[write]]
            write = self.parent[write]
        return write

    def join(self, reaching: int, write: int) -> None:
        root = self.find(write)
        for other in ids_of(reaching):
            self.parent[self.find(other)] = root

    def reads(self, op: Op) -> list[int]:
        """Registers whose old value matters: operands, and destinations that may be kept."""
        kept = definitions(op) if op.guard is not None or op.opcode == "wgmma" else []
        return [r for r in [*uses(op), *kept] if r in self.all_of]

    def rename(self) -> None:
        if not self.parent:
            return
        at_start = self._reaching()
        for b in self.blocks:
            current = at_start[b.index]
            for op in self.program.ops[b.start : b.end]:
                for r in self.reads(op):
                    seen = current & self.all_of[r]
                    if seen:
                        first = (seen & -seen).bit_length() - 1
                        self.join(seen, first)
                        self.read_of[op.index, r] = first
                current = self._after(op, current, joining=True)
        self._rewrite()

    def _after(self, op: Op, current: int, *, joining: bool) -> int:
        """The writes that reach the next op."""
        for r in definitions(op):
            if r not in self.all_of:
                continue
            write = self.write_of[op.index, r]
            old = current & self.all_of[r]
            if op.guard is not None or op.opcode == "wgmma":
                if joining:
                    self.join(old, write)
                current |= 1 << write
            else:
                current = current & ~old | 1 << write
        return current

    def _reaching(self) -> list[int]:
        """The writes that reach the start of each block."""
        at_start = [0] * len(self.blocks)
        pending = [b.index for b in self.blocks]
        effect: list[tuple[int, int]] = []
        for b in self.blocks:
            made = self._transfer(b, 0)
            kept = self._transfer(b, (1 << len(self.parent)) - 1)
            effect.append((made, kept))
        while pending:
            i = pending.pop()
            made, kept = effect[i]
            out = made | (at_start[i] & kept)
            for n in self.blocks[i].next:
                if n != EXIT and out & ~at_start[n]:
                    at_start[n] |= out
                    pending.append(n)
        return at_start

    def _transfer(self, block: Block, current: int) -> int:
        for op in self.program.ops[block.start : block.end]:
            current = self._after(op, current, joining=False)
        return current

    def _rewrite(self) -> None:
        names: dict[int, int] = {}  # root -> register
        taken: set[int] = set()

        def register(r: int, write: int) -> int:
            root = self.find(write)
            if root not in names:
                if r in taken:
                    self.program.registers.append(self.program.registers[r])
                    self.program.bits.append(self.program.bits[r])
                    names[root] = len(self.program.bits) - 1
                else:
                    taken.add(r)
                    names[root] = r
            return names[root]

        for i, op in enumerate(self.program.ops):
            dests = row(op).dests(op)
            new = {r: register(r, self.write_of[i, r]) for r in definitions(op) if r in self.all_of}
            old = {
                r: register(r, self.read_of[i, r]) for r in self.reads(op) if (i, r) in self.read_of
            }
            if not new and not old:
                continue
            operands = tuple(
                _mapped(o, new if k < dests else old) for k, o in enumerate(op.operands)
            )
            guard = op.guard
            if guard is not None:
                guard = (Reg(old.get(guard[0].id, guard[0].id), guard[0].bits), guard[1])
            self.program.ops[i] = replace(op, operands=operands, guard=guard)


def _mapped(value: Value, names: dict[int, int]) -> Value:
    """An operand with its registers renamed."""
    if isinstance(value, Reg):
        return Reg(names.get(value.id, value.id), value.bits)
    if isinstance(value, Negated):
        return Negated(Reg(names.get(value.reg.id, value.reg.id), value.reg.bits))
    if isinstance(value, Two):
        return Two(_mapped(value.first, names), _mapped(value.second, names))
    if isinstance(value, Vec):
        return Vec(tuple(_mapped(i, names) for i in value.items))
    if isinstance(value, Mem):
        base = _mapped(value.base, names)
        assert not isinstance(base, Vec | Mem | Negated | Two)
        coordinates = tuple(_mapped(c, names) for c in value.coordinates)
        return Mem(base, value.offset, coordinates)  # type: ignore[arg-type]
    return value
