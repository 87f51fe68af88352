"""How long mbarrier.try_wait blocks before it gives up, without and with a suspend-time hint."""

from __future__ import annotations

import numpy as np
from lab import Fact, Lab, Seen, kernel, main

HINTS = (0, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)  # ns; 0 leaves the hint out
REPEATS = 5


def observe(lab: Lab) -> Seen:
    out = np.zeros((len(HINTS), REPEATS, 3), np.uint64)
    lab.run(kernel("try_wait", hints=list(HINTS), repeats=REPEATS), out=out)
    return {"waits": out}


def finding(seen: Seen) -> tuple[str, object]:
    waits = seen["waits"].astype(np.int64)
    rows = {
        "no hint" if not hint else f"hint {hint:,} ns": {
            "ns": rows[:, 0].tolist(), "cycles": rows[:, 1].tolist(), "true": int(rows[:, 2].sum()),
        }
        for hint, rows in zip(HINTS, waits, strict=True)
    }  # fmt: skip
    told = ", ".join(f"{name} {int(np.median(row['ns'])):,} ns" for name, row in rows.items())
    return f"a try_wait on a phase that does not complete returns after (median): {told}", rows


if __name__ == "__main__":
    question = "After how long does mbarrier.try_wait return false?"
    main(Fact(id="try_wait", question=question, emulated=False), observe, finding)
