"""Streams, their order, and how long arrays live."""

from __future__ import annotations

import gc
import time
from importlib import import_module
from typing import Any

import ptx_kernels as kernels
from checking import (
    SECOND,
    backend,
    check,
    gemm,
    integers,
    poisoned,
    product,
    raises,
    torch,
)

import runtime
from ptxgen.errors import LaunchError


@check
def the_current_stream_of_torch_is_used() -> None:
    t = torch()
    x, y = t.ones(32, device="cuda"), t.zeros(32, device="cuda")
    kernel = kernels.add_one()
    side = t.cuda.Stream()
    for stream in (t.cuda.current_stream(), side, t.cuda.current_stream()):
        with t.cuda.stream(stream):
            y.zero_()
            runtime.launch(kernel, x=x, y=y)
            result = y.sum().item()
        assert result == 64
    last = backend().last_on("cuda:0")
    assert side.cuda_stream in last


@check
def another_stream_waits_for_the_producer() -> None:
    # x is written on the current stream behind a long wait, the launch goes to another stream.
    t = torch()
    flag, seen = (t.zeros(1, dtype=t.int32, device="cuda") for _ in range(2))
    x, y, other = (t.zeros(32, device="cuda") for _ in range(3))
    release, side = t.cuda.Stream(), t.cuda.Stream()
    kernel, spin = kernels.add_one(), kernels.wait_for_flag()
    runtime.launch(kernel, x=x, y=other)  # both are loaded from here on
    runtime.launch(spin, flag=flag, out=seen, ns=0)
    t.cuda.synchronize()
    for call in range(2):  # the full path, then the remembered call
        flag.zero_()
        y.zero_()
        t.cuda.synchronize()
        runtime.launch(spin, flag=flag, out=seen, ns=2 * SECOND)
        x.fill_(41 + call)
        runtime.launch(kernel, x=x, y=y, stream=side)
        assert not side.query(), "the other stream did not wait"
        with t.cuda.stream(release):
            flag.fill_(1)
        side.synchronize()
        assert y[0].item() == 42 + call


def _core_streams() -> list[Any]:
    """A stream of cuda.core, whose place moved between releases; none where it is not installed."""
    for name in ("cuda.core", "cuda.core.experimental"):
        try:
            device = import_module(name).Device(0)
        except (ImportError, AttributeError):
            continue
        device.set_current()
        return [device.create_stream()]
    return []


@check
def streams_of_all_kinds() -> None:
    t = torch()
    x, y = t.ones(32, device="cuda"), t.zeros(32, device="cuda")
    side = t.cuda.Stream()
    streams: list[Any] = [side, side.cuda_stream, 0, 1]

    class Protocol:
        def __cuda_stream__(self) -> tuple[int, int]:
            return (0, side.cuda_stream)

    streams.append(Protocol())
    streams += _core_streams()
    for stream in streams:
        y.zero_()
        runtime.launch(kernels.add_one(), x=x, y=y, stream=stream)
        runtime.wait(y, stream=stream, timeout_s=10)
        assert y.sum().item() == 64, stream


@check
def arrays_outlive_a_launch_on_another_stream() -> None:
    t = torch()
    flag, seen = (t.zeros(1, dtype=t.int32, device="cuda") for _ in range(2))
    kernel, spin = kernels.add_one(), kernels.wait_for_flag()
    y = t.zeros(32, device="cuda")
    runtime.launch(kernel, x=t.ones(32, device="cuda"), y=y)
    runtime.launch(spin, flag=flag, out=seen, ns=0)
    t.cuda.synchronize()
    side, release = t.cuda.Stream(), t.cuda.Stream()
    runtime.launch(spin, flag=flag, out=seen, ns=2 * SECOND, stream=side)
    x = t.full((32,), 5.0, device="cuda")
    t.cuda.current_stream().synchronize()
    runtime.launch(kernel, x=x, y=y, stream=side)
    del x
    gc.collect()
    scraps = [t.zeros(32, device="cuda") for _ in range(64)]  # would reuse x's memory
    t.cuda.current_stream().synchronize()
    with t.cuda.stream(release):
        flag.fill_(1)
    side.synchronize()
    assert y[0].item() == 6, "the array's memory was given away before the launch ran"
    del scraps


@check
def a_hang_becomes_an_error() -> None:
    t = torch()
    flag, seen = (t.zeros(1, dtype=t.int32, device="cuda") for _ in range(2))
    spin = kernels.wait_for_flag()
    runtime.launch(spin, flag=flag, out=seen, ns=0)
    t.cuda.synchronize()
    release = t.cuda.Stream()
    runtime.launch(spin, flag=flag, out=seen, ns=5 * SECOND)
    start = time.perf_counter()
    with raises(LaunchError, "wait_for_flag", "grid 1x1x1", "cluster 1x1x1", "emulator"):
        runtime.wait(flag, timeout_s=0.2)
    assert time.perf_counter() - start < 2
    with t.cuda.stream(release):
        flag.fill_(1)
    report = runtime.wait(flag, timeout_s=10)
    assert report.backend == "cuda"
    assert seen.item() == 1


@check
def dlpack_and_cuda_array_interface() -> None:
    t = torch()
    x, y = t.ones(32, device="cuda"), t.zeros(32, device="cuda")

    class DLPack:
        def __init__(self, tensor: Any) -> None:
            self.tensor = tensor

        def __dlpack_device__(self) -> Any:
            return self.tensor.__dlpack_device__()

        def __dlpack__(self, **keywords: Any) -> Any:
            return self.tensor.__dlpack__(**keywords)

    class Interface:
        def __init__(self, tensor: Any) -> None:
            self.__cuda_array_interface__ = tensor.__cuda_array_interface__

    runtime.launch(kernels.add_one(), x=DLPack(x), y=DLPack(y))
    runtime.wait(y)
    assert y.sum().item() == 64
    y.zero_()
    t.cuda.synchronize()
    runtime.launch(kernels.add_one(), x=Interface(x), y=Interface(y))
    runtime.wait(Interface(y))
    assert y.sum().item() == 64
    a = integers(64, 64)
    d = poisoned(64, 64)
    t.cuda.synchronize()
    runtime.launch(gemm(), a=DLPack(a), b=DLPack(a), d=DLPack(d))  # bf16 has no NumPy type
    runtime.wait(DLPack(d))
    assert t.equal(d, product(a, a).to(d.dtype))
