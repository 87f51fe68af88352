"""Cycles of a dependent load: own shared memory, a cluster peer's, L1 and L2."""

from __future__ import annotations

import numpy as np
from lab import Fact, Lab, Seen, kernel, main

HOPS = 128  # the last may still be under way when the clock is read
WAYS = {
    "shared": "ld.shared.u32 %at, [%at];",
    "cluster peer": "ld.shared::cluster.u32 %peer, [%peer];",
    "L1": "ld.global.ca.u64 %p, [%p];",
    "L2": "ld.relaxed.gpu.global.u64 %p, [%p];",
}


def observe(lab: Lab) -> Seen:
    words, out = np.zeros(16, np.uint64), np.zeros(16, np.uint64)
    text = kernel("latency", hops=HOPS, ways=list(WAYS.values()))
    lab.run(text, grid=(2, 1, 1), words=words, out=out)
    return {"cycles": out[: len(WAYS)]}


def finding(seen: Seen) -> tuple[str, object]:
    cycles = {
        name: round(float(total) / HOPS, 1)
        for name, total in zip(WAYS, seen["cycles"], strict=True)
    }
    return "cycles a load: " + ", ".join(f"{k} {v}" for k, v in cycles.items()), cycles


if __name__ == "__main__":
    question = "What does a dependent load cost from shared memory, a cluster peer's, L1, L2?"
    main(Fact(id="latency", question=question, emulated=False), observe, finding)
