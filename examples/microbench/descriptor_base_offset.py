"""What a base offset in a wgmma descriptor does to a swizzled tile that starts inside an atom."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from descriptor_roles import MASKS, linear, read_map
from lab import Array, Fact, Lab, Seen, main

from ptxgen.layout.smem_desc import SmemDesc
from ptxgen.layout.swizzle import SWIZZLES

START = 4096
STEP = 128  # bytes; the unit of the base offset
SWIZZLED = (128, 64, 32)

# Which address bits the swizzle looks at: a function of start, offset in the tile, base offset.
RULES: dict[str, Callable[[int, Array, int], Array]] = {
    "address": lambda start, offset, base: start + offset,
    "address - 128 base": lambda start, offset, base: start + offset - STEP * base,
    "address + 128 base": lambda start, offset, base: start + offset + STEP * base,
    "address xor 128 base": lambda start, offset, base: (start + offset) ^ (STEP * base),
    "offset": lambda start, offset, base: offset,
    "offset + 128 base": lambda start, offset, base: offset + STEP * base,
    "offset - 128 base": lambda start, offset, base: offset - STEP * base,
}


def observe(lab: Lab) -> Seen:
    """The map of addresses `[rows late, base offset, m, k]` for each swizzle."""
    seen = {}
    for swizzle in SWIZZLED:
        maps = np.zeros((8, 8, 64, 16), np.int32)
        for late, base in product(range(8), range(8)):
            desc = SmemDesc(
                start=START + STEP * late, sbo=8 * swizzle, base_offset=base,
                swizzle=SWIZZLES[swizzle],
            )  # fmt: skip
            maps[late, base] = read_map(lab, desc, mn_major=False)
        seen[f"swizzle.{swizzle}"] = maps
    return seen


def finding(seen: Seen) -> tuple[str, object]:
    numbers, words = {}, []
    for swizzle in SWIZZLED:
        maps = seen[f"swizzle.{swizzle}"]
        offset = linear(swizzle, False, 16, 8 * swizzle)
        counts = dict.fromkeys(RULES, 0)
        for (late, base), (rule, bits) in product(product(range(8), range(8)), RULES.items()):
            start = START + STEP * late
            address = start + offset
            predicted = address ^ (bits(start, offset, base) >> 3 & MASKS[swizzle])
            counts[rule] += int(np.array_equal(maps[late, base], predicted))
        numbers[f"swizzle {swizzle}"] = {
            "of 64 starts and base offsets, explained by a swizzle of": counts,
            "start 128 late, base 0, column 0": maps[1, 0, :10, 0].tolist(),
            "start 128 late, base 1, column 0": maps[1, 1, :10, 0].tolist(),
        }
        rules = [rule for rule, count in counts.items() if count == 64]
        words.append(f"swizzle {swizzle}: of {' or '.join(rules) or 'none of the rules'}")
    return "the XOR takes its bits, with " + "; ".join(words), numbers


if __name__ == "__main__":
    question = "Which address bits does the swizzle use when a tile starts inside an atom?"
    main(Fact(id="descriptor_base_offset", question=question), observe, finding)
