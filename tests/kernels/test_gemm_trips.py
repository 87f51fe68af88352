"""Trip counts of every schedule: K of 0 .. 2 * stages + 1 stages, on tiles that wrap the grid.

The plain ring and consumers in turns have theirs in test_gemm_emulator and test_gemm_schedule. Runs
on the emulator; `--backend cuda` runs the same tests on a GPU, `--backend both` on the two.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from machines import Runner

import ptxgen
from ptxgen.app import reference

pytestmark = pytest.mark.emu

# More tiles than the emulator has CTAs, ragged: a CTA begins its second tile wherever in the ring
# the first one ended.
M, N = 72, 208
RINGS: Mapping[str, str] = {
    "both operands shared": "cluster=2x2,stages=2",
    "A shared": "cluster=1x2,stages=2",
    "no wgmma in flight": "cluster=2x1,stages=2,wait_depth=0",
    "one stage": "cluster=1x1,stages=1,wait_depth=0",
    "a batch": "cluster=1x1,stages=2,batched=1",
    "swapped": "cluster=1x1,stages=2,swap_ab=1",
    "packed sums": "cluster=1x1,stages=2,dtype=f16,acc_dtype=f16",
    "promoted sums": "cluster=1x1,stages=2,dtype=e4m3,accumulate=promoted,wait_depth=0",
    "promoted sums in turns": "schedule=pingpong,cluster=1x1,stages=2,dtype=e4m3,"
    "accumulate=promoted,wait_depth=0",
    "split in 2": "split_k=2,cluster=1x1,stages=2",
    "stream-K": "schedule=stream_k,cluster=1x1,stages=3",
    "stream-K in clusters": "schedule=stream_k,cluster=2x1,stages=2",
    "rows in registers": "a_source=registers,wait_depth=0,cluster=2x1,stages=3",
    "rows in registers, in turns": "a_source=registers,wait_depth=0,schedule=pingpong,"
    "cluster=1x1,stages=2",
    "rows in registers, shared out": "a_source=registers,wait_depth=0,schedule=stream_k,"
    "cluster=1x1,stages=2",
    "rows in registers, split": "a_source=registers,wait_depth=0,split_k=2,cluster=1x1,stages=2",
}


@pytest.mark.parametrize("name", RINGS)
def test_trip_counts(name: str, runner: Runner) -> None:
    """Where CTAs share K, each of them goes through 0 .. 2 * stages + 1."""
    kernel = ptxgen.kernel_from(f"gemm:tile=64x64,{RINGS[name]}")
    problem, config = kernel.source.problem, kernel.source.config
    row_k = 128 // problem.a.bits * 8
    most = config.split_k * (2 * int(config.stages) + 1)
    for stages in range(most + 1):
        a, b = reference.inputs("integers", problem, M, N, row_k * stages, seed=stages)
        d = reference.poisoned(problem, M, N)
        got = runner.run(kernel, {"a": a, "b": b}, {"d": (d.shape, d.dtype)})["d"]
        result = reference.compare(a, b, got, problem, exact=True)
        assert result.ok, f"{stages} stages: {result.verdict()}"
