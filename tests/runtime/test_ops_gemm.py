"""ops.gemm: operand order off the strides, allocation, and what it hands to the kernel."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from recording import RecordingBackend, Seen

from ptxgen.configs.gemm import GemmConfig
from ptxgen.errors import ArgumentError
from ptxgen.isa.dtypes import dtype as dtype_row
from runtime.buffers import host_bytes
from runtime.ops import gemm

pytestmark = pytest.mark.unit

BF16 = ml_dtypes.bfloat16


class Multiplying(RecordingBackend):
    """Computes what the kernel is promised to: d = a @ b.T for row-major a [M, K] and b [N, K]."""

    def launch(self, loaded, step, params, refs, stream) -> None:
        super().launch(loaded, step, params, refs, stream)
        a, b, d = (self._view(refs[name]) for name in "abd")
        d[...] = (a.astype(np.float32) @ b.astype(np.float32).swapaxes(-1, -2)).astype(d.dtype)

    @staticmethod
    def _view(ref):
        memory = host_bytes(ref)
        if not ref.meta.size:
            return np.empty(ref.meta.shape, dtype_row(ref.meta.dtype).np_dtype)
        return np.ndarray(
            ref.meta.shape, dtype_row(ref.meta.dtype).np_dtype, memory, 0, ref.meta.strides
        )


@pytest.fixture
def backend() -> Multiplying:
    return Multiplying()


def operands(m: int, n: int, k: int, dtype: type = BF16) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    a = rng.integers(-4, 5, (m, k)).astype(dtype)
    w = rng.integers(-4, 5, (n, k)).astype(dtype)
    return a, w.T


def check(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(out.astype(np.float64), exact.astype(out.dtype))


@pytest.mark.parametrize("dtype", [BF16, np.float16])
def test_result_in_numpy(backend, dtype):
    a, b = operands(40, 24, 64, dtype)
    out = gemm(a, b, backend=backend)
    assert (out.dtype, out.shape) == (a.dtype, (40, 24))
    check(out, a, b)
    wide = gemm(a, b, out_dtype="float32", backend=backend)
    assert wide.dtype == np.float32
    check(wide, a, b)


def test_padded_rows(backend):
    a, b = operands(40, 24, 64)
    a_padded = np.zeros((40, 72), BF16)
    a_padded[:, :64] = a
    check(gemm(a_padded[:, :64], b, backend=backend), a, b)
    # 129 columns are 258 B, no legal pitch: a new result gets padded rows
    a, b = operands(8, 129, 64)
    out = gemm(a, b, backend=backend)
    assert out.strides == (272, 2)
    check(out, a, b)


def test_out(backend):
    a, b = operands(40, 24, 64)
    out = np.full((40, 24), np.nan, np.float32)
    assert gemm(a, b, out=out, backend=backend) is out
    check(out, a, b)
    with pytest.raises(ArgumentError, match="M of d"):
        gemm(a, b, out=np.zeros((41, 24), np.float32), backend=backend)
    with pytest.raises(ArgumentError, match="next legal N is 136"):
        gemm(a, operands(40, 129, 64)[1], out=np.zeros((40, 129), BF16), backend=backend)
    with pytest.raises(ArgumentError, match="would write 2 B behind each row"):
        gemm(a, operands(40, 23, 64)[1], out=np.zeros((40, 24), BF16)[:, :23], backend=backend)
    with pytest.raises(ArgumentError, match="must not overlap a"):
        gemm(a, b, out=a[:, :24], backend=backend)


@pytest.mark.parametrize(("m", "n", "k"), [(0, 8, 8), (8, 0, 8), (0, 0, 0)])
def test_empty_results_launch_nothing(backend, m, n, k):
    a, b = operands(m, n, k)
    assert gemm(a, b, backend=backend).shape == (m, n)
    assert not backend.seen


def test_no_depth_gives_zeros(backend):
    a, b = operands(8, 8, 0)
    assert not gemm(a, b, backend=backend).any()
    (seen,) = backend.seen
    assert seen.params[0] == bytes(128)


@pytest.mark.parametrize(
    ("change", "named", "words"),
    [
        (lambda a, b: (a, b.T), {"K"}, r"w\.T"),
        (lambda a, b: (a[:, ::2], b[::2]), {"a", "b"}, "strided"),
        (lambda a, b: (a, b.astype(np.float16)), {"b"}, "must be bf16"),
        (lambda a, b: (a[0], b), {"a"}, "two axes"),
        (lambda a, b: (a[None], b), {"b"}, "must have 3, as a"),
        (lambda a, b: (a[None].repeat(2, 0), b[None].repeat(3, 0)), {"batch"}, "2 in a, 3 in b"),
        (lambda a, b: (a[:, :32], b), {"K"}, "32 in a"),
    ],
    ids=["not transposed", "strided", "dtype", "rank", "ranks", "batch", "K"],
)
def test_refusals_name_operand_and_cure(backend, change, named, words):
    a, b = change(*operands(40, 24, 64))
    with pytest.raises(ArgumentError, match=words) as caught:
        gemm(a, b, backend=backend)
    assert {v.field for v in caught.value.violations} == named


def test_unsupported_types(backend):
    with pytest.raises(ArgumentError, match=r"a=f32 .*only in tf32[\s\S]*precision='tf32'"):
        gemm(*operands(8, 8, 8, np.float32), backend=backend)
    with pytest.raises(ArgumentError, match="a=s32  must be one of bf16, f16, e4m3"):
        gemm(*operands(8, 8, 8, np.int32), backend=backend)
    with pytest.raises(ArgumentError, match="precision='tf32'  must be left out"):
        gemm(*operands(8, 8, 8), precision="tf32", backend=backend)
    with pytest.raises(ArgumentError, match="precision='tf33'  must be None or 'tf32'"):
        gemm(*operands(8, 8, 8), precision="tf33", backend=backend)
    with pytest.raises(ArgumentError, match="out=float17  must be one of bf16, f16, f32"):
        gemm(*operands(8, 8, 8), out_dtype="float17", backend=backend)
    with pytest.raises(ArgumentError, match=r"out=f32  must be one of s32[\s\S]*summed in s32"):
        gemm(*operands(8, 8, 16, np.int8), out_dtype="f32", backend=backend)


# ------------------------------------------------------------------ orders, types, batches


@pytest.mark.parametrize("a_order", ["C", "F"])
@pytest.mark.parametrize("b_order", ["C", "F"])
def test_either_order_of_16_bit_operands(backend, a_order, b_order):
    """A row-major b, as in `a @ w`, is contiguous along N."""
    a, b = operands(40, 24, 64)
    a, b = np.asarray(a, order=a_order), np.asarray(b, order=b_order)
    check(gemm(a, b, backend=backend), a, b)
    entry = backend.seen[0].loaded.spec.entry
    assert ("at" in entry.split("_")) == (a_order == "F")
    assert ("bt" in entry.split("_")) == (b_order == "C")
    assert backend.seen[0].refs["a"].meta.address == a.ctypes.data  # nothing is copied


E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


@pytest.mark.parametrize(
    ("a_type", "b_type", "out", "name"),
    [
        (E4M3, E4M3, BF16, "gemm_e4m3_bf16"),
        (E5M2, E4M3, BF16, "gemm_e5m2_e4m3_bf16"),
        (np.int8, np.int8, np.int32, "gemm_s8_s32"),
        (np.uint8, np.int8, np.int32, "gemm_u8_s8_s32"),
        (np.float32, np.float32, np.float32, "gemm_tf32_f32"),
    ],
)
def test_other_types(backend, a_type, b_type, out, name):
    a, b = operands(40, 24, 64)
    a, b = np.abs(a).astype(a_type), b.astype(b_type)
    options = {"precision": "tf32"} if a_type == np.float32 else {}
    d = gemm(a, b, backend=backend, **options)
    assert d.dtype == out
    check(d, a, b)
    assert backend.seen[0].loaded.spec.entry.startswith(name)


def test_other_types_are_read_along_k_only(backend):
    """What is not contiguous along K is refused by name, or copied on request."""
    a, b = operands(40, 24, 72, np.int8)
    a = np.pad(a, ((0, 0), (0, 8)))[:, :72]  # rows of 80 bytes
    row_major = np.ascontiguousarray(b)
    with pytest.raises(ArgumentError, match=r"b=s8 \[K, N\].*MN-major") as caught:
        gemm(a, row_major, backend=backend)
    assert "transpose='copy'" in str(caught.value)
    check(gemm(a, row_major, transpose="copy", backend=backend), a, row_major)
    assert backend.seen[0].refs["b"].meta.strides == (80, 1)  # rows of a legal pitch
    check(gemm(a[:, ::2], b[::2], transpose="copy", backend=backend), a[:, ::2], b[::2])
    with pytest.raises(ArgumentError, match="transpose='move'  must be None or 'copy'"):
        gemm(a, row_major, transpose="move", backend=backend)


def test_batches(backend):
    rng = np.random.default_rng(3)
    a = rng.integers(-4, 5, (3, 40, 64)).astype(BF16)
    w = rng.integers(-4, 5, (3, 24, 64)).astype(BF16)
    b = w.swapaxes(-1, -2)
    out = gemm(a, b, backend=backend)
    assert out.shape == (3, 40, 24)
    check(out, a, b)
    check(gemm(a, np.ascontiguousarray(b), backend=backend), a, b)
    padded = gemm(
        a, rng.integers(-4, 5, (3, 129, 64)).astype(BF16).swapaxes(-1, -2), backend=backend
    )
    assert padded.shape == (3, 40, 129)
    assert padded.strides == (40 * 272, 272, 2)


def test_few_rows_choose_a_swapped_tile(backend):
    a, b = operands(16, 4096, 4096)
    check(gemm(a, b, backend=backend), a, b)
    assert "swap" in backend.seen[0].loaded.spec.entry


def test_one_kernel_a_config(backend):
    a, b = operands(40, 24, 64)
    config = GemmConfig(tile=(64, 64, 64), stages=3, cluster=(1, 1))
    for _ in range(2):
        gemm(a, b, config=config, backend=backend)
    first, second = (seen.loaded.spec for seen in backend.seen)
    assert first is second
    assert "64x64x64_3s_1x1" in first.entry


def test_single_rows_and_columns(backend):
    # extents of 1 leave a stride that means nothing, and both orders fit
    for m, n, k in ((1, 8, 64), (8, 1, 64), (1, 1, 8)):
        a, b = operands(m, n, k)
        check(gemm(a, b, backend=backend), a, b)


def test_jax(backend, host_jax):
    a, b = operands(40, 24, 64)
    out = gemm(host_jax.numpy.asarray(a), b, backend=backend)
    assert isinstance(out, host_jax.Array)
    check(np.asarray(out), a, b)


def test_what_the_recorder_sees(backend):
    a, b = operands(40, 24, 64)
    gemm(a, b, backend=backend)
    seen: Seen = backend.seen[0]
    assert seen.refs["b"].meta.shape == (24, 64)
    assert seen.refs["b"].meta.address == b.ctypes.data
