"""Which config for a shape: candidates, each scored by a small time model; the least time wins.

A tile's main loop takes as long as the slower of wgmma and its feed from L2, plus a part of the
faster one: both draw on one power budget. Tiles run in waves of clusters. However many SMs share
the work, device memory has to bring every operand once. Around all that stand the launch, the
filling of the ring, the exchange of partial sums and the store of the last D.

The constants were fitted to launches on an H200 (bf16, operands cold in L2, programmatic launch);
what the model loses against the best of those measurements is tested.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from ptxgen.configs.base import to_text
from ptxgen.configs.gemm import GemmConfig, GemmProblem
from ptxgen.configs.gemm_candidates import candidates
from ptxgen.configs.gemm_shape import Gemm, Operand
from ptxgen.configs.gemm_table import TABLES, Winner, class_of
from ptxgen.models.feed import feed
from ptxgen.models.waves import Waves

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
    bound: str  # what a main loop waits for: wgmma or L2
    loop_us: float  # main loops of all waves
    memory_us: float  # every operand and D through device memory once
    edge_us: float  # launch, fill, partial sums, the last store
    stream_sharers: int  # CTAs that share each load of the larger operand
    measured: Winner | None = None  # why it stands first, if the model does not put it there

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

    @property
    def fields(self) -> str:
        """The fields of the config that candidates differ in, as a kernel reference has them."""
        return to_text(self.config) or "the default"

    @property
    def why(self) -> str:
        """What the time is made of: the larger of main loops and device memory, and the edges."""
        w = self.waves
        loops = f"{w.waves} waves of {w.clusters} clusters, {w.efficiency:.0%} busy"
        if self.memory_us > self.loop_us:
            return f"device memory {self.memory_us:.1f} us, loops {self.loop_us:.1f} ({loops})"
        return f"{self.bound} for {self.loop_us:.1f} us ({loops})"

    def explain(self) -> str:
        """The candidate, its time and the reasons in one line."""
        text = f"{self.fields}: {self.why} + {self.edge_us:.1f} at the edges = {self.us:.1f} us"
        if self.measured is not None:
            text += f"; measured: {self.measured.us:.1f} us, the fastest of its class"
        return text


def score(
    problem: GemmProblem, config: GemmConfig, m: int, n: int, k: int, sms: int, batches: int = 1
) -> Score:
    """The model's time for one candidate on `batches` products of [m, k] by [n, k]."""
    g = Gemm(problem, config)
    rows, columns = (n, m) if g.swapped else (m, n)
    waves = Waves(
        m_tiles=ceil(rows / (g.tile_m * g.cluster_m)),
        n_tiles=ceil(columns / (g.tile_n * g.cluster_n)),
        batches=batches,
        cluster_size=g.cluster_size,
        resident_ctas=_resident(sms, g.cluster_size),
    )
    active = max(min(waves.grid_ctas, waves.tiles * g.cluster_size), 1)
    stage, bound = _stage_cycles(g, rows, columns, active, sms)
    loop = ceil(ceil(k / g.tile_k) / g.split_k) * stage
    edge = _edge_cycles(g)
    input_bytes, output_bytes = problem.a.bits // 8, problem.output.bytes
    moved = batches * (input_bytes * k * (m + n) + output_bytes * m * n)
    return Score(
        config=config,
        waves=waves,
        bound=bound,
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


def _stage_cycles(g: Gemm, rows: int, columns: int, active: int, sms: int) -> tuple[float, str]:
    """One stage of one CTA, while `active` CTAs share L2, and which of the two decides."""
    wgmma = g.readers * g.wgmma_per_stage * feed(n=g.tile_n).cycles / TENSOR_SHARE
    loaded = _loaded(g.a, rows) + _loaded(g.b, columns)
    l2 = loaded / min(SM_BYTES_PER_CYCLE, L2_BYTES_PER_CYCLE * sms / active)
    return max(wgmma, l2) + OVERLAP_COST * min(wgmma, l2), "wgmma" if wgmma >= l2 else "L2"


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


def by_model(
    problem: GemmProblem, m: int, n: int, k: int, *, batches: int = 1, sms: int = 132
) -> tuple[Score, ...]:
    """All candidates as the model orders them, best first."""
    scores = [score(problem, c, m, n, k, sms, batches) for c in candidates(problem, m)]
    return tuple(sorted(scores, key=lambda s: s.order))


def ranking(
    problem: GemmProblem, m: int, n: int, k: int, *, batches: int = 1, sms: int = 132
) -> tuple[Score, ...]:
    """All candidates, best first: the winner of a measurement before what the model finds."""
    scores = by_model(problem, m, n, k, batches=batches, sms=sms)
    winner = TABLES.find(class_of(problem, m, n, k, batches), sms)
    if winner is None or Gemm(problem, winner.parsed()).check():
        return scores
    config = winner.parsed()
    first = replace(score(problem, config, m, n, k, sms, batches), measured=winner)
    return first, *(s for s in scores if s.config != config)


def pick(
    problem: GemmProblem, m: int, n: int, k: int, *, batches: int = 1, sms: int = 132
) -> GemmConfig:
    """The config for D[m, n] with depth k on a chip with `sms` SMs: measured, else by the model."""
    return ranking(problem, m, n, k, batches=batches, sms=sms)[0].config
