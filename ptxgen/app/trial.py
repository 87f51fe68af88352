"""`ptxgen run`: a GEMM on made-up arrays, compared with NumPy in float64."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from ptxgen import env
from ptxgen.api import Kernel, kernel_from
from ptxgen.app import machine, reference
from ptxgen.app.output import Answer
from ptxgen.configs.gemm import GemmProblem
from ptxgen.errors import KernelReferenceError
from ptxgen.spec import ArrayMeta, Scalar, Workspace

if TYPE_CHECKING:
    from runtime.backend import ArrayRef, Backend, StreamRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run: on what, the plan, how long it took, and how far the result is from NumPy's.

    `seconds` is host time from the launch until the result is there, loading or compiling included.
    `events` counts what the emulator saw (wgmma, TMA loads, bytes, ...); empty elsewhere.
    """

    kernel: Kernel
    shape: tuple[int, int, int]
    inputs: str
    seed: int
    backend: str
    device: str
    plan: str
    seconds: float
    events: Mapping[str, int]
    comparison: reference.Comparison

    def to_dict(self) -> dict[str, object]:
        m, n, k = self.shape
        return {
            "reference": self.kernel.reference,
            "entry": self.kernel.spec.entry,
            "m": m, "n": n, "k": k,
            "inputs": self.inputs,
            "seed": self.seed,
            "backend": self.backend,
            "device": self.device,
            "plan": self.plan,
            "seconds": self.seconds,
            "events": self.events,
            "comparison": asdict(self.comparison),
        }  # fmt: skip


def run(
    kernel: str, m: int, n: int, k: int, *, backend: str | None, seed: int, inputs: str
) -> Answer:
    """Run a kernel reference and say how far its result is from the float64 one."""
    trial = attempt(kernel_from(kernel), m, n, k, backend=backend, seed=seed, inputs=inputs)
    return Answer(data=trial.to_dict(), view=view(trial), ok=trial.comparison.ok)


def attempt(
    kernel: Kernel, m: int, n: int, k: int, *, backend: str | None, seed: int, inputs: str
) -> Trial:
    """D [m, n] = A [m, k] B [n, k]^T, D poisoned beforehand; batched kernels do `BATCH` of these.

    `inputs` is "random" or "integers" (whose sums are exact, so that D must be exact too).
    """
    from runtime.backend import BACKENDS

    problem = _problem(kernel)
    a, b = reference.inputs(inputs, problem, m, n, k, seed)
    d = reference.poisoned(problem, m, n)
    given = reference.epilogue(inputs, problem, m, n, seed)
    scalars = given.scalars(problem)
    runner = BACKENDS.get(backend or env.BACKEND.get() or default_backend())
    on = runner.stream(None, "cuda" if runner.name == "cuda" else "cpu")
    arrays = _Arrays(runner, on, {"a": a, "b": b, "d": d, **given.arrays()})
    seconds, events = _launch(kernel, arrays, scalars, runner, on)
    arrays.fetch("d")
    if given.amax is not None:
        arrays.fetch("amax")
    return Trial(
        kernel=kernel,
        shape=(m, n, k),
        inputs=inputs,
        seed=seed,
        backend=runner.name,
        device=runner.load(kernel, on.device).limits.name,
        plan=_plan(kernel, arrays, scalars, runner, on),
        seconds=seconds,
        events=events,
        comparison=reference.compare(a, b, d, problem, exact=inputs == "integers", given=given),
    )


def default_backend() -> str:
    """ "cuda" where there is a GPU that runs sm_90a code, else "emulator"."""
    return "cuda" if machine.driver().usable_gpu else "emulator"


def _problem(kernel: Kernel) -> GemmProblem:
    problem = kernel.source.problem
    if not isinstance(problem, GemmProblem):
        raise KernelReferenceError(
            f"{kernel.reference}: `ptxgen run` makes arrays for gemm kernels only; run others with "
            "runtime.launch"
        )
    return problem


