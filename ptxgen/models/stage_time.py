"""The time of one pipeline stage: engines run side by side, so the slowest decides.

    T_stage = max(T_TMA, T_WGMMA, T_CUDA)        overlapped
            =     T_TMA + T_WGMMA + T_CUDA       one after the other

TMA is fed by L2, whose bytes a clock are shared by all SMs; a cluster loads a shared operand once.
wgmma times come from `feed`. CUDA cores do the rest: f32 FLOP at 256 a clock, and ex2 and its like
at 16 a clock (the SFU).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from ptxgen.errors import ConfigError, Violation
from ptxgen.isa.arch import Chip
from ptxgen.models.feed import WGMMA_K_BYTES, WGMMA_M, Operand, feed
from ptxgen.models.record import ANY, Bars, Record, chip_row, element, in_range
from ptxgen.view import Row, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One engine's part of a stage, in SM cycles, and how it came about."""

    name: str
    cycles: float
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTime(Record):
    """The engines of one stage. Made by `stage_time` and `attention_stage`."""

    title: str
    chip: Chip
    engines: tuple[Engine, ...]
    flop: int

    @property
    def overlapped(self) -> float:
        """Cycles when the engines run side by side: those of the slowest."""
        return max(engine.cycles for engine in self.engines)

    @property
    def serial(self) -> float:
        """Cycles when they take turns."""
        return sum(engine.cycles for engine in self.engines)

    @property
    def bound(self) -> str:
        """The slowest engine (the first of equals)."""
        return max(self.engines, key=lambda engine: engine.cycles).name

    @property
    def of_peak(self) -> float:
        """Share of the 16-bit tensor peak that the overlapped stage reaches."""
        return self.flop / self.chip.f16_flop_per_clk_sm / self.overlapped

    def engine(self, name: str) -> Engine:
        """The engine of that name. Raises KeyError."""
        for engine in self.engines:
            if engine.name == name:
                return engine
        raise KeyError(f"no engine {name!r}; engines: {', '.join(e.name for e in self.engines)}")

    def bars(self) -> Bars:
        return Bars(unit="cycles", values={e.name: e.cycles for e in self.engines})

    def headline(self) -> Mapping[str, float | str]:
        cycles = {engine.name: round(engine.cycles, 1) for engine in self.engines}
        return {
            "max": round(self.overlapped, 1), **cycles, "sum": round(self.serial, 1),
            "of peak": round(self.of_peak, 3), "bound": self.bound,
        }  # fmt: skip

    def table(self) -> Table:
        rows = [
            Row(
                (engine.name, f"{engine.cycles:,.1f}"),
                engine.how,
                "mark" if engine.name == self.bound else "plain",
            )
            for engine in self.engines
        ]
        rows.append(Row(("max", f"{self.overlapped:,.1f}"), f"{self.of_peak:.1%} of tensor peak"))
        rows.append(
            Row(("sum", f"{self.serial:,.1f}"), f"{self.serial / self.overlapped:.2f} x the max")
        )
        return Table(title=self.title, columns=("engine", "cycles"), rows=tuple(rows))


