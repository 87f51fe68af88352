"""Remote control of the fake CUDA driver, and stand-ins for torch and for GPU arrays.

Only meaningful in a process that was started with the fake libcuda.so.1 on its library path.
"""

from __future__ import annotations

import ctypes
import itertools
import re
import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from ptxgen.errors import ToolMissing
from ptxgen.isa.dtypes import from_numpy
from ptxgen.spec import (
    ArrayMeta,
    DeviceLimits,
    Dim3,
    KernelSpec,
    LaunchPlan,
    PointerParam,
    ScalarParam,
    Step,
    TensorMapParam,
    Workspace,
)
from runtime.packing import scalar_bytes

_u32, _u64 = ctypes.c_uint32, ctypes.c_uint64


class Launch(ctypes.Structure):
    _fields_ = (
        ("grid", _u32 * 3), ("block", _u32 * 3), ("smem", _u32), ("num_attrs", _u32),
        ("stream", _u64), ("function", _u64), ("context", _u64),
        ("attr_ids", ctypes.c_int32 * 4), ("attr_values", (_u32 * 3) * 4),
        ("num_params", _u64), ("params", (ctypes.c_ubyte * 128) * 32), ("param_align", _u64 * 32),
    )  # fmt: skip


class MapRequest(ctypes.Structure):
    _fields_ = (
        ("storage", _u64), ("address", _u64), ("type", _u32), ("rank", _u32),
        ("interleave", _u32), ("swizzle", _u32), ("l2", _u32), ("fill", _u32),
        ("dims", _u64 * 5), ("strides", _u64 * 4), ("box", _u32 * 5), ("steps", _u32 * 5),
    )  # fmt: skip


class Driver:
    """The library's counters and knobs as attributes: `driver.launches`, `driver.busy = 1`."""

    _signed = ("smem_limit", "non_portable")

    def __init__(self) -> None:
        object.__setattr__(self, "lib", ctypes.CDLL("libcuda.so.1"))

    def _variable(self, name: str) -> Any:
        kind = ctypes.c_int32 if name in self._signed else _u64
        return kind.in_dll(self.lib, f"fake_{name}")

    def __getattr__(self, name: str) -> int:
        return self._variable(name).value

    def __setattr__(self, name: str, value: int) -> None:
        self._variable(name).value = value

    @property
    def launch(self) -> Launch:
        return Launch.in_dll(self.lib, "fake_launch")

    @property
    def map(self) -> MapRequest:
        return MapRequest.in_dll(self.lib, "fake_map")

    def fail(self, function: str, code: int, times: int = 1) -> None:
        self.lib.fake_fail(function.encode(), code, times)

    def make_current(self, device: int) -> None:
        self.lib.fake_make_current(device)

    def reset_context(self, device: int) -> None:
        self.lib.fake_reset_context(device)

    def current(self) -> int:
        return self.lib.fake_current()

    def jit_says(self, text: str) -> None:
        ctypes.c_char.in_dll(self.lib, "fake_log")
        ctypes.memmove(
            ctypes.addressof(ctypes.c_char.in_dll(self.lib, "fake_log")),
            text.encode() + b"\0",
            len(text) + 1,
        )

    def expect(self, spec: KernelSpec) -> None:
        """Tells the library how large each parameter is, so that it can copy them."""
        sizes = (_u64 * 32).in_dll(self.lib, "fake_param_sizes")
        self.num_params = len(spec.params)
        for index, param in enumerate(spec.params):
            if isinstance(param, TensorMapParam):
                sizes[index] = 128
            elif isinstance(param, PointerParam):
                sizes[index] = 8
            else:
                sizes[index] = scalar_bytes(param.ptx_type)


# --- a torch that is not torch -------------------------------------------------------------------


class Tensor:
    """What the runtime reads of a torch tensor, over NumPy memory that plays the GPU's."""

    def __init__(self, array: np.ndarray, device: str = "cuda", index: int = 0) -> None:
        self.array = array
        self.layout = "strided"
        self.dtype = f"torch.{from_numpy(array.dtype).numpy}"
        self.device = SimpleNamespace(type=device, index=index)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self.array.itemsize for s in self.array.strides)

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def is_contiguous(self) -> bool:
        return self.array.flags.c_contiguous

    def is_neg(self) -> bool:
        return False

    def get_device(self) -> int:
        return self.device.index if self.device.type == "cuda" else -1


