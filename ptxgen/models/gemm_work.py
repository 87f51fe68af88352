"""The work of one GEMM: FLOP useful and issued, bytes at each level, waves, and the least time.

HBM   M K + K N + M N elements at least; more is re-reading or spilling
L2    every tile reads its rows of A and columns of B for all of K: a tile_m x tile_n tile reuses
      each byte tile_m tile_n / (tile_m + tile_n) x 2 / element size FLOP; a cluster loads a
      shared operand once. Without tiles (1 x 1) A is read N times and B M times
SMEM  every wgmma reads its A and B
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Annotated

from ptxgen.isa.dtypes import DType
from ptxgen.models.feed import WGMMA_K_BYTES, WGMMA_M, feed
from ptxgen.models.rates import Rates, rates
from ptxgen.models.record import ANY, Bars, Record, element, in_range
from ptxgen.models.roofline import Term
from ptxgen.models.waves import Waves
from ptxgen.view import Row, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmWork(Record):
    """D[m, n] = A[m, k] B[n, k]^T in tiles. Made by `gemm_work`."""

    m: int
    n: int
    k: int
    tile_m: int
    tile_n: int
    tile_k: int
    cluster_m: int
    cluster_n: int
    dtype: DType
    out: DType
    rates: Rates

    # -- FLOP --------------------------------------------------------------------------------------

    @property
    def useful_flop(self) -> int:
        return 2 * self.m * self.n * self.k

    @property
    def issued_flop(self) -> int:
        """FLOP of whole tiles, padding included."""
        padded_k = ceil(self.k / self.tile_k) * self.tile_k
        return 2 * self.tiles * self.tile_m * self.tile_n * padded_k

    @property
    def u_shape(self) -> float:
        """Useful share of the issued FLOP."""
        return self.useful_flop / self.issued_flop

    # -- tiles -------------------------------------------------------------------------------------

    @property
    def waves(self) -> Waves:
        """Cluster tiles over the chip, one CTA an SM."""
        return Waves(
            m_tiles=ceil(self.m / (self.tile_m * self.cluster_m)),
            n_tiles=ceil(self.n / (self.tile_n * self.cluster_n)),
            cluster_size=self.cluster_m * self.cluster_n,
            resident_ctas=self.rates.chip.sms,
        )

    @property
    def tiles(self) -> int:
        """CTA tiles, those that only fill up a cluster included."""
        return self.waves.tiles * self.waves.cluster_size

    # -- bytes -------------------------------------------------------------------------------------

    @property
    def ideal_bytes(self) -> int:
        """Every element of A, B and D once."""
        inputs = (self.m * self.k + self.k * self.n) * self.dtype.bytes
        return inputs + self.m * self.n * self.out.bytes

    @property
    def naive_bytes(self) -> int:
        """Loads without any reuse: A read N times, B read M times."""
        return 2 * self.m * self.n * self.k * self.dtype.bytes

    @property
    def l2_bytes(self) -> int:
        """Bytes of A and B that leave L2, and of D."""
        rows = self.tile_m / self.cluster_n + self.tile_n / self.cluster_m
        padded_k = ceil(self.k / self.tile_k) * self.tile_k
        loads = self.tiles * rows * padded_k * self.dtype.bytes
        return round(loads) + self.m * self.n * self.out.bytes

    @property
    def smem_bytes(self) -> int:
        """Bytes that wgmma reads from shared memory: 64 rows of A and all of B each time."""
        k_steps = ceil(self.k / self.tile_k) * self.tile_k * self.dtype.bytes // WGMMA_K_BYTES
        one = (WGMMA_M + self.tile_n) * WGMMA_K_BYTES
        return self.tiles * (self.tile_m // WGMMA_M) * k_steps * one

    @property
    def intensity(self) -> float:
        """Useful FLOP for each ideal byte."""
        return self.useful_flop / self.ideal_bytes

    @property
    def tile_intensity(self) -> float:
        """FLOP for each byte that a tile loads from L2: the reuse law."""
        loaded = self.tile_m / self.cluster_n + self.tile_n / self.cluster_m
        return 2 * self.tile_m * self.tile_n / loaded / self.dtype.bytes

    # -- time --------------------------------------------------------------------------------------

    @property
    def terms(self) -> tuple[Term, ...]:
        """What each engine takes if it works all the time; on-chip terms as waves allow."""
        busy = self.waves.efficiency
        peak = self.rates.peak_flop_per_s * feed(n=self.tile_n).utilization
        sms = self.waves.grid_ctas / self.rates.chip.sms
        smem = self.rates.level("shared memory").bytes_per_s
        found = [
            Term(
                name="HBM", amount=self.ideal_bytes, rate=self.rates.chip.hbm_bytes_per_s, unit="B"
            ),
            Term(name="shared memory", amount=self.smem_bytes, rate=smem * busy * sms, unit="B"),
            Term(name="tensor cores", amount=self.issued_flop, rate=peak * busy * sms, unit="FLOP"),
        ]
        l2 = self.rates.find("L2")
        if l2:
            found.insert(1, Term(name="L2", amount=self.l2_bytes, rate=l2.bytes_per_s, unit="B"))
        return tuple(found)

    @property
    def seconds(self) -> float:
        """The longest term: no launch, ring filling or epilogue."""
        return max(term.seconds for term in self.terms)

    @property
    def bound(self) -> str:
        """The engine with the longest term; the tensor cores where they tie."""
        return max(reversed(self.terms), key=lambda term: term.seconds).name

    @property
    def useful_flop_per_s(self) -> float:
        return self.useful_flop / self.seconds

    @property
    def of_peak(self) -> float:
        return self.useful_flop_per_s / self.rates.peak_flop_per_s

    def bars(self) -> Bars:
        return Bars(unit="us", values={t.name: t.seconds * 1e6 for t in self.terms})

    def headline(self) -> Mapping[str, float | str]:
        return {
            "us": round(self.seconds * 1e6, 2),
            "TFLOP/s": round(self.useful_flop_per_s / 1e12, 1),
            "of peak": round(self.of_peak, 3),
            "U_shape": round(self.u_shape, 4),
            "waves": self.waves.waves,
            "bound": self.bound,
        }

    def table(self) -> Table:
        rows = [
            Row(("useful FLOP", f"{self.useful_flop:,}"), f"U_shape {self.u_shape:.4g}"),
            Row(("ideal bytes", f"{self.ideal_bytes:,}"), f"{self.intensity:,.4g} FLOP/B"),
            Row(
                ("bytes from L2", f"{self.l2_bytes:,}"),
                f"{self.naive_bytes / self.l2_bytes:,.4g} x less than without tiles, "
                f"{self.tile_intensity:,.4g} FLOP/B in a tile",
            ),
            Row(("bytes from smem", f"{self.smem_bytes:,}")),
            Row(
                ("tiles", f"{self.tiles:,}"),
                f"{self.waves.waves} waves at {self.waves.efficiency:.0%}",
            ),
        ]
        rows += [
            Row(
                (f"{term.name} us", f"{term.seconds * 1e6:,.2f}"),
                tone="mark" if term.name == self.bound else "plain",
            )
            for term in self.terms
        ]
        rows.append(
            Row(
                ("at least us", f"{self.seconds * 1e6:,.2f}"),
                f"{self.useful_flop_per_s / 1e12:,.1f} TFLOP/s, {self.of_peak:.1%} of peak, "
                f"bound by {self.bound}",
            )
        )
        return Table(
            title=f"{self.m} x {self.n} x {self.k} {self.dtype.name} in tiles of {self.tile_m}x"
            f"{self.tile_n}x{self.tile_k}, cluster {self.cluster_m}x{self.cluster_n}, "
            f"{self.rates.chip.title}",
            columns=("", "value"),
            rows=tuple(rows),
        )


def gemm_work(
    *,
    m: Annotated[int, "rows of D"] = 4096,
    n: Annotated[int, "columns of D"] = 4096,
    k: Annotated[int, "depth"] = 4096,
    tile_m: Annotated[int, "rows of D a CTA computes"] = 128,
    tile_n: Annotated[int, "columns of D a CTA computes"] = 256,
    tile_k: Annotated[int, "k of one stage"] = 64,
    cluster_m: Annotated[int, "CTAs along M that share B"] = 1,
    cluster_n: Annotated[int, "CTAs along N that share A"] = 1,
    dtype: Annotated[str, "type of A and B"] = "bf16",
    out_dtype: Annotated[str, "type of D; same: that of A and B"] = "same",
    chip: Annotated[str, "chip: h200, h100_sxm, ..."] = "h200",
    clock_mhz: Annotated[float, "SM clock; 0: that of the data sheet"] = 0.0,
) -> GemmWork:
    """A GEMM's FLOP, bytes at each level, waves and least time for one tile and cluster.

    Raises ConfigError for extents below 1 or a tile that is not made of whole wgmmas.
    """
    ty = element(dtype)
    step = WGMMA_K_BYTES // ty.bytes
    in_range(
        "no such GEMM",
        ("m", m, 1, ANY),
        ("n", n, 1, ANY),
        ("k", k, 1, ANY),
        ("tile_m", tile_m, WGMMA_M, ANY),
        ("tile_m % 64", tile_m % WGMMA_M, 0, 0),
        ("tile_n", tile_n, 8, 256),
        ("tile_n % 8", tile_n % 8, 0, 0),
        ("tile_k", tile_k, step, ANY),
        (f"tile_k % {step}", tile_k % step, 0, 0),
        ("cluster_m", cluster_m, 1, 16),
        ("cluster_n", cluster_n, 1, 16),
    )
    return GemmWork(
        m=m, n=n, k=k, tile_m=tile_m, tile_n=tile_n, tile_k=tile_k,
        cluster_m=cluster_m, cluster_n=cluster_n, dtype=ty,
        out=ty if out_dtype == "same" else element(out_dtype),
        rates=rates(chip=chip, dtype=dtype, clock_mhz=clock_mhz),
    )  # fmt: skip
