"""The stream-K block: who gets which stages, whose sums are added when, flags that come back."""

from __future__ import annotations

import numpy as np
import pytest
from machines import Runner
from mutants import Mutant
from streaming import Shares, assert_shared_out, kernel_of

from ptxgen.errors import Deadlock, HazardError

pytestmark = pytest.mark.emu


@pytest.mark.parametrize("clusters", [1, 2, 3, 5, 8])
def test_all_ways_to_cut(clusters: int, runner: Runner) -> None:
    """No tile to share, one, all but one of a wave, a wave and more; up to 7 stages a tile."""
    for tiles in sorted({1, 2, clusters - 1, clusters, clusters + 1, 2 * clusters + 3} - {0}):
        for k in (0, 1, 3, 7):
            assert_shared_out(Shares(tiles=tiles, k=k, clusters=clusters), runner)


@pytest.mark.parametrize(("size", "consumers"), [(2, 1), (1, 2), (2, 2)])
def test_every_consumer_of_every_cta_hands_over_its_own(
    size: int, consumers: int, runner: Runner
) -> None:
    for tiles, k in ((1, 5), (4, 3), (5, 4)):
        shares = Shares(tiles=tiles, k=k, clusters=3, size=size, consumers=consumers)
        assert_shared_out(shares, runner)


@pytest.mark.parametrize("seed", range(5))
def test_in_any_order_of_warps(seed: int, runner: Runner) -> None:
    """The same bits, with every hazard watched: a helper may come long after its owner waits."""
    for shares in (Shares(tiles=5, k=7, clusters=4), Shares(tiles=1, k=9, clusters=4)):
        options = {"schedule": "random", "seed": seed, "hazards": True}
        assert_shared_out(shares, runner, **options)


def test_a_whole_tile_is_summed_from_left_to_right() -> None:
    """What the model says where nothing is cut, and that another order gives other bits."""
    terms = np.random.default_rng(0).standard_normal((1, 9, 128, 4), np.float32)
    left = np.add.accumulate(terms[0], axis=0)[-1]
    assert np.array_equal(Shares(tiles=1, k=9, clusters=1).sums(terms)[0], left)
    assert not np.array_equal(Shares(tiles=1, k=9, clusters=4).sums(terms)[0], left)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("min.u32 %work_end, %work_end, %streamed;", ""),  # the last piece runs into whole tiles
        ("sub.u32 %piece, %piece, 1;", ""),  # pieces one too long where they divide the row
        ("add.u32 %whole_tile, %tile, %streamed;", "mov.u32 %whole_tile, %tile;"),
        ("min.u32 %k_tiles, %k_tiles, %left;", ""),  # everybody goes on to the end of the tile
        ("@%waits bra $HELPER;", ""),  # one helper only
        ("mov.u32 %done, %k_tiles;", "mov.u32 %done, 0;"),  # a helper too many
        ("st.relaxed.gpu.global.u32 [%flag], %raised;", ""),  # flags stay up
    ],
)
def test_no_part_can_be_left_out(was: str, now: str, runner: Runner) -> None:
    if "cuda" in runner.backends:
        pytest.skip("mutants are for the emulator")
    shares = Shares(
        tiles=6, k=6, clusters=4
    )  # two tiles, of which every cluster takes three stages
    ptx = str(kernel_of(shares).ptx)
    assert ptx.count(was) == 1

    def run() -> None:
        for s in (shares, Shares(tiles=5, k=6, clusters=4), Shares(tiles=7, k=5, clusters=4)):
            mutant = Mutant(ptx.replace(was, now), kernel_of(s))
            assert_shared_out(s, runner, mutant, hazards=True)

    with pytest.raises((AssertionError, HazardError, Deadlock)):
        run()
