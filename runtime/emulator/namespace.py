"""The names that generated code may use, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import (
    access,
    alu_carry,
    async_store,
    atomics,
    barriers,
    bulk,
    cluster,
    control,
    convert,
    cp_async,
    functions,
    functions_bits,
    functions_f64,
    functions_float,
    map_memory,
    matrix,
    mbarrier,
    mbarrier_forms,
    mma,
    order,
    register_pool,
    tma,
    visibility,
    warp,
    wgmma,
    whole_warp,
)  # fmt: skip
from .values import CODE_DTYPE, Array

_UFUNCS = (
    "add", "subtract", "multiply", "divide", "bitwise_and", "bitwise_or", "bitwise_xor", "minimum",
    "maximum", "logical_and", "logical_or", "logical_xor", "logical_not", "negative", "absolute",
    "invert", "left_shift", "right_shift", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal", "count_nonzero", "isnan", "isfinite", "isinf", "sqrt", "where", "copyto",
    "clip", "broadcast_to",
)  # fmt: skip


def _filler(dtype: np.dtype[Any]) -> Callable[[Any], Array]:
    def fill(value: Any) -> Array:
        return np.full(32, value, dtype)

    return fill


def _from_bits(code: str) -> Callable[[int], Any]:
    unsigned, dtype = CODE_DTYPE[{"E": "H", "F": "U", "D": "W"}[code]], CODE_DTYPE[code]

    def convert_bits(bits: int) -> Any:
        return unsigned.type(bits).view(dtype)

    return convert_bits


def _lane_masks() -> dict[str, Array]:
    lane = np.arange(32, dtype=np.uint64)
    one = np.uint64(1) << lane
    masks = {"EQ": one, "LT": one - 1, "LE": 2 * one - 1, "GE": ~(one - 1), "GT": ~(2 * one - 1)}
    return {f"LANEMASK_{k}": (m & 0xFFFFFFFF).astype(np.uint32) for k, m in masks.items()}


NAMESPACE: dict[str, Any] = {
    # __import__ is for NumPy, whose C functions import lazily through the caller's builtins.
    "__builtins__": {
        "__import__": __import__,
        "bool": bool, "int": int, "min": min, "max": max, "abs": abs, "sum": sum, "all": all,
        "any": any, "None": None, "True": True, "False": False,
    },
    **{name: getattr(np, name) for name in _UFUNCS},
    **{f"DT_{code}": dtype for code, dtype in CODE_DTYPE.items()},
    **{f"full_{code}": _filler(dtype) for code, dtype in CODE_DTYPE.items()},
    **{f"from_bits_{code}": _from_bits(code) for code in "EFD"},
    **_lane_masks(),
    "LANES": warp.LANES,
    "u1": np.uint8, "u2": np.uint16, "u4": np.uint32, "u8": np.uint64,
    **{
        name: getattr(functions, name)
        for name in (
            "lane_bits", "div_int", "rem_int", "div_rows", "rem_rows", "shl_rows", "shr_rows",
            "funnel_l", "funnel_r", "low24_u", "low24_s", "high_product_u64", "high_product_s64",
            "bfe_rows", "bfi_rows", "bfind_rows", "brev_rows", "clz_rows", "popc_rows", "prmt_rows",
            "dp4a_rows", "dp2a_rows", "saturate_s32",
        )
    },
    **{
        name: getattr(functions_bits, name)
        for name in ("bmsk_rows", "szext_rows", "fns_rows", "permute_selector")
    },
    **{
        name: getattr(functions_float, name)
        for name in (
            "one_nan", "settle_nan", "ftz", "ftz_half", "relu", "saturate", "min_float",
            "max_float", "add_odd", "sub_odd", "mul_odd", "div_odd", "fma_odd", "sqrt_odd",
            "rcp_odd", "reciprocal", "fma_f32", "fma_f64", "round_f32", "round_f64", "f16_to_f64",
            "bf16_to_f32", "bf16_to_f64", "f64_to_f16", "f64_to_bf16", "is_normal", "is_subnormal",
            "approx_sqrt", "approx_rcp", "approx_rsqrt", "approx_ex2", "approx_lg2", "cut_low_word",
            "approx_sin", "approx_cos", "approx_tanh", "xor_sign",
        )
    },
    "directed_f64": functions_f64.directed_f64, "carry_sum": alu_carry.carry_sum,
    "pack_integers": convert.pack_integers,
    **{
        name: getattr(convert, name)
        for name in (
            "int_row", "int_to_int", "extend", "int_to_float", "float_to_int",
            "float_to_float", "pack_bf16", "pack_f16", "pack_fp8", "pack_fp8_from_f16",
            "unpack_fp8", "f32_to_tf32",
        )
    },
    **{
        name: getattr(access, name)
        for name in ("load_one", "store_one", "load_rows", "store_rows", "widen", "one_of")
    },
    "whole_warp": whole_warp.guarded_aligned,
    "atomic": atomics.atomic,
    "async_store": async_store.async_store,
    "trap": control.trapped,
    "broadcast": warp.broadcast, "shuffle": warp.shuffle_rows, "vote": warp.vote_row,
    "match": warp.match_rows, "redux": warp.redux_row, "elect": warp.elect_lane,
    **{
        name: getattr(barriers, name)
        for name in (
            "barrier_sync", "barrier_arrive", "barrier_reduce", "warp_sync",
        )
    },
    "cluster_arrive": cluster.cluster_arrive, "cluster_wait": cluster.cluster_wait,
    "set_max_registers": register_pool.set_max_registers,
    **{
        name: getattr(mbarrier, name)
        for name in (
            "mbarrier_init", "mbarrier_inval", "mbarrier_arrive", "mbarrier_no_complete",
            "mbarrier_tx", "mbarrier_wait",
        )
    },
    "init_fence": order.init_fence, "proxy_fence": order.proxy_fence, "order_fence": order.fence,
    "grid_waited": visibility.grid_waited,
    "check_rank": mbarrier_forms.check_rank,
    **{
        name: getattr(tma, name)
        for name in ("tensor_load", "tensor_store", "tensor_prefetch", "lane_value")
    },
    **{
        name: getattr(map_memory, name)
        for name in (
            "prefetch_tensor_map", "map_replace", "map_copy", "map_release", "map_acquire",
        )
    },
    **{
        name: getattr(bulk, name)
        for name in (
            "bulk_load", "bulk_store", "bulk_commit", "bulk_wait",
        )
    },
    **{
        name: getattr(cp_async, name)
        for name in ("cp_async", "async_arrive", "cp_async_commit", "cp_async_wait")
    },
    **{
        name: getattr(wgmma, name)
        for name in ("wgmma_issue", "wgmma_commit", "wgmma_wait", "wgmma_fence")
    },
    "load_matrices": matrix.load_matrices, "store_matrices": matrix.store_matrices,
    "transposed": matrix.transposed,
    "mma_rows": mma.mma_rows, "mma_quads": mma.mma_quads,
}  # fmt: skip
