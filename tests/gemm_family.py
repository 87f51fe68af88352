"""The members of the GEMM family that tests go through: one of each kind, and a pairwise cover."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, product
from typing import Any

from ptxgen.configs.base import options, spell
from ptxgen.configs.gemm import GemmConfig, GemmProblem
from ptxgen.configs.gemm_shape import Gemm

# Each is there for something that the others do not have.
MEMBERS = (
    "gemm",
    "gemm:cluster=2x2",  # both operands shared
    "gemm:tile=128x128x64,stages=max",
    "gemm:a_major=mn",
    "gemm:b_major=mn",
    "gemm:a_major=mn,b_major=mn,cluster=1x2",
    "gemm:a_major=mn,b_major=mn,cluster=2x2,tile=256x128",
    "gemm:b_major=mn,tile=128x96,cluster=1x1",  # MN-major rows of 64 bytes
    "gemm:b_major=mn,tile=128x208,cluster=1x1",  # and of 32
    "gemm:batched=1",
    "gemm:split_k=4,cluster=1x1,tile=64x64,stages=max",
    "gemm:split_k=8,cluster=1x1,tile=128x64,stages=max",
    "gemm:swap_ab=1,cluster=1x1,tile=64x16,stages=max",  # stmatrix.x4.trans
    "gemm:swap_ab=1,cluster=1x1,tile=64x8,stages=max",  # .x2.trans
    "gemm:swap_ab=1,cluster=1x1,tile=128x32,stages=max,out_dtype=f32",  # element by element
    "gemm:swap_ab=1,split_k=2,cluster=1x1,tile=64x16,stages=max",
    "gemm:dtype=tf32,tile=128x256",
    "gemm:dtype=e4m3",
    "gemm:dtype=e4m3,b_dtype=e5m2,out_dtype=f16",
    "gemm:dtype=e4m3,out_dtype=e4m3",  # rounded to 8 bits
    "gemm:dtype=s8",
    "gemm:dtype=u8,b_dtype=s8,tile=128x128",
    "gemm:dtype=f16,acc_dtype=f16",  # two sums a register
    "gemm:dtype=f16,out_dtype=f32,tile=192x128",
    "gemm:dtype=f16,acc_dtype=f16,tile=256x256,stages=3,store_slabs=1",
    "gemm:batched=1,a_major=mn,swap_ab=1,tile=64x64,cluster=1x1",
    "gemm:schedule=pingpong,tile=64x64,stages=3,cluster=1x1",  # consumers take turns
    "gemm:schedule=pingpong,tile=128x128,stages=max",  # two row blocks each
    "gemm:schedule=pingpong,tile=64x256,cluster=1x2,wait_depth=0,l2_promotion=256",
    "gemm:schedule=pingpong,tile=128x192,cluster=2x2,stages=max",  # the most accumulators
    "gemm:schedule=pingpong,dtype=e4m3,tile=128x64,batched=1",
    "gemm:a_source=registers,wait_depth=0,tile=128x64",  # rows through registers
    "gemm:a_source=registers,wait_depth=0,tile=256x64x128,stages=2",  # two boxes, two row blocks
    "gemm:a_source=registers,wait_depth=0,tile=64x64,cluster=1x1,dtype=tf32",
    "gemm:a_source=registers,wait_depth=0,tile=64x64,dtype=e4m3,b_dtype=e5m2,schedule=pingpong",
    "gemm:a_source=registers,wait_depth=0,tile=64x64,dtype=s8,schedule=stream_k,cluster=1x1",
    "gemm:a_source=registers,wait_depth=0,tile=64x16,swap_ab=1,a_major=mn,cluster=1x1",
    "gemm:a_source=registers,wait_depth=0,tile=64x64,dtype=f16,acc_dtype=f16,b_major=mn",
    "gemm:schedule=stream_k,tile=64x64,stages=3,cluster=1x1",  # clusters share out the last wave
    "gemm:schedule=stream_k,tile=128x64,cluster=2x2,stages=max,wait_depth=0",
    "gemm:schedule=stream_k,tile=128x128,consumers=1,stages=3,batched=1,b_major=mn",
    "gemm:schedule=stream_k,tile=64x24,swap_ab=1,dtype=s8,stages=max,cluster=1x1",
)
# Columns of D that no swizzle spans: one box a slab, with an odd number of 16-byte chunks a row.
WIDE = (
    "gemm:tile=64x56,cluster=1x1,stages=2",  # seven chunks
    "gemm:tile=64x24,cluster=1x2,stages=2,dtype=f16,batched=1",  # stmatrix takes two of three
    "gemm:tile=256x200,cluster=1x1,stages=2,store_n=200,store_slabs=1",  # a slab a row block: 25
    "gemm:tile=128x200,cluster=1x2,stages=2,store_n=40,store_slabs=5",  # a ring of slabs of five
    "gemm:tile=64x248,cluster=1x1,stages=2,store_n=248",  # the widest: 31
    "gemm:tile=64x72,cluster=1x1,stages=2,dtype=f16,acc_dtype=f16",  # packed pairs
    "gemm:tile=256x120,cluster=1x2,stages=2,dtype=f16,acc_dtype=f16,store_n=120,store_slabs=2",
    "gemm:tile=64x48,cluster=1x1,dtype=e4m3,out_dtype=e4m3",  # fp8: a chunk has 16 columns
    "gemm:tile=64x112,cluster=2x1,dtype=e5m2,out_dtype=e5m2,scales=row,bias=row,amax=1",
    "gemm:tile=128x240,cluster=1x1,stages=2,dtype=e4m3,out_dtype=e4m3,store_n=240,out_scale=1",
    "gemm:tile=64x56,cluster=1x1,beta=1,bias=row,bias_dtype=out",
    "gemm:tile=128x104,cluster=1x2,stages=2,alpha=1,beta=1,bias=column,activation=relu",
    "gemm:tile=64x88,cluster=1x1,dtype=f16,beta=1,bias=row,activation=relu,batched=1",
    "gemm:tile=128x160,cluster=1x2,stages=2,gated=1,activation=relu,dtype=e5m2,out_dtype=e5m2",
    "gemm:tile=64x160,cluster=1x1,stages=2,gated=1,activation=relu,amax=1",  # 80 as twice 40
    "gemm:tile=64x208,cluster=1x1,stages=3,schedule=pingpong,bias=row",  # twice 104
    "gemm:tile=64x96,cluster=1x1,stages=2,gated=1,dtype=e4m3,out_dtype=e4m3,scales=tensor,amax=1",
    "gemm:tile=64x112,split_k=2,cluster=1x1,stages=2,beta=1,bias=row",  # 56 columns of each CTA
    "gemm:tile=64x72,schedule=pingpong,cluster=1x1,stages=3,beta=1,bias=column",
    "gemm:tile=64x40,schedule=stream_k,cluster=1x1,stages=3,alpha=1,bias=row",
)

TYPES: Sequence[Mapping[str, str]] = (
    {"dtype": "bf16"},
    {"dtype": "f16", "acc_dtype": "f16"},
    {"dtype": "bf16", "out_dtype": "f32"},
    {"dtype": "tf32"},
    {"dtype": "e5m2", "b_dtype": "e4m3"},
    {"dtype": "e4m3", "out_dtype": "e5m2"},
    {"dtype": "s8", "b_dtype": "u8"},
)
GRID: Mapping[str, Sequence[Any]] = {
    "types": range(len(TYPES)),
    "a_major": ("k", "mn"),
    "b_major": ("k", "mn"),
    "batched": (0, 1),
    "tile": ((64, 32), (128, 64), (192, 48)),
    "cluster": ((1, 1), (2, 1), (1, 2), (2, 2)),
    "split_k": (1, 2, 4),
    "swap_ab": (0, 1),
    "schedule": ("cooperative", "pingpong", "stream_k"),
}


def member(row: Mapping[str, Any]) -> Gemm:
    """The GEMM of a row of the grid."""
    fields = {**TYPES[row["types"]], **{name: row[name] for name in row if name != "types"}}
    problem = {name: fields[name] for name in options(GemmProblem) if name in fields}
    config = {name: fields[name] for name in options(GemmConfig) if name in fields}
    return Gemm(GemmProblem(**problem), GemmConfig(stages=3, **config))


def text_of(g: Gemm) -> str:
    """The kernel reference of a member."""
    parts = [
        f"{name}={spell(getattr(part, name))}"
        for part in (g.problem, g.config)
        for name, field in options(type(part)).items()
        if getattr(part, name) != field.default
    ]
    return "gemm:" + ",".join(parts)


@cache
def cover() -> tuple[str, ...]:
    """Legal members such that every two values that may meet do so in one of them."""
    names = list(GRID)
    rows = [dict(zip(names, values, strict=True)) for values in product(*GRID.values())]
    legal = [row for row in rows if not member(row).check()]
    return tuple(text_of(member(row)) for row in _greedy(legal, names))


def _greedy(rows: list[dict[str, Any]], names: list[str]) -> Iterator[dict[str, Any]]:
    pairs = [
        frozenset(((x, row[x]), (y, row[y])) for x, y in combinations(names, 2)) for row in rows
    ]
    still_open = set().union(*pairs)
    while still_open:
        best = max(range(len(rows)), key=lambda i: len(pairs[i] & still_open))
        still_open -= pairs[best]
        yield rows[best]