Tensor.__module__ = "torch"


class FakeTorch(types.ModuleType):
    """`torch.current = 0x55` sets the current stream of every device."""

    def __init__(self) -> None:
        super().__init__("torch")
        self.current = 0
        self.strided = "strided"
        self.Tensor = Tensor
        self._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda index: self.current)


def install_torch() -> FakeTorch:
    torch = FakeTorch()
    sys.modules["torch"] = torch
    return torch


class CudaArray:
    """A producer of __cuda_array_interface__."""

    def __init__(self, array: np.ndarray, stream: int | None = None) -> None:
        self.array = array
        self.__cuda_array_interface__ = {
            **array.__array_interface__, "version": 3, "stream": stream
        }  # fmt: skip


# --- kernels -------------------------------------------------------------------------------------

_names = itertools.count()
ONE, ALL_SMS = Dim3(), Dim3(132)


def spec(*params: Any, cluster: Dim3 = ONE, smem: int = 0, threads: int = 384) -> KernelSpec:
    return KernelSpec(
        entry="k", params=params, block=Dim3(threads), cluster=cluster, smem_bytes=smem
    )


def _declared(param: Any) -> str:
    """A parameter without its `.param`."""
    if isinstance(param, TensorMapParam):
        return f".align 64 .b8 {param.name}[128]"
    kind = "u64" if isinstance(param, PointerParam) else param.ptx_type
    size = re.fullmatch(r"b8\[(\d+)\]", kind)
    return f".b8 {param.name}[{size[1]}]" if size else f".{kind} {param.name}"


@dataclass
class Kernel:
    """A kernel whose plan is given: grid and scalars."""

    spec: KernelSpec
    grid: Dim3 = ALL_SMS
    scalars: Mapping[str, Any] = field(default_factory=dict)
    pdl: bool = False
    steps: int = 1
    workspaces: tuple[Workspace, ...] = ()
    image: bytes | None = field(default_factory=lambda: f"cubin {next(_names)}".encode())
    ptx: str = ""  # by default a header with the parameters of `spec`
    plans: int = 0
    limits: DeviceLimits | None = None

    __hash__ = None  # like a kernel that compares by value

    def __post_init__(self) -> None:
        listed = ", ".join(f".param {_declared(param)}" for param in self.spec.params)
        self.ptx = self.ptx or f".version 8.0\n.visible .entry {self.spec.entry}({listed})"

    @property
    def cubin(self) -> bytes:
        if self.image is None:
            raise ToolMissing("no ptxas here")
        return self.image

    def plan(
        self, args: Mapping[str, ArrayMeta], scalars: Mapping[str, Any], device: DeviceLimits
    ) -> LaunchPlan:
        self.plans += 1
        self.limits = device
        step = Step(entry="k", grid=self.grid, scalars=self.scalars, pdl=self.pdl)
        return LaunchPlan(steps=(step,) * self.steps, workspaces=self.workspaces)


def gemm_like(**changes: Any) -> Kernel:
    """Two loads, a store and a scalar, 2x1 cluster: the shape of a GEMM's parameters."""
    box = {"axes": (0, 1), "box": (64, 64), "swizzle": 128}
    return Kernel(
        spec(
            TensorMapParam(name="tmap_a", arg="a", dtype="bf16", **box),
            TensorMapParam(name="tmap_b", arg="b", dtype="bf16", **box),
            TensorMapParam(name="tmap_d", arg="d", dtype="bf16", use="store", **box),
            ScalarParam(name="k_tiles", ptx_type="u32"),
            cluster=Dim3(2),
            smem=200_000,
        ),
        scalars={"k_tiles": 7},
        **changes,
    )


def pointer(name: str, **changes: Any) -> PointerParam:
    return PointerParam(name=f"p_{name}", arg=name, dtype="f32", **changes)


# --- arrays ---------------------------------------------------------------------------------------


def bf16(rows: int = 128, columns: int = 128, device: int = 0) -> Tensor:
    return Tensor(np.zeros((rows, columns), ml_dtypes.bfloat16), index=device)


def f32(count: int = 64, device: int = 0) -> Tensor:
    return Tensor(np.zeros(count, np.float32), index=device)


def gemm_arrays() -> dict[str, Tensor]:
    return {"a": bf16(), "b": bf16(), "d": bf16()}
