"""From a call to a bound launch: name the arguments, borrow them, check, plan, pack.

    launch(kernel, a=a, ...)  --name-->  {name: value}  --borrow-->  {name: ArrayRef}
        --kernel.plan-->  steps  --pack-->  the bytes of every parameter of every step

Each stage lists all its violations before it stops.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ptxgen.errors import ArgumentError, LaunchError, TensorMapError, Violation
from ptxgen.spec import (
    ArrayMeta,
    Dim3,
    KernelSpec,
    Launchable,
    LaunchPlan,
    PointerParam,
    Scalar,
    ScalarParam,
    Step,
    TensorMapParam,
    Workspace,
)
from runtime import checks, packing
from runtime.backend import (
    ArrayRef,
    Backend,
    BoundLaunch,
    BoundStep,
    Loaded,
    PreparingBackend,
    StreamRef,
    choose,
)
from runtime.buffers import device_of
from runtime.open_params import close

Grid = int | Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A checked call: the bound launch, who runs it, where, and the plan it came from."""

    backend: Backend
    stream: StreamRef
    bound: BoundLaunch
    plan: LaunchPlan
    arrays: Mapping[str, object]


class _Broken:
    """Collects violations from many places; two that say the same of one field count once."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], Violation] = {}
        self.error: type[ArgumentError] = TensorMapError

    def add(self, violations: Iterable[Violation], error: type[ArgumentError]) -> None:
        for violation in violations:
            self.found.setdefault((violation.field, violation.got), violation)
            if error is not TensorMapError:
                self.error = ArgumentError

    def stop(self, spec: KernelSpec) -> None:
        """Raise what was collected, if anything was."""
        if self.found:
            raise self.error(f"{spec.entry}: cannot be launched", self.found.values())


def bind(
    kernel: Launchable,
    values: Mapping[str, object],
    *,
    grid: Grid | None = None,
    stream: object = None,
    backend: str | Backend | None = None,
) -> Call:
    """Check a call and pack its parameters. Nothing has been launched yet.

    `values` are arrays and scalars by name (see `name_arguments`). Raises ArgumentError with every
    violation, TensorMapError when all of them are about tensor maps.
    """
    declared = kernel.spec
    spec, values = close(declared, values)
    foreign = spec is not declared
    broken = _Broken()
    arrays, scalars = _split(spec, values)
    devices = _devices(arrays, broken)
    broken.stop(spec)
    runner = choose(backend, devices.values())
    on = runner.stream(stream, _launch_device(devices), tuple(arrays.values()))
    refs = _borrow(runner, spec, arrays, on, broken)
    metas = {name: ref.meta for name, ref in refs.items()}
    broken.add(checks.array_violations(spec, metas, foreign=foreign), ArgumentError)
    broken.add(checks.spec_violations(spec), ArgumentError)
    if len(refs) < len(arrays):
        broken.stop(spec)  # no plan without all of them
    if isinstance(runner, PreparingBackend):
        loaded = runner.load_on(kernel, on)
    else:
        loaded = runner.load(kernel, on.device)
    if foreign:
        loaded = replace(loaded, spec=spec)
    plan = _plan(kernel, metas, scalars, loaded, broken)
    broken.stop(spec)
    steps = _grids(spec, plan, grid)
    bound = BoundLaunch(
        device=on.device,
        steps=tuple(_bind_step(runner, loaded, step, plan, refs, scalars) for step in steps),
        refs=refs,
        metas=metas,
    )
    plan = replace(plan, steps=steps, open_grid=False)
    return Call(backend=runner, stream=on, bound=bound, plan=plan, arrays=arrays)


def name_arguments(
    spec: KernelSpec,
    positional: Sequence[object],
    args: Mapping[str, object] | None,
    named: Mapping[str, object],
) -> dict[str, object]:
    """Every value under its name: positional ones in `.param` order, then `args`, then keywords.

    The result is in `.param` order. Raises ArgumentError for unknown, doubled and missing names.
    """
    order = _order(spec)
    broken: list[Violation] = []
    if len(positional) > len(order):
        broken.append(
            Violation(
                field=spec.entry,
                got=f"{len(positional)} positional arguments",
                rule=f"takes at most {len(order)}: {', '.join(order)}",
            )
        )
    values: dict[str, object] = dict(zip(order, positional, strict=False))
    for source in (args or {}, named):
        for name, value in source.items():
            if name in values:
                broken.append(Violation(field=name, got="two values", rule="must be given once"))
            elif name not in order:
                broken.append(
                    Violation(
                        field=name,
                        got="a value",
                        rule=f"is no argument of {spec.entry}, which has: {', '.join(order)}",
                    )
                )
            values[name] = value
    for name in spec.arguments():
        if values.get(name) is None:
            broken.append(
                Violation(
                    field=name,
                    got="None" if name in values else "nothing",
                    rule="must be an array",
                    fix=f"pass {name}=...",
                )
            )
    if broken:
        raise ArgumentError(f"{spec.entry}: wrong arguments", broken)
    return {name: values[name] for name in order if name in values}


def _order(spec: KernelSpec) -> tuple[str, ...]:
    """Names in the order of their first parameter; workspaces are the runtime's own."""
    names: dict[str, None] = {}
    for param in spec.params:
        if isinstance(param, ScalarParam):
            names[param.name] = None
        elif isinstance(param, TensorMapParam) or not param.workspace:
            names[param.arg] = None
    return tuple(names)


