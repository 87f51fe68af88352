"""Arrays of any framework as metadata and owner."""

from __future__ import annotations

import array
import gc
import sys
import types
import weakref

import ml_dtypes
import numpy as np
import pytest
from dlpack_producer import Producer

from ptxgen.errors import ArgumentError
from ptxgen.isa.dtypes import DTYPES
from runtime import dlpack
from runtime.buffers import borrow, device_of, host_bytes, overlap, span

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("name", list(DTYPES))
def test_numpy_arrays_of_every_type(name: str) -> None:
    x = np.zeros((3, 4), DTYPES[name].np_dtype)[:, 1:]
    meta = borrow("x", x).meta
    size = DTYPES[name].bytes
    assert (meta.shape, meta.strides, meta.dtype) == ((3, 3), (4 * size, size), name)
    assert (meta.address, meta.device, meta.writable) == (x.ctypes.data, "cpu", True)


def test_read_only_numpy() -> None:
    x = np.zeros(3, np.float32)
    x.flags.writeable = False
    assert not borrow("x", x).meta.writable


@pytest.mark.parametrize("name", list(DTYPES))
@pytest.mark.parametrize("legacy", [False, True])
def test_dlpack_types_by_code_and_bits(name: str, legacy: bool) -> None:
    row = DTYPES[name]
    memory = np.zeros((3, 4), f"V{row.bytes}")  # no NumPy type is needed
    producer = Producer(memory, dtype=(*row.dlpack, 1), legacy=legacy)
    meta = borrow("x", producer).meta
    assert (meta.dtype, meta.shape) == (name, (3, 4))
    assert meta.strides == (4 * row.bytes, row.bytes)
    assert meta.address == memory.ctypes.data


@pytest.mark.parametrize("triple", [(4, 16, 2), (2, 8, 1), (6, 8, 1), (5, 64, 1), (99, 4, 1)])
def test_unknown_dlpack_types_are_named(triple: tuple[int, int, int]) -> None:
    # bf16x2, an 8-bit float of no format, bool, complex, nothing
    with pytest.raises(ArgumentError, match=r"code, bits, lanes") as caught:
        borrow("weights", Producer(np.zeros(4, "V2"), dtype=triple))
    assert str(triple) in str(caught.value)
    assert caught.value.violations[0].field == "weights"


def test_dlpack_details() -> None:
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    f32 = (2, 32, 1)
    assert borrow("x", Producer(base.T, dtype=f32)).meta.strides == (4, 16)
    assert borrow("x", Producer(base, dtype=f32, strides=False)).meta.strides == (16, 4)
    assert borrow("x", Producer(base, dtype=f32, offset=64)).meta.address == base.ctypes.data
    assert not borrow("x", Producer(base, dtype=f32, read_only=True)).meta.writable
    with pytest.raises(ArgumentError, match=r"DLPack 2\.0 is unknown"):
        borrow("x", Producer(base, dtype=f32, major=2))


@pytest.mark.parametrize(("stream", "passed"), [(0x55, 0x55), (0, 1), (None, 1), (2, 2)])
def test_a_gpu_producer_is_told_the_stream(stream: int | None, passed: int) -> None:
    # 0 is forbidden in DLPack: the legacy default stream is 1 there
    producer = Producer(np.zeros(4, np.float32), dtype=(2, 32, 1), device=(dlpack.CUDA, 3))
    assert device_of("x", producer) == "cuda:3"
    assert producer.asked == []  # asking where it lives exports nothing
    assert borrow("x", producer, stream=stream).meta.device == "cuda:3"
    assert producer.asked == [{"max_version": (1, 0), "stream": passed}]


def test_a_host_producer_is_told_no_stream() -> None:
    producer = Producer(np.zeros(4, np.float32), dtype=(2, 32, 1), legacy=True)
    borrow("x", producer, stream=5)
    assert producer.asked == [{}]


@pytest.mark.parametrize(
    ("device", "where"),
    [((dlpack.CUDA_HOST, 0), "cpu"), ((dlpack.CUDA_MANAGED, 1), "cuda:1")],
)
def test_pinned_and_managed_memory(device: tuple[int, int], where: str) -> None:
    x = Producer(np.zeros(4, np.float32), dtype=(2, 32, 1), device=device)
    assert device_of("x", x) == where


def test_other_devices_are_refused_by_name() -> None:
    x = Producer(np.zeros(4, np.float32), dtype=(2, 32, 1), device=(10, 0))
    with pytest.raises(ArgumentError, match="ROCm"):
        borrow("x", x)


