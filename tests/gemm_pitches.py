"""GEMMs whose arrays lie anywhere: views of larger ones, at odd pitches and addresses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from machines import POISON, Runner

import ptxgen
from ptxgen.app import reference

# D is stored element by element: every way in which its elements are rounded, and every part of the
# kernel that says which of them a consumer has.
DIRECT = (
    "gemm:store=direct,tile=64x64,stages=2,cluster=1x1",
    "gemm:store=direct,tile=128x64,stages=2,out_dtype=f32",  # a cluster
    "gemm:store=direct,tile=256x64,stages=2,cluster=1x2,store_n=16",  # two row blocks, four slabs
    "gemm:store=direct,tile=64x64,stages=2,dtype=f16,acc_dtype=f16,cluster=1x1",  # packed sums
    "gemm:store=direct,tile=64x40,cluster=1x1,dtype=e4m3,out_dtype=e4m3",  # no box has 8 bytes
    "gemm:store=direct,tile=64x48,cluster=1x1,dtype=s8,b_dtype=u8,batched=1",
    "gemm:store=direct,tile=64x32,cluster=1x1,dtype=tf32",
    "gemm:store=direct,tile=64x16,cluster=1x1,swap_ab=1",
    "gemm:store=direct,tile=64x8,cluster=1x1,swap_ab=1,dtype=e5m2,out_dtype=e5m2",  # not staged
    "gemm:store=direct,tile=64x16,cluster=1x1,swap_ab=1,out_dtype=f32,beta=1,bias=row",
    "gemm:store=direct,tile=64x64,stages=3,cluster=1x1,schedule=pingpong",
    "gemm:store=direct,tile=64x64,stages=3,cluster=1x1,schedule=stream_k",
    "gemm:store=direct,tile=64x64,stages=2,cluster=1x1,split_k=2",
    "gemm:store=direct,tile=64x64,cluster=1x1,a_source=registers,wait_depth=0",
    "gemm:store=direct,tile=64x64,stages=2,cluster=1x1,batched=1,beta=1,bias=row,activation=relu",
    "gemm:store=direct,tile=64x64,stages=2,cluster=2x1,alpha=1,beta=1,bias=column,out_dtype=f32",
    "gemm:store=direct,tile=64x64,cluster=1x1,dtype=e4m3,scales=row,amax=1,out_dtype=e4m3,out_scale=1",
    "gemm:store=direct,tile=64x64,cluster=1x1,gated=1,activation=relu,amax=1",
)

# A and B are copied by threads: every size of an element, depth of the ring, number of boxes, and
# who waits for it.
COPIED = (
    "gemm:load=cp_async,tile=64x64,cluster=1x1",  # D by TMA
    "gemm:load=cp_async,store=direct,tile=128x64,stages=5,cluster=1x1",  # two stages on their way
    "gemm:load=cp_async,store=direct,tile=64x72,stages=1,wait_depth=0,cluster=1x1",  # none
    "gemm:load=cp_async,store=direct,tile=64x8,stages=2,cluster=1x1",  # eight rows of B
    "gemm:load=cp_async,store=direct,tile=192x40x128,stages=2,wait_depth=0,cluster=1x1",  # boxes
    "gemm:load=cp_async,store=direct,tile=64x32,stages=3,cluster=1x1,dtype=tf32",
    "gemm:load=cp_async,store=direct,tile=64x48,stages=3,cluster=1x1,dtype=s8,b_dtype=u8,batched=1",
    "gemm:load=cp_async,store=direct,tile=64x40,cluster=1x1,dtype=e4m3,accumulate=promoted,wait_depth=0",
    "gemm:load=cp_async,store=direct,tile=64x16,cluster=1x1,swap_ab=1,dtype=f16,acc_dtype=f16",
    "gemm:load=cp_async,store=direct,tile=64x64,stages=4,cluster=1x1,schedule=pingpong",
    "gemm:load=cp_async,store=direct,tile=64x64,stages=3,cluster=1x1,schedule=stream_k",
    "gemm:load=cp_async,store=direct,tile=64x64,cluster=1x1,a_source=registers,wait_depth=0",
    "gemm:load=cp_async,store=direct,tile=64x64,cluster=1x1,batched=1,beta=1,bias=row,activation=relu",
)
COPY_BYTES = 4  # a pitch is a multiple of it

# They load elements, at any pitch and address: every size of one; several rows of each warp at
# once, two, and parts of one (three consumers leave the producer 32 registers); who waits; and what
# takes most registers beside those of elements.
LOADED = (
    "gemm:load=ld,tile=64x64,cluster=1x1",  # D by TMA; eight rows of each warp at once
    "gemm:load=ld,store=direct,tile=128x64,stages=5,cluster=1x1",  # two consumers
    "gemm:load=ld,store=direct,tile=64x72,stages=1,wait_depth=0,cluster=1x1",  # six of B
    "gemm:load=ld,store=direct,tile=64x8,stages=2,cluster=1x1",  # two of B
    "gemm:load=ld,store=direct,tile=192x40x128,stages=2,wait_depth=0,cluster=1x1",  # boxes
    "gemm:load=ld,store=direct,tile=64x32,stages=3,cluster=1x1,dtype=tf32",
    "gemm:load=ld,store=direct,tile=64x48,stages=3,cluster=1x1,dtype=s8,b_dtype=u8,batched=1",
    "gemm:load=ld,store=direct,tile=64x40,cluster=1x1,dtype=e4m3,accumulate=promoted,wait_depth=0",
    "gemm:load=ld,tile=192x16x512,stages=2,cluster=1x1,dtype=e5m2",  # half a row at once
    "gemm:load=ld,store=direct,tile=64x16,cluster=1x1,swap_ab=1,dtype=f16,acc_dtype=f16",
    "gemm:load=ld,tile=64x16,cluster=1x1,swap_ab=1,out_dtype=f32",  # D staged one by one
    "gemm:load=ld,store=direct,tile=64x64,stages=4,cluster=1x1,schedule=pingpong",
    "gemm:load=ld,store=direct,tile=64x64,stages=3,cluster=1x1,schedule=stream_k",
    "gemm:load=ld,tile=64x16x128,stages=2,cluster=1x1,schedule=stream_k,dtype=tf32,batched=1",
    "gemm:load=ld,store=direct,tile=64x64,cluster=1x1,a_source=registers,wait_depth=0",
    "gemm:load=ld,store=direct,tile=64x64,cluster=1x1,batched=1,beta=1,bias=row,activation=relu",
)


def around(x: np.ndarray, before: int, behind: int) -> tuple[np.ndarray, Any]:
    """An array of poison with `x` in it, and where: so many elements before and behind each row."""
    *lead, rows, columns = x.shape
    whole = np.empty((*lead, rows + 2, before + columns + behind), x.dtype)
    whole.view(np.uint8)[...] = POISON
    at = (..., slice(1, 1 + rows), slice(before, before + columns))
    whole[at] = x
    return whole, at


def check(
    text: str, shape: tuple[int, int, int], runner: Runner, *, before: int = 1, behind: int = 0,
    words: int = 1, **emulator: Any,
) -> None:  # fmt: skip
    """Exact integers: D, and what lies around it. What the kernel takes so is a view.

    D and C have `before` elements in front of each row, and `behind` it. A and B that threads copy
    have `words` in front: of 4 bytes for cp.async, and behind up to the next whole one; else of one
    element, and behind what makes a pitch of an odd number of them.
    """
    kernel = ptxgen.kernel_from(text)
    problem = kernel.source.problem
    a, b = reference.inputs("integers", problem, *shape, seed=3)
    given = reference.epilogue("integers", problem, *shape[:2], seed=3)
    arrays = given.arrays()
    largest = {"amax": arrays.pop("amax")} if problem.amax else {}
    inputs = {"a": a, "b": b, **arrays}
    views = {}
    for name, x in {"a": a, "b": b}.items() if "load=" in text else ():
        each = COPY_BYTES // x.itemsize if "load=cp_async" in text else 1
        rest = -x.shape[-1] % each if "load=cp_async" in text else (words + x.shape[-1] + 1) % 2
        inputs[name], views[name] = around(x, words * each, rest)
    if problem.beta and "store=direct" in text:
        inputs["c"], views["c"] = around(arrays["c"], behind, before)
    if "store=direct" not in text:  # whole rows of 16 bytes, at such addresses
        before = behind = 8
    d, at = around(reference.poisoned(problem, *shape[:2]), before, behind)
    got = runner.run(
        kernel, inputs, {"d": (d.shape, d.dtype)}, updated=largest,
        views={**views, "d": at}, args=given.scalars(problem), emulator=emulator,
    )  # fmt: skip
    given = replace(given, amax=got.get("amax"))
    result = reference.compare(a, b, got["d"][at], problem, exact=True, given=given)
    assert result.ok, result.verdict()
    untouched = np.ones(d.shape, bool)
    untouched[at] = False
    outside = got["d"][untouched].view(np.uint8)
    assert np.array_equal(outside, np.full_like(outside, POISON))
