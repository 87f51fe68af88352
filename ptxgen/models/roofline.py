"""What throughput a kernel can have at most: a roofline with several ceilings.

    P_useful <= min(U_shape x P_tensor, I_HBM x BW_HBM, I_L2 x BW_L2, I_SMEM x BW_SMEM, P_sc / f_sc)

U_shape is the useful share of the issued FLOP: one row in a 64-row tile is 1/64, a causal tail and
padded columns count likewise. An intensity I is useful FLOP a byte at that level; f_sc is the
scalar (CUDA-core) FLOP for each useful tensor FLOP. In time, with bytes and FLOP for ratios:

    T >= max(B_HBM / BW, B_L2 / BW, B_SMEM / BW, F_MMA / P, F_sc / P_sc) + T_sync + T_launch
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from ptxgen.models.rates import Rates, rates
from ptxgen.models.record import ANY, Bars, Record, in_range, number, plot_axes
from ptxgen.view import Row, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """One limit on the useful FLOP/s, and how it came about."""

    name: str
    flop_per_s: float
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline(Record):
    """The ceilings of one kernel on one chip. Made by `roofline`."""

    rates: Rates
    u_shape: float
    intensities: Mapping[str, float]  # level -> useful FLOP a byte; only the levels given
    scalar_ratio: float

    @property
    def ceilings(self) -> tuple[Ceiling, ...]:
        r = self.rates
        found = [
            Ceiling(
                name="tensor cores",
                flop_per_s=self.u_shape * r.peak_flop_per_s,
                how=f"U_shape {self.u_shape:.4g} x {r.peak_flop_per_s / 1e12:,.1f} TFLOP/s",
            )
        ]
        for level in r.levels:
            if level.name in self.intensities:
                i = self.intensities[level.name]
                found.append(
                    Ceiling(
                        name=level.name,
                        flop_per_s=i * level.bytes_per_s,
                        how=f"{i:,.4g} FLOP/B x {level.bytes_per_s / 1e12:,.2f} TB/s, "
                        f"ridge {level.ridge:,.1f}",
                    )
                )
        if self.scalar_ratio:
            scalar = r.chip.f32_flop_per_clk_sm * r.chip.sms * r.clock_hz
            found.append(
                Ceiling(
                    name="CUDA cores",
                    flop_per_s=scalar / self.scalar_ratio,
                    how=f"{scalar / 1e12:,.1f} TFLOP/s / {self.scalar_ratio:.4g} a useful FLOP",
                )
            )
        return tuple(found)

    @property
    def useful_flop_per_s(self) -> float:
        """The lowest ceiling."""
        return min(ceiling.flop_per_s for ceiling in self.ceilings)

    @property
    def bound(self) -> str:
        """What the lowest ceiling stands for (the first of equals)."""
        return min(self.ceilings, key=lambda ceiling: ceiling.flop_per_s).name

    @property
    def of_peak(self) -> float:
        return self.useful_flop_per_s / self.rates.peak_flop_per_s

    def bars(self) -> Bars:
        return Bars(unit="TFLOP/s", values={c.name: c.flop_per_s / 1e12 for c in self.ceilings})

    def headline(self) -> Mapping[str, float | str]:
        return {
            "TFLOP/s": round(self.useful_flop_per_s / 1e12, 2),
            "of peak": round(self.of_peak, 4),
            "bound": self.bound,
        }

    def table(self) -> Table:
        return Table(
            title=f"useful throughput at most, {self.rates.dtype.name}, {self.rates.chip.title}",
            columns=("ceiling", "TFLOP/s", "of peak"),
            rows=tuple(
                Row(
                    (
                        c.name,
                        f"{c.flop_per_s / 1e12:,.2f}",
                        f"{c.flop_per_s / self.rates.peak_flop_per_s:.1%}",
                    ),
                    c.how,
                    "mark" if c.name == self.bound else "plain",
                )
                for c in self.ceilings
            ),
            notes=(f"bound by {self.bound}",),
        )

    def plot(self, axes: Axes | None = None) -> Axes:
        """The roofline of every level in TFLOP/s over FLOP a byte, with this kernel's points."""
        ax = plot_axes(axes)
        peak = self.rates.peak_flop_per_s
        grid = [2.0 ** (i / 8) for i in range(-24, 97)]
        for level in self.rates.levels:
            roof = [min(peak, i * level.bytes_per_s) / 1e12 for i in grid]
            (line,) = ax.plot(grid, roof, label=f"{level.name}, ridge {level.ridge:,.0f}")
            if level.name in self.intensities:
                at = self.intensities[level.name]
                height = min(peak, at * level.bytes_per_s) / 1e12
                ax.plot([at], [height], "o", color=line.get_color())
        ax.axhline(self.useful_flop_per_s / 1e12, linestyle="--", label=f"bound: {self.bound}")
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        ax.set_xlabel("useful FLOP a byte")
        ax.set_ylabel("TFLOP/s")
        ax.legend()
        return ax


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One engine's time: an amount at a rate."""

    name: str
    amount: float
    rate: float
    unit: str

    @property
    def seconds(self) -> float:
        return self.amount / self.rate


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBound(Record):
    """The least time of a kernel: the longest term, and what nothing overlaps."""

    rates: Rates
    terms: tuple[Term, ...]
    sync_s: float
    launch_s: float
    useful_flop: float

    @property
    def seconds(self) -> float:
        return max(t.seconds for t in self.terms) + self.sync_s + self.launch_s

    @property
    def bound(self) -> str:
        """The engine with the longest term (the first of equals)."""
        return max(self.terms, key=lambda t: t.seconds).name

    @property
    def useful_flop_per_s(self) -> float:
        return self.useful_flop / self.seconds

    def bars(self) -> Bars:
        return Bars(unit="us", values={t.name: t.seconds * 1e6 for t in self.terms})

    def headline(self) -> Mapping[str, float | str]:
        return {
            "us": round(self.seconds * 1e6, 2),
            "TFLOP/s": round(self.useful_flop_per_s / 1e12, 1),
            "bound": self.bound,
        }

    def table(self) -> Table:
        rows = [
            Row(
                (t.name, f"{t.amount:,.0f}", f"{t.seconds * 1e6:,.2f}"),
                f"at {number(t.rate / 1e12)} T{t.unit}/s",
                "mark" if t.name == self.bound else "plain",
            )
            for t in self.terms
        ]
        rows.append(Row(("sync", "", f"{self.sync_s * 1e6:,.2f}")))
        rows.append(Row(("launch", "", f"{self.launch_s * 1e6:,.2f}")))
        rows.append(
            Row(
                ("at least", "", f"{self.seconds * 1e6:,.2f}"),
                f"{self.useful_flop_per_s / 1e12:,.1f} TFLOP/s useful, bound by {self.bound}",
            )
        )
        return Table(
            title=f"least time, {self.rates.dtype.name}, {self.rates.chip.title}",
            columns=("term", "amount", "us"),
            rows=tuple(rows),
        )


