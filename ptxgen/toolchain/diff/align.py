"""Which instruction of one region is which of the other.

Names do not count here: an instruction's key is its opcode and operands with every register
replaced by its kind and every branch target by a star. Blocks that are nearly alike are found first
(a longest common subsequence over blocks, weighted by what they have in common); they cut the two
regions into pieces, and within each piece instructions are aligned by key, then by opcode, then by
opcode without modifiers. Where a branch moved, blocks begin elsewhere: if the regions as a whole
match better than block by block, that is taken.

Long runs of equal keys (a MOV for every accumulator) can be laid side by side in many ways. If the
two kernels name registers alike, names tell which is which; so names are tried as the very first
key, and kept when that loses no match.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import TypeAlias

from ptxgen.toolchain.diff.regions import in_common
from ptxgen.toolchain.sass import Instruction

Pair: TypeAlias = tuple[Instruction | None, Instruction | None]
_Key: TypeAlias = Callable[[Instruction], str]

_REGISTER = re.compile(r"\b(UR|R|UP|P|B)\d+\b")
_REUSE = re.compile(r"\.reuse\b")
_TARGET = re.compile(r"0x[0-9a-f]+$")
_ALIKE = 0.75  # blocks with less in common are aligned together with their neighbours


@lru_cache(maxsize=8192)
def key(instruction: Instruction) -> str:
    """The instruction without names: `@!P BRA *`, `IMAD R,R,0x40,R`."""
    operands = instruction.operands
    if instruction.target is not None:
        operands = _TARGET.sub("*", operands)
    operands = ",".join(part.strip() for part in operands.split(","))
    return without_names(f"{instruction.predicate} {instruction.opcode} {operands}").strip()


def without_names(text: str) -> str:
    """Registers by kind: `R3.reuse` and `R4` are both `R`."""
    return _REGISTER.sub(r"\1", _REUSE.sub("", text))


def with_names(instruction: Instruction) -> str:
    """The instruction with names, but not where it is or where it leads."""
    operands = _REUSE.sub("", instruction.operands)
    if instruction.target is not None:
        operands = _TARGET.sub("*", operands)
    return f"{instruction.predicate} {instruction.opcode} {operands}"


def opcode(instruction: Instruction) -> str:
    return instruction.opcode


def base(instruction: Instruction) -> str:
    return instruction.base


def align(a: Sequence[Sequence[Instruction]], b: Sequence[Sequence[Instruction]]) -> list[Pair]:
    """Pairs of two regions, given as their blocks. One of a pair is None if it has no partner."""
    by_block = list(_by_block(a, b))
    all_a, all_b = _flat(a), _flat(b)
    found = _matches(by_block)
    if found == min(len(all_a), len(all_b)) or (len(a) <= 1 and len(b) <= 1):
        return by_block  # the whole cannot match better
    whole = _best(all_a, all_b)
    return by_block if found >= _matches(whole) else whole


def _by_block(
    a: Sequence[Sequence[Instruction]], b: Sequence[Sequence[Instruction]]
) -> Iterator[Pair]:
    at_a = at_b = 0
    for i, j in (*_alike(a, b), (len(a), len(b))):
        yield from _best(_flat(a[at_a:i]), _flat(b[at_b:j]))
        if i < len(a):
            yield from _best(a[i], b[j])
        at_a, at_b = i + 1, j + 1


def _flat(blocks: Sequence[Sequence[Instruction]]) -> list[Instruction]:
    return [instruction for block in blocks for instruction in block]


def _alike(
    a: Sequence[Sequence[Instruction]], b: Sequence[Sequence[Instruction]]
) -> list[tuple[int, int]]:
    """Pairs of nearly equal blocks, in order, that have the most instructions in common."""
    bags_a = [Counter(map(key, block)) for block in a]
    bags_b = [Counter(map(key, block)) for block in b]
    worth = [[_worth(x, y) for y in bags_b] for x in bags_a]
    best = [[0.0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in reversed(range(len(a))):
        for j in reversed(range(len(b))):
            together = worth[i][j] + best[i + 1][j + 1] if worth[i][j] else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], together)
    pairs, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if worth[i][j] and best[i][j] == worth[i][j] + best[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _worth(x: Counter[str], y: Counter[str]) -> float:
    share = in_common(x, y)
    return share * (x & y).total() if share >= _ALIKE else 0.0


def _best(a: Sequence[Instruction], b: Sequence[Instruction]) -> list[Pair]:
    """The alignment with names if it matches as many keys as the one without them."""
    plain = list(_piece(a, b, (key, opcode, base)))
    named = list(_piece(a, b, (with_names, key, opcode, base)))
    return named if _matches(named) >= _matches(plain) else plain


def _matches(pairs: list[Pair]) -> int:
    return sum(x is not None and y is not None and key(x) == key(y) for x, y in pairs)


def _piece(
    a: Sequence[Instruction], b: Sequence[Instruction], keys: tuple[_Key, ...]
) -> Iterator[Pair]:
    """Align by the first key; what stays between its matches by the next, and so on."""
    if not a or not b or not keys:
        yield from ((x, None) for x in a)
        yield from ((None, y) for y in b)
        return
    first, *others = keys
    matcher = SequenceMatcher(None, [first(x) for x in a], [first(y) for y in b], autojunk=False)
    for tag, a0, a1, b0, b1 in matcher.get_opcodes():
        if tag == "equal":
            yield from zip(a[a0:a1], b[b0:b1], strict=True)
        else:
            yield from _piece(a[a0:a1], b[b0:b1], tuple(others))
