"""The CUDA backend against the fake driver. Run by test_cuda_backend.py in a process of its own."""

from __future__ import annotations

import gc
import threading
import weakref

import fake_cuda
import ml_dtypes
import numpy as np
import pytest
from fake_cuda import CudaArray, Driver, Kernel, Tensor, gemm_like, pointer, spec

import runtime
from ptxgen.errors import (
    AdvisoryError,
    ArgumentError,
    DriverError,
    LaunchError,
    TensorMapError,
)
from ptxgen.spec import Dim3, ScalarParam, Workspace
from runtime import calls
from runtime.backend import BACKENDS, StreamRef
from runtime.cuda.backend import CudaBackend

pytestmark = pytest.mark.unit

INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE, ILLEGAL_ADDRESS = 1, 201, 400, 700
CLUSTER_DIMENSION, PROGRAMMATIC = 4, 6  # CUlaunchAttributeID


@pytest.fixture
def driver() -> Driver:
    driver = Driver()
    driver.busy = driver.capturing = driver.static_smem = driver.num_params = 0
    driver.capability, driver.clusters, driver.registers = 90, 66, 168
    driver.fail("", 0, 0)
    driver.make_current(0)
    driver.jit_says("")
    return driver


@pytest.fixture
def torch() -> fake_cuda.FakeTorch:
    return fake_cuda.install_torch()


@pytest.fixture(autouse=True)
def backend(driver: Driver) -> CudaBackend:
    backend = CudaBackend()
    BACKENDS.register("cuda", lambda: backend)
    return backend


def bf16(rows: int = 128, columns: int = 128, device: int = 0) -> Tensor:
    return Tensor(np.zeros((rows, columns), ml_dtypes.bfloat16), index=device)


def f32(count: int = 64, device: int = 0) -> Tensor:
    return Tensor(np.zeros(count, np.float32), index=device)


def gemm_arrays() -> dict[str, Tensor]:
    return {"a": bf16(), "b": bf16(), "d": bf16()}


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
        assert backend._orders[context].held() == 0
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
        assert backend._orders[context].held() == 1


def test_a_thread_without_a_context_gets_the_primary_one(driver, torch):
    kernel, arrays = gemm_like(), gemm_arrays()
    runtime.launch(kernel, **arrays)
    before, errors, current = driver.launches, [], []

    def work():
        try:
            runtime.launch(kernel, **arrays)  # remembered, and no context here
            runtime.launch(gemm_like(), **arrays)  # new
            current.append(driver.current())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not errors
    assert driver.launches == before + 2
    assert current == [0]


def test_the_arrays_gpu_is_used_and_the_callers_context_restored(driver, torch):
    kernel = gemm_like()
    on_1 = {name: bf16(device=1) for name in "abd"}
    for _ in range(2):
        runtime.launch(kernel, **on_1)
        assert driver.current() == 0
    on_0 = gemm_arrays()
    runtime.launch(kernel, **on_0)
    context_0 = driver.launch.context
    runtime.launch(kernel, **on_1)
    assert driver.launch.context != context_0


def test_after_a_context_reset_the_kernel_is_loaded_again(driver, torch):
    kernel, arrays = gemm_like(), gemm_arrays()
    runtime.launch(kernel, **arrays)
    loads, old = driver.loads, driver.launch.context
    driver.reset_context(0)
    driver.make_current(0)
    runtime.launch(kernel, **arrays)
    assert driver.loads == loads + 1
    assert driver.launch.context != old


def test_one_image_is_loaded_once(driver, torch):
    first, second = gemm_like(image=b"same"), gemm_like(image=b"same")
    loads = driver.loads
    runtime.launch(first, **gemm_arrays())
    runtime.launch(second, **gemm_arrays())
    assert driver.loads == loads + 1


def test_the_smem_opt_in_is_a_high_water_mark(driver, torch):
    # One function, three specs: 64 KiB, 4 B, 64 KiB. The middle one must not lower the limit.
    seen = []
    for smem in (65_536, 4, 65_536):
        kernel = Kernel(spec(pointer("x"), smem=smem, threads=32), image=b"one function")
        runtime.launch(kernel, x=f32())
        seen.append((driver.smem_limit, driver.launch.smem))
    assert seen == [(65_536, 65_536), (65_536, 4), (65_536, 65_536)]


def test_smem_beyond_the_device(driver, torch):
    driver.static_smem = 1_024
    with pytest.raises(LaunchError, match=r"233,024 B of shared memory .*\n?.*232,448 B"):
        runtime.launch(Kernel(spec(pointer("x"), smem=232_000)), x=f32())


def test_clusters_above_eight_ask_for_it(driver, torch):
    kernel = Kernel(spec(pointer("x"), cluster=Dim3(16), threads=32), grid=Dim3(32))
    runtime.launch(kernel, x=f32())
    assert driver.non_portable == 1
    assert list(driver.launch.attr_values[0]) == [16, 1, 1]


def test_no_cluster_fits(driver, torch):
    driver.clusters = 0
    with pytest.raises(LaunchError, match="0 clusters fit") as caught:
        runtime.launch(gemm_like(), **gemm_arrays())
    for number in ("cluster=2x1x1", "smem=200,000 B", "threads=384", "registers=168"):
        assert number in str(caught.value)


def test_block_larger_than_the_registers_allow(driver, torch):
    with pytest.raises(LaunchError, match="512 threads, but its code allows 384"):
        runtime.launch(Kernel(spec(pointer("x"), threads=512)), x=f32())


