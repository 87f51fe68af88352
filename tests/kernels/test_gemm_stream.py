"""Stream-K: ways to cut tiles with all hazards watched, the order of sums, flags that come back.

Runs on the emulator; `--backend cuda` and `--backend both` run the numbers on a GPU too.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from gemm_cases import assert_exact, integers, normal, numpy_type
from machines import Runner
from mutants import Mutant

import ptxgen
import runtime
from ptxgen.errors import Deadlock, HazardError
from runtime.emulator.backend import EmulatorBackend

pytestmark = pytest.mark.emu

STREAM = {"schedule": "stream_k", "tile": "64x64x64", "stages": 3}


@pytest.mark.parametrize("cluster", ["1x1", "2x1", "1x2", "2x2"])
@pytest.mark.parametrize("blocks", [0, 1, 2, 5])
def test_ways_to_cut(blocks: int, cluster: str, runner: Runner, rng: np.random.Generator) -> None:
    """On two clusters: one tile for both; whole waves and a rest; fewer stages than clusters."""
    kernel = ptxgen.kernel("gemm", **STREAM, cluster=cluster)
    for m, n in ((64, 64), (200, 264)):
        a, b = integers(rng, (m, 64 * blocks), "bf16"), integers(rng, (n, 64 * blocks), "bf16")
        out = {"d": ((m, n), numpy_type("bf16"))}
        options = {"hazards": True, "sms": 2 * kernel.spec.cluster.size}
        assert_exact(runner.run(kernel, {"a": a, "b": b}, out, emulator=options)["d"], a, b)


@pytest.mark.parametrize(("tiles", "sms"), [(1, 2), (2, 3), (3, 2), (2, 7), (5, 3), (4, 4)])
@pytest.mark.parametrize("mode", ["eager", "random", "latest"])
def test_tiles_and_clusters(
    tiles: int, sms: int, mode: str, runner: Runner, rng: np.random.Generator
) -> None:
    """Pieces of less and of more than a tile, two and more helpers of one, and nothing to share."""
    kernel = ptxgen.kernel("gemm", **STREAM, cluster="1x1")
    a, b = integers(rng, (64, 456), "bf16"), integers(rng, (64 * tiles, 456), "bf16")
    out = {"d": ((64, 64 * tiles), numpy_type("bf16"))}
    options = {"hazards": True, "sms": sms, "mode": mode, "schedule": "random", "seed": tiles}
    assert_exact(runner.run(kernel, {"a": a, "b": b}, out, emulator=options)["d"], a, b)


@pytest.mark.parametrize("grid", [1, 2, 3, 5, 9])
def test_any_grid(grid: int, runner: Runner, rng: np.random.Generator) -> None:
    """A grid of the caller's, smaller or larger than the plan's, shares out among what there is."""
    if "cuda" in runner.backends:
        pytest.skip("the plan's grid on a GPU is another one")
    kernel = ptxgen.kernel("gemm", **STREAM, cluster="1x1")
    a, b = integers(rng, (64, 456), "bf16"), integers(rng, (320, 456), "bf16")
    out = {"d": ((64, 320), numpy_type("bf16"))}
    options = {"hazards": True, "sms": 3}
    d = runner.run(kernel, {"a": a, "b": b}, out, emulator=options, grid=grid)["d"]
    assert_exact(d, a, b)


# ------------------------------------------------------------------ order, flags


def on_emulator(backend: EmulatorBackend, kernel: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    d = np.full((len(a), len(b)), np.nan, np.float32)
    runtime.launch(kernel, a=a, b=b, d=d, backend=backend)
    runtime.wait(d, backend=backend)
    return d


def test_parts_are_added_in_ascending_k() -> None:
    """One tile of 11 stages on four clusters: parts of 3, 3, 3 and 2, added in that order."""
    rng = np.random.default_rng(11)
    a, b = normal(rng, (64, 704), "bf16"), normal(rng, (64, 704), "bf16")
    fields = {**STREAM, "cluster": "1x1", "out_dtype": "f32"}
    whole = on_emulator(EmulatorBackend(sms=4), ptxgen.kernel("gemm", **fields), a, b)
    plain = ptxgen.kernel("gemm", **fields | {"schedule": "cooperative"})
    parts = [
        on_emulator(EmulatorBackend(sms=1), plain, a[:, first:last].copy(), b[:, first:last].copy())
        for first, last in ((0, 192), (192, 384), (384, 576), (576, 704))
    ]
    want = ((parts[0] + parts[1]) + parts[2]) + parts[3]
    assert np.array_equal(whole.view(np.uint32), want.view(np.uint32))
    other = parts[0] + (parts[1] + (parts[2] + parts[3]))
    assert not np.array_equal(want, other)  # the order shows


@pytest.mark.parametrize("cluster", ["1x1", "2x1"])
def test_a_launch_leaves_the_flags_as_it_found_them(cluster: str) -> None:
    """The same bits again on one workspace, whatever kernels of other sizes ran in between."""
    rng = np.random.default_rng(5)
    a, b = normal(rng, (192, 200), "bf16"), normal(rng, (64, 200), "bf16")
    small = ptxgen.kernel("gemm", **STREAM, cluster=cluster, out_dtype="f32")
    large = ptxgen.kernel("gemm", **{**STREAM, "tile": "128x64"}, cluster=cluster, out_dtype="f32")
    backend = EmulatorBackend(sms=4, hazards=True)
    first, between, again = (on_emulator(backend, k, a, b) for k in (small, large, small))
    assert np.array_equal(first.view(np.uint32), again.view(np.uint32))
    assert not np.isnan(between).any()
    assert not backend._workspaces["flags"].any()
    assert backend._workspaces["partials"].any()  # something was shared out


# ------------------------------------------------------------------ what each part is there for


FLAG_WAIT = r"setp\.eq\.u32 %waits, %raised, 0;"
MUTANTS = {
    "sums are read before they are there": (FLAG_WAIT, "setp.ne.u32 %waits, %raised, %raised;"),
    "a flag is raised without release": (r"st\.release\.gpu\.global", "st.relaxed.gpu.global"),
    "a flag is seen without acquire": (r"ld\.acquire\.gpu\.global", "ld.relaxed.gpu.global"),
    "a flag is raised before all have written": (
        r"bar\.sync %slab_barrier, 128;(\s+setp\.ne\.u32 %waits, %thread, 0;\s+@%waits bra "
        r"\$CONSUME_NEXT)", r"\1",
    ),
    "flags stay raised": (r"st\.relaxed\.gpu\.global\.u32 \[%flag\], %raised;", ""),
    "one helper is all that an owner waits for": (r"@%waits bra \$HELPER;", ""),
    "a helper stores D too": (r"@%waits bra \$CONSUME_NEXT;", ""),
    "the producer starts every item at k = 0": (
        r"mul\.lo\.u32 %k, %k_first, 64;", "mov.u32 %k, 0;",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_no_part_can_be_left_out(name: str, rng: np.random.Generator) -> None:
    """Each mutant stops with a hazard or a deadlock, or gives something else, once or again."""
    kernel = ptxgen.kernel("gemm", **STREAM, cluster="1x1", out_dtype="f32")
    pattern, new = MUTANTS[name]
    ptx, changed = re.subn(pattern, new, str(kernel.ptx))
    assert changed == 1
    a, b = integers(rng, (64, 328), "bf16"), integers(rng, (64, 328), "bf16")
    mutant = Mutant(ptx, kernel)

    def run() -> None:
        for mode, seed in (("eager", 0), ("random", 1), ("latest", 2)):
            backend = EmulatorBackend(
                sms=3, hazards=True, schedule="random", mode=mode, seed=seed
            )  # fmt: skip
            assert_exact(on_emulator(backend, mutant, a, b), a, b)
            assert_exact(on_emulator(backend, mutant, a, -b), a, -b)

    with pytest.raises((HazardError, Deadlock, AssertionError)):
        run()
