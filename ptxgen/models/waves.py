"""How many tiles, in how many waves, and in which order they share rows and columns in L2."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True, slots=True, kw_only=True)
class Waves:
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