@pytest.mark.parametrize("capability", [80, 100])
def test_other_gpus_are_refused_by_name(driver, torch, backend, capability):
    driver.capability = capability
    with pytest.raises(LaunchError, match=r"Fake 0\) has compute capability .*9\.0"):
        runtime.launch(gemm_like(), **gemm_arrays())


def test_host_and_foreign_arrays_are_all_named(driver, torch):
    with pytest.raises(ArgumentError) as caught:
        runtime.launch(
            gemm_like(), a=bf16(), b=np.zeros((64, 64), ml_dtypes.bfloat16), d=bf16(device=1)
        )
    broken = {v.field: v for v in caught.value.violations}
    assert set(broken) == {"b", "d"}
    assert "host memory" in broken["b"].got
    assert "cuda:1" in broken["d"].got
    assert "cuda:0" in broken["d"].rule


def test_host_arrays_on_the_cuda_backend(driver, torch):
    with pytest.raises(ArgumentError, match="backend='emulator'"):
        runtime.launch(Kernel(spec(pointer("x"))), x=np.zeros(4, np.float32), backend="cuda")


def test_capture_of_an_unseen_kernel(driver, torch):
    kernel, arrays = gemm_like(), gemm_arrays()
    driver.capturing = 1
    loads = driver.loads
    with pytest.raises(LaunchError, match=r"k is not loaded yet.*\n.*before the capture"):
        runtime.launch(kernel, **arrays)
    assert driver.loads == loads
    driver.capturing = 0
    runtime.launch(kernel, **arrays)
    driver.capturing = 1
    launches = driver.launches
    runtime.launch(kernel, **arrays)
    runtime.launch(kernel, **arrays, stream=0x99)  # another stream: no events inside a capture
    assert driver.launches == launches + 2


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


def test_driver_assembles_where_there_is_no_ptxas(driver, torch):
    kernel = gemm_like(image=None)
    loads = driver.loads
    driver.jit_says("info    : 0 bytes gmem\ninfo    : Function properties for 'k':\n")
    runtime.launch(kernel, **gemm_arrays())
    assert driver.loads == loads + 1


def test_the_assemblers_remarks_are_errors(driver, torch, monkeypatch):
    driver.jit_says(
        "info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine "
        "register count at entry\n"
    )
    with pytest.raises(AdvisoryError, match=r"C7508"):
        runtime.launch(gemm_like(image=None), **gemm_arrays())
    monkeypatch.setenv("PTXGEN_ADVISORIES", "warn")
    with pytest.warns(UserWarning, match="C7508"):
        runtime.launch(gemm_like(image=None), **gemm_arrays())


def test_ptx_newer_than_the_driver(driver, torch):
    driver.fail("cuModuleLoadDataEx", 222)
    with pytest.raises(DriverError, match="CUDA_ERROR_UNSUPPORTED_PTX_VERSION") as caught:
        runtime.launch(gemm_like(image=None), **gemm_arrays())
    text = str(caught.value)
    assert "PTX 8.0" in text
    assert "CUDA 13.0" in text
    assert "line 7: bad things" in text


def test_a_failed_launch_names_the_kernel_and_is_not_retried(driver, torch):
    kernel, arrays = gemm_like(), gemm_arrays()
    runtime.launch(kernel, **arrays)
    driver.fail("cuLaunchKernelEx", INVALID_VALUE)
    launches = driver.launches
    with pytest.raises(DriverError, match=r"INVALID_VALUE") as caught:
        runtime.launch(kernel, **arrays)
    assert driver.launches == launches
    assert "k: grid 132x1x1 CTAs, cluster 2x1x1" in str(caught.value)
    assert "k_tiles=0x7" in str(caught.value)
    runtime.launch(kernel, **arrays)  # dropped, so planned again
    assert kernel.plans == 2


def test_a_hang_is_reported_with_the_last_launch(driver, torch):
    runtime.launch(gemm_like(), **gemm_arrays())
    driver.busy = 1
    with pytest.raises(LaunchError, match=r"has not finished after") as caught:
        runtime.wait(bf16(), timeout_s=0.01)
    assert "grid 132x1x1 CTAs, cluster 2x1x1" in str(caught.value)
    assert "emulator" in str(caught.value)
    driver.busy = 0
    assert runtime.wait(bf16(), timeout_s=0.01).backend == "cuda"


def test_a_fault_is_reported_with_the_last_launch(driver, torch):
    runtime.launch(gemm_like(), **gemm_arrays())
    driver.fail("cuStreamQuery", ILLEGAL_ADDRESS)
    with pytest.raises(DriverError, match="CUDA_ERROR_ILLEGAL_ADDRESS") as caught:
        runtime.wait(bf16())
    assert "last launch on it: k" in str(caught.value)


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


def test_copy_contiguous_and_pitched(driver, backend):
    stream = StreamRef(handle=0, device="cuda:0")
    from runtime.buffers import borrow

    for pick in (lambda x: x, lambda x: x[:, :5], lambda x: x[:, ::2], lambda x: x[1:]):
        source = pick(np.arange(4 * 6 * 8, dtype=np.float32).reshape(4, 6, 8))
        target = pick(np.zeros((4, 6, 8), np.float32))
        backend.copy(borrow("dst", target), borrow("src", source), stream)
        np.testing.assert_array_equal(target, source)
    with pytest.raises(ArgumentError, match="innermost axis"):
        backend.copy(borrow("dst", target.T), borrow("src", source.T), stream)


def test_no_such_gpu(driver, torch):
    with pytest.raises(LaunchError, match="there is no cuda:5; this process sees 2 GPUs"):
        runtime.launch(Kernel(spec(pointer("x"))), x=f32(device=5))
