"""The public Python surface: kernels by name, foreign PTX, and the template language.

k = kernel("gemm", tile=(128, 256, 64), stages=4, cluster=(2, 1))
k.ptx        the text              k.report()   config, shared memory, roles, ptxas, SASS mix
k.cubin      what will run         k.verify()   the SASS against what the kernel promises
k.sass       the disassembly       k.plan(...)  a shape to a grid and scalars
k.diff(j)    its SASS beside that of kernel j
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ptxgen import debug, templating
from ptxgen.kernels import registry
from ptxgen.kernels.base import KernelSource
from ptxgen.kernels.show import fields_of
from ptxgen.spec import ArrayMeta, DeviceLimits, KernelSpec, LaunchPlan, Scalar
from ptxgen.templating import Rendered
from ptxgen.toolchain import assemble as assembler
from ptxgen.toolchain import disassemble as disassembler
from ptxgen.toolchain import verify as verifier
from ptxgen.toolchain.assemble import Cubin
from ptxgen.toolchain.diff import Diff, Side
from ptxgen.toolchain.diff import diff as compare
from ptxgen.toolchain.discover import Tool
from ptxgen.toolchain.sass import Sass
from ptxgen.toolchain.verify import VerifyReport
from ptxgen.view import Heading, Shown, Stack, View

if TYPE_CHECKING:
    from ptxgen.report import KernelReport


class Kernel(Shown):
    """A generated kernel. It is assembled and disassembled when first asked for, then never again.

    The cubin that `sass`, `verify` and `report` describe is the one that a launch loads. In a
    notebook a kernel shows its fields and its PTX, folded below the contract.
    """

    def __init__(self, source: KernelSource, *, ptxas: Tool | None = None) -> None:
        self.source = source
        self._ptxas = ptxas
        debug.rendered(source)

    @property
    def reference(self) -> str:
        """The kernel reference, e.g. "gemm:cluster=1x1"."""
        return registry.reference(self.source)

    @property
    def ptx(self) -> Rendered:
        """The PTX text; `.locate(line)` names the template line behind a line."""
        return self.source.rendered

    @property
    def spec(self) -> KernelSpec:
        """What the PTX fixes: entry, parameters, block, cluster, shared memory."""
        return self.source.spec

    @cached_property
    def assembly(self) -> Cubin:
        """The cubin with ptxas's report.

        Raises ToolMissing, AssembleError, and AdvisoryError where ptxas serialised wgmma, ignored
        setmaxnreg or spilled (a warning instead with PTXGEN_ADVISORIES=warn).
        """
        start = time.perf_counter()
        cubin = assembler.require_clean(
            assembler.assemble(
                self.ptx, ptxas=self._ptxas, options=assembler.HAND_WRITTEN, locate=self.ptx.locate
            )
        )
        debug.assembled(self.source, cubin, time.perf_counter() - start)
        return cubin

    @property
    def cubin(self) -> bytes:
        """The bytes that a launch loads."""
        return self.assembly.bytes

    @cached_property
    def sass(self) -> Sass:
        """The disassembly as data; `str()` is the listing."""
        return disassembler.disassemble(self.assembly)

    def verify(self) -> VerifyReport:
        """Every promise against the SASS. Raises SassMismatch, with all rows, if one is broken."""
        return self.check_sass().require()

    def check_sass(self) -> VerifyReport:
        """Like `verify`, but returns the report whatever it says."""
        return verifier.verify(self.sass, self.assembly.report, self.source.expectation)

    def diff(self, other: Kernel) -> Diff:
        """This kernel's SASS (A) beside another's (B), beyond addresses and register names."""
        return compare(_sides(self), _sides(other))

    def report(self) -> KernelReport:
        """Config, shared-memory map, roles, registers, barriers, ptxas's report and SASS mix."""
        from ptxgen.report import KernelReport

        return KernelReport.of(self)

    def plan(
        self, args: Mapping[str, ArrayMeta], scalars: Mapping[str, Scalar], device: DeviceLimits
    ) -> LaunchPlan:
        """The launch that a shape asks for. Raises ArgumentError with every violation."""
        return self.source.plan(args, scalars, device)

    def view(self) -> View:
        """The fields, and the PTX; nothing is assembled for it."""
        return Stack.of(
            Heading(words=self.reference), fields_of(self.source), self.ptx.view(fold=True)
        )

    def __repr__(self) -> str:
        return f"<Kernel {self.reference}>"

    __str__ = __repr__  # a kernel is named in messages; text() is what there is to see


def _sides(k: Kernel) -> tuple[Side, ...]:
    said = {resources.function: resources for resources in k.assembly.report.functions}
    return tuple(
        Side(
            name=k.reference,
            function=function,
            ptxas=k.sass.ptxas,
            cubin_sha256=k.sass.cubin_sha256,
            resources=said.get(function.name),
            dynamic_smem_bytes=k.spec.smem_bytes,
        )
        for function in k.sass.functions
    )


def kernel(name: str, *, ptxas: Tool | None = None, **fields: object) -> Kernel:
    """A kernel of the catalogue, e.g. kernel("gemm", tile=(128, 256, 64), cluster="2x1").

    `fields` are those of its problem and config, as Python values or spelled as in a kernel
    reference; `ptxgen list` shows them with their legal values. Raises KernelReferenceError for an
    unknown name or field, and ConfigError with every hardware rule that the config breaks.
    """
    return Kernel(registry.build(name, fields), ptxas=ptxas)


def kernel_from(reference: str, *, ptxas: Tool | None = None) -> Kernel:
    """A kernel from its reference, e.g. kernel_from("gemm:tile=128x256x64,stages=4")."""
    name, values = registry.parse_reference(reference)
    return Kernel(registry.build(name, values), ptxas=ptxas)


def render(path: str | Path, **numbers: object) -> Rendered:
    """PTX from a template file of yours; it may import our macros, e.g. "lib/wgmma.ptx.j2".

    Returns a str whose `.locate(line)` names the template line. Raises TemplateError.
    """
    return templating.render(path, numbers)


def render_text(text: str, name: str = "<text>", **numbers: object) -> Rendered:
    """Like `render`, from template text; `name` is what errors call it."""
    return templating.render_text(text, name, numbers)
