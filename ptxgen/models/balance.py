"""How many rows share what is loaded: the arithmetic intensity of attention and skinny products.

A tile of M rows meets an operand that streams by (K and V, or weights): every byte of it is used
for M rows, so a 16-bit operand gives M FLOP a byte (2 M / element size). What hits in L2 does not
come from HBM, and with hit rate h the HBM intensity is M / (1 - h). It must reach the ridge, so

    hit rate needed = 1 - intensity / ridge

A random gather misses and falls back to M. Heads of one group (GQA) share K and V: they multiply M.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from ptxgen.isa.arch import Chip
from ptxgen.isa.dtypes import DType
from ptxgen.models.feed import WGMMA_M
from ptxgen.models.rates import Rates, rates
from ptxgen.models.record import ANY, Bars, Record, in_range, number, plot_axes
from ptxgen.view import Row, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, kw_only=True)
class MBalance(Record):
    """M rows against HBM, with part of the reads hitting L2. Made by `m_balance`."""

    rows: int
    hit: float
    rates: Rates

    @property
    def l2_intensity(self) -> float:
        """FLOP for each byte that leaves L2: 2 M / element size."""
        return 2 * self.rows / self.rates.dtype.bytes

    @property
    def hbm_intensity(self) -> float:
        """FLOP for each byte that leaves HBM."""
        return self.l2_intensity / (1 - self.hit)

    @property
    def ridge(self) -> float:
        return self.rates.ridge

    @property
    def ratio(self) -> float:
        """HBM intensity over the ridge: from 1 on, HBM is not the limit."""
        return self.hbm_intensity / self.ridge

    @property
    def hit_needed(self) -> float:
        """The least L2 hit rate at which HBM is not the limit; 0 where none is needed."""
        return max(0.0, 1 - self.l2_intensity / self.ridge)

    @property
    def rows_needed(self) -> int:
        """Rows at which HBM is not the limit at this hit rate."""
        return int(-(-self.ridge * (1 - self.hit) * self.rates.dtype.bytes // 2))

    @property
    def l2_ratio(self) -> float | None:
        """L2 intensity over the ridge of L2, where the L2 rate is known."""
        l2 = self.rates.find("L2")
        return self.l2_intensity / l2.ridge if l2 else None

    def bars(self) -> Bars:
        return Bars(
            unit="FLOP a byte of HBM",
            values={f"M = {self.rows}": self.hbm_intensity, "ridge": self.ridge},
        )

    def headline(self) -> Mapping[str, float | str]:
        return {
            "ratio": round(self.ratio, 3),
            "FLOP/B": round(self.hbm_intensity, 1),
            "ridge": round(self.ridge, 1),
            "hit needed": round(self.hit_needed, 3),
        }

    def table(self) -> Table:
        fed = self.ratio >= 1
        rows = [
            Row(("FLOP a byte, L2", number(round(self.l2_intensity, 2))), "2 M / element size"),
            Row(
                ("FLOP a byte, HBM", number(round(self.hbm_intensity, 2))),
                f"at {self.hit:.0%} hits",
            ),
            Row(("ridge of HBM", f"{self.ridge:,.1f}")),
            Row(
                ("of the ridge", f"{self.ratio:.2f}"),
                "tensor cores are the limit"
                if fed
                else f"HBM is the limit, {1 / self.ratio:.2f}x short",
                "good" if fed else "bad",
            ),
            Row(("hit rate needed", f"{self.hit_needed:.1%}"), f"or {self.rows_needed} rows"),
        ]
        if self.l2_ratio is not None:
            rows.append(Row(("of the ridge of L2", f"{self.l2_ratio:.2f}")))
        return Table(
            title=f"M = {self.rows} rows, {self.rates.dtype.name}, {self.rates.chip.title}",
            columns=("", "value"),
            rows=tuple(rows),
        )

    def plot(self, axes: Axes | None = None) -> Axes:
        """HBM intensity over the hit rate, with the ridge and this point."""
        ax = plot_axes(axes)
        hits = [i / 100 for i in range(100)]
        ax.plot(hits, [self.l2_intensity / (1 - h) for h in hits], label=f"M = {self.rows}")
        ax.axhline(self.ridge, linestyle="--", label="ridge")
        ax.plot([self.hit], [self.hbm_intensity], "o")
        ax.set_yscale("log")
        ax.set_xlabel("L2 hit rate")
        ax.set_ylabel("FLOP a byte of HBM")
        ax.legend()
        return ax


@dataclass(frozen=True, slots=True, kw_only=True)
class Gqa(Record):
    """Rows that share one K/V head, and what a decode or prefill step reads. Made by `gqa`."""

    q_heads: int
    kv_heads: int
    q_len: int
    kv_len: int
    head_dim: int
    batch: int
    rates: Rates

    @property
    def chip(self) -> Chip:
        return self.rates.chip

    @property
    def dtype(self) -> DType:
        return self.rates.dtype

    @property
    def group(self) -> int:
        """Query heads that share a K/V head."""
        return self.q_heads // self.kv_heads

    @property
    def rows(self) -> int:
        """Query rows that meet one K/V head: group x query length."""
        return self.group * self.q_len

    @property
    def issued_rows(self) -> int:
        """Rows that wgmma computes for them: whole tiles of 64."""
        return -(-self.rows // WGMMA_M) * WGMMA_M

    @property
    def u_shape(self) -> float:
        """Useful share of the issued FLOP."""
        return self.rows / self.issued_rows

    @property
    def intensity(self) -> float:
        """FLOP for each byte of K and V."""
        return 2 * self.rows / self.dtype.bytes

    @property
    def kv_bytes(self) -> int:
        """Bytes of K and V that the step reads once: 2 x heads x length x head size x batch."""
        return 2 * self.kv_heads * self.kv_len * self.head_dim * self.dtype.bytes * self.batch

    @property
    def flop(self) -> int:
        """Useful FLOP of both products, without a mask."""
        return 4 * self.batch * self.q_heads * self.q_len * self.kv_len * self.head_dim

    @property
    def hbm_seconds(self) -> float:
        """The least time: every K and V byte once at the data sheet's bandwidth."""
        return self.kv_bytes / self.chip.hbm_bytes_per_s

    @property
    def tensor_seconds(self) -> float:
        """Time of the issued FLOP at peak."""
        return self.flop / self.u_shape / self.rates.peak_flop_per_s

    @property
    def bound(self) -> str:
        return "HBM" if self.hbm_seconds >= self.tensor_seconds else "tensor core"

    def bars(self) -> Bars:
        return Bars(
            unit="us",
            values={"HBM": self.hbm_seconds * 1e6, "tensor cores": self.tensor_seconds * 1e6},
        )

    def headline(self) -> Mapping[str, float | str]:
        return {
            "rows": self.rows,
            "U_shape": round(self.u_shape, 4),
            "FLOP/B": self.intensity,
            "HBM us": round(self.hbm_seconds * 1e6, 2),
            "tensor us": round(self.tensor_seconds * 1e6, 2),
            "bound": self.bound,
        }

    def table(self) -> Table:
        rows = (
            Row(
                ("rows a K/V head", f"{self.rows:,}"), f"{self.group} heads x {self.q_len} queries"
            ),
            Row(("rows issued", f"{self.issued_rows:,}"), f"U_shape {self.u_shape:.4g}"),
            Row(("FLOP a byte", number(self.intensity)), f"ridge {self.rates.ridge:,.1f}"),
            Row(("K and V", f"{self.kv_bytes:,} B"), f"{self.hbm_seconds * 1e6:,.2f} us from HBM"),
            Row(
                ("FLOP", f"{self.flop:,}"),
                f"{self.tensor_seconds * 1e6:,.2f} us as issued, at peak",
            ),
            Row(("bound", self.bound), tone="mark"),
        )
        return Table(
            title=f"{self.q_heads}/{self.kv_heads} heads of {self.head_dim}, {self.dtype.name}, "
            f"batch {self.batch}, {self.chip.title}",
            columns=("", "value"),
            rows=rows,
        )


