"""One kernel on arrays of several frameworks, on the emulator: all give the same bits."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from dlpack_producer import Producer

import ptxgen
import runtime
from ptxgen.errors import ArgumentError
from ptxgen.isa.dtypes import dtype as dtype_row

pytestmark = pytest.mark.emu

BF16 = np.dtype(ml_dtypes.bfloat16)
M, N, K = 72, 40, 96  # no multiple of the tile in M or N; rows of 80 and 192 bytes are legal


@pytest.fixture(scope="module")
def kernel() -> ptxgen.api.Kernel:
    return ptxgen.kernel("gemm", tile=(64, 64, 64), stages=2, cluster=(1, 1))


@pytest.fixture
def host(rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "a": rng.standard_normal((M, K)).astype(BF16),
        "b": rng.standard_normal((N, K)).astype(BF16),
        "d": np.full((M, N), np.nan, BF16),
    }


@pytest.fixture
def expected(kernel, host) -> np.ndarray:
    """What NumPy arrays give, which itself is near the float64 product."""
    d = host["d"].copy()
    runtime.launch(kernel, a=host["a"], b=host["b"], d=d)
    exact = host["a"].astype(np.float64) @ host["b"].astype(np.float64).T
    np.testing.assert_allclose(d.astype(np.float64), exact, rtol=2**-8, atol=1e-4)
    return d


def produced(array: np.ndarray, **more: object) -> Producer:
    return Producer(array, dtype=(*dtype_row("bf16").dlpack, 1), **more)


@pytest.mark.parametrize("legacy", [False, True], ids=["DLPack 1.0", "before 1.0"])
def test_a_dlpack_producer(kernel, host, expected, legacy) -> None:
    """bf16 has no type in NumPy's own DLPack, so the producer is ours."""
    runtime.launch(kernel, **{name: produced(x, legacy=legacy) for name, x in host.items()})
    np.testing.assert_array_equal(host["d"].view(np.uint16), expected.view(np.uint16))


def test_a_read_only_result_is_refused(kernel, host) -> None:
    d = produced(host["d"], read_only=True)
    with pytest.raises(ArgumentError, match=r"d=.*read-only"):
        runtime.launch(kernel, a=host["a"], b=host["b"], d=d)
    assert np.isnan(host["d"].astype(np.float32)).all()


def test_frameworks_may_be_mixed(kernel, host, expected, host_jax) -> None:
    runtime.launch(kernel, a=host_jax.numpy.asarray(host["a"]), b=produced(host["b"]), d=host["d"])
    np.testing.assert_array_equal(host["d"].view(np.uint16), expected.view(np.uint16))


def test_a_jax_array_cannot_be_written(kernel, host, host_jax) -> None:
    with pytest.raises(ArgumentError, match="d="):
        runtime.launch(kernel, a=host["a"], b=host["b"], d=host_jax.numpy.asarray(host["d"]))


def test_ops_gemm_on_jax_arrays(host, host_jax) -> None:
    """JAX keeps a transpose row-major unless it is told otherwise: `Layout` says column-major."""
    from jax.experimental.layout import Format, Layout

    a, w = (host_jax.numpy.asarray(host[name]) for name in "ab")
    b = host_jax.device_put(w.T, Format(Layout(major_to_minor=(1, 0)), w.sharding))
    out = runtime.ops.gemm(a, b)
    assert isinstance(out, host_jax.Array)
    theirs = runtime.ops.gemm(host["a"], host["b"].T)
    np.testing.assert_array_equal(np.asarray(out).view(np.uint16), theirs.view(np.uint16))
