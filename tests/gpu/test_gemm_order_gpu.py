"""Every schedule on a GPU gives the same bits in every run, and on every grid where it says so."""

from __future__ import annotations

import numpy as np
import pytest
from gemm_cases import normal, numpy_type
from gemm_order import SCHEDULES
from machines import TorchArrays, poisoned

import ptxgen
import runtime

pytestmark = pytest.mark.gpu

pytest.importorskip("torch", reason="torch is not installed")

RUNS = 10
EXTENT = 1048  # several waves of small tiles, ragged; 17 stages


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_run_gives_the_same_bits(name: str) -> None:
    """Random numbers. Stream-K cuts by the grid, so it keeps to one."""
    arrays, rng = TorchArrays(), np.random.default_rng(0)
    kernel = ptxgen.kernel_from(f"gemm:tile=64x64,stages=3,{SCHEDULES[name][0]}")
    problem = kernel.source.problem
    a, b = (arrays.put(normal(rng, (EXTENT, EXTENT), "bf16")) for _ in range(2))
    if problem.a_major == "mn":
        a = a.T
    if problem.b_major == "mn":
        b = b.T
    streams = kernel.source.config.schedule == "stream_k"
    grids = [None] * RUNS + ([] if streams else [kernel.spec.cluster.size])
    results = set()
    for grid in grids:
        d = arrays.put(poisoned((EXTENT, EXTENT), numpy_type("bf16")))
        runtime.launch(kernel, a=a, b=b, d=d, backend="cuda", grid=grid)
        runtime.wait(d, backend="cuda")
        results.add(arrays.get(d).tobytes())
    assert len(results) == 1
