"""How many tiles, in how many waves, and in which order they share rows and columns in L2.

Tiles run in waves of as many clusters as the device holds. A cluster lives in one GPC, so a GPC of
16 or 18 SMs holds whole clusters only: bigger clusters leave more SMs idle, and their tails are
longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Annotated

from ptxgen.errors import ConfigError, Violation
from ptxgen.isa.arch import CLUSTER_MAX, CTAS_PER_SM
from ptxgen.models.record import ANY, Bars, Record, chip_row, in_range
from ptxgen.view import Row, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Waves(Record):
    """A grid of cluster tiles on a device that runs `resident_ctas` CTAs of the kernel at once."""

    m_tiles: int  # cluster tiles along M
    n_tiles: int
    batches: int = 1  # products of that many tiles each
    cluster_size: int
    resident_ctas: int

    @property
    def tiles(self) -> int:
        return self.m_tiles * self.n_tiles * self.batches

    @property
    def clusters(self) -> int:
        """Clusters that run: no more than there are tiles, nor than fit on the device."""
        return min(self.tiles, max(self.resident_ctas // self.cluster_size, 1))

    @property
    def grid_ctas(self) -> int:
        return self.clusters * self.cluster_size

    @property
    def waves(self) -> int:
        return ceil(self.tiles / self.clusters) if self.tiles else 0

    @property
    def tail_tiles(self) -> int:
        """Cluster tiles of the last wave."""
        return self.tiles - max(self.waves - 1, 0) * self.clusters

    @property
    def efficiency(self) -> float:
        """Busy share of the cluster slots over all waves."""
        return self.tiles / (self.waves * self.clusters) if self.tiles else 1.0

    def raster_group(self, cluster_tile_m: int, cluster_tile_n: int) -> int:
        """Rows of cluster tiles to walk together, so that a wave re-reads as little as it can.

        `group` rows by `clusters / group` columns in flight read group * tile_m rows of A and
        columns * tile_n rows of B for each k: the group with the smallest sum wins.
        """
        if not self.tiles:
            return 1

        def rows_read(group: int) -> int:
            columns = min(ceil(self.clusters / group), self.n_tiles)
            return group * cluster_tile_m + columns * cluster_tile_n

        return min(range(1, min(self.m_tiles, self.clusters) + 1), key=rows_read)

    def bars(self) -> Bars:
        tiles = [self.clusters] * (self.waves - 1) + [self.tail_tiles] * (self.waves > 0)
        return Bars(
            unit="cluster tiles", values={f"wave {i}": float(n) for i, n in enumerate(tiles)}
        )

    def headline(self) -> Mapping[str, float | str]:
        return {
            "efficiency": round(self.efficiency, 4),
            "tiles": self.tiles,
            "clusters": self.clusters,
            "waves": self.waves,
            "last wave": self.tail_tiles,
        }

    def table(self) -> Table:
        idle = self.clusters - self.tail_tiles
        return Table(
            title=f"cluster tiles in waves, clusters of {self.cluster_size}",
            columns=("", "count"),
            rows=(
                Row(("cluster tiles", f"{self.tiles:,}"), f"{self.m_tiles} x {self.n_tiles}"),
                Row(("clusters at once", f"{self.clusters:,}"), f"{self.grid_ctas} CTAs"),
                Row(("waves", f"{self.waves:,}")),
                Row(("in the last wave", f"{self.tail_tiles:,}"), f"{idle} slots idle"),
                Row(("slots busy", f"{self.efficiency:.1%}"), "over all waves", "mark"),
            ),
        )


def wave_count(
    *,
    m: Annotated[int, "rows of D"] = 4096,
    n: Annotated[int, "columns of D"] = 4096,
    tile_m: Annotated[int, "rows of D a CTA computes"] = 128,
    tile_n: Annotated[int, "columns of D a CTA computes"] = 256,
    cluster_m: Annotated[int, "CTAs of a cluster along M"] = 1,
    cluster_n: Annotated[int, "CTAs of a cluster along N"] = 1,
    ctas_per_sm: Annotated[int, "CTAs that one SM holds (`ptxgen model occupancy`)"] = 1,
    max_clusters: Annotated[int, "clusters that the driver says fit; 0: estimate"] = 0,
    gpcs: Annotated[str, "SMs of each GPC, as 16,16,18; empty: no limit by GPC"] = "",
    chip: Annotated[str, "chip: h200, h100_sxm, ..."] = "h200",
) -> Waves:
    """Waves of tiles, the tail, and the share of slots that is busy.

    The driver's max_clusters (cuOccupancyMaxActiveClusters) is the truth; the GPCs' SMs give an
    estimate of it, and the SM count alone an upper bound. Raises ConfigError for extents below 1,
    or more than 16 CTAs in a cluster.
    """
    size = cluster_m * cluster_n
    in_range(
        "no such grid",
        ("m", m, 0, ANY),
        ("n", n, 0, ANY),
        ("tile_m", tile_m, 1, ANY),
        ("tile_n", tile_n, 1, ANY),
        ("cluster_m", cluster_m, 1, CLUSTER_MAX),
        ("cluster_n", cluster_n, 1, CLUSTER_MAX),
        ("cluster_m x cluster_n", size, 1, CLUSTER_MAX),
        ("ctas_per_sm", ctas_per_sm, 1, CTAS_PER_SM),
        ("max_clusters", max_clusters, 0, ANY),
    )
    groups = _gpcs(gpcs) if gpcs else (chip_row(chip).sms,)
    fit = max_clusters or sum(sms * ctas_per_sm // size for sms in groups)
    return Waves(
        m_tiles=ceil(m / (tile_m * cluster_m)),
        n_tiles=ceil(n / (tile_n * cluster_n)),
        cluster_size=size,
        resident_ctas=fit * size,
    )


def _gpcs(text: str) -> tuple[int, ...]:
    parts = text.replace(" ", "").split(",")
    if not all(part.isdigit() for part in parts):
        raise ConfigError(
            "GPCs cannot be read",
            [Violation(field="gpcs", got=text, rule="must be whole numbers joined by commas")],
        )
    return tuple(map(int, parts))
