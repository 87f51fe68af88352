"""Consumers in turns: every trip count with all hazards watched, the same bits, and what breaks it.

Runs on the emulator; `--backend cuda` and `--backend both` run the numbers on a GPU too.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from gemm_cases import assert_exact, integers, normal, numpy_type
from machines import Runner
from mutants import Mutant

import ptxgen
from ptxgen.errors import Deadlock, HazardError

pytestmark = pytest.mark.emu

STAGES = 3
TURNS = {"schedule": "pingpong", "tile": "64x64x64", "stages": STAGES}
# 20 tiles on four CTAs: three rounds of turns, the last one with a tile for some consumers only.
M, N = 300, 272


@pytest.mark.parametrize("cluster", ["1x1", "2x1", "1x2", "2x2"])
@pytest.mark.parametrize("blocks", range(2 * STAGES + 2))
def test_trip_counts(blocks: int, cluster: str, runner: Runner, rng: np.random.Generator) -> None:
    """No K, part of a lap, whole laps and more: the other's stages are skipped, parity and all."""
    kernel = ptxgen.kernel("gemm", **TURNS, cluster=cluster)
    a, b = integers(rng, (M, 64 * blocks), "bf16"), integers(rng, (N, 64 * blocks), "bf16")
    out = {"d": ((M, N), numpy_type("bf16"))}
    assert_exact(runner.run(kernel, {"a": a, "b": b}, out, emulator={"hazards": True})["d"], a, b)


@pytest.mark.parametrize("tiles", [1, 2, 3, 4, 5])
def test_few_tiles(tiles: int, runner: Runner, rng: np.random.Generator) -> None:
    """One CTA with 1 .. 5 tiles: a consumer without any, and every way for the turns to end."""
    kernel = ptxgen.kernel("gemm", **TURNS, cluster="1x1")
    a, b = integers(rng, (64, 200), "bf16"), integers(rng, (64 * tiles, 200), "bf16")
    out = {"d": ((64, 64 * tiles), numpy_type("bf16"))}
    options = {"hazards": True, "sms": 1}
    assert_exact(runner.run(kernel, {"a": a, "b": b}, out, emulator=options)["d"], a, b)


@pytest.mark.parametrize("mode", ["eager", "random", "latest"])
@pytest.mark.parametrize("wait_depth", [0, 1])
def test_the_same_bits_as_sharing_every_tile(mode: str, wait_depth: int, runner: Runner) -> None:
    """An element is summed by one warpgroup in ascending k, whichever takes the tile, and when."""
    fixed = np.random.default_rng(7)
    a, b = normal(fixed, (300, 328), "bf16"), normal(fixed, (136, 328), "bf16")
    out = {"d": ((300, 136), numpy_type("f32"))}
    results = []
    for fields in (TURNS, TURNS | {"schedule": "cooperative"}):
        kernel = ptxgen.kernel("gemm", **fields, wait_depth=wait_depth, out_dtype="f32")
        options = {"schedule": "random", "seed": 5, "mode": mode, "hazards": True}
        d = runner.run(kernel, {"a": a, "b": b}, out, close=1e-5, emulator=options)["d"]
        results.append(d.view(np.uint32))
    assert np.array_equal(*results)


# ------------------------------------------------------------------ what each part is there for


TOLD = r"add\.u32 %next, %tile, %clusters;\s+setp.*\s+@%hands_over bar\.arrive .*;"
MUTANTS = {
    "no turns": (r"@%(follows|hands_over) bar\.(sync|arrive) .*;", ""),
    "the next turn comes with the first wgmma instead of the last": (
        rf"(@%follows bar\.sync .*;)((?s:.*))({TOLD})", r"\1 { .reg .u32 %next; \3 } \2",
    ),
    "the other's laps are not counted": (r"xor\.b32 %parity, %parity, %skip_parity;", ""),
    "the other's stages are not skipped": (r"add\.u32 %stage, %stage, %skip;", ""),
    "both consumers take every tile": (r"mad\.lo\.u32 %tile, %clusters, 2, %tile;",
                                       "add.u32 %tile, %tile, %clusters;"),
    "a stage waits for two consumers": (
        r"(mbarrier\.init\S* \[%empty.*\], )1;", r"\g<1>2;",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_no_part_can_be_left_out(name: str, runner: Runner, rng: np.random.Generator) -> None:
    """Each mutant stops with a hazard or a deadlock, or gives something else."""
    if "cuda" in runner.backends:
        pytest.skip("mutants are for the emulator")
    kernel = ptxgen.kernel("gemm", **TURNS, cluster="1x1")
    pattern, new = MUTANTS[name]
    ptx, changed = re.subn(pattern, new, str(kernel.ptx))
    assert changed
    a, b = integers(rng, (64, 320), "bf16"), integers(rng, (256, 320), "bf16")
    out = {"d": ((64, 256), numpy_type("bf16"))}
    mutant = Mutant(ptx, kernel)

    def run() -> None:
        for mode, seed in (("random", 1), ("latest", 2), ("latest", 3)):
            options = {"hazards": True, "sms": 1, "schedule": "random", "mode": mode, "seed": seed}
            assert_exact(runner.run(mutant, {"a": a, "b": b}, out, emulator=options)["d"], a, b)

    with pytest.raises((HazardError, Deadlock, AssertionError)):
        run()
