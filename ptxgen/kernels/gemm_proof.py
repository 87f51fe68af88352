"""The smallest GEMM that takes a kernel through everything that wraps."""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.configs.gemm import GemmConfig, GemmProblem
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
    config, problem = source.resolved, source.problem
    assert isinstance(config, GemmConfig)
    assert isinstance(problem, GemmProblem)
    assert isinstance(config.stages, int)  # "max" is resolved
    (tile_m, tile_n, tile_k), (cluster_m, cluster_n) = config.tile, config.cluster
    tiles = {"pingpong": 4, "stream_k": 3}.get(config.schedule, 2)
    clusters = 2 if config.schedule == "stream_k" else 1
    rows, columns = cluster_m * tile_m, tiles * cluster_n * tile_n // problem.halves
    if config.swap_ab:
        rows, columns = columns, rows
    return ProofProblem(
        m=rows, n=columns, k=(config.stages + 2) * tile_k * config.split_k,
        sms=clusters * source.spec.cluster.size,
    )  # fmt: skip


# The members that `ptxgen prove` checks, each there for synchronisation that the others lack. Four
# stages as by default, and two consumers, so that setmaxnreg moves registers; small tiles, so that
# a launch on the emulator takes a tenth of a second.
PROOFS = (
    "gemm",
    "gemm:tile=128x64,cluster=1x1",
    "gemm:tile=128x64,cluster=2x1",
    "gemm:tile=128x64,cluster=1x2",
    "gemm:tile=128x64,cluster=2x2",
    "gemm:tile=384x64,cluster=1x2,stages=3",
    "gemm:tile=128x64,cluster=1x1,wait_depth=0",
    "gemm:dtype=f16,acc_dtype=f16,tile=128x64,cluster=2x1",
    "gemm:dtype=tf32,tile=128x64,cluster=2x1",
    "gemm:dtype=e4m3,tile=128x64,cluster=2x1",
    "gemm:dtype=e4m3,b_dtype=e5m2,out_dtype=e4m3,tile=128x64,cluster=1x1",
    "gemm:dtype=s8,tile=128x64,cluster=2x2",
    "gemm:a_major=mn,b_major=mn,tile=128x128,cluster=2x2",
    "gemm:b_major=mn,tile=128x96,cluster=1x1",
    "gemm:batched=1,tile=128x64,cluster=2x1",
    "gemm:tile=128x64,cluster=1x1,split_k=2",
    "gemm:tile=128x64,cluster=1x1,split_k=4",
    "gemm:tile=128x16,swap_ab=1,cluster=1x1",
    "gemm:tile=128x32,swap_ab=1,cluster=2x1,out_dtype=f32",
    "gemm:tile=128x64,cluster=2x1,alpha=1,beta=1",
    "gemm:tile=128x64,cluster=1x1,bias=row,activation=gelu",
    "gemm:tile=128x64,cluster=1x1,bias=column,activation=silu,swap_ab=1",
    "gemm:tile=128x64,cluster=2x1,batched=1,beta=1,bias=row,activation=relu",
    "gemm:tile=64x64,cluster=1x1,schedule=pingpong",
    "gemm:tile=64x64,cluster=2x1,schedule=pingpong",
    "gemm:tile=128x64,cluster=1x1,schedule=stream_k",
    "gemm:tile=128x64,cluster=2x1,schedule=stream_k",
    "gemm:tile=128x64,cluster=1x1,a_source=registers,wait_depth=0",
    "gemm:dtype=e4m3,tile=128x64,cluster=1x1,accumulate=promoted,scales=row,wait_depth=0",
    "gemm:dtype=e4m3,out_dtype=e4m3,tile=128x64,cluster=2x1,scales=tensor,out_scale=1,amax=1",
    "gemm:tile=128x64,cluster=1x1,gated=1,activation=silu",
    "gemm:tile=128x64,cluster=2x1,store=direct",
    "gemm:tile=128x16,cluster=1x1,load=cp_async,stages=3,wait_depth=0",
    "gemm:tile=64x16,cluster=1x1,load=cp_async,store=direct,stages=4,schedule=pingpong",
    "gemm:tile=128x16,cluster=1x1,load=ld,stages=3",
)