def m_balance(
    *,
    rows: Annotated[int, "rows M that share each loaded operand"] = 64,
    hit: Annotated[float, "L2 hit rate, 0 <= hit < 1"] = 0.0,
    dtype: Annotated[str, "type of the operand that streams by"] = "bf16",
    chip: Annotated[str, "chip: h200, h100_sxm, ..."] = "h200",
) -> MBalance:
    """Rows that share an operand against HBM: intensity, ridge, and the L2 hit rate needed.

    Raises ConfigError for a hit rate outside 0 <= hit < 1, or no rows.
    """
    in_range("no such balance", ("rows", rows, 1, ANY), ("hit", hit, 0.0, 1 - 1e-9))
    return MBalance(rows=rows, hit=hit, rates=rates(chip=chip, dtype=dtype))


def gqa(
    *,
    q_heads: Annotated[int, "query heads"] = 32,
    kv_heads: Annotated[int, "K/V heads; must divide the query heads"] = 8,
    q_len: Annotated[int, "query positions of the step; 1 is decode"] = 1,
    kv_len: Annotated[int, "K/V positions"] = 4096,
    head_dim: Annotated[int, "elements of a head"] = 128,
    batch: Annotated[int, "sequences"] = 1,
    dtype: Annotated[str, "type of K and V"] = "bf16",
    chip: Annotated[str, "chip: h200, h100_sxm, ..."] = "h200",
) -> Gqa:
    """Grouped-query attention: rows that share K and V, U_shape, bytes and the least time.

    Raises ConfigError where the K/V heads do not divide the query heads.
    """
    counts = {"q_heads": q_heads, "kv_heads": kv_heads, "q_len": q_len, "kv_len": kv_len,
              "head_dim": head_dim, "batch": batch}  # fmt: skip
    in_range("no such attention", *((name, value, 1, ANY) for name, value in counts.items()))
    in_range("kv_heads must divide q_heads", ("q_heads % kv_heads", q_heads % kv_heads, 0, 0))
    return Gqa(**counts, rates=rates(chip=chip, dtype=dtype))
