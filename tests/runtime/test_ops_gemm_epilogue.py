"""ops.gemm with an epilogue: which kernel it takes, what it hands to it, and what it refuses."""

from __future__ import annotations

import sys

import ml_dtypes
import numpy as np
import pytest
from recording import RecordingBackend

from ptxgen.errors import ArgumentError
from runtime.ops import gemm

pytestmark = pytest.mark.unit

BF16, E4M3 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
M, N, K = 40, 24, 64


def operands(dtype: type = BF16, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    return np.ones((M, K), dtype), np.ones((n, K), dtype).T


def floats(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


@pytest.fixture
def backend() -> RecordingBackend:
    return RecordingBackend()


def entry(backend: RecordingBackend) -> str:
    return backend.seen[-1].loaded.spec.entry


def shape(backend: RecordingBackend, name: str) -> tuple[int, ...]:
    return backend.seen[-1].refs[name].meta.shape


def test_nothing_asked_is_the_plain_kernel(backend):
    gemm(*operands(), gated=False, backend=backend)
    assert entry(backend).endswith(("1x1", "2x1", "1x2"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": 2.0}, "alpha"),
        ({"alpha": np.float32(2)}, "alpha"),
        ({"alpha": 1}, "alpha"),
        ({"c": np.ones((M, N), BF16)}, "beta"),
        ({"c": np.ones((M, N), BF16), "beta": 0}, "beta"),
        ({"bias": floats(N)}, "bias_row"),
        ({"bias": floats(1, N)}, "bias_row"),
        ({"bias": floats(M, 1)}, "bias_column"),
        ({"bias": np.ones(N, BF16)}, "bias_row_out"),
        ({"activation": "gelu_tanh"}, "gelu_tanh"),
        ({"activation": "none", "alpha": 1.0}, "alpha"),
        ({"scale_a": floats(1), "scale_b": floats(1)}, "scaled_tensor"),
        ({"scale_a": floats(M), "scale_b": floats(N)}, "scaled_row"),
        ({"scale_a": floats(M, 1), "scale_b": floats(1, N)}, "scaled_row"),
        ({"amax": floats(1), "out_scale": floats(1)}, "amax_out_scale"),
    ],
)
def test_arguments_say_which_kernel(backend, options, words):
    gemm(*operands(), backend=backend, **options)
    assert entry(backend).endswith("_" + words)


def test_vectors_are_views_in_the_shape_of_the_kernel(backend):
    bias, scale_a, scale_b = floats(M, 1), floats(M, 1), floats(1, N)
    gemm(*operands(), bias=bias, scale_a=scale_a, scale_b=scale_b, backend=backend)
    for name, x, want in (("bias", bias, (M,)), ("scale_a", scale_a, (M,)),
                          ("scale_b", scale_b, (N,))):  # fmt: skip
        assert shape(backend, name) == want
        assert backend.seen[-1].refs[name].meta.address == x.ctypes.data


def test_a_gated_b_is_two_matrices(backend):
    a, b = operands(n=2 * N)
    d = gemm(a, b, gated=True, activation="silu", backend=backend)
    assert d.shape == (M, N)
    assert shape(backend, "b") == (2, N, K)
    assert backend.seen[-1].refs["b"].meta.address == b.ctypes.data
    assert entry(backend).endswith("gated_silu")
    gemm(a, b, gated=True, scale_a=floats(M), scale_b=floats(2 * N), backend=backend)
    assert shape(backend, "scale_b") == (2, N)
    row_major = np.ascontiguousarray(b)
    gemm(a, row_major, gated=True, transpose="copy", backend=backend)
    assert shape(backend, "b") == (2, N, K)
    batch = gemm(np.stack([a] * 3), np.stack([b.T] * 3).swapaxes(1, 2), gated=True, backend=backend)
    assert batch.shape == (3, M, N)
    assert shape(backend, "b") == (3, 2, N, K)


def test_promoted_sums_choose_a_config_that_has_them(backend):
    gemm(*operands(E4M3), accumulate="promoted", backend=backend)
    assert "promoted" in entry(backend)
    gemm(*operands(E4M3), accumulate="fast", backend=backend)
    assert "promoted" not in entry(backend)


def test_a_repeated_call_is_looked_up(backend, monkeypatch):
    """Other values and addresses of the same kinds and shapes ask no rule again."""
    options = {"alpha": 2.0, "bias": floats(N), "activation": "relu"}
    gemm(*operands(), backend=backend, **options)
    monkeypatch.setattr(sys.modules["runtime.ops.gemm"], "product", None)
    gemm(*operands(), backend=backend, **{**options, "alpha": 3.0, "bias": floats(N)})
    assert backend.seen[0].loaded.spec is backend.seen[1].loaded.spec
    with pytest.raises(TypeError):  # another shape does
        gemm(*operands(), backend=backend, **{**options, "bias": floats(M, 1)})


@pytest.mark.parametrize(
    ("options", "field", "words"),
    [
        ({"beta": 2.0}, "beta", "pass c="),
        ({"alpha": floats(1)}, "alpha", "as scale_a"),
        ({"activation": "tanh"}, "activation", "'relu', 'gelu', 'gelu_tanh', 'silu'"),
        ({"accumulate": "promoted"}, "accumulate", "left out for bf16"),
        ({"accumulate": "exact"}, "accumulate", "'fast' or 'promoted'"),
        ({"bias": floats(M)}, "bias", r"must be \[24\] or \[1, 24\].*\[40, 1\]"),
        ({"bias": floats(N).astype(np.float16)}, "bias", "f32 or bf16"),
        ({"scale_a": floats(1)}, "scale_b", "required beside scale_a"),
        ({"scale_a": floats(1), "scale_b": floats(N)}, "scale_a", "expand and copy it"),
        ({"scale_a": floats(M), "scale_b": floats(M)}, "scale_b", r"\[24\] or \[1, 24\]"),
        ({"scale_a": floats(M).astype(np.float64), "scale_b": floats(N)}, "scale_a", "must be f32"),
        ({"c": floats(M, N)}, "c", "must be bf16"),
        ({"c": np.ones((M, 32), BF16)}, "N of c", "must be 24"),
        ({"out_scale": floats(2)}, "out_scale", "one element"),
        ({"amax": np.float64(1).reshape(1)}, "amax", "must be f32"),
        ({"gated": True, "c": np.ones((M, N), BF16)}, "c", "one of the two products"),
    ],
)
def test_refusals_name_the_argument_and_the_cure(backend, options, field, words):
    with pytest.raises(ArgumentError, match=words) as caught:
        gemm(*operands(), backend=backend, **options)
    assert field in {v.field for v in caught.value.violations}
    assert not backend.seen


def test_gated_refusals(backend):
    with pytest.raises(ArgumentError, match="even number"):
        gemm(*operands(n=25), gated=True, backend=backend)
    a, b = operands()
    with pytest.raises(ArgumentError, match=r"contiguous along K with gated=True[\s\S]*w\.T"):
        gemm(a, np.ascontiguousarray(b), gated=True, backend=backend)


def test_integers_have_no_epilogue(backend):
    with pytest.raises(ArgumentError, match=r"alpha=an argument[\s\S]*activation=an argument"):
        gemm(*operands(np.int8), alpha=2.0, activation="relu", backend=backend)
