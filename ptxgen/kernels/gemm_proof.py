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

    With consumers in turns, two tiles each.
    """
    config = source.resolved
    assert isinstance(config, GemmConfig)
    assert isinstance(config.stages, int)  # "max" is resolved
    (tile_m, tile_n, tile_k), (cluster_m, cluster_n) = config.tile, config.cluster
    tiles = 4 if config.schedule == "pingpong" else 2
    rows, columns = cluster_m * tile_m, tiles * cluster_n * tile_n
    if config.swap_ab:
        rows, columns = columns, rows
    return ProofProblem(
        m=rows, n=columns, k=(config.stages + 2) * tile_k * config.split_k,
        sms=source.spec.cluster.size,
    )  # fmt: skip
