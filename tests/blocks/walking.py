"""The scheduler block on many grids of tiles in one launch, and what it is defined to do."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from block_kernel import BlockKernel, block_kernel
from machines import Runner

from ptxgen.spec import PointerParam, ScalarParam

PARAMS = (
    PointerParam(name="problems", arg="problems", dtype="u32"),
    PointerParam(name="visits", arg="visits", dtype="u32", access="read_write"),
    PointerParam(name="owners", arg="owners", dtype="u32", access="write"),
    PointerParam(name="places", arg="places", dtype="u32", access="write"),
    ScalarParam(name="count", ptx_type="u32"),
    ScalarParam(name="total", ptx_type="u32"),
)

Problem = tuple[int, int, int, int]  # m_tiles, n_tiles, batches, raster_group


def walker(cluster: tuple[int, int], clusters: int) -> BlockKernel:
    m, n = cluster
    return block_kernel(
        "scheduler", PARAMS, block=32, grid=clusters * m * n, cluster_size=m * n,
        tile=SimpleNamespace(m=1, n=1),
        cluster=SimpleNamespace(m=m, n=n, size=m * n, rank_m="%cta_m", rank_n="%cta_n"),
    )  # fmt: skip


def assert_walked(
    problems: Sequence[Problem],
    cluster: tuple[int, int],
    clusters: int,
    runner: Runner,
    kernel: Any = None,
) -> None:
    """Every tile once, by the cluster whose turn it is, in the order of the raster.

    The raster: products one after the other; in each, bands of `group` rows of cluster tiles; in a
    band column by column; in a column row by row. Tiles are numbered in that order if the tuple
    (batch, band, column, row) grows from one number to the next.
    """
    words = np.array(problems, np.int64)
    tiles = words[:, :3].prod(axis=1)
    first, total = np.cumsum(tiles) - tiles, int(tiles.sum())
    table = np.column_stack([words, first]).astype(np.uint32)
    rows = (cluster[0] * cluster[1], total)
    got = runner.run(
        kernel or walker(cluster, clusters), {"problems": table},
        {"owners": (rows, np.uint32), "places": (rows, np.uint32)},
        updated={"visits": np.zeros(rows, np.uint32)},
        args={"count": len(problems), "total": total},
    )  # fmt: skip
    of = np.repeat(np.arange(len(problems)), tiles)
    number = np.arange(total) - first[of]
    assert (got["visits"] == 1).all()
    assert (got["owners"] == number % clusters).all()
    m_tiles, n_tiles, batches, group = words.T
    for rank, packed in enumerate(got["places"].astype(np.int64)):
        m, in_m = np.divmod(packed % 1024, cluster[0])
        n, in_n = np.divmod(packed // 1024 % 1024, cluster[1])
        batch = packed // 2**20
        assert (in_m + cluster[0] * in_n == rank).all()
        assert ((m < m_tiles[of]) & (n < n_tiles[of]) & (batch < batches[of])).all()
        order = ((batch * 1024 + m // group[of]) * 1024 + n) * 1024 + m
        grows = np.diff(order) > 0
        assert (grows | (np.diff(of) != 0)).all()
