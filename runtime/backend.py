"""Who runs a kernel: the protocol of a backend, what passes through it, and how one is chosen.

    launcher   checks arguments, asks the kernel for its plan, packs every parameter to bytes
    backend    borrows arrays, encodes tensor maps, loads kernels, launches, waits

Nothing above a backend knows which one it is. Two exist: "cuda" (runtime.cuda) and "emulator"
(runtime.emulator). Each is imported only when it is asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Protocol, TypeAlias, runtime_checkable

from ptxgen import env
from ptxgen.errors import ArgumentError, DriverError, Violation
from ptxgen.spec import (
    Access,
    ArrayMeta,
    DeviceLimits,
    KernelSpec,
    Launchable,
    Step,
    TensorMapParam,
    Workspace,
)
from ptxgen.view import Row, Shown, Table, View


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayRef:
    """A borrowed array: what is known of it, and the object that keeps its memory alive.

    `framework` names who owns the memory ("numpy", "torch", "cupy", "jax", "dlpack",
    "cuda_array_interface", "buffer", or "workspace" for scratch of a backend).
    """

    meta: ArrayMeta
    owner: object
    framework: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRef:
    """A stream: its driver handle (0 and 1 are the legacy default stream), device and owner.

    A backend without streams answers `StreamRef(handle=0, device="cpu")` for everything.
    """

    handle: int
    device: str
    owner: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A kernel made ready on one device.

    `registers` is the count a thread has at entry (0 where a backend has no such number),
    `static_smem_bytes` what the PTX itself declares, `handle` the backend's own object, `ptx` the
    text that it was made of.
    """

    spec: KernelSpec
    device: str
    limits: DeviceLimits
    handle: object
    registers: int = 0
    static_smem_bytes: int = 0
    ptx: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Shown):
    """What is known once a stream has been waited for. A backend may return a richer subclass."""

    backend: str
    elapsed_s: float
    notes: tuple[str, ...] = ()

    def view(self) -> View:
        """Who ran it, and for how long."""
        return Table(
            columns=("backend", "seconds"),
            rows=(Row((self.backend, f"{self.elapsed_s:.3f}")),),
            notes=self.notes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundStep:
    """One launch with everything known but the stream.

    `params` has one entry a `.param`, in order: its bytes, or the `Workspace` whose address belongs
    there (scratch memory is a stream's own, so only the backend can fill it in).
    """

    loaded: Loaded
    step: Step
    params: tuple[bytes | Workspace, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundLaunch:
    """Every step of a launch, checked and packed, and the arrays it works on.

    `metas` describes the arrays without keeping them alive.
    """

    device: str
    steps: tuple[BoundStep, ...]
    refs: Mapping[str, ArrayRef] = field(default_factory=dict)
    metas: Mapping[str, ArrayMeta] = field(default_factory=dict)


class Prepared(Protocol):
    """A launch that only needs a stream. `None` means the caller's current stream."""

    def __call__(self, stream: object = None) -> None: ...


class Backend(Protocol):
    """What the core asks of whoever runs kernels. Methods raise errors of `ptxgen.errors` only."""

    @property
    def name(self) -> str:
        """ "cuda" or "emulator", as in `PTXGEN_BACKEND`."""
        ...

    def array(self, name: str, x: object, access: Access, stream: StreamRef) -> ArrayRef:
        """Borrow array `x`, passed as argument `name`, ordered before later work on `stream`.

        Never copies. ArgumentError when it lives elsewhere or cannot be used with this access.
        """
        ...

    def empty(self, shape: Sequence[int], dtype: str, like: object, stream: StreamRef) -> object:
        """A new C-contiguous array in the framework and on the device of `like`.

        `dtype` is a canonical name of `ptxgen.isa.dtypes`. The contents are undefined.
        """
        ...

    def copy(self, dst: ArrayRef, src: ArrayRef, stream: StreamRef) -> None:
        """Copy between arrays of equal shape and dtype. The only place that moves data."""
        ...

    def workspace(self, spec: Workspace, stream: StreamRef) -> ArrayRef:
        """Scratch memory of at least `spec.bytes`; one growing buffer a (device, stream, name)."""
        ...

    def load(self, kernel: Launchable, device: str) -> Loaded:
        """Make a kernel ready on `device` ("cpu", "cuda:N"). Cached."""
        ...

    def tensor_map(self, ref: ArrayRef, param: TensorMapParam) -> bytes:
        """The 128 bytes of a tensor map. TensorMapError lists every rule that is broken."""
        ...

    def launch(
        self,
        loaded: Loaded,
        step: Step,
        params: Sequence[bytes],
        refs: Mapping[str, ArrayRef],
        stream: StreamRef,
    ) -> None:
        """Run one step. `params[i]` are the bytes of the i-th `.param`, of exactly its size.

        `refs` are all arrays and workspaces that the parameters may point into, by name.
        """
        ...

    def stream(self, x: object, device: str, arrays: Sequence[object] = ()) -> StreamRef:
        """Any stream object or handle as a StreamRef; None means the arrays' current stream."""
        ...

    def wait(self, stream: StreamRef, timeout_s: float | None = None) -> Report:
        """Wait for all work on `stream`. LaunchError when it has not ended after `timeout_s`."""
        ...


class Repeatable(Prepared, Protocol):
    """A prepared launch that is cheap to repeat. It holds addresses, not arrays."""

    used: bool  # set by every call; the cache of calls clears it

    def again(self) -> None:
        """Launch on the current stream of the arrays' framework: the shortest way."""
        ...

    def on(self, stream: object, owners: Sequence[object]) -> None:
        """Launch on `stream`, ordered behind the arrays' framework; keep `owners` until it ran."""
        ...

    def run(self, stream: StreamRef, refs: Mapping[str, ArrayRef]) -> None:
        """Launch with arrays that were ordered before `stream` already; keep them until it ran."""
        ...

    def keep(self, refs: Mapping[str, ArrayRef]) -> None:
        """Keep the arrays alive for as long as this object."""
        ...

    def is_stale(self, error: DriverError) -> bool:
        """Whether a failure only means that this object is out of date."""
        ...


@runtime_checkable
class PreparingBackend(Protocol):
    """What a backend adds to `Backend` when launches are worth preparing."""

    def prepare(self, bound: BoundLaunch) -> Repeatable: ...

    def load_on(self, kernel: Launchable, stream: StreamRef) -> Loaded:
        """`load` for a launch on `stream`. LaunchError where loading there is illegal now."""
        ...


Factory: TypeAlias = Callable[[], Backend]


def _importer(module: str, attribute: str) -> Factory:
    def make() -> Backend:
        backend: Backend = getattr(import_module(module), attribute)()
        return backend

    return make


class BackendRegistry:
    """Backends by name, each made once, when it is first asked for."""

    def __init__(self, factories: Mapping[str, Factory]) -> None:
        self._factories = dict(factories)
        self._made: dict[str, Backend] = {}
        self._lock = threading.Lock()

    def names(self) -> tuple[str, ...]:
        return tuple(self._factories)

    def register(self, name: str, factory: Factory) -> None:
        """Add a backend, or replace the one of this name."""
        with self._lock:
            self._factories[name] = factory
            self._made.pop(name, None)

    def get(self, name: str) -> Backend:
        """The backend of this name. ArgumentError with the known names otherwise."""
        with self._lock:
            if name not in self._made:
                if name not in self._factories:
                    known = ", ".join(repr(n) for n in self._factories)
                    raise ArgumentError(
                        "no such backend",
                        [
                            Violation(
                                field="backend", got=repr(name), rule=f"must be one of {known}"
                            )
                        ],
                    )
                self._made[name] = self._factories[name]()
            return self._made[name]


BACKENDS = BackendRegistry(
    {
        "cuda": _importer("runtime.cuda.backend", "CudaBackend"),
        "emulator": _importer("runtime.emulator.backend", "EmulatorBackend"),
    }
)


def choose(wanted: str | Backend | None, devices: Iterable[str]) -> Backend:
    """The backend of a launch: the argument, else PTXGEN_BACKEND, else where the arrays live.

    `devices` are the arrays' devices ("cpu", "cuda:N"). With no arrays: the emulator.
    """
    if wanted is None:
        wanted = env.BACKEND.get()
    if wanted is None:
        wanted = "cuda" if any(d.startswith("cuda") for d in devices) else "emulator"
    return BACKENDS.get(wanted) if isinstance(wanted, str) else wanted
