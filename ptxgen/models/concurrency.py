"""How much must be under way to hide a latency (Little's law).

    items in flight = latency x items a clock

Warps hide latency by taking turns: with W resident warps and `independent` instructions of each in
flight, a unit that takes one warp instruction every `interval` cycles never idles if

    W x independent x interval >= latency

More than that gains nothing: occupancy is a means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Annotated

from ptxgen.isa.arch import THREADS_PER_SM, WARP_THREADS
from ptxgen.models.record import ANY, Bars, Record, in_range, number
from ptxgen.view import Row, Table

WARPS_PER_SM = THREADS_PER_SM // WARP_THREADS


@dataclass(frozen=True, slots=True, kw_only=True)
class Concurrency(Record):
    """Warps against a latency. Made by `concurrency`."""

    warps: int
    latency: float
    interval: float
    independent: int

    @property
    def needed(self) -> int:
        """Warps that keep the unit busy."""
        return ceil(self.latency / (self.interval * self.independent))

    @property
    def busy(self) -> float:
        """Share of the unit's issue slots that these warps fill."""
        return min(self.warps * self.independent * self.interval / self.latency, 1.0)

    def bars(self) -> Bars:
        return Bars(unit="warps", values={"resident": self.warps, "needed": self.needed})

    def headline(self) -> Mapping[str, float | str]:
        return {"busy": round(self.busy, 3), "warps needed": self.needed}

    def table(self) -> Table:
        enough = self.warps >= self.needed
        return Table(
            title=f"latency {number(self.latency)} cycles, one warp instruction every "
            f"{number(self.interval)}, {self.independent} independent a warp",
            columns=("", "warps"),
            rows=(
                Row(("resident", str(self.warps)), f"{self.busy:.0%} busy"),
                Row(
                    ("needed", str(self.needed)),
                    "hidden" if enough else f"{self.needed - self.warps} more, or more independent",
                    "good" if enough else "bad",
                ),
            ),
        )


def concurrency(
    *,
    warps: Annotated[int, "resident warps that share the unit"] = 16,
    latency: Annotated[float, "cycles from issue to result"] = 656.0,
    interval: Annotated[float, "cycles between two warp instructions on the unit"] = 8.0,
    independent: Annotated[int, "independent instructions in flight of a warp"] = 4,
) -> Concurrency:
    """Warps needed to hide a latency, and how busy the given ones keep the unit.

    Raises ConfigError for more warps than an SM holds, or no time.
    """
    in_range(
        "no such latency",
        ("warps", warps, 1, WARPS_PER_SM),
        ("latency", latency, 1e-9, ANY),
        ("interval", interval, 1e-9, ANY),
        ("independent", independent, 1, ANY),
    )
    return Concurrency(warps=warps, latency=latency, interval=interval, independent=independent)
