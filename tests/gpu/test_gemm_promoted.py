"""Promoted fp8 sums on the GPU: what they are for shows in the tensor core's own sums only."""

from __future__ import annotations

import numpy as np
import pytest
from machines import TorchArrays

from ptxgen.isa.dtypes import dtype
from runtime.ops import gemm

pytestmark = pytest.mark.gpu

pytest.importorskip("torch", reason="torch is not installed")


def errors(k: int, accumulate: str, mean: float) -> float:
    """The error of D = A B, in f32, relative in norms; elements are normal, around `mean`."""
    arrays, rng = TorchArrays(), np.random.default_rng(k)
    kind = dtype("e4m3").np_dtype
    a, w = ((rng.standard_normal((256, k)) + mean).astype(np.float32).astype(kind) for _ in "ab")
    exact = a.astype(np.float64) @ w.astype(np.float64).T
    d = gemm(arrays.put(a), arrays.put(w).T, out_dtype="f32", accumulate=accumulate, backend="cuda")
    return float(np.linalg.norm(arrays.get(d) - exact) / np.linalg.norm(exact))


@pytest.mark.parametrize("mean", [0.0, 1.0])
@pytest.mark.parametrize("k", [4096, 16384])
def test_promoted_sums_are_closer(k: int, mean: float) -> None:
    """Sums of K numbers of one sign grow beyond what 13 bits hold; those of 128 hardly do."""
    fast, promoted = (errors(k, way, mean) for way in ("fast", "promoted"))
    print(f"K {k}, mean {mean}: fast {fast:.2e}, promoted {promoted:.2e}")
    assert promoted < fast / 2
    assert promoted < 128 * 2.0**-13
