"""Which config for a shape: candidates, each scored by a small time model; the least time wins.

The model counts SM cycles. A tile's main loop takes as long as the slower of wgmma and its feed
from L2; around it stand the filling of the ring and the store of D. Tiles run in waves of clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from ptxgen.configs.gemm import GemmConfig, GemmProblem
from ptxgen.configs.gemm_shape import Gemm
from ptxgen.models.waves import Waves

TILES = ((128, 256, 64), (256, 128, 64), (192, 128, 64), (128, 192, 64), (128, 128, 64),
         (64, 256, 64), (64, 128, 64), (128, 64, 64), (64, 64, 64))  # fmt: skip
CLUSTERS = ((2, 1), (1, 2), (1, 1))

# Rates of one SM, in cycles. wgmma m64nNk16 on 16-bit types takes N/2 cycles (4,096 FLOP a cycle);
# 46 bytes a cycle is what L2 feeds each of 132 SMs when all read at once.
L2_BYTES_PER_CYCLE = 46
FILL_CYCLES = 1_000  # first bytes of a tile until its first wgmma
STORE_CYCLES_PER_BYTE = 1 / 32  # D from registers through shared memory
CLUSTER_CYCLES = 200  # CTAs of a cluster wait for each other


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What the model says of one candidate; `cycles` decides."""

    config: GemmConfig
    waves: Waves
    loop_cycles: int
    edge_cycles: int

    @property
    def cycles(self) -> int:
        return self.waves.waves * (self.loop_cycles + self.edge_cycles)

    def explain(self) -> str:
        m, n, k = self.config.tile
        c = self.config.cluster
        return (
            f"{m}x{n}x{k} cluster {c[0]}x{c[1]}: {self.waves.tiles} cluster tiles, "
            f"{self.waves.waves} waves at {self.waves.efficiency:.0%}, "
            f"{self.loop_cycles:,} + {self.edge_cycles:,} cycles a tile = {self.cycles:,}"
        )


def score(problem: GemmProblem, config: GemmConfig, m: int, n: int, k: int, sms: int) -> Score:
    """The model's time for one candidate on an [m, k] by [n, k] product."""
    g = Gemm(problem, config)
    k_tiles = max(ceil(k / g.tile_k), 1)
    wgmma = g.tile_m * g.tile_n * g.tile_k // 2_048  # both operands from shared memory
    loaded = g.a.bytes // g.cluster_n + g.b.bytes // g.cluster_m
    loop = k_tiles * max(wgmma, loaded // L2_BYTES_PER_CYCLE)
    stored = g.tile_m * g.tile_n * problem.output.bytes
    edge = FILL_CYCLES + int(stored * STORE_CYCLES_PER_BYTE) + CLUSTER_CYCLES * (g.cluster_size - 1)
    waves = Waves(
        m_tiles=ceil(m / (g.tile_m * g.cluster_m)),
        n_tiles=ceil(n / (g.tile_n * g.cluster_n)),
        cluster_size=g.cluster_size,
        resident_ctas=sms,
    )
    return Score(config=config, waves=waves, loop_cycles=loop, edge_cycles=edge)


def candidates(problem: GemmProblem) -> tuple[GemmConfig, ...]:
    """Every tile and cluster that the hardware takes, with the deepest ring up to 8 stages."""
    found = []
    for tile in TILES:
        for cluster in CLUSTERS:
            deepest = Gemm(problem, GemmConfig(tile=tile, cluster=cluster, stages="max")).stages
            config = GemmConfig(tile=tile, cluster=cluster, stages=min(deepest, 8))
            if not Gemm(problem, config).check():
                found.append(config)
    return tuple(found)


def ranking(problem: GemmProblem, m: int, n: int, k: int, *, sms: int = 132) -> tuple[Score, ...]:
    """All candidates, best first."""
    scores = [score(problem, config, m, n, k, sms) for config in candidates(problem)]
    return tuple(sorted(scores, key=lambda s: s.cycles))


def pick(problem: GemmProblem, m: int, n: int, k: int, *, sms: int = 132) -> GemmConfig:
    """The config that the model finds fastest for D[m, n] with depth k on a chip with `sms` SMs."""
    return ranking(problem, m, n, k, sms=sms)[0].config
