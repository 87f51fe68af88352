"""The configs of a GEMM that are worth a look: tiles, clusters, rings, splits, swapped operands.

The picker scores them, and a search on the device tries those that the model finds promising.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any

from ptxgen.configs.gemm import GemmConfig, GemmProblem
from ptxgen.configs.gemm_shape import Gemm

Fields = dict[str, Any]
CLUSTERS = ((1, 1), (2, 1), (1, 2))
# Tiles that all consumers share. Widths between powers of two let the last wave fill.
TILES = ((128, 256), (256, 128), (256, 192), (128, 224), (128, 192), (128, 160), (128, 128),
         (128, 96), (128, 64), (64, 256), (64, 192), (64, 128), (64, 96), (64, 64),
         (64, 32))  # fmt: skip
# Tiles of consumers in turns: each holds one by itself, so 192 accumulators a thread at most.
TURNS = ((128, 192), (128, 160), (128, 128), (128, 96), (128, 64), (64, 256), (64, 192),
         (64, 128))  # fmt: skip
LONE_TURNS = ((192, 128), (128, 176), (128, 144), (128, 112), (64, 64))  # no clusters of them
SPLIT_TILES = ((128, 128), (64, 192), (64, 128), (64, 96), (128, 64), (64, 64), (64, 32))
SPLITS = (2, 4, 8)
SWAPPED_ROWS = (64, 128, 256)
MOST_SWAPPED = 256  # rows of D up to which its columns may be better rows of a tile
DEEP_STAGES = ((4, 16), (2, 64))  # 128-byte rows of k a stage, and the widest swapped tile with it
PROMOTED: Fields = {"l2_promotion": 256}  # of large tiles, where power decides
WHOLE_COLUMNS = 64  # of an MN-major B: with others its swizzle is narrow, and loads are slow
LARGE = 160  # columns from which a tile of 256 rows has room for three stages, and little else


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Tiles as wide as fills whole waves: for up to `waves` of them, the least width that does."""

    rows: int
    widths: range  # least to most, in steps of what the cluster can share
    waves: int
    cluster: tuple[int, int] = (1, 1)
    schedule: str = "cooperative"

    def tiles(self, m: int, n: int, sms: int, whole: int) -> Iterator[tuple[int, int]]:
        """The tiles for D[m, n], widest first; their widths are multiples of `whole`."""
        down = max(ceil(m / (self.rows * self.cluster[0])), 1)
        clusters = sms // (self.cluster[0] * self.cluster[1])
        for waves in range(1, self.waves + 1):
            across = clusters * waves // down
            if across:
                width = ceil(n / across / self.widths.step) * self.widths.step
                if width in self.widths and width % whole == 0:
                    yield self.rows, width


FITTED = (
    Fitted(rows=64, widths=range(32, 129, 8), waves=2),
    Fitted(rows=64, widths=range(64, 193, 16), waves=2, cluster=(2, 1)),
    Fitted(rows=128, widths=range(64, 257, 8), waves=4),
    Fitted(rows=128, widths=range(64, 193, 8), waves=8, schedule="pingpong"),
    Fitted(rows=256, widths=range(96, 201, 8), waves=12),
)


def candidates(problem: GemmProblem, m: int, n: int, sms: int = 132) -> tuple[GemmConfig, ...]:
    """Every tile, cluster, schedule and split that suits D[m, n] on a chip with that many SMs."""
    base: Fields = {"stages": "max"}
    if problem.promoted:
        base["wait_depth"] = 0  # the sums of a stage are read at once
    made = (GemmConfig(**base | fields) for fields in _fields(problem, m, n, sms))
    return tuple(dict.fromkeys(config for config in made if _is_legal(problem, config)))


@lru_cache(maxsize=8192)
def _is_legal(problem: GemmProblem, config: GemmConfig) -> bool:
    return not Gemm(problem, config).check()


def _fields(problem: GemmProblem, m: int, n: int, sms: int) -> Iterator[Fields]:
    yield from ({"schedule": "pingpong"} | f for f in _straight(TURNS))
    for tile in LONE_TURNS:
        yield {"schedule": "pingpong", "tile": tile, "cluster": (1, 1)}
    yield {"schedule": "pingpong", "tile": (128, 192), "cluster": (1, 1)} | PROMOTED
    for f in _straight(TILES):
        yield from _staged(problem, f)
    whole = WHOLE_COLUMNS if problem.b_major == "mn" else 8
    for fitted in FITTED:
        for tile in fitted.tiles(m, n, sms, whole):
            f = {"tile": tile, "cluster": fitted.cluster, "schedule": fitted.schedule}
            yield from _staged(problem, f)
    yield from _split(SPLIT_TILES, SPLITS)
    if 0 < m <= MOST_SWAPPED:
        yield from _swapped(problem, ceil(m / 8) * 8, SWAPPED_ROWS, SPLITS)


def _staged(problem: GemmProblem, fields: Fields) -> Iterator[Fields]:
    """How D is staged: by default, or the largest tiles with wider slabs instead of a stage.

    128x256: up to 4% faster at K = 512, 1% at 2048 to 4096, nothing at 2048^3; slower by 1.5% where
    rows are no multiple of 128 bytes (5000x3000x2104). 256x200: 1 to 2% at 8192^3. See NOTES.md.
    """
    rows, columns = fields["tile"]
    if problem.output.bytes == 2:
        if (rows, columns) == (128, 256):
            yield fields | {"stages": 3, "store_n": 128, "store_slabs": 2}
        if rows == 256 and columns >= LARGE:
            yield fields | {"stages": 3, "store_n": columns, "store_slabs": 1} | PROMOTED
    yield fields


def _straight(tiles: Iterable[tuple[int, int]]) -> Iterator[Fields]:
    for tile in tiles:
        for cluster in CLUSTERS:
            yield {"tile": tile, "cluster": cluster}


def _split(tiles: Iterable[tuple[int, int]], splits: Iterable[int]) -> Iterator[Fields]:
    for tile in tiles:
        for split in splits:
            yield {"tile": tile, "cluster": (1, 1), "split_k": split}


def _swapped(
    problem: GemmProblem, tile_n: int, rows: Iterable[int], splits: Iterable[int]
) -> Iterator[Fields]:
    """Tiles whose columns are the rows of D, rounded up to what operands and splits can share."""
    for tile_m in rows:
        for cluster in CLUSTERS:
            step = cluster[0] * (8 if problem.a_major == "k" else 16)
            tile = (tile_m, _wide(problem, tile_n, step))
            yield {"tile": tile, "cluster": cluster, "swap_ab": 1}
        for split in splits:
            tile = (tile_m, _wide(problem, tile_n, 8 * split))
            yield {"tile": tile, "cluster": (1, 1), "split_k": split, "swap_ab": 1}
    wide = _wide(problem, tile_n, 8 if problem.a_major == "k" else 16)
    for count, most in DEEP_STAGES:
        if wide <= most:
            tile_k = count * 128 * 8 // problem.a.bits
            yield {"tile": (64, wide, tile_k), "cluster": (1, 1), "swap_ab": 1}


def _wide(problem: GemmProblem, tile_n: int, step: int) -> int:
    """`tile_n` rounded up to `step`, and to a width that wgmma has."""
    wide = ceil(tile_n / step) * step
    return wide if problem.a.legal_n(wide) else ceil(wide / 16) * 16
