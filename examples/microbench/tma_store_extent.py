"""Which bytes a TMA store, or a reduction, writes beyond the inner extent when a row is no multiple
of 16 bytes."""

from __future__ import annotations

import numpy as np
from lab import Array, Fact, Lab, Map, Seen, aligned_bytes, main
from tma_probe import store

ROWS, PITCH, BEFORE = 3, 128, 256  # bytes of a row and before the tensor
GUARD = 0xA5
BOX_ROWS = 4  # one more than the tensor has
CASES = [  # (element bytes, elements a row, box columns, first column, swizzle)
    *((1, n, 32, 0, 0) for n in (1, 5, 12, 15, 16, 17, 31)),
    *((2, n, 16, 0, 0) for n in (1, 3, 7, 8, 9, 15)),
    *((4, n, 8, 0, 0) for n in (1, 3, 5, 7)),
    (2, 21, 16, 16, 0), (2, 9, 64, 0, 128), (1, 33, 128, 0, 128), (2, 5, 8, 8, 0), (8, 3, 4, 0, 0),
]  # fmt: skip

REDUCED = [case for case in CASES if case[0] == 4 and case[4] == 0]  # with .add


def observe(lab: Lab) -> Seen:
    stored = {f"memory.{i}": _stored(lab, *case) for i, case in enumerate(CASES)}
    added = {f"added.{i}": _stored(lab, *case, "add") for i, case in enumerate(REDUCED)}
    return stored | added


def _stored(
    lab: Lab, size: int, columns: int, box: int, x: int, swizzle: int, reduction: str = ""
) -> Array:
    whole = aligned_bytes(BEFORE + ROWS * PITCH + 512, GUARD)
    rows = whole[BEFORE : BEFORE + ROWS * PITCH].reshape(ROWS, PITCH)
    tensor = rows.view(f"u{size}")[:, :columns]
    image = np.full(BOX_ROWS * box * size, 0x11, np.uint8)
    store(lab, Map(array=tensor, box=(BOX_ROWS, box), swizzle=swizzle), image, whole, x, 0,
          reduction)  # fmt: skip
    return whole


def finding(seen: Seen) -> tuple[str, object]:
    rows = {}
    beyond = missing = elsewhere = 0
    named = [("memory", case) for case in CASES] + [("added", case) for case in REDUCED]
    for what, (size, columns, box, x, swizzle) in named:
        cases = CASES if what == "memory" else REDUCED
        i = cases.index((size, columns, box, x, swizzle))
        written = seen[f"{what}.{i}"] != GUARD
        body = written[BEFORE : BEFORE + ROWS * PITCH].reshape(ROWS, PITCH)
        should = np.zeros(PITCH, bool)
        should[size * x : min(size * columns, size * (x + box))] = True
        past = int((body & ~should).sum(axis=1).max())
        beyond, missing = max(beyond, past), missing + int((~body & should).sum())
        elsewhere += int(written.sum() - body.sum())
        name = f"{columns} x {size} B, box {box} at {x}, swizzle {swizzle}"
        name += ", added" if what == "added" else ""
        rows[name] = {"row bytes": size * columns, "written past the extent": past}
    reduced = max(row["written past the extent"] for name, row in rows.items() if "added" in name)
    words = (
        f"at most {beyond} bytes a row are written past the extent, {elsewhere} outside the "
        f"tensor's rows, {missing} inside are missing; by a reduction at most {reduced}"
    )
    return words, rows


if __name__ == "__main__":
    question = "Does a TMA store write past an inner extent that is no multiple of 16 bytes?"
    main(Fact(id="tma_store_extent", question=question), observe, finding)
