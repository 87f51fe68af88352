"""Which config for a shape: candidates, each scored by a small time model; the least time wins.

A tile's main loop takes as long as the slower of wgmma and its feed from L2, plus a part of the
faster one: both draw on one power budget. Tiles run in waves of clusters. However many SMs share
the work, device memory has to bring every operand once. Around all that stand the launch, the
filling of the ring, the exchange of partial sums and the store of the last D.

The constants were fitted to launches on an H200 (bf16, operands cold in L2, programmatic launch);
what the model loses against the best of those measurements is tested.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any

from ptxgen.configs.gemm import GemmConfig, GemmProblem
from ptxgen.configs.gemm_shape import Gemm, Operand
from ptxgen.models.feed import feed
from ptxgen.models.waves import Waves

# On a tie the first wins: two consumers before one.
TILES = ((128, 256), (256, 128), (128, 192), (128, 128), (128, 64), (64, 256), (64, 128), (64, 64),
         (64, 32))  # fmt: skip
CLUSTERS = ((1, 1), (2, 1), (1, 2))
SPLIT_TILES = ((128, 128), (64, 128), (128, 64), (64, 64), (64, 32))  # 64 rows a consumer
SPLITS = (2, 4)
SWAPPED_ROWS = (64, 128)
MOST_SWAPPED = 64  # rows of D up to which its columns are better rows of a tile

CYCLES_PER_US = 1_755  # of one SM
TENSOR_SHARE = 0.88  # of the wgmma rate is held at full power
OVERLAP_COST = 0.2  # of the time of the faster of wgmma and L2 that is felt
L2_BYTES_PER_CYCLE = 56  # that one of 132 SMs gets when all read at once ...
SM_BYTES_PER_CYCLE = 70  # ... and at most, when few do
EMPTY_COST = 1.0  # rows outside of an array are loaded (as zeros) at this many times the price more
MEMORY_BYTES_PER_US = 4.1e6
SM_MEMORY_BYTES_PER_US = 0.06e6  # what one SM can draw from device memory
LAUNCH_US = 1.0
FILL_CYCLES = 600  # first bytes until the first wgmma
CLUSTER_CYCLES = 2_200  # clusters start and end together
STORE_BYTES_PER_CYCLE = 64  # D from registers through shared memory
SPLIT_CYCLES = 500  # CTAs that share K wait for each other ...
SPLIT_BYTES_PER_CYCLE = 10  # ... and read each other's sums


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What the model says of one candidate, in microseconds; `us` decides."""

    config: GemmConfig
    waves: Waves
    loop_us: float  # main loops of all waves
    memory_us: float  # every operand and D through device memory once
    edge_us: float  # launch, fill, partial sums, the last store
    stream_sharers: int  # CTAs that share each load of the larger operand

    @property
    def us(self) -> float:
        return max(self.loop_us, self.memory_us) + self.edge_us

    @property
    def order(self) -> tuple[float, float, int]:
        """Least first: time; where memory decides, the shorter loop; then who shares the stream.

        At 128 x 8192 x 8192 tiles of 64 x 128 in clusters 2x1 took 37.8 us, of 128 x 64 in 1x2
        40.9: multicast pays more for what comes from memory than for what lies in L2.
        """
        streams = self.memory_us > self.loop_us
        return self.us, self.loop_us, -self.stream_sharers if streams else 0

    def explain(self) -> str:
        """The candidate and its terms in one line."""
        c = self.config
        fields = [f"cluster {c.cluster[0]}x{c.cluster[1]}"]
        fields += [f"split_k {c.split_k}"] if c.split_k > 1 else []
        fields += ["swapped"] if c.swap_ab else []
        return (
            f"{'x'.join(map(str, c.tile))} {' '.join(fields)}: {self.waves.tiles} cluster tiles, "
            f"{self.waves.waves} waves at {self.waves.efficiency:.0%}, max(loop "
            f"{self.loop_us:.1f}, memory {self.memory_us:.1f}) + {self.edge_us:.1f} = "
            f"{self.us:.1f} us"
        )


def score(
    problem: GemmProblem, config: GemmConfig, m: int, n: int, k: int, sms: int, batches: int = 1
) -> Score:
    """The model's time for one candidate on `batches` products of [m, k] by [n, k]."""
    g = Gemm(problem, config)
    rows, columns = (n, m) if g.swapped else (m, n)
    waves = Waves(
        m_tiles=ceil(rows / (g.tile_m * g.cluster_m)),
        n_tiles=ceil(columns / (g.d_columns * g.cluster_n)),
        batches=batches,
        cluster_size=g.cluster_size,
        resident_ctas=_resident(sms, g.cluster_size),
    )
    active = max(min(waves.grid_ctas, waves.tiles * g.cluster_size), 1)
    loop = ceil(ceil(k / g.tile_k) / g.split_k) * _stage_cycles(g, rows, columns, active, sms)
    edge = _edge_cycles(g)
    input_bytes, output_bytes = problem.a.bits // 8, problem.output.bytes
    moved = batches * (input_bytes * k * (m + problem.halves * n) + output_bytes * m * n)
    return Score(
        config=config,
        waves=waves,
        loop_us=(waves.waves * loop + max(waves.waves - 1, 0) * edge) / CYCLES_PER_US,
        memory_us=moved / min(MEMORY_BYTES_PER_US, active * SM_MEMORY_BYTES_PER_US),
        edge_us=LAUNCH_US
        + (edge + FILL_CYCLES + (g.destinations > 1) * CLUSTER_CYCLES) / CYCLES_PER_US,
        stream_sharers=(g.a if rows > columns else g.b).sharers,
    )


