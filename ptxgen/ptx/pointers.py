"""Which parameters of an entry point at memory that it may write, read off the PTX.

Every register is given the set of parameters that its value may come from, by following definitions
until nothing changes; order and branches are ignored. A parameter is written when such a value
reaches anything but arithmetic and a known reading access, so what is not understood counts as a
write. Values that travel through memory do not carry their origin: storing one is a write.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from . import ast

# Opcodes without a destination register in front, and those whose result is not made of addresses.
_NO_RESULT = frozenset(
    {"st", "red", "call", "cp", "prefetch", "prefetchu", "bra", "bar", "mbarrier"}
)
_LOADS = frozenset({"ld", "ldu"})
_READERS = frozenset({"ld", "ldu", "prefetch", "prefetchu"})
_TO_SHARED = ("cp.async.ca.", "cp.async.cg.", "cp.async.bulk.")


def written(function: ast.Function) -> frozenset[str]:
    """Names of the parameters through which the entry may write (of tensor maps: may store)."""
    params = frozenset(p.name for p in function.params)
    instructions = tuple(function.instructions())
    origins: dict[str, frozenset[str]] = defaultdict(frozenset, {p: frozenset({p}) for p in params})
    changed = True
    while changed:
        changed = False
        for i in instructions:
            target, sources = _flow(i)
            found = frozenset().union(*(origins[name] for name in sources))
            for name in target:
                if not found <= origins[name]:
                    origins[name] |= found
                    changed = True
    return frozenset().union(*(origins[name] for i in instructions for name in _escapes(i)))


def _flow(i: ast.Instruction) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(registers that get a value, names it is made of)."""
    if not i.operands or i.opcode in _NO_RESULT:
        return (), ()
    target = tuple(_names(i.operands[0]))
    if i.opcode in _LOADS and ".param" not in i.mnemonic:
        return target, ()
    return target, tuple(name for o in i.operands[1:] for name in _names(o))


def _escapes(i: ast.Instruction) -> Iterator[str]:
    """Names whose origins are written through, or leave our sight, at this instruction."""
    reads = i.opcode in _READERS or (i.mnemonic.startswith(_TO_SHARED) and _fills_shared(i))
    if reads:
        return
    for index, operand in enumerate(i.operands):
        through_memory = isinstance(operand, ast.Address)
        if through_memory or i.opcode in _NO_RESULT or (i.opcode == "atom" and index):
            yield from _names(operand)


def _fills_shared(i: ast.Instruction) -> bool:
    """A copy or prefetch whose source is global memory: its first space is the destination."""
    return ".prefetch." in i.mnemonic or i.mnemonic.find(".shared") < i.mnemonic.find(".global")


def _names(operand: ast.Operand) -> Iterator[str]:
    """Every name in an operand."""
    if isinstance(operand, ast.Name):
        yield operand.text
    elif isinstance(operand, ast.Address):
        yield from _names(operand.base)
    elif isinstance(operand, (ast.Vector, ast.Group)):
        for item in operand.items:
            yield from _names(item)
    elif isinstance(operand, ast.Pair):
        yield from (operand.first.text, operand.second.text)
    elif isinstance(operand, ast.Not):
        yield operand.operand.text
    elif isinstance(operand, ast.Offset):
        yield operand.base.text
