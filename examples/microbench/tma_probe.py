"""One TMA load or store of one box, and everything that can be seen of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from lab import Array, Lab, Map, kernel

SIZE = 8192  # bytes of shared memory that are looked at
SPARE = 64  # bytes that the barrier expects beyond the box
UNTOUCHED = 0xEE


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """`tile`: the bytes expected of the box; `after`: those behind it; `counted` by the barrier,
    or -1 where no count of whole bytes completed the phase."""

    tile: Array
    after: Array
    counted: int


@cache
def _load() -> Any:
    return kernel("tma_load", smem=SIZE + 16, size=SIZE, chunks=SIZE // 16, spare=SPARE)


@cache
def _store(reduction: str) -> Any:
    return kernel("tma_store", smem=SIZE, reduction=reduction)


def load(lab: Lab, tmap: Map | bytes, x: int, y: int, *, bytes_: int) -> Loaded:
    """Load the box at column x, row y; it should have `bytes_` bytes."""
    out, report = np.zeros(SIZE, np.uint8), np.zeros(2, np.uint32)
    lab.run(_load(), tmap=tmap, out=out, report=report, x=x, y=y, expect=bytes_ + SPARE)
    counted = bytes_ + SPARE - int(report[0]) if report[1] else -1
    return Loaded(tile=out[:bytes_], after=out[bytes_:], counted=counted)


def store(
    lab: Lab, tmap: Map, image: Array, whole: Array, x: int, y: int, reduction: str = ""
) -> None:
    """Store the bytes of `image` as a box, or reduce them into it ("add", ...); `whole` is the
    memory around the tensor."""
    lab.run(
        _store(reduction), tmap=tmap, image=image, whole=whole, chunks=len(image) // 16, x=x, y=y
    )