class _Arrays:
    """The arguments of a launch: the host arrays themselves, or copies on the backend's GPU."""

    def __init__(self, runner: Backend, on: StreamRef, host: Mapping[str, Any]) -> None:
        self._runner = runner
        self._on = on
        self._host = host
        self.given: Mapping[str, Any] = host
        if on.device != "cpu":
            self.given = {name: self._stage(name, x) for name, x in host.items()}

    def fetch(self, name: str) -> None:
        """Copy an argument back into its host array, and wait until it is there."""
        if self._on.device != "cpu":
            self._runner.copy(self._borrow(name), self.given[name], self._on)
            self._runner.wait(self._on)

    def _stage(self, name: str, x: Any) -> ArrayRef:
        room = Workspace(name=f"trial.{name}", bytes=max(x.nbytes, 1))
        scratch = self._runner.workspace(room, self._on)
        host = self._borrow(name)
        meta = replace(
            host.meta, address=scratch.meta.address, device=self._on.device, writable=True
        )
        staged = replace(scratch, meta=meta)
        self._runner.copy(staged, host, self._on)
        return staged

    def _borrow(self, name: str) -> ArrayRef:
        from runtime.buffers import borrow

        return borrow(name, self._host[name])


def _launch(
    kernel: Kernel, arrays: _Arrays, scalars: Mapping[str, Scalar], runner: Backend, on: StreamRef
) -> tuple[float, Mapping[str, int]]:
    """Launch and wait: seconds, and the counts of a backend that counts."""
    import runtime

    start = time.perf_counter()
    runtime.launch(kernel, backend=runner, stream=on, args={**arrays.given, **scalars})
    report = runner.wait(on, timeout_s=60.0)
    return time.perf_counter() - start, dict(getattr(report, "events", {}))


def _plan(
    kernel: Kernel, arrays: _Arrays, scalars: Mapping[str, Scalar], runner: Backend, on: StreamRef
) -> str:
    metas: dict[str, ArrayMeta] = {
        name: runner.array(name, x, kernel.spec.access(name), on).meta
        for name, x in arrays.given.items()
    }
    return kernel.plan(metas, scalars, runner.load(kernel, on.device).limits).explain()


def _epilogue(problem: GemmProblem) -> str:
    """What is done to the sums, in the fields of the problem."""
    names = ("alpha", "beta", "bias", "activation")
    fields = ((name, getattr(problem, name)) for name in names)
    return ", ".join(f"{name}={value}" for name, value in fields if value not in (0, "none"))


def view(trial: Trial) -> Group:
    """A trial in a dozen lines."""
    m, n, k = trial.shape
    problem = _problem(trial.kernel)
    result = trial.comparison
    what = "standard normal" if trial.inputs == "random" else "small integers"
    rows = [
        ("kernel", trial.kernel.reference),
        (
            "computes",
            f"D[{m}, {n}] = A[{m}, {k}] B[{n}, {k}]^T"
            + (f", {reference.BATCH} times" if problem.batched else "")
            + (f", then {_epilogue(problem)}" if problem.finishes else "")
            + f"   A {problem.a.name}, B {problem.b.name}, D {problem.output.name}",
        ),
        ("inputs", f"{what}, seed {trial.seed}; D is poisoned before the launch"),
        ("ran on", trial.backend + (f": {trial.device}" if trial.device != trial.backend else "")),
        ("plan", trial.plan),
        ("time", f"{trial.seconds:.3f} s from launch to result, loading included"),
        (
            "error",
            f"max abs {result.max_abs_error:.3g}, relative {result.relative_error:.2e} (norms)",
        ),
        ("bound", f"{result.rule}\nthe worst element uses {result.bound_used:.1%} of its bound"),
    ]
    if trial.events:
        counts = (f"{name.replace('_', ' ')} {count:,}" for name, count in trial.events.items())
        rows.insert(6, ("counted", ", ".join(counts)))
    if trial.inputs == "integers":
        rows[-1] = ("bound", result.rule)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for row in rows:
        table.add_row(*row)
    style = "bold green" if result.ok else "bold red"
    return Group(table, Text.assemble(("result  ", "bold"), (result.verdict(), style)))
