"""Columns of D that no swizzle spans: one box a slab, with an odd number of 16-byte chunks a row.

Runs on the emulator; `--backend cuda` runs the same tests on a GPU, `--backend both` on the two.
"""

from __future__ import annotations

import pytest
from gemm_check import check
from gemm_family import WIDE
from machines import Runner

import ptxgen
from ptxgen.configs.gemm_shape import Gemm

pytestmark = pytest.mark.emu


def gemm_of(text: str) -> Gemm:
    source = ptxgen.kernel_from(text).source
    return Gemm(source.problem, source.config)


@pytest.mark.parametrize("text", WIDE)
def test_exact(text: str, runner: Runner) -> None:
    """Less than a tile, then several a CTA: the ring of slabs wraps, and TMA clips both ways."""
    g = gemm_of(text)
    assert not g.store_swizzle.span
    unit = 16 // g.problem.output.bytes
    check(text, (g.tile_m - 47, 2 * unit, 48), "integers", runner)
    check(text, (2 * g.tile_m + 1, 3 * g.d_columns - unit, 272), "integers", runner, sms=4)


def test_rows_of_a_slab_lie_in_different_banks() -> None:
    """Why nothing is swizzled: eight rows begin at eight different 16-byte chunks of 128 bytes."""
    for text in WIDE:
        g = gemm_of(text)
        row = g.store_box[1] * g.problem.output.bytes
        assert {row * i % 128 for i in range(8)} == set(range(0, 128, 16))
