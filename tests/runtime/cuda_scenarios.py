"""What reaches the driver, what is remembered, and streams. Run by test_cuda_backend.py."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from fake_cuda import CudaArray, Kernel, Tensor, bf16, f32, gemm_arrays, gemm_like, pointer, spec

import runtime
from ptxgen.errors import (
    ArgumentError,
    TensorMapError,
)
from ptxgen.spec import Dim3, ScalarParam, Workspace
from runtime import calls
from runtime.backend import StreamRef

pytestmark = pytest.mark.unit

INVALID_VALUE = 1
CLUSTER_DIMENSION, PROGRAMMATIC = 4, 6  # CUlaunchAttributeID


def test_what_a_launch_tells_the_driver(driver, torch):
    kernel, arrays = gemm_like(pdl=True), gemm_arrays()
    driver.expect(kernel.spec)
    torch.current = 0x77
    runtime.launch(kernel, **arrays)
    seen = driver.launch
    assert list(seen.grid) == [132, 1, 1]
    assert list(seen.block) == [384, 1, 1]
    assert (seen.smem, seen.stream) == (200_000, 0x77)
    attributes = {seen.attr_ids[i]: list(seen.attr_values[i]) for i in range(seen.num_attrs)}
    assert attributes[CLUSTER_DIMENSION] == [2, 1, 1]
    assert attributes[PROGRAMMATIC][0] == 1
    assert driver.smem_limit == 200_000
    assert kernel.limits.ctas == 66 * 2  # clusters that fit x CTAs in each
    for index, name in enumerate("abd"):
        value = bytes(seen.params[index])
        assert int.from_bytes(value[:8], "little") == arrays[name].data_ptr()
        assert value[8:] == b"\xab" * 120  # the fake encoder's mark, so the whole map travelled
        assert seen.param_align[index] == 0
    assert bytes(seen.params[3])[:4] == (7).to_bytes(4, "little")


def test_the_tensor_map_is_asked_for_in_the_drivers_order(driver, torch):
    kernel = gemm_like()
    d = bf16(96, 72)
    runtime.launch(kernel, a=bf16(), b=bf16(), d=d)
    asked = driver.map
    assert (asked.type, asked.rank, asked.swizzle, asked.l2, asked.fill) == (9, 2, 3, 2, 0)
    assert list(asked.dims)[:2] == [72, 96]
    assert asked.strides[0] == 144
    assert list(asked.box)[:2] == [64, 64]
    assert list(asked.steps)[:2] == [1, 1]
    assert asked.storage % 128 == 0


def test_a_map_that_only_the_driver_refuses(driver, torch):
    driver.fail("cuTensorMapEncodeTiled", INVALID_VALUE)
    with pytest.raises(TensorMapError, match="CUDA_ERROR_INVALID_VALUE") as caught:
        runtime.launch(gemm_like(), **gemm_arrays())
    assert "driver order" in str(caught.value)


def test_a_repeated_launch_plans_nothing(driver, torch):
    kernel, arrays = gemm_like(), gemm_arrays()
    for _ in range(3):
        runtime.launch(kernel, **arrays)
    assert kernel.plans == 1
    runtime.launch(kernel, *arrays.values())
    runtime.launch(kernel, arrays["a"], d=arrays["d"], b=arrays["b"])
    assert kernel.plans == 1
    with pytest.raises(ArgumentError, match="must be given once"):
        runtime.launch(kernel, arrays["a"], **arrays)
    with pytest.raises(ArgumentError, match="is no argument of k"):
        runtime.launch(kernel, **arrays, e=arrays["d"])
    with pytest.raises(ArgumentError, match="must be an array"):
        runtime.launch(kernel, a=arrays["a"])


@pytest.mark.parametrize("change", ["address", "shape", "strides", "device", "scalar", "zero"])
def test_whatever_the_checks_read_is_in_the_key(driver, torch, change):
    kernel = Kernel(
        spec(pointer("x", access="write"), ScalarParam(name="s", ptx_type="f32"), threads=32)
    )
    base = np.zeros((8, 8), np.float32)
    first = {"x": Tensor(base), "s": 0.0}
    second = {
        "address": {"x": Tensor(base.copy()), "s": 0.0},
        "shape": {"x": Tensor(base[:4]), "s": 0.0},
        "strides": {"x": Tensor(np.lib.stride_tricks.as_strided(base, (8, 8), (4, 32))), "s": 0.0},
        "device": {"x": Tensor(base, index=1), "s": 0.0},
        "scalar": {"x": Tensor(base), "s": 1.0},
        "zero": {"x": Tensor(base), "s": -0.0},  # equal, but other bits
    }[change]
    runtime.launch(kernel, **first)
    runtime.launch(kernel, **first)
    assert kernel.plans == 1
    driver.expect(kernel.spec)
    runtime.launch(kernel, **second)
    assert kernel.plans == 2
    assert bytes(driver.launch.params[1])[:4] == np.float32(second["s"]).tobytes()


def test_a_remembered_call_keeps_no_array_and_no_kernel(driver, torch):
    kernel, arrays = gemm_like(), gemm_arrays()
    runtime.launch(kernel, **arrays)
    gone = [weakref.ref(x) for x in arrays.values()]
    del arrays
    gc.collect()
    assert [ref() for ref in gone] == [None] * 3
    entry = id(kernel)
    assert entry in calls.CALLS.entries
    del kernel
    gc.collect()
    assert entry not in calls.CALLS.entries


def test_a_padded_result_is_planned_each_time(driver, torch):
    """`padded` wraps an array, so it has no key that another call would have, too."""
    kernel, arrays = gemm_like(), gemm_arrays()
    wrapped = {**arrays, "d": runtime.padded(arrays["d"])}
    driver.expect(kernel.spec)
    for again, known in ((wrapped, 0), (arrays, 1), (wrapped, 1), (arrays, 1)):
        runtime.launch(kernel, **again)
        pointer_of_d = bytes(driver.launch.params[2])[:8]
        assert int.from_bytes(pointer_of_d, "little") == arrays["d"].data_ptr()
        assert len(calls.CALLS.of(kernel).calls) == known
    assert kernel.plans == 3  # twice wrapped, once plain


def test_the_cache_of_calls_is_bounded_and_keeps_what_is_used(driver, torch):
    kernel = Kernel(spec(pointer("x"), ScalarParam(name="s", ptx_type="u32"), threads=32))
    x = f32()
    runtime.launch(kernel, x=x, s=0)
    for s in range(1, 3 * calls.CALLS_PER_KERNEL):
        runtime.launch(kernel, x=x, s=s)
        runtime.launch(kernel, x=x, s=0)
    assert len(calls.CALLS.of(kernel).calls) <= calls.CALLS_PER_KERNEL
    assert kernel.plans == 3 * calls.CALLS_PER_KERNEL  # s=0 was planned once


def test_streams_of_all_kinds(driver, torch):
    kernel, x = Kernel(spec(pointer("x"), threads=32)), f32()

    class Protocol:
        def __cuda_stream__(self):
            return (0, 0x31)

    class Torch:
        cuda_stream = 0x32

    class Cupy:
        ptr = 0x33

    for _ in range(2):  # the full path, then the remembered one
        for stream, handle in ((0x30, 0x30), (Protocol(), 0x31), (Torch(), 0x32), (Cupy(), 0x33)):
            runtime.launch(kernel, x=x, stream=stream)
            assert driver.launch.stream == handle
    torch.current = 0x40
    runtime.launch(kernel, x=x)
    assert driver.launch.stream == 0x40
    with pytest.raises(ArgumentError, match="stream"):
        runtime.launch(kernel, x=x, stream="default")


def test_another_stream_waits_for_the_producer_and_keeps_the_arrays(driver, torch, backend):
    kernel, x = Kernel(spec(pointer("x"), threads=32)), f32()
    torch.current = 0x51
    for _ in range(2):
        waits = driver.waits
        driver.busy = 1
        runtime.launch(kernel, x=x, stream=0x52)
        assert driver.waits == waits + 1
        assert driver.waiter == 0x52
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is not None  # the launch has not passed
    driver.busy = 0
    with backend.context("cuda:0") as context:
        assert backend._orders[context].release() == 0
    gc.collect()
    assert gone() is None


def test_the_same_stream_needs_no_event(driver, torch):
    kernel, x = Kernel(spec(pointer("x"), threads=32)), f32()
    events = driver.waits, driver.records
    for stream in (None, 0, 1):  # 0 and 1 are both the legacy default stream
        runtime.launch(kernel, x=x, stream=stream)
        runtime.launch(kernel, x=x, stream=stream)
    assert (driver.waits, driver.records) == events


def test_cuda_array_interface_is_located_ordered_and_kept(driver, backend):
    kernel = Kernel(spec(pointer("x"), threads=32))
    array = CudaArray(np.zeros(64, np.float32), stream=0x61)
    waits = driver.waits
    driver.busy = 1
    runtime.launch(kernel, x=array)
    assert driver.launch.stream == 1
    assert driver.waits == waits + 1
    with backend.context("cuda:0") as context:
        assert backend._orders[context].release() == 1


def test_prepared(driver, torch):
    kernel, arrays = gemm_like(), gemm_arrays()
    launches = driver.launches
    prepared = runtime.prepare(kernel, **arrays)
    assert driver.launches == launches
    gone = weakref.ref(arrays["a"])
    del arrays
    gc.collect()
    assert gone() is not None
    torch.current = 0x71
    prepared()
    assert driver.launch.stream == 0x71
    prepared(0x72)
    assert driver.launch.stream == 0x72
    assert driver.launches == launches + 2
    del prepared
    gc.collect()
    assert gone() is None


def test_plans_of_many_steps_and_of_none(driver, torch):
    launches = driver.launches
    runtime.launch(gemm_like(steps=2), **gemm_arrays())
    assert driver.launches == launches + 2
    runtime.launch(gemm_like(steps=0), **gemm_arrays())
    runtime.launch(gemm_like(grid=Dim3(0)), **gemm_arrays())
    assert driver.launches == launches + 2


def test_workspaces_are_per_stream_and_zeroed_once(driver, torch, backend):
    kernel = Kernel(
        spec(pointer("x"), pointer("scratch", access="read_write", workspace=True), threads=32),
        workspaces=(Workspace(name="scratch", bytes=1_000, init="zero_once"),),
    )
    driver.expect(kernel.spec)
    seen = {}
    for stream in (0x81, 0x82, 0x81):
        torch.current = stream
        runtime.launch(kernel, x=f32())
        address = int.from_bytes(bytes(driver.launch.params[1])[:8], "little")
        assert seen.setdefault(stream, address) == address
        assert address % 256 == 0
    assert len(set(seen.values())) == 2
    ref = backend.workspace(kernel.workspaces[0], StreamRef(handle=0x81, device="cuda:0"))
    from runtime.buffers import host_bytes

    assert not host_bytes(ref).any()
    grown = backend.workspace(
        Workspace(name="scratch", bytes=5_000, init="zero_once"),
        StreamRef(handle=0x81, device="cuda:0"),
    )
    assert grown.meta.address != ref.meta.address
    assert grown.meta.size >= 5_000


def test_threads_on_their_own_streams_do_not_mix(driver, torch):
    # Each thread launches with its stream in a scalar; the driver must never see them disagree.
    kernel = Kernel(spec(pointer("x"), ScalarParam(name="s", ptx_type="u32"), threads=32))
    driver.expect(kernel.spec)
    x, wrong = f32(), []
    prepared = {}
    for s in (0x91, 0x92):
        prepared[s] = runtime.prepare(kernel, x=x, s=s)
    lock = threading.Lock()

    def work(s: int) -> None:
        driver.make_current(0)
        for _ in range(300):
            with lock:
                prepared[s](s)
                value = int.from_bytes(bytes(driver.launch.params[1])[:4], "little")
                if (driver.launch.stream, value) != (s, s):
                    wrong.append((driver.launch.stream, value))

    threads = [threading.Thread(target=work, args=(s,)) for s in prepared]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_empty_operands_have_a_map_of_zeros(driver, torch):
    kernel = gemm_like()
    driver.expect(kernel.spec)
    runtime.launch(kernel, a=bf16(128, 0), b=bf16(128, 0), d=bf16())
    assert bytes(driver.launch.params[0]) == bytes(128)
    assert bytes(driver.launch.params[2]) != bytes(128)
