"""A rounding to fp8 as a subject: X of powers of two times small integers, judged by the rule."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxgen.api import Kernel
from ptxgen.configs.quantize import LARGEST, LEAST_SCALE, QuantizeProblem
from ptxgen.isa.dtypes import dtype
from ptxgen.templating import Rendered

if TYPE_CHECKING:
    from runtime.emulator.backend import EmulatorBackend

# More rows than one CTA has warps; more columns than a warp reads at once, and a ragged end.
SHAPE = (33, 272)
SEED = 0


class QuantizeSubject:
    """A member of the `quantize` family on a matrix that wraps its loops."""

    sms = 4

    def __init__(self, kernel: Kernel, problem: QuantizeProblem) -> None:
        self.kernel = kernel
        self.problem = problem
        self.name = kernel.reference
        self.ptx = str(kernel.ptx)
        self.entry = kernel.spec.entry
        rng = np.random.default_rng(SEED)
        integers = rng.integers(-9, 10, SHAPE) * np.exp2(rng.integers(-6, 7, (SHAPE[0], 1)))
        self.x = integers.astype(np.float32).astype(problem.x.np_dtype)
        largest = np.abs(self.x.astype(np.float32))
        self.largest = largest.max(axis=1) if problem.per_row else largest.max(keepdims=True)[0]
        self.scale = np.maximum(
            self.largest * np.float32(1 / LARGEST[problem.out_dtype]), np.float32(LEAST_SCALE)
        )

    def where(self, line: int) -> str:
        return self.kernel.ptx.locate(line)

    def launch(self, ptx: str, backend: EmulatorBackend) -> str:
        import runtime

        kernel = self.kernel
        if ptx != kernel.ptx:
            rendered = Rendered(ptx, kernel.source.rendered.chains)
            kernel = Kernel(replace(kernel.source, rendered=rendered))
        given = self._arrays()
        runtime.launch(kernel, args=given, backend=backend)
        wanted = self._wanted()
        wrong = [n for n, want in wanted.items() if given[n].tobytes() != want.tobytes()]
        return f"{', '.join(wrong)} differ from the rule" if wrong else ""

    def _arrays(self) -> dict[str, Any]:
        p = self.problem
        given: dict[str, Any] = {"x": self.x}
        if p.quantizes:
            is_given = p.scales.endswith("given")
            nothing = np.full(self.scale.shape, np.nan, np.float32)
            given["q"] = np.full(SHAPE, np.nan).astype(dtype(p.out_dtype).np_dtype)
            given["scale"] = self.scale.copy() if is_given else nothing
        if p.scales == "tensor":
            given["amax"] = self.largest.copy()
        if p.scales == "none":
            given["amax"] = np.zeros(1, np.float32)
        return given

    def _wanted(self) -> dict[str, Any]:
        p = self.problem
        if not p.quantizes:
            return {"amax": self.largest}
        factor = np.float32(1) / self.scale
        y = self.x.astype(np.float32) * (factor[:, None] if p.per_row else factor)
        limit = np.float32(LARGEST[p.out_dtype])
        q = np.clip(y, -limit, limit).astype(dtype(p.out_dtype).np_dtype)
        return {"q": q, "scale": self.scale}
