"""The configs of a GEMM that are worth a look: tiles, clusters, rings, splits, swapped operands.

`candidates` is what the picker scores. `space` is wider: what a search on the device tries, so that
it can find what the picker does not know of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import ceil
from typing import Any

from ptxgen.configs.gemm import GemmConfig, GemmProblem
from ptxgen.configs.gemm_shape import Gemm

# On a tie the first wins: two consumers before one.
TILES = ((128, 256), (256, 128), (128, 192), (128, 128), (128, 64), (64, 256), (64, 128), (64, 64),
         (64, 32))  # fmt: skip
CLUSTERS = ((1, 1), (2, 1), (1, 2))
SPLIT_TILES = ((128, 128), (64, 128), (128, 64), (64, 64), (64, 32))  # 64 rows a consumer
SPLITS = (2, 4)
SWAPPED_ROWS = (64, 128)
MOST_SWAPPED = 64  # rows of D up to which its columns are better rows of a tile

# The wider space. Widths between powers of two let the last wave fill.
SPACE_TILES = (*TILES, (256, 192), (128, 224), (128, 160), (128, 96), (64, 192), (64, 96))
# Tiles of consumers in turns: each holds one by itself, so 192 accumulators a thread at most.
SPACE_TURNS = ((128, 192), (128, 160), (128, 128), (128, 96), (128, 64), (64, 256), (64, 192),
               (64, 128))  # fmt: skip
SPACE_LONE_TURNS = ((192, 128), (128, 176), (128, 144), (128, 112), (64, 64))  # no clusters of them
SPACE_SPLIT_TILES = (*SPLIT_TILES, (64, 192), (64, 96))
SPACE_SPLITS = (2, 4, 8)
SPACE_SWAPPED_ROWS = (64, 128, 256)
SPACE_MOST_SWAPPED = 256
# Whose loads are tried with L2 told to bring two lines at once.
SPACE_PROMOTED: tuple[dict[str, Any], ...] = (
    {"tile": (256, 192), "cluster": (1, 2)},
    {"tile": (128, 192), "cluster": (1, 1), "schedule": "pingpong"},
    {"tile": (128, 128), "cluster": (1, 1), "schedule": "pingpong"},
)


def candidates(problem: GemmProblem, m: int) -> tuple[GemmConfig, ...]:
    """Every tile, cluster and split that suits products with `m` rows, with the deepest ring."""
    return _legal(problem, ceil(m / 8) * 8 if 0 < m <= MOST_SWAPPED else 0)


@lru_cache(maxsize=256)
def _legal(problem: GemmProblem, swapped_n: int) -> tuple[GemmConfig, ...]:
    def fields() -> Iterator[dict[str, Any]]:
        yield from _straight(TILES)
        yield from _split(SPLIT_TILES, SPLITS)
        if swapped_n:
            yield from _swapped(problem, swapped_n, SWAPPED_ROWS, SPLITS)

    return _configs(problem, (_staging(problem, f) | f for f in fields()))


def space(problem: GemmProblem, m: int) -> tuple[GemmConfig, ...]:
    """All that a search tries for products with `m` rows: the candidates, and many more."""
    more = _space(problem, ceil(m / 8) * 8 if 0 < m <= SPACE_MOST_SWAPPED else 0)
    return tuple(dict.fromkeys((*candidates(problem, m), *more)))


@lru_cache(maxsize=256)
def _space(problem: GemmProblem, swapped_n: int) -> tuple[GemmConfig, ...]:
    def fields() -> Iterator[dict[str, Any]]:
        yield from _straight(SPACE_TILES)
        yield from ({"schedule": "pingpong"} | f for f in _straight(SPACE_TURNS))
        for tile in SPACE_LONE_TURNS:
            yield {"schedule": "pingpong", "tile": tile, "cluster": (1, 1)}
        yield from (f | {"l2_promotion": 256} for f in SPACE_PROMOTED)
        yield from _split(SPACE_SPLIT_TILES, SPACE_SPLITS)
        if swapped_n:
            yield from _swapped(problem, swapped_n, SPACE_SWAPPED_ROWS, SPACE_SPLITS)

    return _configs(problem, fields())


def _configs(problem: GemmProblem, fields: Iterable[dict[str, Any]]) -> tuple[GemmConfig, ...]:
    """Those that are legal, with the deepest ring where none is told; each once."""
    base: dict[str, Any] = {"stages": "max"}
    if problem.promoted:
        base["wait_depth"] = 0  # the sums of a stage are read at once
    made = (GemmConfig(**base | f) for f in fields)
    return tuple(dict.fromkeys(c for c in made if not Gemm(problem, c).check()))


def _staging(problem: GemmProblem, fields: dict[str, Any]) -> dict[str, Any]:
    """The largest tile gives a stage up for wider slabs of D.

    Up to 4% faster at K = 512, 1% at 2048 to 4096, nothing at 2048^3; slower by 1.5% where rows are
    no multiple of 128 bytes (5000x3000x2104, for which another tile is picked). See NOTES.md.
    """
    if fields["tile"] == TILES[0] and problem.output.bytes == 2:
        return {"stages": 3, "store_n": 128, "store_slabs": 2}
    return {}


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
