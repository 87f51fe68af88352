"""The smallest GEMM that takes a kernel through everything that wraps."""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.configs.gemm import GemmConfig
from ptxgen.kernels.base import KernelSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofProblem:
    """A shape, and the number of SMs to run it on: one cluster, so that it has several tiles."""

    m: int
    n: int
    k: int
    sms: int


def proof_problem(source: KernelSource) -> ProofProblem:
    """Two tiles a CTA and stages + 2 K blocks a tile: ring, phases and epilogue wrap.

    With consumers in turns, two tiles each; where tiles are shared out, three on two clusters.
    """
    config = source.resolved
    assert isinstance(config, GemmConfig)
    assert isinstance(config.stages, int)  # "max" is resolved
    (tile_m, tile_n, tile_k), (cluster_m, cluster_n) = config.tile, config.cluster
    tiles = {"pingpong": 4, "stream_k": 3}.get(config.schedule, 2)
    clusters = 2 if config.schedule == "stream_k" else 1
    rows, columns = cluster_m * tile_m, tiles * cluster_n * tile_n
    if config.swap_ab:
        rows, columns = columns, rows
    return ProofProblem(
        m=rows, n=columns, k=(config.stages + 2) * tile_k * config.split_k,
        sms=clusters * source.spec.cluster.size,
    )  # fmt: skip
