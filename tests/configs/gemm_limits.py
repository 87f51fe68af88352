"""Every limit of a GEMM config: fields at it, and one step beyond."""

from __future__ import annotations

from typing import Any

from gemm_finish_limits import FINISH_LIMITS

from ptxgen.isa.arch import SMEM_PER_CTA_BYTES

# Fields at the limit, fields just beyond, the field blamed, and words that the text must have.
LIMITS: dict[str, tuple[dict[str, Any], dict[str, Any], str, list[str]]] = {
    "dtype": (
        {"dtype": "f16"}, {"dtype": "f32"}, "dtype", ["bf16, f16, tf32", "dtype=tf32"],
    ),
    "dtype unknown": (
        {"dtype": "bf16"}, {"dtype": "fp4"}, "dtype", ["unknown type"],
    ),
    "out_dtype": (
        {"out_dtype": "f32"}, {"out_dtype": "s32"}, "out_dtype",
        ["bf16, f16, f32, e4m3, e5m2 with f32 sums", "out_dtype=auto"],
    ),
    "out_dtype of integers": (
        {"dtype": "s8", "out_dtype": "s32"}, {"dtype": "s8", "out_dtype": "f32"}, "out_dtype",
        ["s32 with s32 sums"],
    ),
    "out_dtype of f16 sums": (
        {"dtype": "f16", "acc_dtype": "f16"},
        {"dtype": "f16", "acc_dtype": "f16", "out_dtype": "f32"}, "out_dtype", ["f16 sums"],
    ),
    "b_dtype": (
        {"dtype": "e4m3", "b_dtype": "e5m2"}, {"dtype": "e4m3", "b_dtype": "s8"}, "b_dtype",
        ["e4m3, e5m2 beside dtype=e4m3", "b_dtype=same"],
    ),
    "b_dtype of 16 bits": (
        {"dtype": "bf16", "b_dtype": "bf16"}, {"dtype": "bf16", "b_dtype": "f16"}, "b_dtype",
        ["must be same, or one of bf16"],
    ),
    "acc_dtype": (
        {"dtype": "e5m2", "acc_dtype": "f16"}, {"dtype": "bf16", "acc_dtype": "f16"},
        "acc_dtype", ["f32 for dtype=bf16", "acc_dtype=f32"],
    ),
    "a_major": (
        {"dtype": "f16", "a_major": "mn"}, {"dtype": "tf32", "a_major": "mn"}, "a_major",
        ["must be k for tf32", "16-bit types only", "copy of A", "a_major=k"],
    ),
    "b_major": (
        {"b_major": "mn"}, {"b_major": "n"}, "b_major", ["must be k or mn", "b_major=k"],
    ),
    "batched": (
        {"batched": 1}, {"batched": 2}, "batched", ["must be 0 or 1"],
    ),
    "alpha": ({"alpha": 1}, {"alpha": 2}, "alpha", ["must be one of 0, 1", "alpha=0"]),
    "beta": ({"beta": 1}, {"beta": -1}, "beta", ["must be one of 0, 1"]),
    "bias": ({"bias": "row"}, {"bias": "col"}, "bias", ["none, row, column"]),
    "bias_dtype": (
        {"bias": "row", "bias_dtype": "out"}, {"bias": "row", "bias_dtype": "bf16"}, "bias_dtype",
        ["f32, out"],
    ),
    "activation": (
        {"activation": "silu"}, {"activation": "tanh"}, "activation", ["gelu_tanh, silu"],
    ),
    "epilogue of integers": (
        {"dtype": "s8"}, {"dtype": "s8", "bias": "row"}, "bias",
        ["must be none with s32 sums", "use bias=none"],
    ),
    "epilogue of f16 sums": (
        {"dtype": "f16", "alpha": 1}, {"dtype": "f16", "acc_dtype": "f16", "alpha": 1}, "alpha",
        ["must be 0 with f16 sums", "alpha=0, or acc_dtype=f32"],
    ),
    "split_k": (
        {"split_k": 8, "tile": (64, 64)}, {"split_k": 3, "tile": (64, 48)}, "split_k",
        ["must be 1, 2, 4 or 8", "at most 8"],
    ),
    "split_k beyond": (
        {"split_k": 8, "tile": (64, 128)}, {"split_k": 16, "tile": (64, 128)}, "split_k",
        ["split_k=8"],
    ),
    "split and cluster": (
        {"split_k": 2, "tile": (64, 64)},
        {"split_k": 2, "tile": (64, 64), "cluster": (2, 1)}, "split_k",
        ["must be 1 with cluster=2x1", "either loads or K", "cluster=1x1"],
    ),
    "split sums": (
        {"dtype": "f16", "tile": (64, 64), "split_k": 2},
        {"dtype": "f16", "acc_dtype": "f16", "tile": (64, 64), "split_k": 2}, "split_k",
        ["acc_dtype=f16", "round once more"],
    ),
    "split rows": (
        {"tile": (128, 64), "split_k": 2, "consumers": 2},
        {"tile": (128, 64), "split_k": 2, "consumers": 1}, "split_k",
        ["128 rows a consumer", "consumers=2"],
    ),
    "split columns": (  # whole 8 columns for each of four CTAs
        {"tile": (64, 32), "split_k": 4}, {"tile": (64, 40), "split_k": 4}, "tile_n",
        ["multiple of 32 with split_k=4", "tile_n=64"],
    ),
    "swap_ab": (
        {"swap_ab": 1, "tile": (64, 16)}, {"swap_ab": 2, "tile": (64, 16)}, "swap_ab",
        ["must be 0 or 1"],
    ),
    "swapped store": (
        {"dtype": "e4m3", "swap_ab": 1, "tile": (64, 16)},
        {"dtype": "e4m3", "out_dtype": "e4m3", "swap_ab": 1, "tile": (64, 16)}, "swap_ab",
        ["must be 0 for e4m3 D", "out_dtype=f16"],
    ),
    "store row": (  # 8 columns of fp8 are 8 bytes
        {"dtype": "e4m3", "out_dtype": "e4m3", "tile": (64, 48)},
        {"dtype": "e4m3", "out_dtype": "e4m3", "tile": (64, 56)}, "tile_n",
        ["multiple of 16 for e4m3 D", "8 B", "tile_n=64"],
    ),
    "tile_n of int8": (
        {"dtype": "s8", "tile": (64, 24)}, {"dtype": "s8", "tile": (64, 40)}, "tile_n",
        ["8, 16, 24 or a multiple of 16", "tile_n=48"],
    ),
    "tile_k of fp8": (  # a row of 128 bytes is 128 elements
        {"dtype": "e4m3", "tile": (64, 64, 128)}, {"dtype": "e4m3", "tile": (64, 64, 64)},
        "tile_k", ["128..512 in steps of 128", "tile_k=128"],
    ),
    "tile_k of tf32": (
        {"dtype": "tf32", "tile": (64, 64, 32)}, {"dtype": "tf32", "tile": (64, 64, 48)},
        "tile_k", ["32..128 in steps of 32", "tile_k=64"],
    ),
    "tile_m low": (
        {"tile": (64, 64, 64)}, {"tile": (0, 64, 64)}, "tile_m", ["64..384", "tile_m=64"],
    ),
    "tile_m step": (
        {"tile": (128, 64, 64)}, {"tile": (96, 64, 64)}, "tile_m", ["steps of 64", "tile_m=128"],
    ),
    "tile_m high": (
        {"tile": (384, 64, 64), "cluster": (1, 2), "stages": 2},
        {"tile": (448, 64, 64), "cluster": (1, 2), "stages": 2},
        "tile_m", ["64..384", "tile_m=384"],
    ),
    "tile_n low": (
        {"tile": (64, 8, 64)}, {"tile": (64, 0, 64)}, "tile_n", ["8..256", "tile_n=8"],
    ),
    "tile_n step": (
        {"tile": (64, 248, 64)}, {"tile": (64, 249, 64)}, "tile_n", ["steps of 8", "tile_n=256"],
    ),
    "tile_n high": (
        {"tile": (64, 256, 64)}, {"tile": (64, 264, 64)}, "tile_n", ["8..256", "tile_n=256"],
    ),
    "tile_k low": (
        {"tile": (64, 64, 64)}, {"tile": (64, 64, 32)}, "tile_k", ["64..256", "tile_k=64"],
    ),
    "tile_k high": (
        {"tile": (64, 64, 256), "stages": 2}, {"tile": (64, 64, 320), "stages": 2},
        "tile_k", ["64..256", "tile_k=256"],
    ),
    "cluster": (
        {"cluster": (2, 2)}, {"cluster": (3, 1)}, "cluster", ["3x1", "1x1, 2x1, 1x2 or 2x2"],
    ),
    "cluster of none": (
        {"cluster": (1, 1)}, {"cluster": (0, 1)}, "cluster", ["0x1"],
    ),
    "consumers": (
        {"tile": (192, 64, 64), "consumers": 3}, {"tile": (256, 64, 64), "consumers": 4},
        "consumers", ["1, 2 or 3", "consumers=3"],
    ),
    "consumers below": (
        {"consumers": 0}, {"consumers": -1}, "consumers", ["consumers=1"],
    ),
    "share of rows": (
        {"tile": (192, 64, 64), "consumers": 3}, {"tile": (192, 64, 64), "consumers": 2},
        "consumers", ["192 rows", "consumers=1 or consumers=3"],
    ),
    "schedule": (
        {"schedule": "pingpong", "tile": (64, 64)}, {"schedule": "streaming", "tile": (64, 64)},
        "schedule", ["must be cooperative or pingpong", "schedule=cooperative"],
    ),
    "turns": (
        {"schedule": "pingpong", "tile": (192, 64), "consumers": 2, "stages": 2},
        {"schedule": "pingpong", "tile": (192, 64), "consumers": 3, "stages": 2},
        "consumers", ["must be 2 with schedule=pingpong", "consumers=2"],
    ),
    "turns and split": (
        {"schedule": "cooperative", "tile": (64, 64), "split_k": 2},
        {"schedule": "pingpong", "tile": (64, 64), "split_k": 2},
        "split_k", ["must be 1 with schedule=pingpong", "schedule=cooperative"],
    ),
    "stream and split": (
        {"schedule": "stream_k", "tile": (64, 64)},
        {"schedule": "stream_k", "tile": (64, 64), "split_k": 2},
        "split_k", ["must be 1 with schedule=stream_k", "split_k=1"],
    ),
    "stream sums": (
        {"dtype": "f16", "schedule": "stream_k"},
        {"dtype": "f16", "acc_dtype": "f16", "schedule": "stream_k"},
        "schedule", ["acc_dtype=f16", "acc_dtype=f32"],
    ),
    "a_source": (
        {"a_source": "registers", "wait_depth": 0}, {"a_source": "tmem", "wait_depth": 0},
        "a_source", ["must be smem or registers", "a_source=smem"],
    ),
    "fragments in flight": (
        {"a_source": "registers", "wait_depth": 0}, {"a_source": "registers", "wait_depth": 1},
        "wait_depth", ["must be 0 with a_source=registers", "wait_depth=0"],
    ),
    "K-major fragments": (
        {"a_source": "registers", "wait_depth": 0, "b_major": "mn"},
        {"a_source": "registers", "wait_depth": 0, "a_major": "mn"},
        "a_source", ["must be smem with a_major=mn", "a_major=k"],
    ),
    "fragments and cluster": (
        {"a_source": "registers", "wait_depth": 0, "cluster": (2, 1)},
        {"a_source": "registers", "wait_depth": 0, "cluster": (1, 2)},
        "a_source", ["must be smem in cluster 1x2", "cluster=2x1"],
    ),
    "registers of fragments": (  # 128 rows a consumer: 168 + 32 + 26 <= 232 < 176 + 32 + 26
        {"tile": (256, 168), "a_source": "registers", "wait_depth": 0, "stages": 2},
        {"tile": (256, 176), "a_source": "registers", "wait_depth": 0, "stages": 2},
        "consumer_registers", ["176 accumulators and 32 fragments", "tile_n<=168"],
    ),
    "registers of turns": (  # 128 rows a consumer: 200 + 26 <= 232 < 208 + 26
        {"schedule": "pingpong", "tile": (128, 200), "stages": 2},
        {"schedule": "pingpong", "tile": (128, 208), "stages": 2},
        "consumer_registers", ["208 accumulators", "use tile_n<=200"],
    ),
    "load": ({"load": "ld"}, {"load": "ldg"}, "load", ["tma or cp_async or ld", "load=tma"]),
    "copies of a cluster": (
        {"load": "cp_async"}, {"load": "cp_async", "cluster": (2, 1)}, "cluster",
        ["must be 1x1 with load=cp_async", "or load=tma"],
    ),
    "loads of a cluster": (
        {"load": "ld"}, {"load": "ld", "cluster": (1, 2)}, "cluster", ["must be 1x1 with load=ld"],
    ),
    "copies and split": (
        {"load": "cp_async", "tile": (64, 64)},
        {"load": "cp_async", "tile": (64, 64), "split_k": 2}, "split_k", ["a cluster"],
    ),
    "copies of MN-major B": (
        {"load": "cp_async"}, {"load": "cp_async", "b_major": "mn"}, "b_major", ["along K"],
    ),
    "copies of gated B": (
        {"load": "cp_async"}, {"load": "cp_async", "gated": 1, "tile": (128, 128)}, "gated",
        ["one TMA box"],
    ),
    "store": (
        {"store": "direct"}, {"store": "stg"}, "store", ["tma or direct", "store=tma"],
    ),
    "store_slabs of direct stores": (
        {"store": "direct", "store_slabs": 0}, {"store": "direct", "store_slabs": 1},
        "store_slabs", ["must be 0 with store=direct"],
    ),
    "store_n of direct stores": (  # no box of fp8 has 8 columns
        {"store": "direct", "out_dtype": "e4m3", "tile": (64, 24), "store_n": 8},
        {"store": "direct", "out_dtype": "e4m3", "tile": (64, 24), "store_n": 16},
        "store_n", ["units of 8 columns", "store_n=8, store_n=24"],
    ),
    "swapped fp8": (
        {"store": "direct", "out_dtype": "e4m3", "swap_ab": 1, "tile": (64, 16)},
        {"out_dtype": "e4m3", "swap_ab": 1, "tile": (64, 16)}, "swap_ab", ["or store=direct"],
    ),
    "l2_promotion": (
        {"l2_promotion": 256}, {"l2_promotion": 512}, "l2_promotion",
        ["0, 64, 128, 256", "l2_promotion=256"],
    ),
    "wait_depth": (
        {"wait_depth": 1}, {"wait_depth": 2}, "wait_depth", ["0 or 1", "wait_depth=1"],
    ),
    "wait_depth below": (
        {"wait_depth": 0}, {"wait_depth": -1}, "wait_depth", ["wait_depth=1"],
    ),
    "no stage": (
        {"stages": 1, "wait_depth": 0}, {"stages": 0, "wait_depth": 0}, "stages", ["at least 1"],
    ),
    "box of A": (
        {"tile": (256, 64, 64), "stages": 2}, {"tile": (320, 64, 64), "stages": 2},
        "tile_m", ["320 rows", "256", "cluster=1x2"],
    ),
    "share of B": (
        {"tile": (64, 48, 64), "cluster": (2, 1)}, {"tile": (64, 40, 64), "cluster": (2, 1)},
        "tile_n", ["multiple of 16 in cluster 2x1", "tile_n=48", "cluster=1x2"],
    ),
    "share of MN-major B": (  # two parts in rows of at least 32 bytes
        {"tile": (64, 64), "cluster": (2, 2), "b_major": "mn"},
        {"tile": (64, 48), "cluster": (2, 2), "b_major": "mn"},
        "tile_n", ["multiple of 32 in cluster 2x2 with b_major=mn", "32 bytes", "tile_n=64"],
    ),
    "MN-major A of a swapped tile": (
        {"tile": (64, 48), "swap_ab": 1, "a_major": "mn"},
        {"tile": (64, 40), "swap_ab": 1, "a_major": "mn"},
        "tile_n", ["multiple of 16 in cluster 1x1 with a_major=mn", "tile_n=48"],
    ),
    "registers of two consumers": (  # 128 rows a consumer: 200 + 26 <= 232 < 208 + 26
        {"tile": (256, 200, 64), "stages": 2}, {"tile": (256, 208, 64), "stages": 2},
        "consumer_registers", ["208 accumulators", "tile_n<=200"],
    ),
    "registers of three consumers": (  # 128 rows a consumer: 128 + 26 <= 160 < 136 + 26
        {"tile": (384, 128, 64), "cluster": (1, 2), "stages": 2},
        {"tile": (384, 136, 64), "cluster": (1, 2), "stages": 2},
        "consumer_registers", ["136 accumulators", "tile_n<=128"],
    ),
    "registers of one wgmma": (  # 512 threads start with 128: 100 + 26 <= 128 < 104 + 26
        {"tile": (192, 200, 64), "stages": 2}, {"tile": (192, 208, 64), "stages": 2},
        "tile_n", ["one wgmma needs 130 registers", "512 threads start with 128", "tile_n<=200"],
    ),
    "registers of one wgmma with fragments": (  # 96 + 4 + 26 <= 128 < 100 + 4 + 26
        {"tile": (192, 192), "stages": 2, "a_source": "registers", "wait_depth": 0},
        {"tile": (192, 200), "stages": 2, "a_source": "registers", "wait_depth": 0},
        "tile_n", ["one wgmma needs 130 registers", "tile_n<=192"],
    ),
    "registers of packed sums": (  # half as many: two consumers of 128 x 256 fit
        {"dtype": "f16", "acc_dtype": "f16", "tile": (256, 256), "stages": 2, "store_slabs": 1},
        {"dtype": "f16", "tile": (256, 256), "stages": 2, "store_slabs": 1},
        "consumer_registers", ["256 accumulators", "tile_n<=200"],
    ),
    "registers that more consumers cure": (
        {"tile": (128, 208, 64), "consumers": 1, "stages": 3},
        {"tile": (128, 216, 64), "consumers": 1, "stages": 3},
        "consumer_registers", ["consumers=2", "tile_n<=208"],
    ),
    "store_n boxes": (  # equal slabs
        {"store_n": 128, "stages": 3}, {"store_n": 96, "stages": 3},
        "store_n", ["tile_n=256", "units of 8 columns", "store_n=64, store_n=128, store_n=256"],
    ),
    "store_n divides": (  # boxes of 64 columns, but 192 = 3 x 64
        {"tile": (64, 192, 64), "store_n": 192}, {"tile": (64, 192, 64), "store_n": 128},
        "store_n", ["tile_n=192"],
    ),
    "store_n of a share": (
        {"tile": (64, 64), "split_k": 2, "store_n": 32},
        {"tile": (64, 64), "split_k": 2, "store_n": 64},
        "store_n", ["tile_n=64 / split_k=2", "store_n=32"],
    ),
    "store_n transposed": (
        {"tile": (64, 24), "swap_ab": 1, "store_n": 24},
        {"tile": (64, 24), "swap_ab": 1, "store_n": 16}, "store_n", ["units of 8 columns"],
    ),
    "store_n below": (
        {"store_n": 64}, {"store_n": -64}, "store_n", ["store_n=64"],
    ),
    "store_slabs": (  # four slabs of 64 columns
        {"store_slabs": 4, "stages": 3}, {"store_slabs": 3, "stages": 3},
        "store_slabs", ["the 4 slabs", "store_slabs=1, store_slabs=2, store_slabs=4"],
    ),
    "store_slabs below": (
        {"store_slabs": 1}, {"store_slabs": -1}, "store_slabs", ["store_slabs=1"],
    ),
    "ring": (  # a stage is released only behind the next: one stage deadlocks
        {"stages": 2}, {"stages": 1}, "stages", ["at least 2", "wait_depth=1", "stages=2..4"],
    ),
    "shared memory": (
        {"stages": 4}, {"stages": 5}, "stages",
        ["278,608 B", f"{SMEM_PER_CTA_BYTES:,} B", "A 16,384", "B 32,768", "D slabs", "stages<=4"],
    ),
    "no ring fits": (  # 2 stages of 128 KB
        {"tile": (256, 192, 64), "stages": "max"}, {"tile": (256, 192, 192), "stages": "max"},
        "tile", ["with 2 stages", "tile_n<="],
    ),
    **FINISH_LIMITS,
}  # fmt: skip
