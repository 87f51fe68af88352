"""A kernel of one's own with the macros of ptx_templates/lib: D = alpha * X, tile by tile.

    python examples/own_template.py

The template is own_template.ptx.j2 beside this file. Python computes its numbers, says what the PTX
fixes (a KernelSpec) and what a shape fixes (a plan); runtime.launch does the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np

import ptxgen
import runtime
from ptxgen.spec import (
    ArrayMeta,
    DeviceLimits,
    Dim3,
    KernelSpec,
    LaunchPlan,
    Scalar,
    ScalarParam,
    Step,
    TensorMapParam,
)
from ptxgen.toolchain.assemble import assemble, require_clean

TEMPLATE = Path(__file__).with_suffix(".ptx.j2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """The numbers of the template. A step is what all threads move at once, 16 bytes each."""

    rows: int
    columns: int
    threads: int = 128

    @property
    def bytes(self) -> int:
        return self.rows * self.columns * 4

    @property
    def step_bytes(self) -> int:
        return self.threads * 16

    @property
    def steps(self) -> int:
        if self.bytes % self.step_bytes:
            raise ValueError(f"a tile must be whole steps of {self.step_bytes} bytes")
        return self.bytes // self.step_bytes


class Scale:
    """Everything that runtime.launch asks of a kernel: ptx, spec, cubin, plan."""

    def __init__(self, tile: Tile) -> None:
        box = (tile.rows, tile.columns)
        self.tile = tile
        self.ptx = ptxgen.render(TEMPLATE, tile=tile)
        self.spec = KernelSpec(
            entry="scale",
            params=(
                TensorMapParam(name="tmap_x", arg="x", dtype="f32", axes=(0, 1), box=box),
                TensorMapParam(
                    name="tmap_d", arg="d", dtype="f32", axes=(0, 1), box=box, use="store"
                ),
                ScalarParam(name="alpha", ptx_type="f32"),
            ),
            block=Dim3(tile.threads),
            smem_bytes=tile.bytes + 8,
        )

    @property
    def cubin(self) -> bytes:
        return require_clean(assemble(self.ptx, locate=self.ptx.locate)).bytes

    def plan(
        self, args: Mapping[str, ArrayMeta], scalars: Mapping[str, Scalar], device: DeviceLimits
    ) -> LaunchPlan:
        """One CTA a tile; ragged edges are filled with zeros on load and clipped on store."""
        rows, columns = args["x"].shape
        grid = Dim3(ceil(columns / self.tile.columns), ceil(rows / self.tile.rows))
        return LaunchPlan(steps=(Step(entry="scale", grid=grid, scalars=scalars),))


def main() -> None:
    kernel = Scale(Tile(rows=32, columns=64))
    x = np.random.default_rng(0).standard_normal((100, 200), dtype=np.float32)
    d = np.full_like(x, np.nan)
    runtime.launch(kernel, x=x, d=d, alpha=0.5)
    print(f"{kernel.ptx.count(chr(10))} lines of PTX, line 30 is from {kernel.ptx.locate(30)}")
    print(f"D == alpha X for all {d.size:,} elements: {bool((d == np.float32(0.5) * x).all())}")


if __name__ == "__main__":
    main()
