"""Rows that wgmma takes from registers: a self-test on exact integers, for whatever assembled them.

wgmma reads registers after it has been issued. An assembler that thinks them free before
`wgmma.wait_group`, and loads the next stage into them, gives sums that are a little wrong. Several
stages of ones show it as a number: each D is K.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from machines import Runner

from ptxgen.app import reference

# All types, schedules, numbers of row blocks and depths of K; sums leave unrounded.
SELF_TESTS = tuple(
    f"gemm:a_source=registers,wait_depth=0,{fields}"
    for fields in (
        "tile=128x128,stages=3,out_dtype=f32",
        "tile=128x64x128,consumers=1,stages=2,cluster=1x1,out_dtype=f32",  # two row blocks
        "tile=64x256,stages=4,cluster=1x1,dtype=f16,out_dtype=f32",  # the widest
        "tile=64x64,stages=3,dtype=f16,acc_dtype=f16",
        "tile=64x64,stages=3,dtype=tf32",
        "tile=128x64,stages=3,dtype=e4m3,out_dtype=f32",
        "tile=64x64,stages=3,dtype=e5m2,b_dtype=e4m3,cluster=1x1,accumulate=promoted,out_dtype=f32",
        "tile=64x64,stages=3,dtype=s8,cluster=1x1",
        "tile=128x32,stages=3,dtype=u8,b_dtype=s8",
        "tile=128x64,stages=3,schedule=pingpong,out_dtype=f32",
        "tile=64x64,stages=3,schedule=stream_k,cluster=1x1,out_dtype=f32",
        "tile=64x64,stages=3,split_k=2,cluster=1x1,out_dtype=f32",
        "tile=64x16,stages=3,swap_ab=1,b_major=k,cluster=1x1,out_dtype=f32",
    )
)


def assert_exact(kernel: Any, shape: tuple[int, int, int], runner: Runner, what: str) -> None:
    """Ones give K everywhere, and small integers the exact product. `what` says what was run."""
    problem, (m, n, k) = kernel.source.problem, shape
    a, b = reference.inputs("integers", problem, m, n, k, seed=k)
    d = reference.poisoned(problem, m, n)
    for x, y in ((np.ones_like(a), np.ones_like(b)), (a, b)):
        got = runner.run(kernel, {"a": x, "b": y}, {"d": (d.shape, d.dtype)})["d"]
        result = reference.compare(x, y, got, problem, exact=True)
        assert result.ok, f"{what}: {result.verdict()}"
