"""Loading, limits, contexts, captures and errors of the driver. Run by test_cuda_backend.py."""

from __future__ import annotations

import gc
import shlex
import threading
import weakref
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from fake_cuda import CudaArray, Kernel, bf16, f32, gemm_arrays, gemm_like, pointer, spec

import runtime
from ptxgen.errors import (
    AdvisoryError,
    ArgumentError,
    DriverError,
    LaunchError,
)
from ptxgen.spec import Dim3
from runtime.backend import StreamRef

pytestmark = pytest.mark.unit

INVALID_VALUE = 1
ILLEGAL_ADDRESS = 700


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
    (command,) = [row for row in str(caught.value).splitlines() if "ptxgen check" in row]
    words = shlex.split(command)
    assert Path(words[2]).read_text() == gemm_like().ptx
    assert "tmap_a=tmap(bf16[128,128],box=64x64,swizzle=128,l2=128,fill=zero):ints" in words
    assert words[-1] == "k_tiles=7"
    driver.busy = 0
    assert runtime.wait(bf16(), timeout_s=0.01).backend == "cuda"


def test_waiting_lets_go_of_arrays_and_takes_a_bare_stream(driver, torch, backend):
    array = CudaArray(np.zeros(64, np.float32))
    gone = weakref.ref(array)
    runtime.launch(Kernel(spec(pointer("x"), threads=32)), x=array)
    del array
    gc.collect()
    assert gone() is not None
    runtime.wait(stream=0x22)
    gc.collect()
    assert gone() is None


def test_capture_mode_is_restored(driver, torch):
    before = driver.lib.fake_capture_mode()
    runtime.launch(gemm_like(), **gemm_arrays())
    runtime.launch(gemm_like(), **gemm_arrays(), stream=0x23)
    assert driver.lib.fake_capture_mode() == before


def test_a_fault_is_reported_with_the_last_launch(driver, torch):
    runtime.launch(gemm_like(), **gemm_arrays())
    driver.fail("cuStreamQuery", ILLEGAL_ADDRESS)
    with pytest.raises(DriverError, match="CUDA_ERROR_ILLEGAL_ADDRESS") as caught:
        runtime.wait(bf16())
    assert "last launch on it: k" in str(caught.value)


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


def test_parameters_in_another_order_never_reach_the_driver(driver, torch):
    """Each value would land in its neighbour's place, which a GPU does not notice."""
    kernel = gemm_like()
    first, second, *others = kernel.spec.params
    kernel.spec = replace(kernel.spec, params=(second, first, *others))
    before = (driver.loads, driver.launches)
    with pytest.raises(ArgumentError, match="in the order of the entry") as caught:
        runtime.launch(kernel, **gemm_arrays())
    (violation,) = caught.value.violations
    assert violation.field == "spec.params[0]"
    assert violation.got == "tmap_b of 128 B"
    assert "tmap_a of 128 B" in violation.rule
    assert (driver.loads, driver.launches) == before
