"""Launching a kernel on arrays of any framework.

runtime.launch(kernel, a=a, b=b, d=d)     check, plan, run; repeated: look up, run
runtime.prepare(kernel, a=a, b=b, d=d)    the same without the look-up: call the result
runtime.wait(d)                           until it has run; a hang becomes an error
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from ptxgen import env
from ptxgen.errors import DriverError
from ptxgen.spec import Launchable
from runtime.backend import (
    Backend,
    BoundLaunch,
    Prepared,
    PreparingBackend,
    Report,
    StreamRef,
    choose,
)
from runtime.binding import Call, Grid, bind, name_arguments
from runtime.buffers import device_of
from runtime.calls import CALLS, MISSES

_REMEMBERED = CALLS.entries


def launch(
    kernel: Launchable,
    /,
    *positional: object,
    grid: Grid | None = None,
    stream: object = None,
    backend: str | Backend | None = None,
    args: Mapping[str, object] | None = None,
    **named: object,
) -> None:
    """Run `kernel` on arrays and scalars, given by name or in `.param` order.

    Arrays of any framework are used where they are, never copied: NumPy and other host arrays run
    on the emulator, arrays on a GPU on that GPU. Returns when the work is queued; see `wait`.

    `grid` replaces the plan's grid, counted in CTAs. `stream` is an int handle or a stream object
    of any framework; by default the current stream of the arrays' framework. Work that is queued on
    that current stream is ordered before the launch; what reads the results on another stream must
    wait by itself. `backend` is "cuda", "emulator" or a Backend; by default PTXGEN_BACKEND, else
    where the arrays live (asked when a call is new). `args` holds values whose names collide.

    Raises ArgumentError or TensorMapError with everything that is wrong with the arguments,
    LaunchError or DriverError when the launch cannot be made. Inside a CUDA graph capture the
    kernel must have been launched once before, and its arrays must outlive the graph.
    """
    plain = grid is None and backend is None and args is None
    if plain:
        try:
            known = _REMEMBERED[id(kernel)]
            call = known.find(known.name(positional, named) if positional else named)
        except MISSES:
            call = None
        if call is not None:
            try:
                if stream is None:
                    call.again()
                else:
                    call.on(stream, (*positional, *named.values()))
                return
            except DriverError as error:
                known.forget(call)
                if not call.is_stale(error):
                    raise
                # Its context was reset: check and load afresh, once.
    values = name_arguments(kernel.spec, positional, args, named)
    checked = bind(kernel, values, grid=grid, stream=stream, backend=backend)
    _explain(checked)
    runner = checked.backend
    if not isinstance(runner, PreparingBackend):
        _Direct(runner, checked.bound, checked.stream)()
        return
    prepared = runner.prepare(checked.bound)
    prepared.run(checked.stream, checked.bound.refs)
    if plain:
        frameworks = {name: ref.framework for name, ref in checked.bound.refs.items()}
        CALLS.of(kernel).remember(values, frameworks, prepared)


def prepare(
    kernel: Launchable,
    /,
    *positional: object,
    grid: Grid | None = None,
    stream: object = None,
    backend: str | Backend | None = None,
    args: Mapping[str, object] | None = None,
    **named: object,
) -> Prepared:
    """Check and plan a launch now, and return a function `(stream=None)` that makes it.

    Takes what `launch` takes; `stream` is where the arrays' pending work is ordered before. The
    result keeps the arrays alive and may be called any number of times, on any stream and inside a
    graph capture; order between streams is then the caller's own. With no stream it uses the
    current stream of the arrays' framework.
    """
    values = name_arguments(kernel.spec, positional, args, named)
    checked = bind(kernel, values, grid=grid, stream=stream, backend=backend)
    _explain(checked)
    runner = checked.backend
    if not isinstance(runner, PreparingBackend):
        return _Direct(runner, checked.bound, checked.stream)
    prepared = runner.prepare(checked.bound)
    prepared.keep(checked.bound.refs)
    return prepared


def wait(
    *arrays: object,
    stream: object = None,
    timeout_s: float | None = 60.0,
    backend: str | Backend | None = None,
) -> Report:
    """Wait until all work on a stream has run. `arrays` say which backend and stream, if not given.

    With a stream and nothing else, it is a stream of the cuda backend.

    LaunchError after `timeout_s` seconds (None: wait for ever), naming the kernel that was launched
    last and its arguments.
    """
    devices = [device_of(f"arrays[{i}]", x) for i, x in enumerate(arrays)]
    if stream is not None and not arrays:
        devices = ["cuda"]
    runner = choose(backend, devices)
    device = next((d for d in devices if d.startswith("cuda")), "cpu")
    return runner.wait(runner.stream(stream, device, arrays), timeout_s)


class _Direct:
    """A bound launch on a backend that has nothing to prepare."""

    def __init__(self, backend: Backend, bound: BoundLaunch, stream: StreamRef) -> None:
        self._backend = backend
        self._bound = bound
        self._stream = stream

    def __call__(self, stream: object = None) -> None:
        on = self._stream
        if stream is not None:
            on = self._backend.stream(stream, self._bound.device)
        for step in self._bound.steps:
            refs = dict(self._bound.refs)
            params: list[bytes] = []
            for param in step.params:
                if not isinstance(param, bytes):
                    refs[param.name] = self._backend.workspace(param, on)
                    param = refs[param.name].meta.address.to_bytes(8, "little")
                params.append(param)
            self._backend.launch(step.loaded, step.step, params, refs, on)


def _explain(checked: Call) -> None:
    """PTXGEN_DEBUG: 1 says what was chosen, 2 what it takes."""
    level = env.DEBUG.get()
    if level >= 1:
        where = f"ptxgen: {checked.backend.name} {checked.bound.device}"
        print(f"{where}: {checked.plan.explain()}", file=sys.stderr)
    if level >= 2:
        for step in checked.bound.steps:
            loaded = step.loaded
            print(
                f"  block {loaded.spec.block}, cluster {loaded.spec.cluster}, "
                f"{loaded.registers} registers, {loaded.spec.smem_bytes:,} B dynamic and "
                f"{loaded.static_smem_bytes:,} B static shared memory, "
                f"{loaded.limits.ctas} CTAs fit at once",
                file=sys.stderr,
            )
