"""The table of measured products: every row that is published, each with a legal config."""

from __future__ import annotations

import pytest

from ptxgen.configs.gemm_pick import pick
from ptxgen.configs.gemm_shape import Gemm
from runtime.bench.gemm_arena import PEERS
from runtime.bench.gemm_cases import LEAST, cases, chosen

pytestmark = pytest.mark.unit

CASES = cases()


def test_names_are_unique() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize(
    ("word", "count"),
    [
        ("square/", 12), ("short_k/", 2), ("odd/", 6), ("small_m/", 12),  # bf16 and f16
        ("order/bf16/NN", 3), ("order/bf16/NT", 3), ("order/bf16/TT", 3),
        ("fp8/e4m3", 6), ("row_wise", 3), ("tf32/", 1), ("int8/", 1), ("sustained/", 1),
    ],
)  # fmt: skip
def test_every_row_of_the_table_is_there(word: str, count: int) -> None:
    assert len(chosen(CASES, [word])) == count


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_case_can_run(case) -> None:
    assert Gemm(case.problem, pick(case.problem, *case.extents)).check() == ()
    assert case.dtype in PEERS
    assert case.group in LEAST
    assert case.flop == 2 * case.m * case.n * case.k


def test_a_word_that_no_case_has_is_an_error() -> None:
    with pytest.raises(ValueError, match="no case has fp7 in its name; there are: square/bf16"):
        chosen(CASES, ["fp7"])
    assert chosen(CASES, []) == CASES