def roofline(
    *,
    hbm: Annotated[float, "useful FLOP a byte of HBM; 0: leave out"] = 0.0,
    l2: Annotated[float, "useful FLOP a byte of L2; 0: leave out"] = 0.0,
    smem: Annotated[float, "useful FLOP a byte of shared memory; 0: leave out"] = 0.0,
    u_shape: Annotated[float, "useful share of the issued FLOP"] = 1.0,
    scalar_ratio: Annotated[float, "CUDA-core FLOP a useful tensor FLOP; 0: none"] = 0.0,
    dtype: Annotated[str, "operand type of the tensor cores"] = "bf16",
    chip: Annotated[str, "chip: h200, h100_sxm, ..."] = "h200",
    clock_mhz: Annotated[float, "SM clock; 0: that of the data sheet"] = 0.0,
) -> Roofline:
    """The most useful FLOP/s under all ceilings at once, and which of them it is.

    Raises ConfigError for a share outside 0 < U_shape <= 1 or a negative intensity.
    """
    in_range(
        "no such roofline",
        ("hbm", hbm, 0, ANY),
        ("l2", l2, 0, ANY),
        ("smem", smem, 0, ANY),
        ("u_shape", u_shape, 1e-9, 1),
        ("scalar_ratio", scalar_ratio, 0, ANY),
    )
    given = {"HBM": hbm, "L2": l2, "shared memory": smem}
    r = rates(chip=chip, dtype=dtype, clock_mhz=clock_mhz)
    return Roofline(
        rates=r,
        u_shape=u_shape,
        intensities={r.level(name).name: value for name, value in given.items() if value},
        scalar_ratio=scalar_ratio,
    )


def time_bound(
    *,
    flop: Annotated[float, "useful tensor FLOP"] = 2.0 * 4096**3,
    u_shape: Annotated[float, "useful share of the issued FLOP"] = 1.0,
    hbm_bytes: Annotated[float, "bytes that pass HBM"] = 3.0 * 2 * 4096**2,
    l2_bytes: Annotated[float, "bytes that leave L2"] = 0.0,
    smem_bytes: Annotated[float, "bytes that leave shared memory"] = 0.0,
    scalar_flop: Annotated[float, "CUDA-core FLOP"] = 0.0,
    sync_us: Annotated[float, "time of barriers that nothing overlaps"] = 0.0,
    launch_us: Annotated[float, "time of the launch"] = 0.0,
    dtype: Annotated[str, "operand type of the tensor cores"] = "bf16",
    chip: Annotated[str, "chip: h200, h100_sxm, ..."] = "h200",
    clock_mhz: Annotated[float, "SM clock; 0: that of the data sheet"] = 0.0,
) -> TimeBound:
    """The least time of a kernel from its bytes and FLOP: the longest term, not the sum.

    Terms of 0 are left out. Raises ConfigError for negative amounts, bytes of a level whose rate is
    not known, or where nothing at all is asked for.
    """
    amounts = {
        "HBM": hbm_bytes,
        "L2": l2_bytes,
        "shared memory": smem_bytes,
        "tensor cores": flop / u_shape if u_shape else 0.0,
        "CUDA cores": scalar_flop,
    }
    in_range(
        "no such time",
        ("u_shape", u_shape, 1e-9, 1),
        *((name, value, 0, ANY) for name, value in amounts.items()),
        ("sync_us", sync_us, 0, ANY),
        ("launch_us", launch_us, 0, ANY),
        ("all amounts", sum(amounts.values()), 1e-9, ANY),
    )
    r = rates(chip=chip, dtype=dtype, clock_mhz=clock_mhz)
    flops = {
        "tensor cores": r.peak_flop_per_s,
        "CUDA cores": r.chip.f32_flop_per_clk_sm * r.chip.sms * r.clock_hz,
    }
    return TimeBound(
        rates=r,
        terms=tuple(
            Term(name=name, amount=amount, rate=flops[name], unit="FLOP")
            if name in flops
            else Term(name=name, amount=amount, rate=r.level(name).bytes_per_s, unit="B")
            for name, amount in amounts.items()
            if amount
        ),
        sync_s=sync_us * 1e-6,
        launch_s=launch_us * 1e-6,
        useful_flop=flop,
    )
