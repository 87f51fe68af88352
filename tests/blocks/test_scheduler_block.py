"""The scheduler block: every tile once, in the order of the raster, on any grid."""

from __future__ import annotations

import pytest
from machines import Runner
from mutants import Mutant
from walking import Problem, assert_walked, walker

from ptxgen.errors import HazardError

pytestmark = pytest.mark.emu


def edges() -> list[Problem]:
    """One row or column, few of them, whole and cut bands, groups about and beyond all rows."""
    return [
        (m, n, 1 + (m + n + group) % 2, group)
        for m in (1, 2, 3, 4, 5, 9)
        for n in (1, 2, 3, 4, 5, 8, 17)
        for group in sorted({1, 2, max(m - 1, 1), m, m + 1, 40})
    ]


@pytest.mark.parametrize(
    ("cluster", "clusters"),
    [
        ((1, 1), 1), ((1, 1), 3),  # one after the other; in turns
        ((1, 1), 40),  # more clusters than most of them have tiles
        ((2, 1), 3), ((1, 2), 2), ((2, 2), 1),  # a CTA's own part of a cluster tile
    ],
)  # fmt: skip
def test_every_tile_once_and_in_order(
    cluster: tuple[int, int], clusters: int, runner: Runner
) -> None:
    problems = edges()
    assert len(problems) >= 200
    assert_walked(problems[:: cluster[0] * cluster[1]], cluster, clusters, runner)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("min.u32 %rows, %rows, %raster_group;", ""),  # the last band counts rows beyond the grid
        ("min.u32 %rows, %rows, %raster_group;", "mov.u32 %rows, %raster_group;"),
        ("add.u32 %m_tile, %m_tile, %first_row;", ""),  # all bands lie upon the first
        ("mul.lo.u32 %in_batch, %batch, %per_batch;", "mov.u32 %in_batch, 0;"),
        ("add.u32 %tile, %tile, %clusters;", "add.u32 %tile, %tile, 1;"),
    ],
)
def test_no_part_can_be_left_out(was: str, now: str, runner: Runner) -> None:
    if "cuda" in runner.backends:
        pytest.skip("mutants are for the emulator")
    kernel = walker((1, 1), 3)
    ptx = str(kernel.ptx)
    assert ptx.count(was) == 1
    with pytest.raises((AssertionError, HazardError)):
        assert_walked(edges(), (1, 1), 3, runner, Mutant(ptx.replace(was, now), kernel))
