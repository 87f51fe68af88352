"""What the numeric tests of GEMM share: the grid of kernels and shapes, inputs, references."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import ml_dtypes
import numpy as np

import ptxgen
from ptxgen.errors import ConfigError
from ptxgen.isa.dtypes import dtype
from ptxgen.kernels import registry

# One and two row blocks a consumer; one, two and three consumers; N of 64, 128 and 256.
TILES = ("64x64x64", "64x256x64", "128x128x64", "128x256x64", "256x128x64", "192x128x64")
STAGES = ("2", "3", "max")
CLUSTERS = ("1x1", "2x1", "1x2")
DTYPES = ("bf16", "f16")
OUTPUTS = ("bf16", "f16", "f32")
# One element of a tile; one tile; ragged everywhere; several tiles a CTA, ragged.
SHAPES = ((1, 8, 8), (64, 64, 64), (127, 136, 72), (300, 520, 200))
LARGE = (1000, 1000, 1000)  # rings and grids wrap many times; only where it takes no time

GRID: Mapping[str, Sequence[Any]] = {
    "tile": TILES, "stages": STAGES, "cluster": CLUSTERS, "dtype": DTYPES, "out_dtype": OUTPUTS,
    "shape": SHAPES,
}  # fmt: skip


def pairwise(grid: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Rows of the grid such that every two values of different columns meet in one of them.

    Greedy: the row that covers most pairs that are still open, the first such row on a tie.
    """
    names = list(grid)
    rows = [dict(zip(names, values, strict=True)) for values in product(*grid.values())]
    pairs_of = [
        frozenset(((x, row[x]), (y, row[y])) for x, y in combinations(names, 2)) for row in rows
    ]
    still_open = set().union(*pairs_of)
    while still_open:
        best = max(range(len(rows)), key=lambda i: len(pairs_of[i] & still_open))
        still_open -= pairs_of[best]
        yield rows[best]


def random_references(count: int) -> Iterator[str]:
    """Legal members of the family, drawn from all that a reference can say; always the same."""
    draw = random.Random(0)
    while count:
        m, n, k = draw.randint(1, 6), draw.randint(1, 32), draw.randint(1, 4)
        fields = {
            "tile": f"{64 * m}x{8 * n}x{64 * k}",
            "stages": draw.choice(["1", "2", "3", "4", "max"]),
            "cluster": draw.choice(CLUSTERS),
            "consumers": draw.choice(["0", "0", "1", "2", "3"]),
            "wait_depth": draw.choice(["0", "1"]),
            "store_n": draw.choice(["0", "0", "8", "16", "32", "64", "128"]),
            "store_slabs": draw.choice(["0", "0", "1", "2", "3"]),
            "dtype": draw.choice(DTYPES),
            "out_dtype": draw.choice(OUTPUTS),
        }
        try:
            registry.build("gemm", fields)
        except ConfigError:
            continue
        yield "gemm:" + ",".join(f"{name}={value}" for name, value in fields.items())
        count -= 1


def build(row: Mapping[str, Any]) -> Any:
    """The kernel of a row of the grid."""
    return ptxgen.kernel("gemm", **{name: row[name] for name in row if name != "shape"})


def numpy_type(name: str) -> Any:
    return dtype(name).np_dtype


def integers(rng: np.random.Generator, shape: tuple[int, int], name: str) -> np.ndarray:
    """Small integers: every product and sum is exact in f32, so results must be equal."""
    return rng.integers(-3, 4, shape).astype(numpy_type(name))


def normal(rng: np.random.Generator, shape: tuple[int, int], name: str) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32).astype(numpy_type(name))


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """D in float64, as the definition has it."""
    return a.astype(np.float64) @ b.astype(np.float64).T


def assert_exact(d: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """Equal to the reference rounded once to the type of D."""
    want = reference(a, b).astype(d.dtype)
    wrong = np.argwhere(~(d.astype(np.float64) == want.astype(np.float64)))
    assert not len(wrong), (
        f"{len(wrong)} of {d.size} elements are wrong, first at {tuple(wrong[0])}: "
        f"{d[tuple(wrong[0])]} instead of {want[tuple(wrong[0])]}"
    )


# Half a unit in the last place of a type, at most, relative to the value.
HALF_ULP = {ml_dtypes.bfloat16: 2.0**-8, np.float16: 2.0**-11, np.float32: 2.0**-24}


def assert_close(d: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """Within one rounding to the type of D and k roundings of an f32 sum.

    The tensor core aligns products before it adds them and may truncate, so an addition costs up to
    a whole unit in the last place of f32 (2^-23) of the magnitudes summed; f16 results below 2^-14
    lose bits to underflow (2^-25).
    """
    want = reference(a, b)
    magnitude = reference(np.abs(a.astype(np.float32)), np.abs(b.astype(np.float32)))
    tolerance = HALF_ULP[d.dtype.type] * np.abs(want) + a.shape[1] * 2.0**-23 * magnitude + 2.0**-25
    worst = np.max(np.abs(d.astype(np.float64) - want) / tolerance, initial=0.0)
    assert worst <= 1.0, f"error is {worst:.2f} times what rounding explains"
