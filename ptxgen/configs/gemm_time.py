"""The time of a GEMM with one config: a small model, made of what its main loops wait for.

A stage takes as long as the slower of wgmma and its feed from L2, plus a part of the faster one:
both draw on one power budget. Tiles run in waves of clusters; the last wave, which is seldom full,
shares L2 with fewer. However many SMs work, device memory has to bring every operand once. Around
all that stand the launch, the filling of the ring, the exchange of partial sums and the store of
the last D.

`Work` counts, `Rates` says what a count costs, `score` puts the two together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, gcd

from ptxgen.configs.base import to_text
from ptxgen.configs.gemm import GemmConfig, GemmProblem
from ptxgen.configs.gemm_shape import Gemm, Operand
from ptxgen.configs.gemm_table import Winner
from ptxgen.models.feed import feed
from ptxgen.models.waves import Waves

LINE_BYTES, SECTOR_BYTES = 128, 32  # of L2
PROMOTED_BYTES = 256  # what L2 can be told to bring from memory at once
# Times the settled clock: what a card runs at for its first 50 ms after a rest. Of 1.0 to 1.27 the
# one with which the model deviates least from what 44 random shapes took then (NOTES.md).
RESTED = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What things cost on one chip. Cycles are those of one SM, stores those of one consumer.

    The defaults have the least loss, as `examples/fit_pick.py` counts it, of searches over 360
    random bf16 shapes; of fits that tie, the one that orders 2048^3 as measured.
    """

    cycles_per_us: float = 1_559  # the clock at full power
    overlap: float = 0.08882  # of the time of the faster of wgmma and L2 that is felt
    l2_bytes: float = 67.19  # a cycle, that one SM gets when all read at once ...
    sm_bytes: float = 168.2  # ... and at most, when few do
    empty: float = 4.582  # rows outside of an array are loaded (as zeros) at this many times more
    straddle: float = 0.1895  # rows that cross lines cost this many times more ...
    cut: float = 0.7803  # ... and where they cut sectors, too, this
    hasty: float = 0.4906  # ... and where L2 is told to bring two lines for them, this in addition
    shared: float = 65.77  # cycles of a stage that CTAs wait for each other's loads ...
    joint: float = 49.15  # ... and that consumers which share a tile wait for each other
    step: float = 19.07  # cycles of any stage: its barriers, and what is sent for it
    memory_bytes: float = 6.433e6  # a microsecond, from device memory
    sm_memory_bytes: float = 1.340e5  # of it, what one SM can draw
    # ... which takes longer by so many times ...
    uneven: float = 2.071  # the share of SMs that idle beside others (see `_uneven`)
    coupled: float = 0.5333  # where CTAs of a cluster do not share the larger operand
    again: float = 0.3571  # where several clusters ask for the larger operand
    scattered: float = 0.1602  # where a stage has one line of each row, halved with two
    uneven_l2: float = 0.5606  # as `uneven`, of L2
    launch_us: float = 1.289
    fill: float = 403  # cycles from the launch to the first wgmma
    cluster: float = 931.4  # cycles: CTAs that share loads start and end together
    store_bytes: float = 30.77  # a cycle, D from registers through shared memory
    ragged: float = 1.343  # rows of D that cut sectors cost this many times more
    box: float = 185.9  # cycles of each box of D that is stored
    split: float = 548.6  # cycles that CTAs which share K wait for each other ...
    split_bytes: float = 11.31  # ... and a cycle of reading each other's sums

    def at(self, clock: float) -> Rates:
        """At so many times the clock of the SMs. L2 and memory keep their bytes a microsecond."""
        return replace(
            self,
            cycles_per_us=self.cycles_per_us * clock,
            l2_bytes=self.l2_bytes / clock,
            sm_bytes=self.sm_bytes / clock,
        )