def _resident(sms: int, cluster_size: int) -> int:
    """CTAs at once. Clusters of four and more leave SMs of uneven GPCs idle: 12 of 132."""
    whole = sms if cluster_size <= 2 else sms * 10 // 11
    return max(whole // cluster_size, 1) * cluster_size


def _stage_cycles(g: Gemm, rows: int, columns: int, active: int, sms: int) -> float:
    """One stage of one CTA, while `active` CTAs share L2."""
    wgmma = g.consumers * g.wgmma_per_stage * feed(n=g.tile_n).cycles / TENSOR_SHARE
    loaded = _loaded(g.a, rows) + _loaded(g.b, columns * g.problem.halves)
    l2 = loaded / min(SM_BYTES_PER_CYCLE, L2_BYTES_PER_CYCLE * sms / active)
    return max(wgmma, l2) + OVERLAP_COST * min(wgmma, l2)


def _loaded(operand: Operand, extent: int) -> float:
    """Bytes of an operand that this CTA asks for, with a surcharge for what lies outside."""
    outside = max(1 - extent / operand.extent, 0.0)
    return operand.bytes / operand.sharers * (1 + EMPTY_COST * outside)


def _edge_cycles(g: Gemm) -> float:
    """What follows the main loop of a tile."""
    store = g.tile_m * g.tile_n * g.problem.output.bytes / STORE_BYTES_PER_CYCLE
    if g.split_k == 1:
        return store
    return store + SPLIT_CYCLES + g.tile_m * g.tile_n * 4 / SPLIT_BYTES_PER_CYCLE


def candidates(problem: GemmProblem, m: int) -> tuple[GemmConfig, ...]:
    """Every tile, cluster and split that suits products with `m` rows, with the deepest ring."""
    return _legal(problem, ceil(m / 8) * 8 if 0 < m <= MOST_SWAPPED else 0)


@lru_cache(maxsize=256)
def _legal(problem: GemmProblem, swapped_n: int) -> tuple[GemmConfig, ...]:
    found = []
    for fields in (*_straight(), *(_swapped(problem, swapped_n) if swapped_n else ())):
        config = GemmConfig(**{"stages": "max"} | _staging(problem, fields) | fields)
        if not Gemm(problem, config).check():
            found.append(config)
    return tuple(found)


def _staging(problem: GemmProblem, fields: dict[str, Any]) -> dict[str, Any]:
    """The largest tile gives a stage up for wider slabs of D.

    Up to 4% faster at K = 512, 1% at 2048 to 4096, nothing at 2048^3; slower by 1.5% where rows are
    no multiple of 128 bytes (5000x3000x2104, for which another tile is picked). See NOTES.md.
    """
    if problem.promoted:
        return {"wait_depth": 0}  # the sums of a stage are read at once
    if fields["tile"] == TILES[0] and problem.output.bytes == 2:
        return {"stages": 3, "store_n": 128, "store_slabs": 2}
    return {}


def _straight() -> Iterator[dict[str, Any]]:
    for tile in TILES:
        for cluster in CLUSTERS:
            yield {"tile": tile, "cluster": cluster}
    for tile in SPLIT_TILES:
        for split in SPLITS:
            yield {"tile": tile, "cluster": (1, 1), "split_k": split}


def _swapped(problem: GemmProblem, tile_n: int) -> Iterator[dict[str, Any]]:
    """Tiles whose columns are the rows of D, rounded up to what operands and splits can share."""
    for rows in SWAPPED_ROWS:
        for cluster in CLUSTERS:
            step = cluster[0] * (8 if problem.a_major == "k" else 16)
            yield {"tile": (rows, _wide(problem, tile_n, step)), "cluster": cluster, "swap_ab": 1}
        for split in SPLITS:
            step = 8 * split
            tile = (rows, _wide(problem, tile_n, step))
            yield {"tile": tile, "cluster": (1, 1), "split_k": split, "swap_ab": 1}


def _wide(problem: GemmProblem, tile_n: int, step: int) -> int:
    """`tile_n` rounded up to `step`, and to a width that wgmma has."""
    wide = ceil(tile_n / step) * step
    return wide if problem.a.legal_n(wide) else ceil(wide / 16) * 16


def ranking(
    problem: GemmProblem, m: int, n: int, k: int, *, batches: int = 1, sms: int = 132
) -> tuple[Score, ...]:
    """All candidates, best first."""
    scores = [score(problem, c, m, n, k, sms, batches) for c in candidates(problem, m)]
    return tuple(sorted(scores, key=lambda s: s.order))


def pick(
    problem: GemmProblem, m: int, n: int, k: int, *, batches: int = 1, sms: int = 132
) -> GemmConfig:
    """The config that the model finds fastest for D[m, n] with depth k on a chip with `sms` SMs."""
    return ranking(problem, m, n, k, batches=batches, sms=sms)[0].config
