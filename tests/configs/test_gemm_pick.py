"""The picker: legal candidates, the same answer every time, and the obvious shapes."""

from __future__ import annotations

import pytest

from ptxgen.configs.gemm import GemmProblem
from ptxgen.configs.gemm_pick import candidates, pick, ranking
from ptxgen.configs.gemm_shape import Gemm

pytestmark = pytest.mark.unit

PROBLEMS = [
    GemmProblem(dtype=dtype, out_dtype=out) for dtype in ("bf16", "f16") for out in ("auto", "f32")
]


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_candidates_are_legal_and_many(problem: GemmProblem) -> None:
    found = candidates(problem)
    assert len(found) == len(set(found)) >= 20
    assert all(Gemm(problem, config).check() == () for config in found)


def test_the_best_score_wins_and_ties_do_not_wander() -> None:
    scores = ranking(PROBLEMS[0], 4096, 4096, 4096)
    assert [s.cycles for s in scores] == sorted(s.cycles for s in scores)
    assert pick(PROBLEMS[0], 4096, 4096, 4096) == scores[0].config
    assert ranking(PROBLEMS[0], 4096, 4096, 4096) == scores
    assert "waves" in scores[0].explain()


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        (1, 8, 8),  # one element of a tile
        (64, 64, 64), (127, 136, 72), (1000, 1000, 1000),
        (8192, 8192, 8192),
        (1, 131072, 4096), (131072, 8, 64),  # thin in one direction
        (0, 256, 256), (256, 256, 0),  # empty, and sums of nothing
    ],
)  # fmt: skip
@pytest.mark.parametrize("sms", [1, 4, 132])
def test_every_shape_gets_a_legal_config(m: int, n: int, k: int, sms: int) -> None:
    config = pick(PROBLEMS[0], m, n, k, sms=sms)
    assert Gemm(PROBLEMS[0], config).check() == ()


@pytest.mark.parametrize("size", [2048, 4096])
def test_squares_that_fill_the_chip_get_the_largest_tile(size: int) -> None:
    """256 x 128 elements either way: less is loaded an FLOP than with any smaller tile."""
    m, n, _ = pick(PROBLEMS[0], size, size, size).tile
    assert m * n == 128 * 256


def test_small_products_are_spread_over_the_chip() -> None:
    """512 x 512 is 4 tiles of 256 x 128, but 64 of 64 x 64: more SMs work."""
    m, n, _ = pick(PROBLEMS[0], 512, 512, 8192).tile
    assert m * n < 128 * 256
