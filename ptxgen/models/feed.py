"""Can shared memory feed the tensor core? One wgmma m64nNk in cycles, term by term.

A wgmma takes 32 bytes of k whatever the type, so its times depend on N alone:

    tensor core        N / 2          2 x 64 x N x 16 FLOP at 4,096 a cycle (16-bit types)
    A from shared      16             64 rows x 32 B at 128 B a cycle
    B from shared      N / 4          N columns x 32 B at 128 B a cycle
    issue, A in regs   13             measured: one warpgroup issues no faster

    SS  max(N / 2, 16 + N / 4)        balanced at N = 64: below, the tensor core waits
    RS  max(N / 2, N / 4, 13)

2:4 sparse wgmma covers twice the k: B doubles (N / 2), A is stored compressed and stays at 16.
These formulas give the completion latencies that others measured on H800, to the cycle, for
N = 8 .. 256 in powers of two, dense, and sparse at N = 256; the other widths are a prediction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from ptxgen.errors import ConfigError, Violation
from ptxgen.isa.arch import CHIPS
from ptxgen.models.record import Bars, Record, Sweep, number, plot_axes
from ptxgen.view import Row, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WGMMA_M = 64
WGMMA_K_BYTES = 32
WIDTHS = range(8, 257, 8)
RS_ISSUE_CYCLES = 13  # measured on H800: steady interval of RS wgmmas of one warpgroup, N <= 16
_HOPPER = CHIPS["h200"]

Operand = Literal["smem", "registers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed(Record):
    """One wgmma m64nNk, its terms in SM cycles. Made by `feed`."""

    n: int
    a: Operand
    sparse: bool

    @property
    def flop(self) -> int:
        """FLOP on 16-bit types; sparse: those of the dense product that it stands for."""
        return 2 * WGMMA_M * self.n * (WGMMA_K_BYTES // 2) * (2 if self.sparse else 1)

    @property
    def tensor_cycles(self) -> float:
        """Cycles of the tensor cores. Sparse multiplies only what is kept."""
        kept = self.flop / (2 if self.sparse else 1)
        return kept / _HOPPER.f16_flop_per_clk_sm

    @property
    def a_cycles(self) -> float:
        """Cycles to read A from shared memory; 0 from registers."""
        if self.a == "registers":
            return 0.0
        return WGMMA_M * WGMMA_K_BYTES / _HOPPER.smem_bytes_per_clk_sm

    @property
    def b_cycles(self) -> float:
        """Cycles to read B from shared memory."""
        k_bytes = WGMMA_K_BYTES * (2 if self.sparse else 1)
        return self.n * k_bytes / _HOPPER.smem_bytes_per_clk_sm

    @property
    def smem_cycles(self) -> float:
        """Cycles of shared memory: A and B one after the other."""
        return self.a_cycles + self.b_cycles

    @property
    def issue_cycles(self) -> float:
        """The measured floor of wgmma with A in registers."""
        return float(RS_ISSUE_CYCLES) if self.a == "registers" else 0.0

    @property
    def cycles(self) -> float:
        """Cycles from one wgmma to the next: the longest term."""
        return max(self.tensor_cycles, self.smem_cycles, self.issue_cycles)

    @property
    def bound(self) -> str:
        """What the cycles are spent on; the tensor core where it ties."""
        if self.tensor_cycles == self.cycles:
            return "tensor core"
        return "shared memory" if self.smem_cycles == self.cycles else "issue"

    @property
    def ratio(self) -> float:
        """Tensor-core cycles over shared-memory cycles: from 1 on, the tensor core is fed."""
        return self.tensor_cycles / self.smem_cycles

    @property
    def utilization(self) -> float:
        """Share of the tensor core's peak that this wgmma can reach."""
        return self.tensor_cycles / self.cycles

    def bars(self) -> Bars:
        return Bars(
            unit="cycles",
            values={
                "tensor core": self.tensor_cycles,
                "A + B from smem": self.smem_cycles,
                "issue": self.issue_cycles,
            },
        )

    def headline(self) -> Mapping[str, float | str]:
        return {
            "cycles": self.cycles,
            "tensor": self.tensor_cycles,
            "smem": self.smem_cycles,
            "ratio": round(self.ratio, 3),
            "of peak": round(self.utilization, 3),
            "bound": self.bound,
        }

    def table(self) -> Table:
        k = "32" if self.sparse else "16"
        rows = (
            Row(("tensor core", number(self.tensor_cycles)), f"{self.flop:,} FLOP"),
            Row(("A from shared memory", number(self.a_cycles))),
            Row(("B from shared memory", number(self.b_cycles))),
            Row(("A + B", number(self.smem_cycles)), f"tensor / smem = {self.ratio:.2f}"),
            Row(("issue", number(self.issue_cycles)), "measured floor" * bool(self.issue_cycles)),
            Row(
                ("wgmma", number(self.cycles)),
                f"bound by {self.bound}, {self.utilization:.1%} of peak",
                "good" if self.utilization == 1 else "bad",
            ),
        )
        return Table(
            title=f"wgmma{'.sp' if self.sparse else ''} m64n{self.n}k{k}, A in {self.a}, B in smem",
            columns=("term", "cycles"),
            rows=rows,
        )

    def plot(self, axes: Axes | None = None) -> Axes:
        """Cycles over all N, SS and RS, with this one marked."""
        ax = plot_axes(axes)
        for a, label in (("smem", "SS"), ("registers", "RS")):
            curve = [Feed(n=n, a=a, sparse=self.sparse) for n in WIDTHS]  # type: ignore[arg-type]
            ax.plot([f.n for f in curve], [f.cycles for f in curve], label=label)
        ax.plot([self.n], [self.cycles], "o", label=f"n = {self.n}")
        ax.set_xlabel("N")
        ax.set_ylabel("cycles a wgmma")
        ax.legend()
        return ax


def feed(
    *,
    n: Annotated[int, "columns of the result: 8..256 in steps of 8"] = 256,
    a: Annotated[Operand, "where A comes from"] = "smem",
    sparse: Annotated[bool, "2:4 sparse A, twice the k"] = False,
) -> Feed:
    """Cycles of one wgmma: tensor core against the operands' way out of shared memory.

    Raises ConfigError for a width that wgmma does not have.
    """
    if n not in WIDTHS or a not in ("smem", "registers"):
        raise ConfigError(
            "no such wgmma",
            [
                Violation(field=field, got=str(got), rule=rule)
                for field, got, ok, rule in (
                    ("n", n, n in WIDTHS, "must be 8..256 in steps of 8"),
                    ("a", a, a in ("smem", "registers"), "must be smem or registers"),
                )
                if not ok
            ],
        )
    return Feed(n=n, a=a, sparse=sparse)


def feed_sweep(*, a: Operand = "smem", sparse: bool = False) -> Sweep:
    """`feed` over N = 8, 16, 32 .. 256."""
    widths = tuple(8 << i for i in range(6))
    return Sweep(
        name=f"wgmma feed, A in {a}",
        axes=("n",),
        points=tuple((n,) for n in widths),
        records=tuple(feed(n=n, a=a, sparse=sparse) for n in widths),
    )
