"""What can be checked under many schedules: kernels of the catalogue, and PTX files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxgen.api import Kernel, kernel_from
from ptxgen.app import reference
from ptxgen.app.check_args import Argument
from ptxgen.app.subject_quantize import QuantizeSubject
from ptxgen.configs.gemm import GemmProblem
from ptxgen.configs.quantize import QuantizeProblem
from ptxgen.errors import KernelReferenceError
from ptxgen.foreign import load_ptx
from ptxgen.kernels.gemm_proof import proof_problem
from ptxgen.templating import Rendered

if TYPE_CHECKING:
    from runtime.emulator.backend import EmulatorBackend


def catalogue_subject(kernel_reference: str) -> CatalogueSubject | QuantizeSubject:
    """A kernel of the catalogue on its proof problem. KernelReferenceError where it has none."""
    kernel = kernel_from(kernel_reference)
    problem = kernel.source.problem
    if isinstance(problem, QuantizeProblem):
        return QuantizeSubject(kernel, problem)
    return CatalogueSubject(kernel_reference)


class CatalogueSubject:
    """A GEMM on its proof problem: small integers, whose sums are exact."""

    def __init__(self, kernel_reference: str) -> None:
        self.kernel = kernel_from(kernel_reference)
        problem = self.kernel.source.problem
        if not isinstance(problem, GemmProblem):
            raise KernelReferenceError(f"{kernel_reference}: it has no proof problem")
        self.problem = problem
        self.shape = proof_problem(self.kernel.source)
        s = self.shape
        self.a, self.b = reference.inputs("integers", problem, s.m, s.n, s.k, seed=0)
        self.epilogue = reference.epilogue("integers", problem, s.m, s.n, seed=0)
        self._right = b""  # D and amax of a run that was right: the same bits every run

    @property
    def name(self) -> str:
        return self.kernel.reference

    @property
    def ptx(self) -> str:
        return str(self.kernel.ptx)

    @property
    def entry(self) -> str:
        return self.kernel.spec.entry

    @property
    def sms(self) -> int:
        return self.shape.sms

    def where(self, line: int) -> str:
        return self.kernel.ptx.locate(line)

    def launch(self, ptx: str, backend: EmulatorBackend) -> str:
        import runtime

        kernel = self.kernel
        if ptx != kernel.ptx:
            rendered = Rendered(ptx, kernel.source.rendered.chains)
            kernel = Kernel(replace(kernel.source, rendered=rendered))
        d = reference.poisoned(self.problem, self.shape.m, self.shape.n)
        given = {**self.epilogue.arrays(), **self.epilogue.scalars(self.problem)}
        amax = given.get("amax", np.zeros(1, np.float32))
        amax[...] = 0
        runtime.launch(kernel, args={"a": self.a, "b": self.b, "d": d, **given}, backend=backend)
        result = d.tobytes() + amax.tobytes()
        if result == self._right:
            return ""
        found = reference.compare(self.a, self.b, d, self.problem, exact=True, given=self.epilogue)
        if found.ok:
            self._right = result
        return "" if found.ok else f"D is wrong: {found.rule}"


class FileSubject:
    """A PTX text with arguments, as `ptxgen check FILE.ptx --arg ...` gives them.

    What it must compute is not known, so its result is not judged: what it does on the way is.
    """

    sms = 4

    def __init__(
        self, name: str, ptx: str, entry: str | None, arguments: Sequence[Argument],
        parameters: Mapping[str, str], grid: tuple[int, ...], launch: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self.name, self.ptx = name, ptx
        self._entry, self._grid, self._launch = entry, grid, launch
        self._arguments = {p: a for p, a in zip(parameters, arguments, strict=True)}
        self._before = {a.name: a.array.copy() for a in arguments if a.array is not None}
        self.entry = load_ptx(ptx, entry, **launch).spec.entry

    def where(self, line: int) -> str:
        return ""

    def launch(self, ptx: str, backend: EmulatorBackend) -> str:
        import runtime

        for argument in self._arguments.values():
            if argument.array is not None:
                np.copyto(argument.array, self._before[argument.name])
        kernel = load_ptx(ptx, self._entry, **self._launch)
        values = {p: a.value for p, a in self._arguments.items()}
        runtime.launch(kernel, args=values, grid=self._grid, backend=backend)
        return ""
