"""Which bits of an f32 word wgmma reads as tf32, and whether a TMA load as tf32 rounds them."""

from __future__ import annotations

import numpy as np
from lab import Array, Fact, Lab, Map, Seen, main
from tma_probe import load
from wgmma_probe import ROWS, Wgmma, product

LOW = np.array([0, 1, 0x0FFF, 0x1000, 0x1001, 0x17FF, 0x1800, 0x1FFF, 0x2000, 0x2FFF, 0x3000,
                0x3001, 0x3FFF], np.uint32)  # fmt: skip
EXTREMES = np.array([0x00000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001,
                     0x7FC00001, 0x80000001], np.uint32)  # fmt: skip
MAPS = ("FLOAT32", "FLOAT32_FTZ", "TFLOAT32", "TFLOAT32_FTZ")


def words() -> Array:
    """64 words: 1.0 and -1.0 with low bits of every kind, then subnormals, infinity, NaN."""
    one = np.float32(1).view(np.uint32) + LOW
    some = np.concatenate([one, one | np.uint32(1 << 31), EXTREMES])
    return np.concatenate([some, np.full(ROWS - len(some), one[0], np.uint32)])


def observe(lab: Lab) -> Seen:
    op = Wgmma(input="tf32", n=8)
    a, b = np.zeros((ROWS, op.k), np.float32), np.zeros((8, op.k), np.float32)
    a[:, 0], b[0, 0] = words().view(np.float32), 1.0
    seen = {"wgmma": product(lab, op, a, b)[:, 0]}
    for dtype in MAPS:
        source = words().view(np.float32).reshape(8, 8).copy()
        tile = load(lab, Map(array=source, box=(8, 8), dtype=dtype), 0, 0, bytes_=256).tile
        seen[f"tma.{dtype}"] = tile.view(np.float32)
    return seen


def finding(seen: Seen) -> tuple[str, object]:
    sent = words()
    finite = slice(0, 2 * len(LOW))
    got = seen["wgmma"].view(np.uint32)[finite]
    cut = sent[finite] & np.uint32(0xFFFFE000)
    away = (sent[finite] + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    even = (sent[finite] + np.uint32(0xFFF) + (sent[finite] >> 13 & 1)) & np.uint32(0xFFFFE000)
    rules = {"truncated": cut, "rounded away": away, "rounded to even": even}
    rule = [word for word, expected in rules.items() if np.array_equal(got, expected)]
    changed = {
        dtype: [
            f"{int(x):08x}>{int(y):08x}"
            for x, y in zip(sent, seen[f"tma.{dtype}"].view(np.uint32), strict=True)
            if x != y
        ]
        for dtype in MAPS
    }
    table = [
        f"{int(x):08x}>{int(y):08x}"
        for x, y in zip(sent[:34], seen["wgmma"].view(np.uint32), strict=False)
    ]
    counts = ", ".join(f"{dtype} {len(rows)}" for dtype, rows in changed.items())
    sentence = (
        f"wgmma operands are {' or '.join(rule) or 'neither'}; words changed by TMA: {counts}"
    )
    return sentence, {"wgmma": table, "changed by TMA": changed}


if __name__ == "__main__":
    question = "Are tf32 operands truncated or rounded, by wgmma and by TMA?"
    main(Fact(id="tf32_operands", question=question), observe, finding)