H200 = Rates()


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one config does for one product, counted. Bytes and cycles are of one CTA."""

    waves: Waves
    stages: int  # of K, that a CTA goes through for one tile
    wgmma: float  # cycles of the tensor cores for one stage
    loaded: float  # bytes from L2 for one stage ...
    outside: float  # ... those of them that lie outside of the arrays ...
    straddling: float  # ... those in rows that cross lines of L2 ...
    cut: float  # ... and those in rows that cut sectors of it
    hasty: float  # those of both for which L2 is told to bring two lines
    lines: int  # of L2, that a stage has of each row; where rows cross lines it does not count
    active: int  # CTAs of a full wave ...
    tail: int  # ... and of the last
    stored: float  # bytes of D of one tile that one consumer stores ...
    ragged: float  # ... and those of them in rows that cut sectors
    boxes: int  # ... in so many boxes
    partial: float  # bytes of sums that a consumer reads from CTAs which share K with its own
    shares: bool  # whether CTAs share loads
    joint: bool  # whether consumers share a tile
    turns: bool  # whether consumers take whole tiles in turns
    moved: int  # bytes of all operands and D
    clustered: bool  # whether CTAs are launched side by side
    sharers: int  # CTAs that share each load of the larger operand
    again: bool  # whether several clusters load it
    unsuited: bool  # whether L2 is told to bring more than rows are aligned to, or less

    @classmethod
    def of(cls, g: Gemm, m: int, n: int, k: int, sms: int, batches: int) -> Work:
        rows, columns = (n, m) if g.swapped else (m, n)
        waves = Waves(
            m_tiles=ceil(rows / (g.tile_m * g.cluster_m)),
            n_tiles=ceil(columns / (g.d_columns * g.cluster_n)),
            batches=batches,
            cluster_size=g.cluster_size,
            resident_ctas=_resident(sms, g.cluster_size),
        )
        p = g.problem
        promoted = g.config.l2_promotion == PROMOTED_BYTES
        extents = ((g.a, rows), (g.b, columns * p.halves))
        tiled = (waves.m_tiles * g.tile_m * g.cluster_m, waves.n_tiles * g.tile_n * g.cluster_n)
        loads = [_loaded(*of, k, most) for of, most in zip(extents, tiled, strict=True)]
        pitches = [_pitch(operand, extent, k) for operand, extent in extents]
        even = all(pitch % LINE_BYTES == 0 for pitch in pitches)
        stored = g.tile_m * g.d_columns * p.output.bytes / g.readers
        box = g.store_box[1]
        whole = not g.direct and gcd(box, n) * p.output.bytes % SECTOR_BYTES == 0
        return cls(
            waves=waves,
            stages=ceil(ceil(k / g.tile_k) / g.split_k),
            wgmma=g.readers * g.wgmma_per_stage * feed(n=g.tile_n).cycles,
            loaded=sum(load[0] for load in loads),
            outside=sum(load[1] for load in loads),
            straddling=sum(load[2] for load in loads),
            cut=sum(load[3] for load in loads),
            hasty=sum(load[2] + load[3] for load in loads) if promoted else 0,
            lines=max(g.tile_k * p.a.bits // 8 // LINE_BYTES, 1) if even else 1,
            active=max(waves.grid_ctas, 1),
            tail=max(waves.tail_tiles * g.cluster_size, 1),
            stored=stored,
            ragged=0 if whole else stored,
            boxes=g.slabs_per_tile * g.boxes_per_slab,
            partial=g.tile_m * g.tile_n * 4 / g.readers if g.split_k > 1 else 0,
            shares=g.destinations > 1,
            joint=g.readers > 1,
            turns=g.turns,
            moved=batches * (p.a.bits // 8 * k * (m + p.halves * n) + p.output.bytes * m * n),
            clustered=g.cluster_size > 1,
            sharers=(g.a if rows > columns else g.b).sharers,
            again=(waves.n_tiles if rows > columns else waves.m_tiles) > 1,
            unsuited=promoted != all(pitch % PROMOTED_BYTES == 0 for pitch in pitches),
        )

    @property
    def read(self) -> float:
        """Bytes that L2 hands out to all CTAs."""
        ctas = max(self.waves.waves - 1, 0) * self.active + self.tail
        return ctas * self.stages * self.loaded


def _resident(sms: int, cluster_size: int) -> int:
    """CTAs at once. Clusters of four and more leave SMs of uneven GPCs idle: 12 of 132."""
    whole = sms if cluster_size <= 2 else sms * 10 // 11
    return max(whole // cluster_size, 1) * cluster_size


def _pitch(operand: Operand, extent: int, k: int) -> int:
    """Bytes from one row of the operand's array to the next."""
    return (k if operand.major == "k" else extent) * operand.storage.bytes


