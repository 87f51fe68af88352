"""The stream-K block on made-up numbers, and the schedule that it is defined to follow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from types import SimpleNamespace
from typing import Any

import numpy as np
from block_kernel import BlockKernel, block_kernel
from machines import POISON, Runner

from ptxgen.kernels.gemm_schedule import Stream, stream_scalars
from ptxgen.spec import PointerParam, ScalarParam

UNTOUCHED = int.from_bytes(bytes([POISON] * 4), "little")
CONSUMER_BYTES = 4 * 4 * 128  # four f32 sums of each thread of a warpgroup
PARAMS = (
    PointerParam(name="terms", arg="terms", dtype="f32", align=16),
    PointerParam(name="sums", arg="sums", dtype="f32", access="write", align=16),
    PointerParam(name="items", arg="items", dtype="u32", access="write"),
    *(
        ScalarParam(name=name, ptx_type="u32")
        for name in ("most_items", "tiles", "k_tiles", "stream_tiles", "stream_clusters")
    ),
    PointerParam(name="partials", arg="partials", dtype="f32", access="read_write", align=16),
    PointerParam(name="flags", arg="flags", dtype="u32", access="read_write"),
)  # fmt: skip


@dataclass(frozen=True)
class Shares:
    """`tiles` tiles of `k` stages on `clusters` clusters, each of `size` CTAs with `consumers`."""

    tiles: int
    k: int
    clusters: int
    size: int = 1
    consumers: int = 1

    @property
    def scalars(self) -> dict[str, Any]:
        """What a plan gives the kernel."""
        return stream_scalars(self.tiles, self.clusters, self.k)

    @property
    def lanes(self) -> int:
        return self.size * self.consumers * 128

    def items(self, cluster: int) -> Iterator[tuple[int, int, int]]:
        """(tile, first stage, stages): a cluster's piece of the row, cut where tiles end; then
        every clusters-th of the tiles that are not shared out."""
        shared = self.scalars["stream_tiles"]
        row = shared * self.k
        piece = ceil(row / self.scalars["stream_clusters"])
        at, end = min(cluster * piece, row), min((cluster + 1) * piece, row)
        while at < end:
            tile, first = divmod(at, self.k)
            stages = min(self.k - first, end - at)
            yield tile, first, stages
            at += stages
        yield from (
            (tile, 0, self.k) for tile in range(shared + cluster, self.tiles, self.clusters)
        )

    def sums(self, terms: np.ndarray) -> np.ndarray:
        """[tiles, lanes, 4] of terms [tiles, k, lanes, 4]: each item's in ascending k, then these
        in ascending k, all in f32."""
        out = np.zeros((self.tiles, self.lanes, 4), np.float32)
        parts = sorted(item for c in range(self.clusters) for item in self.items(c))
        for tile, first, stages in parts:
            part = np.zeros((self.lanes, 4), np.float32)
            for k in range(first, first + stages):
                part = part + terms[tile, k]
            out[tile] = out[tile] + part if first else part
        return out


def kernel_of(s: Shares) -> BlockKernel:
    stream = Stream(
        on=True, cluster_size=s.size, consumers=s.consumers, consumer_bytes=CONSUMER_BYTES,
        params=(),
    )  # fmt: skip
    return block_kernel(
        "stream_k", PARAMS, block=128 * s.consumers, grid=s.clusters * s.size, cluster_size=s.size,
        threads=128 * s.consumers, stream=stream,
        math=SimpleNamespace(register="f32", add="add.f32"),
    )  # fmt: skip


def assert_shared_out(s: Shares, runner: Runner, kernel: Any = None, **emulator: Any) -> None:
    """Items, sums bit for bit, and flags that are down again."""
    rng = np.random.default_rng(s.tiles)
    terms = rng.standard_normal((s.tiles, max(s.k, 1), s.lanes, 4), np.float32)
    want = [tuple(s.items(cluster)) for cluster in range(s.clusters)]
    most = max(map(len, want)) + 1
    places = s.clusters * s.size * s.consumers
    got = runner.run(
        kernel or kernel_of(s), {"terms": terms},
        {"sums": ((s.tiles, s.lanes, 4), np.float32), "items": ((s.clusters, most, 3), np.uint32)},
        updated={"partials": np.full((places, CONSUMER_BYTES // 4), np.nan, np.float32),
                 "flags": np.zeros(places, np.uint32)},
        args={"most_items": most, "tiles": s.tiles, "k_tiles": s.k, **s.scalars},
        emulator={"sms": s.clusters * s.size, **emulator},
    )  # fmt: skip
    for cluster, items in enumerate(want):
        assert [tuple(map(int, x)) for x in got["items"][cluster][: len(items)]] == list(items), s
        assert (got["items"][cluster][len(items) :] == UNTOUCHED).all(), s
    assert np.array_equal(got["sums"].view(np.uint32), s.sums(terms).view(np.uint32)), s
    assert not got["flags"].any(), s
