"""Limits of what is done with the sums of a GEMM: fields at them, and one step beyond."""

from __future__ import annotations

from typing import Any

GATED: dict[str, Any] = {"gated": 1, "tile": (128, 128)}
PROMOTED: dict[str, Any] = {
    "dtype": "e4m3", "accumulate": "promoted", "wait_depth": 0, "tile": (128, 128)
}  # fmt: skip

# As in gemm_limits: at the limit, beyond, the field blamed, and words of the text.
FINISH_LIMITS: dict[str, tuple[dict[str, Any], dict[str, Any], str, list[str]]] = {
    "scales": ({"scales": "row"}, {"scales": "column"}, "scales", ["none, tensor, row"]),
    "scales of integers": (
        {"dtype": "s8"}, {"dtype": "s8", "scales": "row"}, "scales", ["none with s32 sums"],
    ),
    "out_scale": ({"out_scale": 1}, {"out_scale": 2}, "out_scale", ["0, 1"]),
    "amax": ({"amax": 1}, {"amax": -1}, "amax", ["0, 1"]),
    "gated": (GATED, {**GATED, "gated": 3}, "gated", ["0, 1"]),
    "gated C": (GATED, {**GATED, "beta": 1}, "beta", ["must be 0 with gated=1", "use beta=0"]),
    "gated bias": (GATED, {**GATED, "bias": "row"}, "bias", ["must be none with gated=1"]),
    "gated order": (GATED, {**GATED, "b_major": "mn"}, "b_major", ["both halves"]),
    "gated and swapped": (
        GATED, {**GATED, "tile": (64, 32), "swap_ab": 1}, "swap_ab", ["one row of the tile"],
    ),
    "gated and split": (
        {**GATED, "cluster": (1, 1)}, {**GATED, "split_k": 2, "cluster": (1, 1)},
        "split_k", ["their partners"],
    ),
    "gated columns": (  # 2 x 32
        {**GATED, "cluster": (2, 1)}, {**GATED, "tile": (128, 96), "cluster": (2, 1)},
        "tile_n", ["multiple of 64", "cluster_m=2", "tile_n=128"],
    ),
    "accumulate": (
        PROMOTED, {**PROMOTED, "accumulate": "exact"}, "accumulate", ["fast, promoted"],
    ),
    "promoted types": (
        PROMOTED, {**PROMOTED, "dtype": "bf16", "tile": (64, 64, 128)}, "accumulate",
        ["must be fast for dtype=bf16"],
    ),
    "promoted f16 sums": (
        PROMOTED, {**PROMOTED, "acc_dtype": "f16"}, "accumulate", ["with f16 sums"],
    ),
    "promoted wait": (
        PROMOTED, {**PROMOTED, "wait_depth": 1}, "wait_depth", ["must be 0", "wait_depth=0"],
    ),
    "promoted depth": (
        PROMOTED, {**PROMOTED, "tile": (64, 64, 256)}, "tile_k", ["must be 128", "once a stage"],
    ),
    "epilogue registers": (  # 26 + 24 + 12 + 12 of 232
        {"tile": (256, 144), "stages": "max", "beta": 1, "bias": "row", "activation": "gelu"},
        {"tile": (256, 160), "stages": "max", "beta": 1, "bias": "row", "activation": "gelu"},
        "tile_n", ["160 accumulators leave 72 registers of 232", "needs 74",
                   "bias 24 + C 12 + gelu 12", "tile_n<=128"],
    ),
    "epilogue registers of wide slabs": (  # 28 more
        {"tile": (256, 152), "stages": 2, "beta": 1, "bias": "row", "store_n": 8},
        {"tile": (256, 152), "stages": 2, "beta": 1, "bias": "row", "activation": "gelu"},
        "tile_n", ["needs 102", "gelu 12 + slabs of 152 28", "tile_n<=128"],
    ),
    "promoted registers": (  # 2 x 100 + 26 of 232
        {**PROMOTED, "tile": (128, 200)}, {**PROMOTED, "tile": (128, 256)},
        "consumer_registers", ["256 accumulators", "tile_n<=200"],
    ),
}  # fmt: skip
