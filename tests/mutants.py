"""A kernel with other PTX, to show that a test would notice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ptxgen.spec import ArrayMeta, DeviceLimits, KernelSpec, LaunchPlan, Scalar


@dataclass(frozen=True)
class Mutant:
    """Launches as `kernel` does, and runs `ptx`."""

    ptx: str
    kernel: Any

    @property
    def source(self) -> Any:
        return self.kernel.source

    @property
    def spec(self) -> KernelSpec:
        return self.kernel.spec

    def plan(
        self, args: Mapping[str, ArrayMeta], scalars: Mapping[str, Scalar], device: DeviceLimits
    ) -> LaunchPlan:
        return self.kernel.plan(args, scalars, device)