def stage_time(
    *,
    tile_m: Annotated[int, "rows of D a CTA computes"] = 128,
    tile_n: Annotated[int, "columns of D a CTA computes"] = 256,
    tile_k: Annotated[int, "k of one stage"] = 64,
    cluster_m: Annotated[int, "CTAs along M that share B"] = 1,
    cluster_n: Annotated[int, "CTAs along N that share A"] = 1,
    dtype: Annotated[str, "type of A and B"] = "bf16",
    a: Annotated[Operand, "where wgmma takes A from"] = "smem",
    f32_flop: Annotated[int, "CUDA-core FLOP of a stage"] = 0,
    sfu: Annotated[int, "ex2, rcp, tanh ... of a stage"] = 0,
    chip: Annotated[str, "chip: h200, h100_sxm, ..."] = "h200",
) -> StageTime:
    """Cycles of one GEMM stage on each engine: TMA from L2, wgmma, CUDA cores.

    Raises ConfigError for a tile that is not made of whole wgmmas, or a chip without an L2 rate.
    """
    row, ty = chip_row(chip), element(dtype)
    k = WGMMA_K_BYTES // ty.bytes
    in_range(
        "no such stage",
        ("tile_m % 64", tile_m % WGMMA_M, 0, 0),
        (f"tile_k % {k}", tile_k % k, 0, 0),
        ("tile_m", tile_m, WGMMA_M, ANY),
        ("tile_k", tile_k, k, ANY),
        ("cluster_m", cluster_m, 1, 16),
        ("cluster_n", cluster_n, 1, 16),
        ("f32_flop", f32_flop, 0, ANY),
        ("sfu", sfu, 0, ANY),
    )
    one = feed(n=tile_n, a=a)
    count = tile_m // WGMMA_M * (tile_k // k)
    loaded = (tile_m / cluster_n + tile_n / cluster_m) * tile_k * ty.bytes
    return StageTime(
        title=f"one stage of {tile_m}x{tile_n}x{tile_k} {ty.name}, cluster "
        f"{cluster_m}x{cluster_n}, {row.title}",
        chip=row,
        engines=(
            _tma(row, loaded),
            Engine(name="WGMMA", cycles=count * one.cycles, how=f"{count} x {one.cycles:g}"),
            _cuda(row, f32_flop, sfu),
        ),
        flop=count * one.flop,
    )


def attention_stage(
    *,
    tile_m: Annotated[int, "query rows of a CTA"] = 128,
    tile_n: Annotated[int, "K/V positions of a stage"] = 128,
    head_dim: Annotated[int, "elements of a head"] = 128,
    f32_per_score: Annotated[int, "CUDA-core FLOP a score besides ex2"] = 4,
    chip: Annotated[str, "chip: h200, h100_sxm, ..."] = "h200",
) -> StageTime:
    """Cycles of one K/V tile of 16-bit attention forward: S = Q K^T (SS), exp, O += P V (RS).

    At head size 64 the exponentials take as long as the products; at 128, half as long. Raises
    ConfigError for extents that wgmma does not have.
    """
    row = chip_row(chip)
    in_range(
        "no such stage",
        ("tile_m % 64", tile_m % WGMMA_M, 0, 0),
        ("tile_n % 16", tile_n % 16, 0, 0),
        ("head_dim % 16", head_dim % 16, 0, 0),
        ("tile_m", tile_m, WGMMA_M, ANY),
        ("f32_per_score", f32_per_score, 0, ANY),
    )
    groups = tile_m // WGMMA_M
    qk, pv = feed(n=tile_n), feed(n=head_dim, a="registers")
    products = groups * (head_dim // 16 * qk.cycles + tile_n // 16 * pv.cycles)
    scores = tile_m * tile_n
    return StageTime(
        title=f"one K/V tile of {tile_n} for {tile_m} queries, head size {head_dim}, {row.title}",
        chip=row,
        engines=(
            _tma(row, 2 * tile_n * head_dim * 2),
            Engine(
                name="WGMMA",
                cycles=products,
                how=f"{groups} x ({head_dim // 16} x {qk.cycles:g} QK + "
                f"{tile_n // 16} x {pv.cycles:g} PV)",
            ),
            _cuda(row, f32_per_score * scores, scores),
        ),
        flop=4 * scores * head_dim,
    )


def _tma(chip: Chip, loaded: float) -> Engine:
    if not chip.l2_bytes_per_clk:
        raise ConfigError(
            "no stage time",
            [Violation(field="chip", got=chip.name, rule="must have a known L2 rate")],
        )
    rate = chip.l2_bytes_per_clk / chip.sms
    return Engine(name="TMA", cycles=loaded / rate, how=f"{loaded:,.0f} B at {rate:.1f} B from L2")


def _cuda(chip: Chip, flop: int, sfu: int) -> Engine:
    """CUDA cores: FP32 pipes and SFU work side by side, so the longer of the two."""
    cycles = max(flop / chip.f32_flop_per_clk_sm, sfu / chip.sfu_per_clk_sm)
    how = (
        f"{flop:,} FLOP at {chip.f32_flop_per_clk_sm}, {sfu:,} SFU at {chip.sfu_per_clk_sm}"
        if cycles
        else "idle"
    )
    return Engine(name="CUDA", cycles=cycles, how=how)
