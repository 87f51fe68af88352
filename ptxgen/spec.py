"""The seam between what generates a kernel and what runs it.

    problem + config  fix the PTX       ->  KernelSpec
    a shape           fixes the launch  ->  LaunchPlan

Everything here is plain data: no driver, no arrays, no templates. Shapes, strides and boxes are in
NumPy order (outermost axis first) everywhere in this project; only `layout.tensor_map` reverses
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal, NamedTuple, Protocol, TypeAlias

from ptxgen.view import Row, Shown, Table, View

Scalar: TypeAlias = int | float
Access: TypeAlias = Literal["read", "write", "read_write"]
ANY_DTYPE = "any"  # of a pointer whose PTX does not say what it points to


class Dim3(NamedTuple):
    """Extents along x, y, z. A grid is counted in CTAs, never in clusters."""

    x: int = 1
    y: int = 1
    z: int = 1

    @property
    def size(self) -> int:
        return self.x * self.y * self.z

    def __str__(self) -> str:
        return f"{self.x}x{self.y}x{self.z}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorMapParam:
    """A `.param .align 64 .b8 name[128]` that holds a tensor map of launch argument `arg`.

    `axes[i]` is the array axis that map dimension i walks; `box` has the same order (outermost
    first), in elements. `swizzle` is in bytes (0, 32, 64, 128), `l2` the promotion in bytes
    (0, 64, 128, 256). Without a box the map is open: PTX alone does not say what it describes, so
    each launch passes a `runtime.tensor_map`.
    """

    name: str
    arg: str
    dtype: str
    axes: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 0
    l2: int = 128
    fill: Literal["zero", "nan"] = "zero"
    use: Literal["load", "store", "reduce"] = "load"

    @property
    def is_open(self) -> bool:
        return not self.box

    @property
    def access(self) -> Access:
        return {"load": "read", "store": "write", "reduce": "read_write"}[self.use]  # type: ignore[return-value]


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerParam:
    """A 64-bit pointer parameter to the first element of `arg`.

    `arg` is a launch argument or, with `workspace`, scratch memory that the plan asks for by this
    name and the runtime owns. With dtype "any" it is open: any array may be passed, or a number,
    since PTX declares 64-bit numbers and pointers alike.

    Where every element is read before the same element of the argument `in_place` is written, and
    by nobody later, the two may be the very same array.
    """

    name: str
    arg: str
    dtype: str
    access: Access = "read"
    align: int = 16
    workspace: bool = False
    in_place: str = ""  # an argument that is written

    @property
    def is_open(self) -> bool:
        return self.dtype == ANY_DTYPE


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarParam:
    """A scalar parameter. `ptx_type` is its declared PTX type, e.g. "u32" or "f32".

    "b8[12]" stands for an aggregate of 12 bytes, which is passed as bytes or as a NumPy value.
    """

    name: str
    ptx_type: str


Param: TypeAlias = TensorMapParam | PointerParam | ScalarParam


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSpec(Shown):
    """What the PTX fixes. A test compares it with the parsed `.entry`."""

    entry: str
    params: tuple[Param, ...]
    block: Dim3
    cluster: Dim3 = Dim3()  # noqa: RUF009  # an immutable tuple
    smem_bytes: int = 0  # dynamic shared memory
    target: str = "sm_90a"
    ptx_version: tuple[int, int] = (8, 0)

    def view(self) -> View:
        """How it is launched, and its parameters."""
        return Table(
            title=f"{self.entry}: block {self.block}, cluster {self.cluster}, "
            f"{self.smem_bytes:,} B dynamic shared memory, "
            f"{self.target}, PTX {self.ptx_version[0]}.{self.ptx_version[1]}",
            columns=("parameter", "kind", "of", "type", "use"),
            rows=tuple(Row(_parameter(param)) for param in self.params),
            left=frozenset(range(5)),
        )

    def arguments(self) -> tuple[str, ...]:
        """Array arguments in the order of their first parameter; workspaces are not among them."""
        return tuple(
            dict.fromkeys(
                p.arg
                for p in self.params
                if isinstance(p, TensorMapParam)
                or (isinstance(p, PointerParam) and not p.workspace)
            )
        )

    def access(self, arg: str) -> Access:
        """How the kernel uses an array argument, over all the parameters that name it."""
        uses = {
            p.access
            for p in self.params
            if isinstance(p, (TensorMapParam, PointerParam)) and p.arg == arg
        }
        return uses.pop() if len(uses) == 1 else "read_write"


def _parameter(param: Param) -> tuple[str, str, str, str, str]:
    match param:
        case TensorMapParam():
            box = "x".join(map(str, param.box)) or "open"
            kind = f"tensor map, box {box}, swizzle {param.swizzle}"
            return param.name, kind, param.arg, param.dtype, param.use
        case PointerParam():
            kind = "pointer to a workspace" if param.workspace else "pointer"
            return param.name, kind, param.arg, param.dtype, param.access.replace("_", " and ")
    return param.name, "scalar", "", param.ptx_type, "read"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayMeta:
    """What the planner may know of an array: everything but its contents. Strides are in bytes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    address: int = 0
    device: str = "cpu"  # "cpu" or "cuda:N"
    writable: bool = True
    padded: bool = False  # what lies behind each row, up to 16 bytes, may be written with it

    @property
    def size(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLimits:
    """What a plan may know of the device that will run one loaded kernel."""

    name: str
    sms: int
    ctas: int  # co-resident CTAs of this kernel: cluster size x max active clusters


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Scratch memory of a launch. "zero_once": the kernel leaves it zero again."""

    name: str
    bytes: int
    align: int = 256
    init: Literal["none", "zero_once"] = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One kernel launch. `grid` is counted in CTAs; `scalars` are named as in the `.param` list."""

    entry: str
    grid: Dim3
    scalars: Mapping[str, Scalar]
    pdl: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan(Shown):
    """What a shape fixes. No steps means that there is nothing to do (an empty result).

    With `open_grid` the planner cannot know the grid, so the caller of the launch must give it.
    """

    steps: tuple[Step, ...]
    workspaces: tuple[Workspace, ...] = ()
    notes: tuple[str, ...] = ()
    open_grid: bool = False

    def view(self) -> View:
        """One row a step; workspaces and what the planner remarks below."""
        return Table(
            columns=("launch", "grid, in CTAs", "scalars"),
            rows=tuple(
                Row((s.entry, str(s.grid), ", ".join(f"{k}={v}" for k, v in s.scalars.items())))
                for s in self.steps
            ),
            left=frozenset({0, 1, 2}),
            notes=tuple(self.explain().splitlines()[len(self.steps) :]),
        )

    def explain(self) -> str:
        """The plan in words, one line a step."""
        if not self.steps:
            return "\n".join(["nothing to launch", *self.notes])
        lines = [
            f"{s.entry}: grid {s.grid} CTAs" + "".join(f", {k}={v}" for k, v in s.scalars.items())
            for s in self.steps
        ]
        lines += [f"workspace {w.name}: {w.bytes:,} B" for w in self.workspaces]
        return "\n".join([*lines, *self.notes])


class Launchable(Protocol):
    """What the runtime needs of a kernel. `ptxgen.api.Kernel` is one."""

    @property
    def ptx(self) -> str: ...
    @property
    def spec(self) -> KernelSpec: ...
    @property
    def cubin(self) -> bytes: ...
    def plan(
        self, args: Mapping[str, ArrayMeta], scalars: Mapping[str, Scalar], device: DeviceLimits
    ) -> LaunchPlan: ...
