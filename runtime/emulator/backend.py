"""The emulator as a backend: host arrays in, the machine runs, a report comes from `wait`.

Parameters arrive with host addresses in them. Before a launch the arrays get virtual addresses with
guard gaps between them, and pointers and tensor maps are moved there: an access past the end of an
array then meets nothing, instead of whatever the host has put behind it.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Mapping, Sequence

import numpy as np

from ptxgen.errors import ArgumentError, Violation
from ptxgen.isa.dtypes import dtype as dtype_row
from ptxgen.spec import (
    Access,
    ArrayMeta,
    DeviceLimits,
    Launchable,
    PointerParam,
    Step,
    TensorMapParam,
    Workspace,
)
from runtime import allocate, backend, tensor_maps
from runtime.backend import ArrayRef, Loaded, StreamRef
from runtime.buffers import borrow, host_bytes, span
from runtime.checks import require_parameters

from .kernel import Kernel
from .machine import Machine, Schedule
from .memory import GlobalMemory
from .queue import Mode
from .register_pool import entry_registers
from .space import SMEM_RESERVED_BYTES
from .sums import Sums


class EmulatorBackend:
    """Runs kernels on the CPU, when they are launched. Options are those of `Machine`."""

    name = "emulator"

    def __init__(
        self,
        *,
        sms: int = 4,
        schedule: Schedule = "round_robin",
        seed: int = 0,
        mode: Mode = "eager",
        sums: Sums = "exact",
        hazards: bool = False,
    ) -> None:
        self.machine = Machine(
            sms=sms, schedule=schedule, seed=seed, mode=mode, sums=sums, hazards=hazards
        )
        self._lock = threading.Lock()
        self._workspaces: dict[str, np.ndarray] = {}
        self._last: backend.Report | None = None

    # --- arrays ----------------------------------------------------------------------------------

    def array(self, name: str, x: object, access: Access, stream: StreamRef) -> ArrayRef:
        ref = borrow(name, x)
        if ref.meta.device != "cpu":
            raise ArgumentError(
                f"argument {name!r} cannot be used",
                [
                    Violation(
                        field=name,
                        got=f"an array on {ref.meta.device}",
                        rule="must be in host memory: the emulator runs on the CPU",
                        fix="copy it to the host, or use backend='cuda'",
                    )
                ],
            )
        return ref

    def empty(self, shape: Sequence[int], dtype: str, like: object, stream: StreamRef) -> object:
        return allocate.empty_like(shape, dtype, like)

    def copy(self, dst: ArrayRef, src: ArrayRef, stream: StreamRef) -> None:
        _elements(dst)[...] = _elements(src)

    def workspace(self, spec: Workspace, stream: StreamRef) -> ArrayRef:
        with self._lock:
            memory = self._workspaces.get(spec.name)
            if memory is None or len(memory) < spec.bytes + spec.align:
                memory = self._workspaces[spec.name] = np.zeros(spec.bytes + spec.align, np.uint8)
        address = -(-memory.ctypes.data // spec.align) * spec.align
        meta = ArrayMeta(shape=(spec.bytes,), strides=(1,), dtype="u8", address=address)
        return ArrayRef(meta=meta, owner=memory, framework="workspace")

    def tensor_map(self, ref: ArrayRef, param: TensorMapParam) -> bytes:
        return tensor_maps.encode(ref, param)

    # --- kernels ---------------------------------------------------------------------------------

    def load(self, kernel: Launchable, device: str) -> Loaded:
        spec = kernel.spec
        compiled = self.machine.compile(kernel.ptx, spec.entry, spec.block)
        declared = compiled.program.params.items()
        require_parameters(spec, ((name, size) for name, (_, size) in declared))
        cluster = spec.cluster.size
        fit = max(self.machine.sms // cluster, 1) * cluster
        return Loaded(
            spec=spec,
            device=device,
            limits=DeviceLimits(name="emulator", sms=self.machine.sms, ctas=fit),
            handle=compiled,
            registers=entry_registers(compiled.program) or 0,
            static_smem_bytes=compiled.program.shared.size - SMEM_RESERVED_BYTES,
            ptx=kernel.ptx,
        )

    def launch(
        self,
        loaded: Loaded,
        step: Step,
        params: Sequence[bytes],
        refs: Mapping[str, ArrayRef],
        stream: StreamRef,
    ) -> None:
        """Run one step to its end. Raises HazardError, Deadlock or UnsupportedPtx."""
        assert isinstance(loaded.handle, Kernel)
        memory = GlobalMemory()
        for low, high, writable, names in _merged(refs):
            memory.add_span(low, high, writable=writable, owner=refs, name=names)
        spec = loaded.spec
        moved = {}
        for param, raw in zip(spec.params, params, strict=True):
            if isinstance(param, PointerParam) or (isinstance(param, TensorMapParam) and any(raw)):
                (address,) = struct.unpack_from("<Q", raw)
                raw = struct.pack("<Q", memory.translate(address)) + raw[8:]
            moved[param.name] = raw
        report = self.machine.run(
            loaded.handle,
            grid=step.grid,
            block=spec.block,
            cluster=spec.cluster,
            smem_bytes=spec.smem_bytes,
            params=moved,
            memory=memory,
            pdl=step.pdl,
        )
        with self._lock:
            self._last = report

    # --- streams ---------------------------------------------------------------------------------

    def stream(self, x: object, device: str, arrays: Sequence[object] = ()) -> StreamRef:
        """There is one stream: work is done when it is launched."""
        return x if isinstance(x, StreamRef) else StreamRef(handle=0, device="cpu")

    def wait(self, stream: StreamRef, timeout_s: float | None = None) -> backend.Report:
        """The report of the last launch: an `emulator.report.Report`, if there was one."""
        with self._lock:
            last = self._last
        return last or backend.Report(backend=self.name, elapsed_s=0.0)


def _merged(refs: Mapping[str, ArrayRef]) -> list[tuple[int, int, bool, str]]:
    """Host spans of all arrays, those that overlap merged: (low, high, writable, names)."""
    spans = sorted((*span(ref.meta), ref.meta.writable, name) for name, ref in refs.items())
    merged: list[tuple[int, int, bool, str]] = []
    for low, high, writable, name in spans:
        if merged and low < merged[-1][1]:
            first, last, can_write, names = merged[-1]
            merged[-1] = (first, max(last, high), can_write or writable, f"{names} and {name}")
        else:
            merged.append((low, high, writable, name))
    return merged


def _elements(ref: ArrayRef) -> np.ndarray:
    """A host array as NumPy sees it, whatever framework owns it."""
    low, _ = span(ref.meta)
    return np.ndarray(
        ref.meta.shape,
        dtype_row(ref.meta.dtype).np_dtype,
        host_bytes(ref).data,
        ref.meta.address - low,
        ref.meta.strides,
    )
