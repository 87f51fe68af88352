"""Many kernels in one PTX module, so that one ptxas and one nvdisasm serve them all.

nvdisasm takes half a second to start. Entries of a module are compiled independently of each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ptxgen.toolchain.assemble import HAND_WRITTEN, assemble
from ptxgen.toolchain.diagnostics import AssemblyReport
from ptxgen.toolchain.disassemble import disassemble
from ptxgen.toolchain.discover import Tool
from ptxgen.toolchain.verify import Expectation, VerifyReport, verify


def verify_all(
    kernels: Mapping[str, tuple[str, Expectation]], ptxas: Tool | None = None
) -> dict[str, VerifyReport]:
    """The report of every kernel; `kernels` maps a name to its PTX and its expectation."""
    renamed = {
        f"k{i}": (name, ptx.replace(expectation.entry, f"k{i}"), expectation)
        for i, (name, (ptx, expectation)) in enumerate(kernels.items())
    }
    module = ""
    lines: dict[str, range] = {}
    for entry, (_, ptx, _) in renamed.items():
        start = module.count("\n") + 1
        module += ptx[ptx.index(".visible .entry") :] if module else ptx
        lines[entry] = range(start, module.count("\n") + 1)
    cubin = assemble(module, ptxas=ptxas, options=HAND_WRITTEN)
    sass = disassemble(cubin)
    return {
        name: verify(
            sass, _part(cubin.report, entry, lines[entry]), replace(expectation, entry=entry)
        )
        for entry, (name, _, expectation) in renamed.items()
    }


def _part(report: AssemblyReport, entry: str, lines: range) -> AssemblyReport:
    """The report without what ptxas said of other entries."""
    return replace(
        report,
        functions=tuple(f for f in report.functions if f.function == entry),
        diagnostics=tuple(d for d in report.diagnostics if d.line is None or d.line in lines),
    )
