"""Mixture of experts: rows an expert gets, tiles they make, and what the padding costs.

Every token makes `top_k` choices, spread over `experts` (times `heads`, where every head has
experts of its own and a token's choices go to all of them): rows an expert on average are

    tokens x top_k / (experts x heads)

Experts differ, so a grouped GEMM numbers the tiles of all experts in one sequence; a tile finds its
expert by a binary search in the prefix sums.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, NamedTuple

from ptxgen.errors import ConfigError, Violation
from ptxgen.models.rates import Rates, rates
from ptxgen.models.record import ANY, Bars, Record, in_range, number
from ptxgen.models.waves import Waves
from ptxgen.view import Row, Table


class Place(NamedTuple):
    """Where a tile of a grouped product lies."""

    expert: int
    m_tile: int
    n_tile: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeRows(Record):
    """Rows of every expert as tiles. Made by `moe_rows`."""

    rows: tuple[int, ...]
    n: int
    tile_m: int
    tile_n: int
    rates: Rates

    @property
    def experts(self) -> int:
        return len(self.rows)

    @property
    def mean_rows(self) -> float:
        return sum(self.rows) / self.experts

    @property
    def m_tiles(self) -> int:
        """Tiles along M of all experts."""
        return sum(-(-rows // self.tile_m) for rows in self.rows)

    @property
    def n_tiles(self) -> int:
        return -(-self.n // self.tile_n)

    @property
    def tiles(self) -> int:
        return self.m_tiles * self.n_tiles

    @property
    def u_shape(self) -> float:
        """Useful share of the issued FLOP: rows and columns over whole tiles; 1 without tiles."""
        issued = self.m_tiles * self.tile_m * self.n_tiles * self.tile_n
        return sum(self.rows) * self.n / issued if issued else 1.0

    @property
    def intensity(self) -> float:
        """FLOP for each byte of the weights that are read (experts without rows are not)."""
        used = sum(rows > 0 for rows in self.rows)
        return 2 * sum(self.rows) / used / self.rates.dtype.bytes if used else 0.0

    @property
    def waves(self) -> Waves:
        """All tiles over the chip, one CTA an SM."""
        return Waves(
            m_tiles=self.m_tiles,
            n_tiles=self.n_tiles,
            cluster_size=1,
            resident_ctas=self.rates.chip.sms,
        )

    @property
    def bound(self) -> str:
        """HBM where the weights' intensity is below the ridge, else the tensor cores."""
        return "HBM" if self.intensity < self.rates.ridge else "tensor core"

    def locate(self, tile: int) -> Place:
        """Expert and tile coordinates of the tile of that number; M varies fastest in an expert.

        Raises IndexError past the last tile.
        """
        if not 0 <= tile < self.tiles:
            raise IndexError(f"tile {tile} of {self.tiles}")
        counts = [-(-rows // self.tile_m) * self.n_tiles for rows in self.rows]
        ends = list(accumulate(counts))
        expert = bisect_right(ends, tile)
        inside = tile - (ends[expert] - counts[expert])
        own = -(-self.rows[expert] // self.tile_m)
        return Place(expert=expert, m_tile=inside % own, n_tile=inside // own)

    def bars(self) -> Bars:
        return Bars(unit="rows", values={f"expert {i}": n for i, n in enumerate(self.rows)})

    def headline(self) -> Mapping[str, float | str]:
        return {
            "rows": round(self.mean_rows, 2),
            "U_shape": round(self.u_shape, 4),
            "tiles": self.tiles,
            "waves": self.waves.waves,
            "FLOP/B": round(self.intensity, 2),
            "bound": self.bound,
        }

    def table(self) -> Table:
        w = self.waves
        return Table(
            title=f"{self.experts} experts, tiles of {self.tile_m}x{self.tile_n}, "
            f"{self.rates.chip.title}",
            columns=("", "value"),
            rows=(
                Row(
                    ("rows an expert", number(round(self.mean_rows, 2))),
                    f"{min(self.rows):,} to {max(self.rows):,}",
                ),
                Row(("tiles", f"{self.tiles:,}"), f"{self.m_tiles:,} along M x {self.n_tiles:,}"),
                Row(("waves", str(w.waves)), f"at {w.efficiency:.0%} of {w.resident_ctas} SMs"),
                Row(("U_shape", f"{self.u_shape:.4g}"), "useful share of the issued FLOP"),
                Row(
                    ("FLOP a weight byte", number(round(self.intensity, 2))),
                    f"ridge {self.rates.ridge:,.1f}: bound by {self.bound}",
                ),
            ),
        )


def spread(total: int, parts: int) -> tuple[int, ...]:
    """`total` over `parts` as evenly as whole numbers allow, the larger parts first."""
    return tuple(total // parts + (i < total % parts) for i in range(parts))


def moe_rows(
    *,
    tokens: Annotated[int, "tokens of the batch"] = 4096,
    experts: Annotated[int, "experts (of each head)"] = 8,
    top_k: Annotated[int, "experts that a token chooses"] = 2,
    heads: Annotated[int, "heads with experts of their own; 1: experts see whole tokens"] = 1,
    n: Annotated[int, "columns of an expert's weights"] = 4096,
    tile_m: Annotated[int, "rows of D a CTA computes"] = 128,
    tile_n: Annotated[int, "columns of D a CTA computes"] = 128,
    rows: Annotated[str, "rows of each expert, as 3,0,17; empty: an even spread"] = "",
    dtype: Annotated[str, "type of the weights"] = "bf16",
    chip: Annotated[str, "chip: h200, h100_sxm, ..."] = "h200",
) -> MoeRows:
    """Rows, tiles, waves and U_shape of a mixture of experts.

    Raises ConfigError for counts below 1 or rows that cannot be read.
    """
    in_range(
        "no such mixture",
        ("tokens", tokens, 0, ANY),
        ("experts", experts, 1, ANY),
        ("top_k", top_k, 1, ANY),
        ("heads", heads, 1, ANY),
        ("n", n, 1, ANY),
        ("tile_m", tile_m, 1, ANY),
        ("tile_n", tile_n, 1, ANY),
    )
    counts = _counts(rows) if rows else spread(tokens * top_k, experts * heads)
    return MoeRows(
        rows=tuple(counts), n=n, tile_m=tile_m, tile_n=tile_n, rates=rates(chip=chip, dtype=dtype)
    )


def _counts(text: str) -> Sequence[int]:
    parts = text.replace(" ", "").split(",")
    if not all(part.isdigit() for part in parts):
        raise ConfigError(
            "rows cannot be read",
            [Violation(field="rows", got=text, rule="must be whole numbers joined by commas")],
        )
    return [int(part) for part in parts]