def _loaded(operand: Operand, extent: int, k: int, tiled: int) -> tuple[float, float, float, float]:
    """Bytes of an operand that a CTA asks for; outside of the array, on average; straddling; cut.

    `tiled` is what the extent becomes in whole tiles of whole clusters.
    """
    asked = operand.bytes / operand.sharers
    pitch = _pitch(operand, extent, k)
    cuts = pitch % SECTOR_BYTES != 0
    straddles = pitch % LINE_BYTES != 0 and not cuts
    outside = asked * (1 - extent / max(tiled, 1))
    return asked, outside, asked * straddles, asked * cuts


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What the model says of one candidate, in microseconds.

    `us` decides; where a product may find the card rested, `rested_us` too: see `by_model`.
    """

    config: GemmConfig
    waves: Waves
    bound: str  # what a main loop waits for: wgmma or L2
    us: float  # on a card whose clock has settled
    rested_us: float  # and on one that has rested
    loop_us: float  # main loops of all waves
    memory_us: float  # every operand and D through device memory once
    edge_us: float  # launch, fill, partial sums, the last store
    stream_sharers: int  # see `Work.sharers`
    unsuited: bool  # see `Work.unsuited`
    read: float  # see `Work.read`
    measured: Winner | None = None  # why it stands first, if the model does not put it there

    @property
    def order(self) -> tuple[float, float, int, bool, bool]:
        """Least first: time; where memory decides, the shorter loop; then who shares the stream;
        then rows that suit what L2 brings; then, with one tile a CTA, consumers that share it.

        At 128 x 8192 x 8192 tiles of 64 x 128 in clusters 2x1 took 37.8 us, of 128 x 64 in 1x2
        40.9: multicast pays more for what comes from memory than for what lies in L2.
        """
        streams = self.memory_us > self.loop_us
        sharers = self.stream_sharers if streams else 0
        idle_turns = self.waves.waves <= 1 and self.config.schedule == "pingpong"
        return self.us, self.loop_us, -sharers, self.unsuited, idle_turns

    @property
    def fields(self) -> str:
        """The config as a kernel reference has it."""
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
        text += f" ({self.rested_us:.1f} rested)"
        if self.measured is not None:
            text += f"; measured: {self.measured.us:.1f} us, the fastest of its class"
        return text


def score(
    problem: GemmProblem, config: GemmConfig, m: int, n: int, k: int, sms: int, batches: int = 1,
    rates: Rates = H200,
) -> Score:  # fmt: skip
    """The model's time for one candidate on `batches` products of [m, k] by [n, k]."""
    g = _gemm(problem, config)
    work = Work.of(g, m, n, k, sms, batches)
    loops, memory, edges = times(work, rates, sms)
    rested = together(*times(work, rates.at(RESTED), sms))
    return Score(
        config=config,
        waves=work.waves,
        bound=bound(work, rates, sms),
        us=together(loops, memory, edges),
        rested_us=rested,
        loop_us=loops,
        memory_us=memory,
        edge_us=edges,
        stream_sharers=work.sharers,
        unsuited=work.unsuited,
        read=work.read,
    )


def together(loops: float, memory: float, edges: float) -> float:
    """The whole time from its terms."""
    return max(loops, memory) + edges


@lru_cache(maxsize=4096)
def _gemm(problem: GemmProblem, config: GemmConfig) -> Gemm:
    return Gemm(problem, config)


def times(w: Work, r: Rates, sms: int) -> tuple[float, float, float]:
    """(loops, memory, edges) in microseconds."""
    full, last = _stage(w, r, w.active, sms), _stage(w, r, w.tail, sms)
    edge = (w.stored + r.ragged * w.ragged) / r.store_bytes + w.boxes * r.box
    edge += r.split + w.partial / r.split_bytes if w.partial else 0.0
    loop = w.stages * full
    tile = max(loop, edge) if w.turns else loop + edge
    loops = max(w.waves.waves - 1, 0) * tile + min(w.waves.waves, 1) * w.stages * last
    edges = r.launch_us + (edge + r.fill + w.shares * r.cluster) / r.cycles_per_us
    return loops / r.cycles_per_us, _memory(w, r, sms), edges


def _memory(w: Work, r: Rates, sms: int) -> float:
    """Microseconds in which device memory brings every operand once and takes D."""
    before = max(w.waves.waves - 1, 0) * w.active
    each = w.moved / (before + w.tail)
    waves = ((before, w.active), (w.tail, w.tail))
    us = sum(each * ctas / _memory_rate(w, r, active, sms) for ctas, active in waves)
    return us * (1 + r.scattered / w.lines + r.again * w.again)


def _memory_rate(w: Work, r: Rates, active: int, sms: int) -> float:
    """Bytes a microsecond, while `active` CTAs ask."""
    most = min(r.memory_bytes, active * r.sm_memory_bytes)
    coupled = w.clustered and w.sharers == 1
    return most / (1 + r.uneven * _uneven(w, active, sms) + r.coupled * coupled)


def _uneven(w: Work, active: int, sms: int) -> float:
    """Share of SMs that idle beside one that works, in a TPC of two, while others both work.

    Up to half as many CTAs as SMs go to TPCs of their own. With 90 CTAs on 132 SMs, 64x8x256
    takes 31.5 us for 8 x 5760 x 8832, where 45 CTAs of 128x8 take 26.4 and other shapes fill all.
    """
    return (sms - active) / sms if sms < 2 * active and not w.clustered else 0.0


def _parts(w: Work, r: Rates, active: int, sms: int) -> tuple[float, float]:
    """Cycles of wgmma and of L2 for one stage, while `active` CTAs share L2."""
    loaded = w.loaded + r.empty * w.outside + r.straddle * w.straddling + r.cut * w.cut
    loaded += r.hasty * w.hasty
    loaded *= 1 + r.uneven_l2 * _uneven(w, active, sms)
    return w.wgmma, loaded / min(r.sm_bytes, r.l2_bytes * sms / active)


def _stage(w: Work, r: Rates, active: int, sms: int) -> float:
    """Cycles of one stage of one CTA."""
    wgmma, l2 = _parts(w, r, active, sms)
    waits = r.step + w.shares * r.shared + w.joint * r.joint
    return max(wgmma, l2) + r.overlap * min(wgmma, l2) + waits


def bound(w: Work, r: Rates, sms: int) -> str:
    """What decides the time of a stage in a full wave."""
    wgmma, l2 = _parts(w, r, w.active, sms)
    return "wgmma" if wgmma >= l2 else "L2"
