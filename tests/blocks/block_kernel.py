"""A test's own kernel as the runtime takes it: PTX, spec, and a grid that the test chooses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import ptxgen
from ptxgen.spec import ArrayMeta, DeviceLimits, Dim3, KernelSpec, LaunchPlan, Param, Scalar, Step
from ptxgen.templating import Rendered
from ptxgen.toolchain.assemble import assemble, require_clean

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class BlockKernel:
    """Launches with the scalars that it is given, on `grid` CTAs."""

    ptx: Rendered
    spec: KernelSpec
    grid: int

    @property
    def cubin(self) -> bytes:
        return require_clean(assemble(self.ptx, locate=self.ptx.locate)).bytes

    def plan(
        self, args: Mapping[str, ArrayMeta], scalars: Mapping[str, Scalar], device: DeviceLimits
    ) -> LaunchPlan:
        step = Step(entry=self.spec.entry, grid=Dim3(self.grid), scalars=scalars)
        return LaunchPlan(steps=(step,))


def block_kernel(
    name: str,
    params: tuple[Param, ...],
    *,
    block: int,
    grid: int,
    cluster_size: int = 1,
    smem_bytes: int = 0,
    **numbers: object,
) -> BlockKernel:
    """The kernel of `tests/blocks/NAME.ptx.j2`, filled with `numbers`."""
    return BlockKernel(
        ptx=ptxgen.render(FOLDER / f"{name}.ptx.j2", **numbers),
        spec=KernelSpec(
            entry=name, params=params, block=Dim3(block), cluster=Dim3(cluster_size),
            smem_bytes=smem_bytes,
        ),
        grid=grid,
    )  # fmt: skip
