"""The scheduler block on a GPU: all grids of up to 40 x 40 tiles in groups of up to 40 rows."""

from __future__ import annotations

import pytest
from machines import Runner
from walking import assert_walked

pytestmark = pytest.mark.gpu

pytest.importorskip("torch", reason="torch is not installed")

MOST = 40


@pytest.mark.parametrize("cluster", [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_all_small_grids(cluster: tuple[int, int]) -> None:
    """A launch for every number of rows. In clusters some problems of it, others for each row."""
    size = cluster[0] * cluster[1]
    step = 1 if size == 1 else 2 * size
    for m in range(1, MOST + 1):
        problems = [
            (m, n, 1 + (m + n + group) % 2, group)
            for n in range(1, MOST + 1)
            for group in range(1, MOST + 1)
        ]
        assert_walked(problems[m % step :: step], cluster, 1 + 3 * m // size, Runner("cuda"))
