"""The backend that runs kernels on an NVIDIA GPU of compute capability 9.0."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ptxgen.errors import LaunchError
from ptxgen.spec import Access, Launchable, Step, TensorMapParam, Workspace
from runtime import allocate, replay, tensor_maps
from runtime.backend import ArrayRef, BoundLaunch, BoundStep, Loaded, Report, StreamRef
from runtime.buffers import borrow, device_of, framework_of, refusal
from runtime.cuda import memory, tensor_map
from runtime.cuda.call import CudaCall, describe
from runtime.cuda.device import Devices, ordinal_of_pointer
from runtime.cuda.driver import api, error_of
from runtime.cuda.module import Modules
from runtime.cuda.order import Order, is_capturing
from runtime.stream import LEGACY, current_stream, handle_of, same

DIRECT = ("torch", "cupy")  # frameworks whose current stream orders their arrays
SPIN_S, NAP_S = 200e-6, 500e-6  # waiting: ask without pause at first, then with naps


class CudaBackend:
    """Launches through the driver. All caches are its own, keyed by device and context."""

    name = "cuda"

    def __init__(self) -> None:
        self.devices = Devices()
        self.modules = Modules()
        self._orders: dict[int, Order] = {}
        self._workspaces = memory.Workspaces()
        self._last: dict[str, dict[int, BoundLaunch]] = {}

    # --- arrays ----------------------------------------------------------------------------------

    def array(self, name: str, x: object, access: Access, stream: StreamRef) -> ArrayRef:
        ref = borrow(name, x, stream=stream.handle)
        if ref.meta.device == "cuda":
            ref = self._located(name, ref, stream)
        if ref.meta.device != stream.device:
            raise _elsewhere(name, ref.meta.device, stream.device)
        producer = self._producer(ref)
        if producer is not None and not same(producer, stream.handle):
            self.order(stream.device, producer, stream.handle)
        return ref

    def empty(self, shape: Sequence[int], dtype: str, like: object, stream: StreamRef) -> object:
        return allocate.empty_like(shape, dtype, like, stream=stream.handle)

    def copy(self, dst: ArrayRef, src: ArrayRef, stream: StreamRef) -> None:
        with self.context(stream.device):
            memory.copy(dst.meta, src.meta, stream.handle)
        self.hold(stream.device, stream.handle, (dst.owner, src.owner))

    def workspace(self, spec: Workspace, stream: StreamRef) -> ArrayRef:
        with self.context(stream.device) as context:
            return self._workspaces.get(spec, context, stream)

    def tensor_map(self, ref: ArrayRef, param: TensorMapParam) -> bytes:
        spec = tensor_maps.spec_of(ref, param)
        if spec is None:
            return tensor_maps.EMPTY
        with self.context(ref.meta.device):
            return tensor_map.encode(spec, name=param.arg)

    # --- kernels ---------------------------------------------------------------------------------

    def load(self, kernel: Launchable, device: str) -> Loaded:
        with self.context(device) as context:
            return self.modules.load(kernel, self.devices.named(device), context, capturing=False)

    def load_on(self, kernel: Launchable, stream: StreamRef) -> Loaded:
        """Load for a launch on `stream`. LaunchError if that would happen inside a capture."""
        with self.context(stream.device) as context:
            capturing = is_capturing(stream.handle)
            return self.modules.load(kernel, self.devices.named(stream.device), context, capturing)

    def prepare(self, bound: BoundLaunch) -> CudaCall:
        ordinal = int(bound.device.removeprefix("cuda:"))
        frameworks = [ref.framework for ref in bound.refs.values() if ref.framework in DIRECT]
        framework = frameworks[0] if frameworks else "none"
        return CudaCall(self, bound, current_stream(framework, ordinal))

    def launch(
        self,
        loaded: Loaded,
        step: Step,
        params: Sequence[bytes],
        refs: Mapping[str, ArrayRef],
        stream: StreamRef,
    ) -> None:
        bound_step = BoundStep(loaded=loaded, step=step, params=tuple(params))
        metas = {name: ref.meta for name, ref in refs.items()}
        bound = BoundLaunch(device=stream.device, steps=(bound_step,), refs=refs, metas=metas)
        self.prepare(bound).run(stream, refs)

    # --- streams ---------------------------------------------------------------------------------

    def stream(self, x: object, device: str, arrays: Sequence[object] = ()) -> StreamRef:
        if isinstance(x, StreamRef):
            return x
        ordinal = self._ordinal(device, arrays)
        if x is not None:
            return StreamRef(handle=handle_of(x), device=f"cuda:{ordinal}", owner=x)
        for index, array in enumerate(arrays):
            name = f"arrays[{index}]"
            framework = framework_of(name, array)
            if framework in DIRECT and device_of(name, array) == f"cuda:{ordinal}":
                handle = current_stream(framework, ordinal)()
                return StreamRef(handle=handle, device=f"cuda:{ordinal}")
        return StreamRef(handle=LEGACY, device=f"cuda:{ordinal}")

    def wait(self, stream: StreamRef, timeout_s: float | None = None) -> Report:
        driver = api()
        not_ready = driver.CUresult.CUDA_ERROR_NOT_READY
        start = time.perf_counter()
        with self.context(stream.device) as context:
            while True:
                (code,) = driver.cuStreamQuery(driver.CUstream(stream.handle))
                elapsed = time.perf_counter() - start
                if code != not_ready:
                    break
                if timeout_s is not None and elapsed > timeout_s:
                    raise LaunchError(self._hang(stream, elapsed))
                if elapsed > SPIN_S:
                    time.sleep(NAP_S)
            if not code:
                self._order_of(context).release()
        if code:
            raise error_of(code, f"waiting on {stream.device}", detail=self._last_launch(stream))
        return Report(backend=self.name, elapsed_s=elapsed)

    # --- for the calls that it makes -------------------------------------------------------------

    @contextmanager
    def context(self, device: str) -> Iterator[int]:
        """Makes a context of "cuda:N" current inside the block, and gives its id."""
        with self.devices.named(device).current() as context:
            yield context

    def order(self, device: str, producer: int, stream: int) -> None:
        """Later work on `stream` waits for what `producer` has now."""
        with self.context(device) as context:
            self._order_of(context).wait_for(producer, stream)

    def hold(self, device: str, stream: int, owners: object) -> None:
        """Keep `owners` alive until the work that is now on `stream` has run."""
        with self.context(device) as context:
            self._order_of(context).hold(stream, owners)

    def last_on(self, device: str) -> dict[int, BoundLaunch]:
        """The latest launch on each stream of a GPU, for the report of a hang."""
        return self._last.setdefault(device, {})

    def _order_of(self, context: int) -> Order:
        return self._orders.setdefault(context, Order())

    def _producer(self, ref: ArrayRef) -> int | None:
        """The stream that may still be writing an array that was not ordered by its exporter."""
        if ref.framework in DIRECT:
            return current_stream(ref.framework, int(ref.meta.device.removeprefix("cuda:")))()
        if ref.framework == "cuda_array_interface":
            owner: Any = ref.owner
            stream: int | None = owner.__cuda_array_interface__.get("stream")
            return stream
        return None

    def _located(self, name: str, ref: ArrayRef, stream: StreamRef) -> ArrayRef:
        """An array that did not say which GPU it is on, with the driver's answer."""
        device = stream.device
        if ref.meta.size:
            with self.context(stream.device):
                device = f"cuda:{ordinal_of_pointer(name, ref.meta.address)}"
        return replace(ref, meta=replace(ref.meta, device=device))

    def _ordinal(self, device: str, arrays: Sequence[object]) -> int:
        """The GPU of a launch: the device's number, else an array's, else the current one."""
        if device.startswith("cuda:"):
            return int(device.removeprefix("cuda:"))
        api()
        if device == "cuda":
            for index, array in enumerate(arrays):
                name = f"arrays[{index}]"
                if device_of(name, array) == "cuda":
                    meta = borrow(name, array).meta
                    return ordinal_of_pointer(name, meta.address) if meta.size else 0
        return self.devices.current_ordinal()

    def _hang(self, stream: StreamRef, elapsed: float) -> str:
        rows = [
            f"stream {stream.handle:#x} on {stream.device} has not finished after {elapsed:.1f} s",
            self._last_launch(stream),
        ]
        last = self.last_on(stream.device).get(stream.handle)
        if last is not None:
            rows += [
                "a barrier that never completes is the usual cause: this replays the launch on the "
                "emulator, which reports who waits for what (contents are made up; :FILE.npy in "
                "their place gives others)",
                *(f"    {text}" for text in replay.commands(last)),
            ]
        rows.append("the GPU stays busy until this process ends")
        return "\n    ".join(rows)

    def _last_launch(self, stream: StreamRef) -> str:
        last = self.last_on(stream.device).get(stream.handle)
        return f"last launch on it: {describe(last)}" if last else "nothing was launched on it here"


def _elsewhere(name: str, got: str, launch_device: str) -> Exception:
    if got == "cpu":
        return refusal(
            name,
            "an array in host memory",
            f"must be on {launch_device}, where the kernel runs",
            why="launches never copy",
            fix="move it to the GPU (torch: x.cuda(), CuPy: cupy.asarray(x)), or use "
            "backend='emulator' with host arrays",
        )
    return refusal(
        name,
        f"an array on {got}",
        f"must be on {launch_device}, where the first GPU argument is",
        why="launches never copy, and a kernel runs on one GPU",
        fix=f"move it to {launch_device}",
    )
