"""Schedules: the numbers of `blocks/pingpong.ptx.j2` and `blocks/stream_k.ptx.j2`."""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.configs.gemm_shape import Gemm
from ptxgen.isa.arch import WARPGROUP_THREADS
from ptxgen.kernels.base import BarrierRow
from ptxgen.models.waves import Waves
from ptxgen.spec import Param, PointerParam, Scalar, ScalarParam, Workspace

FLAG_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Whether consumers take whole tiles in turns, and the named barriers that say whose it is."""

    taken: bool
    barrier: int  # consumer c waits at barrier + c; those below are for slabs
    threads: int  # that meet there: who waits and who tells


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Whether clusters share out stages of tiles, and where each leaves sums for a tile's owner."""

    on: bool
    cluster_size: int
    consumers: int
    consumer_bytes: int
    params: tuple[str, ...]  # lines of the entry


def turns(g: Gemm) -> Turns:
    return Turns(taken=g.turns, barrier=1 + g.consumers, threads=2 * WARPGROUP_THREADS)


def turn_rows(g: Gemm) -> tuple[BarrierRow, ...]:
    """The barrier table's row of the turns, if there are any."""
    if not g.turns:
        return ()
    numbers = turns(g)
    return (
        BarrierRow(
            name=f"bar {numbers.barrier}+c", count=g.consumers, arrivals=numbers.threads,
            arrivers="consumer c, and the other one", tx_bytes=0,
            waiters="consumer c, before its tile",
        ),
    )  # fmt: skip


PARTIALS, FLAGS = "partials", "flags"
# Parameters of stream-K behind k_tiles, as the entry declares them.
_LINES = (
    ".param .u32 stream_tiles,          // the first so many tiles are shared out, stage by stage,",
    ".param .u32 stream_clusters,       // among so many clusters",
    f".param .u64 {PARTIALS},              // sums that helpers hand over",
    f".param .u64 {FLAGS},                 // which of them are there: 0 before and after a launch",
)


def stream(g: Gemm) -> Stream:
    return Stream(
        on=g.streams,
        cluster_size=g.cluster_size,
        consumers=g.consumers,
        consumer_bytes=g.partial_bytes,
        params=_LINES if g.streams else (),
    )


def stream_params(g: Gemm) -> tuple[Param, ...]:
    """What those lines declare."""
    if not g.streams:
        return ()
    return (
        ScalarParam(name="stream_tiles", ptx_type="u32"),
        ScalarParam(name="stream_clusters", ptx_type="u32"),
        PointerParam(
            name=PARTIALS, arg=PARTIALS, dtype="u8", access="read_write", workspace=True
        ),
        PointerParam(name=FLAGS, arg=FLAGS, dtype="u32", access="read_write", workspace=True),
    )  # fmt: skip


def stream_clusters(g: Gemm, waves: Waves, k_tiles: int) -> int:
    """Clusters to launch: those of the waves, or where tiles are shared out all that fit."""
    if not g.streams:
        return waves.clusters
    fit = max(waves.resident_ctas // waves.cluster_size, 1)
    return min(fit, waves.tiles * max(k_tiles, 1))


def stream_workspaces(g: Gemm, clusters: int) -> tuple[Workspace, ...]:
    """Room for the sums of every consumer of `clusters` clusters, and their flags."""
    if not g.streams:
        return ()
    consumers = clusters * g.cluster_size * g.consumers
    return (
        Workspace(name=PARTIALS, bytes=consumers * g.partial_bytes),
        Workspace(name=FLAGS, bytes=consumers * FLAG_BYTES, init="zero_once"),
    )


def stream_scalars(tiles: int, clusters: int, k_tiles: int) -> dict[str, Scalar]:
    """Tiles of the wave that is not full, and the clusters that share their stages."""
    tail = tiles % clusters if k_tiles else 0
    return {"stream_tiles": tail, "stream_clusters": max(min(clusters, tail * k_tiles), 1)}
