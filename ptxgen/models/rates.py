"""A chip's rates per SM and clock, and its ridge points: FLOP a byte to be compute-bound.

    ridge = peak FLOP/s / bytes/s

A kernel whose arithmetic intensity at a memory level lies below the level's ridge waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from ptxgen.errors import ConfigError, Violation
from ptxgen.isa.arch import SM_PARTITIONS, Chip
from ptxgen.isa.dtypes import DType
from ptxgen.models.record import Bars, Record, chip_row, element, number, tensor_rate
from ptxgen.view import Row, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A memory level: its bandwidth over the chip, and the ridge point of a dtype."""

    name: str
    bytes_per_s: float
    bytes_per_clk_sm: float
    ridge: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates(Record):
    """What one SM does in a clock, and the whole chip in a second. Made by `rates`."""

    chip: Chip
    dtype: DType
    clock_hz: float

    @property
    def flop_per_clk_sm(self) -> int:
        """Dense tensor FLOP of one SM in a clock."""
        return tensor_rate(self.chip, self.dtype)

    @property
    def fma_per_clk_tensor_core(self) -> float:
        """FMA of one tensor core in a clock (one tensor core a quarter of the SM)."""
        return self.flop_per_clk_sm / 2 / SM_PARTITIONS

    @property
    def tensor_cores(self) -> int:
        return self.chip.sms * SM_PARTITIONS

    @property
    def peak_flop_per_s(self) -> float:
        return self.flop_per_clk_sm * self.chip.sms * self.clock_hz

    @property
    def levels(self) -> tuple[Level, ...]:
        """HBM, L2 (where its rate is known) and shared memory."""
        chip, clocks = self.chip, self.clock_hz * self.chip.sms
        rows = [("HBM", chip.hbm_bytes_per_s)]
        if chip.l2_bytes_per_clk:
            rows.append(("L2", chip.l2_bytes_per_clk * self.clock_hz))
        rows.append(("shared memory", chip.smem_bytes_per_clk_sm * clocks))
        return tuple(
            Level(
                name=name,
                bytes_per_s=rate,
                bytes_per_clk_sm=rate / clocks,
                ridge=self.peak_flop_per_s / rate,
            )
            for name, rate in rows
        )

    @property
    def ridge(self) -> float:
        """FLOP for each byte of HBM from which on the tensor cores are the limit."""
        return self.levels[0].ridge

    def find(self, name: str) -> Level | None:
        """The level of that name, or None where its rate is not known."""
        return next((level for level in self.levels if level.name == name), None)

    def level(self, name: str) -> Level:
        """The level of that name. Raises ConfigError where the chip's rate is not known."""
        found = self.find(name)
        if found is None:
            raise ConfigError(
                f"no {name} rate of {self.chip.title}",
                [
                    Violation(
                        field="chip",
                        got=self.chip.name,
                        rule=f"must have a known {name} rate",
                        fix="leave that level out, or take another chip",
                    )
                ],
            )
        return found

    def bars(self) -> Bars:
        values = {level.name: level.ridge for level in self.levels}
        return Bars(unit="ridge, FLOP a byte", values=values)

    def headline(self) -> Mapping[str, float | str]:
        return {
            "ridge": round(self.ridge, 1),
            "TFLOP/s": round(self.peak_flop_per_s / 1e12, 1),
            "HBM TB/s": self.chip.hbm_bytes_per_s / 1e12,
            "FLOP/clk/SM": self.flop_per_clk_sm,
            "SMs": self.chip.sms,
        }

    def table(self) -> Table:
        flop = Row(
            (
                f"tensor cores, {self.dtype.name}",
                f"{self.peak_flop_per_s / 1e12:,.1f} TFLOP/s",
                f"{self.flop_per_clk_sm:,} FLOP",
                "",
            ),
            f"{self.tensor_cores} x {number(self.fma_per_clk_tensor_core)} FMA a clock",
        )
        memory = [
            Row(
                (
                    level.name,
                    f"{level.bytes_per_s / 1e12:,.2f} TB/s",
                    f"{level.bytes_per_clk_sm:,.1f} B",
                    f"{level.ridge:,.1f}",
                )
            )
            for level in self.levels
        ]
        return Table(
            title=f"{self.chip.title}: {self.chip.sms} SMs at {self.clock_hz / 1e6:,.0f} MHz",
            columns=("unit", "chip", "SM, clock", "ridge FLOP/B"),
            rows=(flop, *memory),
            notes=(
                "the clock is that of the data sheet; HBM bytes a clock rise when the clock drops",
            )
            if self.clock_hz == self.chip.clock_hz
            else (),
        )


def rates(
    *,
    chip: Annotated[str, "chip: h200, h100_sxm, ..."] = "h200",
    dtype: Annotated[str, "operand type of the tensor cores"] = "bf16",
    clock_mhz: Annotated[float, "SM clock; 0: that of the data sheet"] = 0.0,
) -> Rates:
    """Peak rates of a chip per SM and clock, and its ridge point at each memory level.

    Raises ConfigError for an unknown chip, or a dtype its tensor cores do not take.
    """
    row = chip_row(chip)
    record = Rates(chip=row, dtype=element(dtype), clock_hz=clock_mhz * 1e6 or row.clock_hz)
    tensor_rate(row, record.dtype)  # refuse here, not when a property is read
    return record