def test_the_owner_lives_as_long_as_the_reference() -> None:
    x = Producer(np.zeros(4, np.float32), dtype=(2, 32, 1))
    gone = weakref.ref(x)
    ref = borrow("x", x)
    view = host_bytes(ref)
    del x, ref
    gc.collect()
    assert gone() is not None
    assert view.nbytes == 16
    del view
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    ("x", "dtype"), [(bytearray(8), "u8"), (array.array("f", [1, 2]), "f32"),
                     (memoryview(bytearray(8)).cast("h"), "s16")]
)  # fmt: skip
def test_buffers(x: object, dtype: str) -> None:
    meta = borrow("x", x).meta
    assert meta.dtype == dtype
    assert meta.writable
    assert not borrow("x", memoryview(bytes(8))).meta.writable


@pytest.mark.parametrize(
    ("x", "got"),
    [([1, 2], "list"), (np.float32(1), "float32"), (None, "NoneType"), (b"text", "bytes")],
)
def test_what_is_no_array(x: object, got: str) -> None:
    with pytest.raises(ArgumentError, match=f"{got}.*must be an array"):
        borrow("x", x)


@pytest.mark.parametrize("dtype", ["bool", "complex64", ">f4", "float8_e4m3fnuz", "float8_e4m3"])
def test_unknown_numpy_types(dtype: str) -> None:
    # fnuz and the IEEE-like e4m3 are other formats than the GPU's, of the same width
    np_dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    with pytest.raises(ArgumentError, match="no known element type"):
        borrow("x", np.zeros(3, np_dtype))


def test_cuda_array_interface() -> None:
    x = np.zeros((3, 4), np.float32)
    holder = types.SimpleNamespace(
        __cuda_array_interface__={
            "shape": (3, 4), "typestr": "<f4", "data": (x.ctypes.data, True), "version": 3
        }
    )  # fmt: skip
    meta = borrow("x", holder).meta
    assert (meta.device, meta.strides, meta.writable) == ("cuda", (16, 4), False)
    holder.__cuda_array_interface__["typestr"] = "<V2"
    with pytest.raises(ArgumentError, match="<V2"):
        borrow("x", holder)


class _Torch:
    """The attributes of a torch tensor that are read, on a device of choice."""

    def __init__(self, dtype: str, layout: str = "strided", device: str = "cpu") -> None:
        self.dtype, self.layout, self.shape = dtype, layout, (2, 3)
        self.device = types.SimpleNamespace(type=device, index=None)

    def stride(self) -> tuple[int, int]:
        return (3, 1)

    def data_ptr(self) -> int:
        return 4096

    def is_neg(self) -> bool:
        return False

    def get_device(self) -> int:
        return 2


_Torch.__name__, _Torch.__module__ = "Tensor", "torch"


def test_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(strided="strided"))
    meta = borrow("x", _Torch("torch.float8_e4m3fn", device="cuda")).meta
    assert (meta.dtype, meta.device, meta.strides) == ("e4m3", "cuda:2", (3, 1))
    for bad, named in (
        (_Torch("torch.bool"), "torch.bool"),
        (_Torch("torch.float32", layout="torch.sparse_coo"), "sparse_coo"),
        (_Torch("torch.float32", device="meta"), "device"),
    ):
        with pytest.raises(ArgumentError, match=named):
            borrow("x", bad)


def test_jax_arrays_are_read_only(host_jax) -> None:
    x = host_jax.numpy.ones((2, 3), host_jax.numpy.bfloat16)
    meta = borrow("x", x).meta
    assert (meta.dtype, meta.device, meta.writable) == ("bf16", "cpu", False)


BASE = np.zeros((8, 16), np.float32)


@pytest.mark.parametrize(
    ("a", "b", "shared"),
    [
        (BASE[:4], BASE[4:], False),
        (BASE[:5], BASE[4:], True),
        (BASE[:, :8], BASE[:, 8:], False),  # interleaved spans, no byte in common
        (BASE[:, :9], BASE[:, 8:], True),
        (BASE[::2], BASE[1::2], False),
        (BASE[::-1], BASE[7:], True),  # a negative stride reaches down
        (BASE[::-2], BASE[::2], False),
        (BASE.T, BASE, True),
        (BASE[:0], BASE, False),
    ],
)
def test_overlap_is_exact(a: np.ndarray, b: np.ndarray, shared: bool) -> None:
    metas = borrow("a", a).meta, borrow("b", b).meta
    assert overlap(*metas) is shared
    assert overlap(*reversed(metas)) is shared


def test_span_of_negative_strides() -> None:
    x = np.zeros(10, np.float32)
    low = x.ctypes.data
    assert span(borrow("x", x[::-1]).meta) == (low, low + 40)
    assert span(borrow("x", x[:0]).meta) == (low, low)


def test_host_bytes_is_a_view() -> None:
    x = np.zeros((4, 8), np.float32)
    host_bytes(borrow("x", x[1:3, 2:4]))[0] = 7
    assert x.view(np.uint8)[1, 8] == 7
