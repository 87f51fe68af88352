"""How many elements a TMA load brings when the box is no multiple of the element stride."""

from __future__ import annotations

import numpy as np
from lab import DeviceMemory, Fact, Lab, Seen, main
from tma_probe import UNTOUCHED, load

from ptxgen.layout.tensor_map import TensorMapSpec

ROWS, COLUMNS = 16, 64  # of u32
BOX = (8, 32)
STRIDES = ((1, 1), (2, 1), (3, 1), (5, 1), (1, 2), (1, 3), (3, 2))  # outermost first


def observe(lab: Lab) -> Seen:
    from runtime.cuda import tensor_map

    host = np.arange(1, ROWS * COLUMNS + 1, dtype=np.uint32).reshape(ROWS, COLUMNS)
    memory = DeviceMemory(host)
    counts, tiles = [], []
    for strides in STRIDES:
        spec = TensorMapSpec(
            dtype="u32", address=memory.address, shape=(ROWS, COLUMNS), box=BOX,
            strides=(4 * COLUMNS, 4), element_strides=strides,
        )  # fmt: skip
        seen = load(lab, tensor_map.encode(spec, name="map"), 0, 0, bytes_=4 * BOX[0] * BOX[1])
        counts.append(seen.counted)
        tiles.append(seen.tile)
    return {"counted": np.array(counts), "tiles": np.array(tiles)}


def finding(seen: Seen) -> tuple[str, object]:
    numbers = {}
    for strides, counted, raw in zip(STRIDES, seen["counted"], seen["tiles"], strict=True):
        tile = np.ascontiguousarray(raw).view(np.uint32)
        arrived = tile[tile != UNTOUCHED * 0x01010101]
        rows = sorted({int(v - 1) // COLUMNS for v in arrived if v})
        columns = sorted({int(v - 1) % COLUMNS for v in arrived if v})
        numbers[f"element strides {strides}"] = {
            "counted": int(counted), "written": 4 * len(arrived), "rows": rows, "columns": columns,
        }  # fmt: skip
    words = ", ".join(
        f"{key[16:]}: {row['counted']} B counted, {row['written']} B written"
        for key, row in numbers.items()
    )
    return f"a box of {BOX[0]} x {BOX[1]} u32 with strides {words}", numbers


if __name__ == "__main__":
    question = (
        "Does a box count floor or ceil (box / element stride), and is the innermost ignored?"
    )
    main(Fact(id="tma_element_strides", question=question, emulated=False), observe, finding)
