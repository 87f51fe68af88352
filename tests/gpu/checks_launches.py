"""Repeated, prepared and captured launches; threads, contexts and devices."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import ptx_kernels as kernels
from checking import (
    Skip,
    backend,
    check,
    gemm,
    in_a_new_process,
    integers,
    poisoned,
    product,
    raises,
    torch,
)

import runtime
from ptxgen.errors import ArgumentError, LaunchError, TensorMapError
from ptxgen.spec import TensorMapParam
from runtime.backend import StreamRef
from runtime.buffers import borrow


@check
def a_reused_address_with_another_shape() -> None:
    t = torch()
    kernel = gemm()
    for m in (64, 128, 64, 256):
        storage = t.zeros(256 * 64, dtype=t.bfloat16, device="cuda")
        a, b = storage[: m * 64].view(m, 64), integers(64, 64)
        a.copy_(integers(m, 64))
        d = poisoned(m, 64)
        for _ in range(2):
            runtime.launch(kernel, a=a, b=b, d=d)
        assert t.equal(d, product(a, b).to(d.dtype)), m


@check
def prepared_launches() -> None:
    t = torch()
    a, b, d = integers(128, 64), integers(64, 64), poisoned(128, 64)
    prepared = runtime.prepare(gemm(), a=a, b=b, d=d)
    for stream in (None, t.cuda.Stream()):
        d.fill_(float("nan"))
        t.cuda.synchronize()
        prepared(stream)
        t.cuda.synchronize()
        assert t.equal(d, product(a, b).to(d.dtype))


@check
def graph_capture() -> None:
    t = torch()
    a, b = integers(128, 64), integers(64, 64)
    d, e = poisoned(128, 64), poisoned(128, 64)
    kernel = gemm()
    prepared = runtime.prepare(kernel, a=a, b=b, d=e)
    runtime.launch(kernel, a=a, b=b, d=d)
    graph = t.cuda.CUDAGraph()
    with t.cuda.graph(graph):
        runtime.launch(kernel, a=a, b=b, d=d)
        prepared()
    a.copy_(integers(128, 64))
    d.fill_(float("nan"))
    graph.replay()
    t.cuda.synchronize()
    expected = product(a, b).to(d.dtype)
    assert t.equal(d, expected)
    assert t.equal(e, expected)


@check
def capture_of_an_unseen_kernel_is_refused_and_harmless() -> None:
    t = torch()
    x, y = t.ones(32, device="cuda"), t.zeros(32, device="cuda")
    graph = t.cuda.CUDAGraph()
    with t.cuda.graph(graph):
        with raises(LaunchError, "touch_smem is not loaded yet", "before the capture"):
            runtime.launch(kernels.touch_smem(1_234, static=77), out=y.view(t.int32))
        y.add_(x)  # the capture goes on
    graph.replay()
    assert y.sum().item() == 32


@check
def pdl_launches_run() -> None:
    t = torch()
    x, y = t.ones(32, device="cuda"), t.zeros(32, device="cuda")
    kernel = kernels.add_one()
    plain = kernel.plan

    def with_pdl(*args: Any) -> Any:
        plan = plain(*args)
        return replace(plan, steps=tuple(replace(s, pdl=True) for s in plan.steps))

    kernel.plan = with_pdl  # type: ignore[method-assign]
    for _ in range(3):
        runtime.launch(kernel, x=x, y=y)
    assert y.sum().item() == 64


@check
def threads_on_their_own_streams() -> None:
    t = torch()
    kernel = kernels.add_one()
    errors: list[BaseException] = []

    def work(value: float) -> None:
        try:
            with t.cuda.stream(t.cuda.Stream()):
                x = t.full((32,), value, device="cuda")
                y = t.zeros(32, device="cuda")
                for _ in range(300):
                    y.zero_()
                    runtime.launch(kernel, x=x, y=y)
                    assert y[0].item() == value + 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@check
def a_thread_that_never_touched_cuda() -> None:
    t = torch()
    x, y = t.ones(32, device="cuda"), t.zeros(32, device="cuda")
    kernel = kernels.add_one()
    prepared = runtime.prepare(kernel, x=x, y=y)
    t.cuda.synchronize()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            prepared(0)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    assert y.sum().item() == 64


@check
def two_gpus() -> None:
    t = torch()
    if t.cuda.device_count() < 2:
        raise Skip("one GPU here")
    kernel = kernels.add_one()
    for device in (0, 1, 0, 1):
        x = t.full((32,), float(device), device=f"cuda:{device}")
        y = t.zeros(32, device=f"cuda:{device}")
        for current in (0, 1):
            with t.cuda.device(current):
                y.zero_()
                t.cuda.synchronize(device)
                runtime.launch(kernel, x=x, y=y)
                assert y[0].item() == device + 1, (device, current)
                assert t.cuda.current_device() == current
    x0, y1 = t.ones(32, device="cuda:0"), t.ones(32, device="cuda:1")
    with raises(ArgumentError, "cuda:1", "cuda:0"):
        runtime.launch(kernel, x=x0, y=y1)


@check
def after_a_context_reset() -> None:
    # Without a framework: memory from the driver, as __cuda_array_interface__.
    printed = in_a_new_process(
        """
