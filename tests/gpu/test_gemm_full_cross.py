"""GEMM on the GPU: every tile with every ring, cluster, type and shape, on exact integers.

The pairwise cover in tests/kernels is what the emulator runs; here nothing is left out. Run it as
a process of its own under a time limit: a kernel that hangs takes its process with it.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import gemm_cases as cases
import numpy as np
import pytest
from machines import TorchArrays, poisoned

import ptxgen
import runtime

pytestmark = pytest.mark.gpu

pytest.importorskip("torch", reason="torch is not installed")


@cache
def operands(shape: tuple[int, int, int], dtype: str) -> tuple[np.ndarray, np.ndarray]:
    m, n, k = shape
    rng = np.random.default_rng(m + n + k)
    return cases.integers(rng, (m, k), dtype), cases.integers(rng, (n, k), dtype)


@cache
def want(shape: tuple[int, int, int], dtype: str, out_dtype: str) -> np.ndarray:
    return cases.reference(*operands(shape, dtype)).astype(cases.numpy_type(out_dtype))


@pytest.mark.parametrize("out_dtype", cases.OUTPUTS)
@pytest.mark.parametrize("dtype", cases.DTYPES)
@pytest.mark.parametrize("tile", cases.TILES)
def test_full_cross(tile: str, dtype: str, out_dtype: str) -> None:
    arrays = TorchArrays()
    wrong = []
    for stages, cluster in product(cases.STAGES, cases.CLUSTERS):
        kernel = ptxgen.kernel(
            "gemm", tile=tile, stages=stages, cluster=cluster, dtype=dtype, out_dtype=out_dtype
        )
        for shape in (*cases.SHAPES, cases.LARGE):
            a, b = map(arrays.put, operands(shape, dtype))
            expected = want(shape, dtype, out_dtype)
            d = arrays.put(poisoned(expected.shape, expected.dtype))
            runtime.launch(kernel, a=a, b=b, d=d, backend="cuda")
            runtime.wait(d, backend="cuda")
            got = arrays.get(d).astype(np.float64)  # where 0 and -0 are equal
            if not np.array_equal(got, expected.astype(np.float64)):
                wrong.append((kernel.reference, shape))
    assert wrong == []


@pytest.mark.parametrize("cluster", cases.CLUSTERS)
def test_every_run_gives_the_same_bits(cluster: str) -> None:
    """Random numbers, ten runs and two grids: the order of summation is fixed."""
    arrays = TorchArrays()
    kernel = ptxgen.kernel("gemm", cluster=cluster)
    rng = np.random.default_rng(0)
    a, b = (arrays.put(cases.normal(rng, (1000, 1000), "bf16")) for _ in range(2))
    results = set()
    for grid in [None] * 10 + [kernel.spec.cluster.size]:
        d = arrays.put(poisoned((1000, 1000), cases.numpy_type("bf16")))
        runtime.launch(kernel, a=a, b=b, d=d, backend="cuda", grid=grid)
        runtime.wait(d, backend="cuda")
        results.add(arrays.get(d).tobytes())
    assert len(results) == 1
