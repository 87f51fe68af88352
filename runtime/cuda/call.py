"""A launch with everything built: repeating it costs a look-up and the call of the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ptxgen.errors import DriverError
from runtime.backend import ArrayRef, BoundLaunch, BoundStep, StreamRef
from runtime.cuda.attributes import launch_config
from runtime.cuda.driver import api, error_of
from runtime.cuda.params import ParamBlock
from runtime.stream import handle_of, same

if TYPE_CHECKING:
    from runtime.cuda.backend import CudaBackend

STREAMS_PER_CALL = 64  # prebuilt configurations; all are dropped when there are more
WRONG_CONTEXT = frozenset({"CUDA_ERROR_INVALID_CONTEXT", "CUDA_ERROR_INVALID_HANDLE"})
STALE = WRONG_CONTEXT | {"CUDA_ERROR_CONTEXT_IS_DESTROYED"}

_Built = tuple[Any, Any, int, ParamBlock]  # config, function, kernelParams address, its owner


class CudaCall:
    """All steps of a bound launch, built once a stream, never changed: any thread may call it.

    Holds addresses, not arrays, unless `keep` was called.
    """

    __slots__ = ("_backend", "_bound", "_built", "_current", "_kept", "_last", "_launch", "used")

    def __init__(
        self, backend: CudaBackend, bound: BoundLaunch, current_stream: Callable[[], int]
    ) -> None:
        self._backend = backend
        # without the arrays
        self._bound = BoundLaunch(device=bound.device, steps=bound.steps, metas=bound.metas)
        self._current = current_stream
        self._built: dict[int, tuple[_Built, ...]] = {}
        self._last = backend.last_on(bound.device)
        self._launch = api().cuLaunchKernelEx
        self._kept: object = None
        self.used = True

    def again(self) -> None:
        """Launch on the framework's current stream. This is what a repeated launch costs."""
        handle = self._current()
        self.used = True
        self._last[handle] = self._bound
        launch = self._launch
        try:
            built = self._built[handle]
        except KeyError:
            built = self._build(handle)
        for config, function, params, _ in built:
            if code := launch(config, function, params, 0)[0]:
                self._recover(code, config, function, params)

    def __call__(self, stream: object = None) -> None:
        """Launch on `stream` (None: the framework's current one). The caller orders streams."""
        if stream is None:
            self.again()
            return
        handle = handle_of(stream)
        self.used = True
        self._last[handle] = self._bound
        for config, function, params, _ in self._built.get(handle) or self._build(handle):
            if code := self._launch(config, function, params, 0)[0]:
                self._recover(code, config, function, params)

    def on(self, stream: object, owners: Sequence[object]) -> None:
        """Launch on `stream`, behind what the framework's current stream has queued so far."""
        handle, producer = handle_of(stream), self._current()
        if same(handle, producer):
            self(handle)
            return
        self._backend.order(self._bound.device, producer, handle)
        self(handle)
        self._backend.hold(self._bound.device, handle, owners)

    def run(self, stream: StreamRef, refs: Mapping[str, ArrayRef]) -> None:
        """The first launch: arrays were ordered before `stream` when they were borrowed."""
        self(stream.handle)
        owners = [
            ref.owner
            for ref in refs.values()
            if ref.framework not in ("torch", "cupy") or not same(stream.handle, self._current())
        ]  # a framework's own allocator already waits for its own current stream
        if owners:
            self._backend.hold(self._bound.device, stream.handle, owners)

    def keep(self, refs: Mapping[str, ArrayRef]) -> None:
        """Keep the arrays alive for as long as this call."""
        self._kept = dict(refs)

    def is_stale(self, error: DriverError) -> bool:
        """Whether the error says that the context of this call is gone."""
        return error.code in STALE

    def _build(self, handle: int) -> tuple[_Built, ...]:
        if len(self._built) >= STREAMS_PER_CALL:
            self._built.clear()
        stream = StreamRef(handle=handle, device=self._bound.device)
        built = tuple(self._build_step(step, stream) for step in self._bound.steps)
        self._built[handle] = built
        return built

    def _build_step(self, step: BoundStep, stream: StreamRef) -> _Built:
        values = [
            param
            if isinstance(param, bytes)
            else self._backend.workspace(param, stream).meta.address.to_bytes(8, "little")
            for param in step.params
        ]
        block = ParamBlock(values)
        config = launch_config(
            step.loaded.spec, step.step.grid, stream=stream.handle, pdl=step.step.pdl
        )
        return config, step.loaded.handle, block.address, block

    def _recover(self, code: Any, config: Any, function: Any, params: int) -> None:
        """Launch again with the right context current; that failing too, say what happened."""
        if code.name in WRONG_CONTEXT:
            with self._backend.context(self._bound.device):
                code = self._launch(config, function, params, 0)[0]
        if code:
            raise error_of(code, f"launching on {self._bound.device}", detail=describe(self._bound))


def describe(bound: BoundLaunch) -> str:
    """Kernel, grid, cluster and arguments of every step, for error messages."""
    lines = []
    for step in bound.steps:
        spec = step.loaded.spec
        lines += [
            f"{spec.entry}: grid {step.step.grid} CTAs, cluster {spec.cluster}, "
            f"block {spec.block}, {spec.smem_bytes:,} B dynamic shared memory",
            f"    {_arguments(step)}",
        ]
    return "\n".join(lines)


def _arguments(step: BoundStep) -> str:
    """Parameters as text: scalars by value, the rest by what they are."""
    words = []
    for param, value in zip(step.loaded.spec.params, step.params, strict=True):
        if not isinstance(value, bytes):
            words.append(f"{param.name}=workspace of {value.bytes:,} B")
        elif len(value) <= 8:
            words.append(f"{param.name}=0x{int.from_bytes(value, 'little'):x}")
        else:
            words.append(f"{param.name}={value.hex()[:32]}... ({len(value)} B)")
    return ", ".join(words)
