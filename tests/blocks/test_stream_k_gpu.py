"""The stream-K block on a GPU: all ways to cut 9 tiles of 7 stages, or less, on 12 clusters."""

from __future__ import annotations

import pytest
from machines import Runner
from streaming import Shares, assert_shared_out, kernel_of

pytestmark = pytest.mark.gpu

pytest.importorskip("torch", reason="torch is not installed")


@pytest.mark.parametrize("clusters", range(1, 13))
def test_all_small_ways_to_cut(clusters: int) -> None:
    kernel = kernel_of(Shares(tiles=1, k=1, clusters=clusters))
    for tiles in range(1, 10):
        for k in range(8):
            assert_shared_out(Shares(tiles=tiles, k=k, clusters=clusters), Runner("cuda"), kernel)
