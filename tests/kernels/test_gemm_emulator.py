"""GEMM by numbers: a pairwise cover of kernels and shapes, and every short trip count.

Runs on the emulator; `--backend cuda` runs the same tests on a GPU, `--backend both` on the two,
bit for bit.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from gemm_cases import (
    GRID,
    assert_close,
    assert_exact,
    build,
    integers,
    normal,
    numpy_type,
    pairwise,
    random_references,
)
from machines import Runner

import ptxgen
from ptxgen.configs.base import spell
from ptxgen.errors import ArgumentError

pytestmark = pytest.mark.emu

COVER = list(pairwise(GRID))


def name_of(row: dict[str, Any]) -> str:
    return "-".join(spell(value) for value in row.values())


def test_the_cover_is_pairwise_and_small() -> None:
    """Two launches a row, at most 60 in all."""
    assert 2 * len(COVER) <= 60
    for x, y in combinations(GRID, 2):
        met = {(row[x], row[y]) for row in COVER}
        assert met == {(u, v) for u in GRID[x] for v in GRID[y]}


@pytest.mark.parametrize("row", COVER, ids=name_of)
def test_gemm(row: dict[str, Any], runner: Runner, rng: np.random.Generator) -> None:
    """Integers are exact, random numbers within rounding; no element of D is left out."""
    kernel = build(row)
    m, n, k = row["shape"]
    for make, check, close in ((integers, assert_exact, None), (normal, assert_close, 2e-3)):
        a, b = make(rng, (m, k), row["dtype"]), make(rng, (n, k), row["dtype"])
        out = {"d": ((m, n), numpy_type(row["out_dtype"]))}
        check(runner.run(kernel, {"a": a, "b": b}, out, close=close)["d"], a, b)


# Two rings: without a cluster, and with one. Both have more tiles than the emulator has CTAs, so
# that a CTA starts its second tile wherever in the ring the first one ended.
RINGS: dict[str, tuple[dict[str, Any], tuple[int, int]]] = {
    "one CTA": ({"tile": "64x64x64", "stages": 2, "cluster": "1x1"}, (192, 128)),
    "cluster": ({"tile": "128x64x64", "stages": 3, "cluster": "2x1"}, (300, 192)),
}


@pytest.mark.parametrize(
    ("name", "blocks"),
    [(name, n) for name, (fields, _) in RINGS.items() for n in range(2 * fields["stages"] + 2)],
)
def test_trip_counts(name: str, blocks: int, runner: Runner, rng: np.random.Generator) -> None:
    """K of 0 .. 2 * stages + 1 blocks: an empty ring, one lap, two laps, and one more."""
    fields, (m, n) = RINGS[name]
    kernel = ptxgen.kernel("gemm", **fields)
    a, b = integers(rng, (m, 64 * blocks), "bf16"), integers(rng, (n, 64 * blocks), "bf16")
    d = runner.run(kernel, {"a": a, "b": b}, {"d": ((m, n), numpy_type("bf16"))})["d"]
    assert_exact(d, a, b)


@pytest.mark.parametrize(
    "fields",
    [
        {"tile": "128x64x128", "stages": 2},  # two boxes along K
        {"tile": "64x96x64", "out_dtype": "f32"},  # boxes of 32 columns
        {"tile": "64x72x64", "cluster": "1x2"},  # boxes of 8 columns, three a slab
        {"tile": "64x8x64", "cluster": "1x1", "out_dtype": "f32"},  # the narrowest wgmma
        {"tile": "64x256x64", "store_n": 256, "stages": 3},  # one slab a tile
        {"tile": "64x256x64", "store_slabs": 4, "stages": 3},  # as many slabs as it has
        {"tile": "128x128x64", "consumers": 1, "stages": 3},  # two row blocks of one consumer
        {"tile": "384x64x64", "cluster": "1x2", "stages": 2},  # three consumers, two row blocks
        {"tile": "64x64x64", "wait_depth": 0, "stages": 1, "cluster": "1x1"},  # no overlap at all
        {"tile": "128x64x64", "wait_depth": 0, "stages": 2},
    ],
    ids=lambda fields: ptxgen.kernel("gemm", **fields).reference.removeprefix("gemm:"),
)
def test_options(fields: dict[str, Any], runner: Runner, rng: np.random.Generator) -> None:
    """Config fields that the grid leaves at their defaults, on a ragged shape of several tiles."""
    kernel = ptxgen.kernel("gemm", **fields)
    m, n, k = 200, 264, 136
    a, b = integers(rng, (m, k), "bf16"), integers(rng, (n, k), "bf16")
    out = {"d": ((m, n), numpy_type(kernel.source.problem.output.name))}
    assert_exact(runner.run(kernel, {"a": a, "b": b}, out)["d"], a, b)


@pytest.mark.parametrize("reference", list(random_references(16)))
def test_whatever_the_rules_allow(reference: str, runner: Runner, rng: np.random.Generator) -> None:
    """A ragged shape that takes two tiles each way and more than a lap of most rings."""
    kernel = ptxgen.kernel_from(reference)
    tile_m, tile_n, _ = kernel.source.config.tile
    m, n, k = tile_m + 8, tile_n + 24, 264
    dtype = kernel.source.problem.a.storage
    a, b = integers(rng, (m, k), dtype), integers(rng, (n, k), dtype)
    out = {"d": ((m, n), numpy_type(kernel.source.problem.output.name))}
    assert_exact(runner.run(kernel, {"a": a, "b": b}, out)["d"], a, b)


@pytest.mark.parametrize("mode", ["eager", "random", "latest"])
@pytest.mark.parametrize("seed", range(3))
def test_any_interleaving_gives_the_same_bits(
    mode: str, seed: int, runner: Runner, rng: np.random.Generator
) -> None:
    """Warps in random order, copies as late as they may be: the same results, bit for bit."""
    kernel = ptxgen.kernel("gemm", tile=(128, 64, 64), stages=2)
    fixed = np.random.default_rng(7)
    a, b = normal(fixed, (300, 200), "bf16"), normal(fixed, (136, 200), "bf16")
    out = {"d": ((300, 136), numpy_type("bf16"))}
    calm = runner.run(kernel, {"a": a, "b": b}, out, close=2e-3)["d"]
    options = {"schedule": "random", "seed": seed, "mode": mode, "sms": 2 + 2 * seed}
    wild = runner.run(kernel, {"a": a, "b": b}, out, close=2e-3, emulator=options)["d"]
    assert np.array_equal(calm.view(np.uint16), wild.view(np.uint16))


def test_extreme_values(runner: Runner) -> None:
    """NaN and infinities stay in their rows and columns; sums beyond f16 become infinite."""
    kernel = ptxgen.kernel("gemm", tile=(64, 64, 64), stages=2, dtype="f16", cluster=(1, 1))
    a, b = np.ones((70, 72), np.float16), np.ones((72, 72), np.float16)
    a[3, 5], a[66, 0], b[9, 71] = np.nan, np.inf, -np.inf
    a[20], b[20] = 60_000, 60_000
    with np.errstate(all="ignore"):
        want = (a.astype(np.float64) @ b.astype(np.float64).T).astype(np.float16)
    d = runner.run(kernel, {"a": a, "b": b}, {"d": ((70, 72), np.float16)})["d"]
    assert np.array_equal(d, want, equal_nan=True)


def test_padded_rows_keep_what_lies_between(runner: Runner, rng: np.random.Generator) -> None:
    """A, B and D as parts of wider arrays: what is beside them is neither read nor written."""
    if "cuda" in runner.backends:
        pytest.skip("views are made by NumPy here")
    kernel = ptxgen.kernel("gemm", tile=(64, 64, 64), stages=2, cluster=(1, 1))
    import runtime

    wide_a, wide_b = (np.full((70, 96), np.nan, numpy_type("bf16")) for _ in range(2))
    wide_d = np.full((70, 96), 7, numpy_type("bf16"))
    a, b, d = wide_a[:, :72], wide_b[:, :72], wide_d[:, :72]
    wide_b = np.vstack([wide_b, wide_b[:2]])
    b = wide_b[:, :72]
    a[...], b[...] = integers(rng, (70, 72), "bf16"), integers(rng, (72, 72), "bf16")
    runtime.launch(kernel, a=a, b=b, d=d)
    assert_exact(d, a, b)
    assert (wide_d[:, 72:] == 7).all()


def test_rows_that_end_inside_of_16_bytes(runner: Runner, rng: np.random.Generator) -> None:
    """70 columns are 140 B: TMA writes 144. Refused, but where that is said to harm nobody."""
    if "cuda" in runner.backends:
        pytest.skip("views are made by NumPy here")
    kernel = ptxgen.kernel("gemm", tile=(64, 64, 64), stages=2, cluster=(1, 1))
    import runtime

    a, b = integers(rng, (70, 72), "bf16"), integers(rng, (70, 72), "bf16")
    wide = np.full((70, 96), 7, numpy_type("bf16"))
    with pytest.raises(ArgumentError, match=r"140 B .*multiple of 16 B"):
        runtime.launch(kernel, a=a, b=b, d=wide[:, :70])
    assert (wide == 7).all()
    runtime.launch(kernel, a=a, b=b, d=runtime.padded(wide[:, :70]))
    assert_exact(wide[:, :70], a, b)
    assert (wide[:, 72:] == 7).all()


def test_the_reference_launch_is_quick(runner: Runner, rng: np.random.Generator) -> None:
    """Tile 128x256x64 on (256, 512, 512): 0.2 s once compiled, thrice that on a busy machine."""
    import time

    if runner.backends != ("emulator",):
        pytest.skip("this is about the emulator")
    kernel = ptxgen.kernel("gemm")
    a, b = integers(rng, (256, 512), "bf16"), integers(rng, (512, 512), "bf16")
    out = {"d": ((256, 512), numpy_type("bf16"))}
    runner.run(kernel, {"a": a, "b": b}, out)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        runner.run(kernel, {"a": a, "b": b}, out)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.6
