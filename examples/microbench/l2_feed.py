"""How many bytes a clock all SMs together can load by TMA from tiles that lie in L2.

One CTA an SM with 128 KB of tiles on the way. The region is loaded once to warm up, then timed.
"own" lets every CTA begin elsewhere in the region, "same" lets all ask for the same tile at about
the same time, "one SM" is a single CTA alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from lab import Fact, Lab, Map, Seen, kernel, main

SMS = 132
COLUMNS = 64  # of u16: 128 bytes a row
TILE_ROWS, STAGES = 128, 8  # 16 KB
TILE_BYTES = TILE_ROWS * COLUMNS * 2
REGIONS = {
    "4 MB": 256,
    "16 MB": 1024,
    "32 MB": 2048,
    "128 MB": 8192,
}  # tiles; the last is not in L2
ROUNDS = 256  # 32 MB a CTA
POLLS = 100_000


def text(rounds: int) -> Any:
    return kernel(
        "l2_feed", smem=STAGES * TILE_BYTES + 8 * STAGES, rounds=rounds, stages=STAGES,
        bytes=TILE_BYTES, rows=TILE_ROWS, polls=POLLS,
    )  # fmt: skip


def observe(lab: Lab, rounds: int = ROUNDS) -> Seen:
    seen = {}
    for region, tiles in REGIONS.items():
        source = np.zeros((tiles * TILE_ROWS, COLUMNS), np.uint16)
        source.view(np.uint8).reshape(-1)[::7] = 0x5A  # not all zeros
        for way, ctas, first in (("own", SMS, 61), ("same", SMS, 0), ("one SM", 1, 0)):
            out = np.zeros((ctas, 3), np.uint64)
            tmap = Map(array=source, box=(TILE_ROWS, COLUMNS), swizzle=128)
            lab.run(
                text(rounds), grid=(ctas, 1, 1), tmap=tmap, out=out, first=first, mask=tiles - 1
            )
            seen[f"{region}, {way}"] = out
    return seen


def finding(seen: Seen) -> tuple[str, object]:
    moved = ROUNDS * STAGES * TILE_BYTES  # by a CTA
    numbers = {}
    for name, out in seen.items():
        cycles, begin, end = out.astype(np.int64).T
        if (cycles == 0).any():
            numbers[name] = {"given up": int((cycles == 0).sum())}
            continue
        seconds = (end.max() - begin.min()) * 1e-9
        clock = float(np.median(cycles / ((end - begin) * 1e-9)))
        numbers[name] = {
            "bytes/clk, sum over SMs": round(float((moved / cycles).sum())),
            "bytes/clk of an SM, least and most": [
                round(float(moved / cycles.max()), 1), round(float(moved / cycles.min()), 1)
            ],
            "TB/s, first start to last end": round(moved * len(out) / seconds * 1e-12, 3),
            "clock GHz": round(clock * 1e-9, 3),
        }  # fmt: skip
    words = ", ".join(
        f"{name} {row.get('bytes/clk, sum over SMs', 'given up')}" for name, row in numbers.items()
    )
    return f"bytes a clock by TMA, all SMs: {words}", numbers


if __name__ == "__main__":
    question = "How many bytes a clock does L2 feed to all SMs by TMA?"
    main(Fact(id="l2_feed", question=question, emulated=False), observe, finding)