def _split(
    spec: KernelSpec, values: Mapping[str, object]
) -> tuple[dict[str, object], dict[str, Scalar]]:
    arrays = {name: values[name] for name in spec.arguments()}
    scalars: dict[str, Scalar] = {}
    for name, value in values.items():
        if name not in arrays:
            scalars[name] = value  # type: ignore[assignment]  # the packer judges it
    return arrays, scalars


def _devices(arrays: Mapping[str, object], broken: _Broken) -> dict[str, str]:
    devices = {}
    for name, array in arrays.items():
        try:
            devices[name] = device_of(name, array)
        except ArgumentError as error:
            broken.add(error.violations, ArgumentError)
    return devices


def _launch_device(devices: Mapping[str, str]) -> str:
    """The first GPU that an array lives on: others are judged against it."""
    return next((d for d in devices.values() if d.startswith("cuda")), "cpu")


def _borrow(
    backend: Backend,
    spec: KernelSpec,
    arrays: Mapping[str, object],
    stream: StreamRef,
    broken: _Broken,
) -> dict[str, ArrayRef]:
    refs = {}
    for name, array in arrays.items():
        try:
            refs[name] = backend.array(name, array, spec.access(name), stream)
        except ArgumentError as error:
            broken.add(error.violations, ArgumentError)
    return refs


def _plan(
    kernel: Launchable,
    metas: Mapping[str, ArrayMeta],
    scalars: Mapping[str, Scalar],
    loaded: Loaded,
    broken: _Broken,
) -> LaunchPlan:
    try:
        return kernel.plan(metas, scalars, loaded.limits)
    except ArgumentError as error:
        broken.add(error.violations, type(error))
        return LaunchPlan(steps=())


def _grids(spec: KernelSpec, plan: LaunchPlan, grid: Grid | None) -> tuple[Step, ...]:
    """The steps with a caller's grid in place, checked; those with nothing to run are left out."""
    broken: list[Violation] = []
    steps: Sequence[Step] = plan.steps
    if grid is None and plan.open_grid:
        raise ArgumentError(
            f"{spec.entry}: cannot be launched",
            [
                Violation(
                    field="grid",
                    got="nothing",
                    rule="must be given",
                    why="PTX does not say how many CTAs a problem needs",
                    fix="pass grid=(x, y, z), counted in CTAs",
                )
            ],
        )
    if grid is not None:
        extents = (grid,) if isinstance(grid, int) else tuple(grid)
        if len(steps) > 1 or not 1 <= len(extents) <= 3:
            rule = "must be 1 to 3 extents, and can only be given for a plan of one launch"
            raise ArgumentError(
                f"{spec.entry}: cannot be launched",
                [Violation(field="grid", got=f"{grid!r} for {len(steps)} launches", rule=rule)],
            )
        steps = [replace(step, grid=Dim3(*extents)) for step in steps]
    for step in steps:
        broken += checks.grid_violations(step.grid, spec.cluster)
        if step.entry != spec.entry:
            raise LaunchError(
                f"{spec.entry}: its plan names entry {step.entry!r}; a plan can only launch the "
                "entry of its own spec"
            )
    if broken:
        raise ArgumentError(f"{spec.entry}: cannot be launched", broken)
    return tuple(step for step in steps if step.grid.size)


def _bind_step(
    backend: Backend,
    loaded: Loaded,
    step: Step,
    plan: LaunchPlan,
    refs: Mapping[str, ArrayRef],
    given: Mapping[str, Scalar],
) -> BoundStep:
    """Pack every parameter of one step, in `.param` order."""
    scalars = {**given, **step.scalars}
    workspaces = {workspace.name: workspace for workspace in plan.workspaces}
    broken = _Broken()
    params: list[bytes | Workspace] = []
    for param in loaded.spec.params:
        try:
            if isinstance(param, TensorMapParam):
                params.append(backend.tensor_map(refs[param.arg], param))
            elif isinstance(param, PointerParam):
                params.append(_pointer(param, refs, workspaces))
            else:
                params.append(_scalar(param, scalars))
        except ArgumentError as error:
            broken.add(error.violations, type(error))
    broken.stop(loaded.spec)
    return BoundStep(loaded=loaded, step=step, params=tuple(params))


def _pointer(
    param: PointerParam, refs: Mapping[str, ArrayRef], workspaces: Mapping[str, Workspace]
) -> bytes | Workspace:
    if not param.workspace:
        return refs[param.arg].meta.address.to_bytes(8, "little")
    if param.arg not in workspaces:
        raise LaunchError(f"parameter {param.name}: the plan asks for no workspace {param.arg!r}")
    return workspaces[param.arg]


def _scalar(param: ScalarParam, scalars: Mapping[str, Scalar]) -> bytes:
    if param.name not in scalars:
        raise ArgumentError(
            "a scalar is missing",
            [
                Violation(
                    field=param.name,
                    got="nothing",
                    rule=f"must be given: .param .{param.ptx_type} {param.name}",
                    why="the plan does not compute it",
                    fix=f"pass {param.name}=...",
                )
            ],
        )
    return packing.pack(param, scalars[param.name])
