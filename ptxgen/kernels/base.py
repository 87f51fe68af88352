"""What every kernel family yields: PTX text, the spec it fixes, and what is promised about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ptxgen.layout.smem_plan import SmemPlan
from ptxgen.models.record import Record
from ptxgen.models.registers import RegisterPool
from ptxgen.spec import ArrayMeta, DeviceLimits, KernelSpec, LaunchPlan, Scalar
from ptxgen.templating import Rendered
from ptxgen.toolchain.verify import Expectation

Planner = Callable[[Mapping[str, ArrayMeta], Mapping[str, Scalar], DeviceLimits], LaunchPlan]


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A role in words: which warps, and what they do."""

    name: str
    warps: str
    does: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierRow:
    """One line of the barrier table."""

    name: str
    count: int
    arrivals: int
    arrivers: str
    tx_bytes: int
    waiters: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSource:
    """A rendered kernel.

    `config` is what was asked for; `resolved` is the same with its derived fields filled in.
    """

    family: str
    problem: object
    config: object
    resolved: object
    rendered: Rendered
    spec: KernelSpec
    plan: Planner
    expectation: Expectation
    smem: SmemPlan
    registers: RegisterPool | None  # how setmaxnreg shares them out; None: as ptxas gives them
    roles: tuple[Role, ...]
    barriers: tuple[BarrierRow, ...]
    models: tuple[tuple[str, Record], ...] = ()  # (title, record) of what the models say of it
