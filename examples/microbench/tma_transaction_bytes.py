"""How many bytes a TMA load signals when its box lies partly or wholly outside the tensor."""

from __future__ import annotations

import numpy as np
from lab import Fact, Lab, Map, Seen, main
from tma_probe import UNTOUCHED, load

ROWS, COLUMNS = 16, 64  # of u16
BOX = (8, 32)
BYTES = BOX[0] * BOX[1] * 2
CASES = {
    "inside": (0, 0), "half out along x": (48, 0), "16 bytes in": (56, 0),
    "half out along y": (0, 12), "a corner": (48, 12), "beyond x": (64, 0), "beyond y": (0, 16),
    "far beyond": (1 << 20, 1 << 20), "half before x": (-16, 0), "wholly before": (-64, -64),
}  # fmt: skip


def observe(lab: Lab) -> Seen:
    counts, tiles, after = [], [], []
    for x, y in CASES.values():
        source = np.arange(1, ROWS * COLUMNS + 1, dtype=np.uint16).reshape(ROWS, COLUMNS)
        seen = load(lab, Map(array=source, box=BOX), x, y, bytes_=BYTES)
        counts.append(seen.counted)
        tiles.append(seen.tile)
        after.append(int((seen.after != UNTOUCHED).sum()))
    return {"counted": np.array(counts), "tiles": np.array(tiles), "after": np.array(after)}


def finding(seen: Seen) -> tuple[str, object]:
    tiles = np.ascontiguousarray(seen["tiles"]).view(np.uint16).reshape(-1, *BOX)
    padded = np.zeros((ROWS, COLUMNS), np.uint16)
    padded[:] = np.arange(1, ROWS * COLUMNS + 1).reshape(ROWS, COLUMNS)
    right = []
    for tile, (x, y) in zip(tiles, CASES.values(), strict=True):
        rows, columns = np.arange(BOX[0])[:, None] + y, np.arange(BOX[1])[None, :] + x
        inside = (rows >= 0) & (rows < ROWS) & (columns >= 0) & (columns < COLUMNS)
        expected = np.where(inside, padded[rows % ROWS, columns % COLUMNS], 0)
        right.append(bool(np.array_equal(tile, expected)))
    full = [int(c) == BYTES for c in seen["counted"]]
    words = (
        f"{sum(full)} of {len(full)} boxes count their full {BYTES} bytes; "
        f"{sum(right)} of {len(right)} tiles are filled with zeros outside; "
        f"{int(seen['after'].sum())} bytes behind a tile were touched"
    )
    return words, {
        name: {"counted": int(c), "of": BYTES, "zeros outside": ok}
        for name, c, ok in zip(CASES, seen["counted"], right, strict=True)
    }


if __name__ == "__main__":
    question = "Which transaction count do TMA loads signal for boxes outside the tensor?"
    main(Fact(id="tma_transaction_bytes", question=question), observe, finding)