import numpy as np, runtime, ptx_kernels as kernels
from cuda.bindings import driver
from runtime.backend import BACKENDS, StreamRef
from runtime.buffers import borrow

class Device:
    def __init__(self, values):
        err, self.ptr = driver.cuMemAlloc(values.nbytes)
        assert not err, err
        driver.cuMemcpyHtoD(self.ptr, values.ctypes.data, values.nbytes)
        self.__cuda_array_interface__ = {
            "shape": values.shape, "typestr": "<f4", "data": (int(self.ptr), False), "version": 3}

cuda, kernel = BACKENDS.get("cuda"), kernels.add_one()
for turn in range(2):
    with cuda.context("cuda:0"):
        x, y = Device(np.full(32, turn, np.float32)), Device(np.zeros(32, np.float32))
        prepared = runtime.prepare(kernel, x=x, y=y)
        runtime.launch(kernel, x=x, y=y)
        runtime.wait(y)
        host = np.zeros(32, np.float32)
        driver.cuMemcpyDtoH(host.ctypes.data, y.ptr, host.nbytes)
        print(int(host[0]), cuda.devices.get(0)._context_id())
    del x, y
    print("reset", driver.cuDevicePrimaryCtxReset(driver.cuDeviceGet(0)[1])[0].name)
try:
    prepared()
except Exception as error:
    print("stale:", type(error).__name__)
"""
    )
    lines = printed.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["1", "reset", "2", "reset"], printed
    assert lines[0].split()[1] != lines[2].split()[1], printed
    assert lines[4].startswith("stale: "), printed


@check
def a_fault_names_the_kernel() -> None:
    printed = in_a_new_process(
        """
import torch, runtime, ptx_kernels as kernels
x = torch.zeros(32, device="cuda")
kernel = kernels.touch_smem(1_000)
kernel.scalars = {"last": 10_000_000}
runtime.launch(kernel, out=x.view(torch.int32))
try:
    runtime.wait(x)
except Exception as error:
    print(type(error).__name__, error.code, "touch_smem" in str(error), "emulator" in str(error))
"""
    )
    assert printed.split()[0] == "DriverError", printed
    assert printed.split()[2:] == ["True", "True"], printed


@check
def a_hang_names_the_command_that_replays_it() -> None:
    # 16 bytes too many are announced, so no consumer ever goes on. The process must end by itself:
    # the kernel runs for as long as it does.
    printed = in_a_new_process(
        """
import os, shlex, subprocess, torch, runtime
from dataclasses import replace
from ptxgen import Kernel, kernel
from ptxgen.templating import Rendered

good = kernel("gemm", tile=(64, 64, 64), stages=2, cluster=(1, 1))
text = good.ptx.replace("_, [%full_s], 16384;", "_, [%full_s], 16400;")
assert text != good.ptx
bad = Kernel(replace(good.source, rendered=Rendered(text, good.ptx.chains)))
a, b, d = (torch.zeros(64, k, dtype=torch.bfloat16, device="cuda") for k in (192, 192, 64))
runtime.launch(bad, a=a, b=b, d=d)
try:
    runtime.wait(d, timeout_s=5)
except Exception as error:
    (command,) = [row for row in str(error).splitlines() if "ptxgen check" in row]
    words = [sys.executable, "-m", "ptxgen", *shlex.split(command)[1:]]
    done = subprocess.run(words, capture_output=True, text=True, cwd=sys.path[0])
    print(type(error).__name__, done.returncode, "error deadlock" in done.stdout, flush=True)
os._exit(0)
"""
    )
    assert printed.split() == ["LaunchError", "1", "True"], printed


@check
def copies_between_host_and_gpu() -> None:
    t = torch()
    cuda, stream = backend(), StreamRef(handle=0, device="cuda:0")
    for pick in (lambda x: x, lambda x: x[:, :5], lambda x: x[1:, ::2]):
        source = pick(np.arange(4 * 6 * 8, dtype=np.float32).reshape(4, 6, 8))
        device = pick(t.zeros(4, 6, 8, device="cuda"))
        target = np.zeros_like(source)
        t.cuda.synchronize()
        cuda.copy(borrow("dst", device), borrow("src", source), stream)
        cuda.copy(borrow("dst", target), borrow("src", device), stream)
        cuda.wait(stream, 10)
        np.testing.assert_array_equal(target, source)
        np.testing.assert_array_equal(device.cpu().numpy(), source)


@check
def the_tensor_map_error_is_ours_before_the_drivers() -> None:
    param = TensorMapParam(name="x", arg="x", dtype="bf16", axes=(0, 1), box=(300, 64))
    with raises(TensorMapError, "300"):
        backend().tensor_map(borrow("x", integers(512, 64)), param)
