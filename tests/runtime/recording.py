"""A backend that runs nothing: it records what a launch would be given. Arrays are host arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ptxgen.spec import (
    Access,
    ArrayMeta,
    DeviceLimits,
    Dim3,
    KernelSpec,
    Launchable,
    LaunchPlan,
    Step,
    TensorMapParam,
    Workspace,
)
from runtime import allocate, tensor_maps
from runtime.backend import ArrayRef, Loaded, Report, StreamRef
from runtime.buffers import borrow

ONE, FOUR, WARPGROUP = Dim3(), Dim3(4), Dim3(128)


@dataclass(frozen=True)
class Seen:
    loaded: Loaded
    step: Step
    params: tuple[bytes, ...]
    refs: Mapping[str, ArrayRef]
    stream: StreamRef


@dataclass
class RecordingBackend:
    name: str = "recording"
    ctas: int = 4
    seen: list[Seen] = field(default_factory=list)

    def array(self, name: str, x: object, access: Access, stream: StreamRef) -> ArrayRef:
        return borrow(name, x)

    def empty(self, shape: Sequence[int], dtype: str, like: object, stream: StreamRef) -> object:
        return allocate.empty_like(shape, dtype, like)

    def copy(self, dst: ArrayRef, src: ArrayRef, stream: StreamRef) -> None:
        raise AssertionError("a launch copied")

    def workspace(self, spec: Workspace, stream: StreamRef) -> ArrayRef:
        return borrow(spec.name, np.zeros(spec.bytes, np.uint8))

    def load(self, kernel: Launchable, device: str) -> Loaded:
        limits = DeviceLimits(name="recorder", sms=self.ctas, ctas=self.ctas)
        return Loaded(spec=kernel.spec, device=device, limits=limits, handle=None)

    def tensor_map(self, ref: ArrayRef, param: TensorMapParam) -> bytes:
        return tensor_maps.encode(ref, param)

    def launch(
        self,
        loaded: Loaded,
        step: Step,
        params: Sequence[bytes],
        refs: Mapping[str, ArrayRef],
        stream: StreamRef,
    ) -> None:
        self.seen.append(Seen(loaded, step, tuple(params), dict(refs), stream))

    def stream(self, x: object, device: str, arrays: Sequence[object] = ()) -> StreamRef:
        return StreamRef(handle=0, device="cpu", owner=x)

    def wait(self, stream: StreamRef, timeout_s: float | None = None) -> Report:
        return Report(backend=self.name, elapsed_s=0.0)


@dataclass
class Kernel:
    """A kernel of given parameters and plan."""

    params: tuple[Any, ...]
    grid: Dim3 = FOUR
    scalars: Mapping[str, Any] = field(default_factory=dict)
    cluster: Dim3 = ONE
    block: Dim3 = WARPGROUP
    steps: int = 1
    workspaces: tuple[Workspace, ...] = ()
    version: tuple[int, int] = (8, 0)
    ptx: str = ""
    cubin: bytes = b""

    @property
    def spec(self) -> KernelSpec:
        return KernelSpec(
            entry="k", params=self.params, block=self.block, cluster=self.cluster,
            ptx_version=self.version,
        )  # fmt: skip

    def plan(
        self, args: Mapping[str, ArrayMeta], scalars: Mapping[str, Any], device: DeviceLimits
    ) -> LaunchPlan:
        step = Step(entry="k", grid=self.grid, scalars=self.scalars)
        return LaunchPlan(steps=(step,) * self.steps, workspaces=self.workspaces)
