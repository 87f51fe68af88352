"""Two consumers in turns: whose tile it is, its stages, and that one follows the other."""

from __future__ import annotations

import pytest
from machines import Runner
from mutants import Mutant
from turning import assert_turns, turns_of

from ptxgen.errors import Deadlock, HazardError

pytestmark = pytest.mark.emu


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_whose_tile_and_which_stages(stages: int, runner: Runner) -> None:
    """0 .. 2 * stages + 1 stages a tile; 1 .. 5 tiles a CTA, some with one less."""
    for ctas, most in ((1, 5), (3, 7)):
        kernel = turns_of(stages, ctas)
        for tiles in range(1, most + 1):
            for k in range(2 * stages + 2):
                assert_turns(kernel, runner, stages=stages, tiles=tiles, k=k, ctas=ctas)


@pytest.mark.parametrize("seed", range(5))
def test_in_any_order_of_warps(seed: int, runner: Runner) -> None:
    options = {"schedule": "random", "seed": seed, "hazards": True}
    kernel = turns_of(2, 2)
    assert_turns(kernel, runner, stages=2, tiles=9, k=3, ctas=2, **options)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("@%follows bar.sync %my_turn, 256;", ""),  # nobody waits
        ("@%hands_over bar.arrive %other_turn, 256;", ""),  # nobody tells
        ("setp.ne.u32 %follows, %tile, %first_tile;", "setp.ne.u32 %follows, %tile, 999;"),
        ("setp.lt.u32 %hands_over, %next, %tiles;", "setp.ge.u32 %hands_over, %next, %tiles;"),
        ("mad.lo.u32 %tile, %clusters, 2, %tile;", "add.u32 %tile, %tile, %clusters;"),
        ("@%wrapped xor.b32 %parity, %parity, 1;", ""),
        ("and.b32 %skip_parity, %skip_parity, 1;", "mov.u32 %skip_parity, 0;"),
    ],
)
def test_no_part_can_be_left_out(was: str, now: str, runner: Runner) -> None:
    if "cuda" in runner.backends:
        pytest.skip("mutants are for the emulator")
    kernel = turns_of(2, 1)
    ptx = str(kernel.ptx)
    assert was in ptx
    mutant = Mutant(ptx.replace(was, now), kernel)

    def run() -> None:
        for seed in range(3):
            options = {"schedule": "random", "seed": seed, "hazards": True}
            assert_turns(mutant, runner, stages=2, tiles=5, k=3, ctas=1, **options)

    with pytest.raises((AssertionError, HazardError, Deadlock)):
        run()
