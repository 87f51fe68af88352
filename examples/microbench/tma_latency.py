"""Cycles from the issue of a TMA load to the return of the wait: from DRAM, then from L2."""

from __future__ import annotations

import numpy as np
from lab import Fact, Lab, Map, Seen, kernel, main

COLUMNS = 64  # of u16: 128 bytes a row
ROWS = 1 << 20  # 128 MB: what is used lies at the front, and the rest has left L2 full of itself
LOADS, STEP = 64, 1024  # boxes, and rows from one to the next
BOX_ROWS = (1, 8, 64, 128, 256)
POLLS = 100_000


def observe(lab: Lab) -> Seen:
    rows = ROWS if lab.backend == "cuda" else LOADS * STEP
    seen = {}
    for box_rows in BOX_ROWS:
        source = np.zeros((rows, COLUMNS), np.uint16)
        out = np.zeros((2, LOADS), np.uint64)
        size = box_rows * COLUMNS * 2
        text = kernel(
            "tma_latency", smem=size + 16, bytes=size, loads=LOADS, step=STEP, polls=POLLS
        )
        lab.run(text, tmap=Map(array=source, box=(box_rows, COLUMNS), swizzle=128), out=out)
        seen[f"bytes.{size}"] = out
    return seen


def finding(seen: Seen) -> tuple[str, object]:
    numbers = {}
    for name, cycles in seen.items():
        numbers[name] = {
            "first touch": {"median": int(np.median(cycles[0])), "least": int(cycles[0].min())},
            "again": {"median": int(np.median(cycles[1])), "least": int(cycles[1].min())},
            "given up": int((cycles == 0).sum()),
        }
    words = ", ".join(
        f"{name[6:]} B {row['first touch']['median']} / {row['again']['median']}"
        for name, row in numbers.items()
    )
    return f"cycles of a TMA load on first touch / again from L2 (medians): {words}", numbers


if __name__ == "__main__":
    question = "How long does a TMA load take, from DRAM and from L2?"
    main(Fact(id="tma_latency", question=question, emulated=False), observe, finding)
