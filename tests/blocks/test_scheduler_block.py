"""The scheduler block: every tile once, in the order of the raster, on any grid."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from block_kernel import block_kernel
from machines import POISON, Runner

from ptxgen.spec import PointerParam, ScalarParam

pytestmark = pytest.mark.emu

UNTOUCHED = int.from_bytes(bytes([POISON] * 4), "little")
PARAMS = (
    PointerParam(name="visits", arg="visits", dtype="u32", access="read_write"),
    PointerParam(name="order", arg="order", dtype="u32", access="write"),
    *(
        ScalarParam(name=name, ptx_type="u32")
        for name in ("m_tiles", "n_tiles", "raster_group", "width")
    ),
)  # fmt: skip


def raster(m_tiles: int, n_tiles: int, group: int) -> list[tuple[int, int]]:
    """The definition: bands of `group` rows, each walked column by column."""
    return [
        (m, n)
        for first in range(0, m_tiles, group)
        for n in range(n_tiles)
        for m in range(first, min(first + group, m_tiles))
    ]


@pytest.mark.parametrize("cluster", [(1, 1), (2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("clusters", [1, 3])
@pytest.mark.parametrize(
    ("m_tiles", "n_tiles", "group"),
    [
        (1, 1, 1),
        (5, 1, 2), (1, 5, 1),  # one column, one row
        (4, 3, 2),  # whole bands
        (5, 3, 2),  # the last band has fewer rows
        (5, 3, 5), (5, 3, 1),  # one band; one row a band
        (3, 4, 7),  # a group larger than the grid
        (8, 8, 3),
    ],
)  # fmt: skip
def test_every_tile_once_and_in_order(
    m_tiles: int, n_tiles: int, group: int, clusters: int, cluster: tuple[int, int], runner: Runner
) -> None:
    m, n = cluster
    kernel = block_kernel(
        "scheduler", PARAMS, block=32, grid=clusters * m * n, cluster_size=m * n,
        tile=SimpleNamespace(m=1, n=1),
        cluster=SimpleNamespace(m=m, n=n, size=m * n, rank_m="%cta_m", rank_n="%cta_n"),
    )  # fmt: skip
    shape = (m_tiles * m, n_tiles * n)
    scalars = {"m_tiles": m_tiles, "n_tiles": n_tiles, "raster_group": group, "width": shape[1]}
    words = {"visits": (shape, np.uint32), "order": (shape, np.uint32)}
    got = runner.run(kernel, {}, words, args=scalars)
    assert (got["visits"] == np.uint32(UNTOUCHED + 1)).all()  # counted up from the poison
    want = np.empty((m_tiles, n_tiles), np.uint32)
    for tile, place in enumerate(raster(m_tiles, n_tiles, group)):
        want[place] = tile
    assert np.array_equal(got["order"], np.kron(want, np.ones(cluster, np.uint32)))
