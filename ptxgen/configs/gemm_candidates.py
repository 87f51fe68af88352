"""The configs of a GEMM that are worth a look: tiles, clusters, rings, splits, swapped operands.

The picker scores them, and a search on the device tries those that the model finds promising.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import ceil
from typing import Any

from ptxgen.configs.gemm import GemmConfig, GemmProblem
from ptxgen.configs.gemm_shape import Gemm

CLUSTERS = ((1, 1), (2, 1), (1, 2))
# Tiles that all consumers share. Widths between powers of two let the last wave fill.
TILES = ((128, 256), (256, 128), (256, 192), (128, 224), (128, 192), (128, 160), (128, 128),
         (128, 96), (128, 64), (64, 256), (64, 192), (64, 128), (64, 96), (64, 64),
         (64, 32))  # fmt: skip
# Tiles of consumers in turns: each holds one by itself, so 192 accumulators a thread at most.
TURNS = ((128, 192), (128, 160), (128, 128), (128, 96), (128, 64), (64, 256), (64, 192),
         (64, 128))  # fmt: skip
LONE_TURNS = ((192, 128), (128, 176), (128, 144), (128, 112), (64, 64))  # no clusters of them
# Whose loads may tell L2 to bring two lines at once: large tiles, where power decides.
PROMOTED: tuple[dict[str, Any], ...] = (
    {"tile": (128, 192), "cluster": (1, 1), "schedule": "pingpong"},
    {"tile": (256, 192), "cluster": (1, 2)},
)
SPLIT_TILES = ((128, 128), (64, 192), (64, 128), (64, 96), (128, 64), (64, 64), (64, 32))
SPLITS = (2, 4, 8)
SWAPPED_ROWS = (64, 128, 256)
MOST_SWAPPED = 256  # rows of D up to which its columns may be better rows of a tile


def candidates(problem: GemmProblem, m: int) -> tuple[GemmConfig, ...]:
    """Every tile, cluster, schedule and split that suits products with `m` rows."""
    return _legal(problem, ceil(m / 8) * 8 if 0 < m <= MOST_SWAPPED else 0)


@lru_cache(maxsize=256)
def _legal(problem: GemmProblem, swapped_n: int) -> tuple[GemmConfig, ...]:
    def fields() -> Iterator[dict[str, Any]]:
        yield from ({"schedule": "pingpong"} | f for f in _straight(TURNS))
        for tile in LONE_TURNS:
            yield {"schedule": "pingpong", "tile": tile, "cluster": (1, 1)}
        for f in _straight(TILES):
            yield from (f | staging for staging in _stagings(problem, f))
        yield from (f | {"l2_promotion": 256} for f in PROMOTED)
        yield from _split(SPLIT_TILES, SPLITS)
        if swapped_n:
            yield from _swapped(problem, swapped_n, SWAPPED_ROWS, SPLITS)

    return _configs(problem, fields())


def _configs(problem: GemmProblem, fields: Iterable[dict[str, Any]]) -> tuple[GemmConfig, ...]:
    """Those that are legal, with the deepest ring where none is told; each once."""
    base: dict[str, Any] = {"stages": "max"}
    if problem.promoted:
        base["wait_depth"] = 0  # the sums of a stage are read at once
    made = (GemmConfig(**base | f) for f in fields)
    return tuple(dict.fromkeys(c for c in made if not Gemm(problem, c).check()))


def _stagings(problem: GemmProblem, fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """How D is staged: by default, or the largest tile with wider slabs instead of a stage.

    Up to 4% faster at K = 512, 1% at 2048 to 4096, nothing at 2048^3; slower by 1.5% where rows are
    no multiple of 128 bytes (5000x3000x2104). See NOTES.md.
    """
    if fields["tile"] == (128, 256) and problem.output.bytes == 2:
        yield {"stages": 3, "store_n": 128, "store_slabs": 2}
    yield {}


def _straight(tiles: Iterable[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    for tile in tiles:
        for cluster in CLUSTERS:
            yield {"tile": tile, "cluster": cluster}


def _split(tiles: Iterable[tuple[int, int]], splits: Iterable[int]) -> Iterator[dict[str, Any]]:
    for tile in tiles:
        for split in splits:
            yield {"tile": tile, "cluster": (1, 1), "split_k": split}


def _swapped(
    problem: GemmProblem, tile_n: int, rows: Iterable[int], splits: Iterable[int]
) -> Iterator[dict[str, Any]]:
    """Tiles whose columns are the rows of D, rounded up to what operands and splits can share."""
    for tile_m in rows:
        for cluster in CLUSTERS:
            step = cluster[0] * (8 if problem.a_major == "k" else 16)
            tile = (tile_m, _wide(problem, tile_n, step))
            yield {"tile": tile, "cluster": cluster, "swap_ab": 1}
        for split in splits:
            tile = (tile_m, _wide(problem, tile_n, 8 * split))
            yield {"tile": tile, "cluster": (1, 1), "split_k": split, "swap_ab": 1}


def _wide(problem: GemmProblem, tile_n: int, step: int) -> int:
    """`tile_n` rounded up to `step`, and to a width that wgmma has."""
    wide = ceil(tile_n / step) * step
    return wide if problem.a.legal_n(wide) else ceil(wide / 16) * 16
