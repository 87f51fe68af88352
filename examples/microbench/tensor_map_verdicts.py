"""What the driver's encoder accepts where the rules are unclear: strides of zero, the null address,
and the largest box. What it accepts with a stride of zero is then loaded."""

from __future__ import annotations

import numpy as np
from lab import DeviceMemory, Fact, Lab, Seen, main
from tma_probe import load

from ptxgen.errors import TensorMapError
from ptxgen.layout.tensor_map import TensorMapSpec

UNIT = 16  # bytes
BOX_FROM, BOX_TO = 229_376, 244_800  # known to be accepted, known to be refused


def verdict(spec: TensorMapSpec) -> str:
    from runtime.cuda import tensor_map

    try:
        tensor_map.encode(spec, name="map")
    except TensorMapError as error:
        return error.violations[0].got
    return "accepted"


def factors(units: int) -> tuple[int, int, int, int] | None:
    """`units` as a * b * c * d with a <= 16 (of 16-byte units) and the others <= 256."""
    for a in range(16, 0, -1):
        for b in range(256, 0, -1):
            if units % (a * b):
                continue
            rest = units // (a * b)
            for c in range(min(256, rest), 0, -1):
                if rest % c == 0 and rest // c <= 256:
                    return a, b, c, rest // c
    return None


def spec(address: int, **fields: object) -> TensorMapSpec:
    plain = {"dtype": "u8", "shape": (8, 64), "strides": (64, 1), "box": (8, 64)}
    return TensorMapSpec(address=address, **{**plain, **fields})  # type: ignore[arg-type]


def questions(address: int) -> dict[str, TensorMapSpec]:
    return {
        "plain": spec(address),
        "stride 0 of two axes": spec(address, strides=(0, 1)),
        "stride 0, extent 1": spec(address, shape=(1, 64), strides=(0, 1), box=(1, 64)),
        "stride 0 of the outermost of three axes": spec(
            address, shape=(4, 8, 64), strides=(0, 64, 1), box=(1, 8, 64)
        ),
        "stride 0 of the middle one": spec(
            address, shape=(4, 8, 64), strides=(512, 0, 1), box=(1, 8, 64)
        ),
        "stride smaller than a row": spec(address, strides=(16, 1)),
        "null address": spec(0),
        "address 16": spec(16),
        "address of 2^47": spec(1 << 47),
        "address of 2^57": spec(1 << 57),
    }


def observe(lab: Lab) -> Seen:
    host = np.arange(4096, dtype=np.uint8)
    memory = DeviceMemory(host)
    asked = questions(memory.address)
    verdicts = [verdict(s) for s in asked.values()]
    sizes, accepted = [], []
    for units in range(BOX_FROM // UNIT, BOX_TO // UNIT + 1):
        split = factors(units)
        if split is None:
            continue
        a, b, c, d = split
        box = (d, c, b, 16 * a)
        strides = (1 << 24, 1 << 16, 256, 1)
        big = spec(memory.address, shape=(256,) * 4, strides=strides, box=box)
        sizes.append(units * UNIT)
        accepted.append(verdict(big) == "accepted")
    seen = {
        "verdicts": np.array(verdicts), "sizes": np.array(sizes), "accepted": np.array(accepted)
    }  # fmt: skip
    repeated = asked["stride 0 of two axes"]
    if verdict(repeated) == "accepted":
        from runtime.cuda import tensor_map

        tile = load(lab, tensor_map.encode(repeated, name="map"), 0, 0, bytes_=512).tile
        seen["stride 0 loads"] = tile.reshape(8, 64)
    return seen


def finding(seen: Seen) -> tuple[str, object]:
    verdicts = dict(zip(questions(4096), seen["verdicts"].tolist(), strict=True))
    sizes, accepted = seen["sizes"], seen["accepted"]
    largest, refused = int(sizes[accepted].max()), int(sizes[~accepted].min())
    words = f"largest box {largest:,} B, smallest refused {refused:,} B"
    words += "".join(f"; {what}: {said}" for what, said in verdicts.items())
    if "stride 0 loads" in seen:
        rows = seen["stride 0 loads"]
        same = bool((rows == rows[0]).all() and (rows[0] == np.arange(64)).all())
        words += f"; a load with stride 0 repeats the row: {same}"
    return words, {
        "verdicts": verdicts, "largest accepted box": largest, "smallest refused box": refused,
        "sizes tried": len(sizes),
    }  # fmt: skip


if __name__ == "__main__":
    question = "What does cuTensorMapEncodeTiled say to stride 0, address 0 and the largest boxes?"
    main(Fact(id="tensor_map_verdicts", question=question, emulated=False), observe, finding)
