"""What a name on the command line stands for: a kernel, or a .ptx, .cubin or .sass file."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ptxgen.api import Kernel, kernel_from
from ptxgen.app.output import note
from ptxgen.toolchain.assemble import DEFAULT_TARGET, Cubin, assemble
from ptxgen.toolchain.cubin_info import resources_of
from ptxgen.toolchain.diff import Side
from ptxgen.toolchain.disassemble import disassemble
from ptxgen.toolchain.discover import Tool
from ptxgen.toolchain.lineinfo import embedded_ptx
from ptxgen.toolchain.listing import parse_listing
from ptxgen.toolchain.sass import Sass

_TARGET = re.compile(r"^\s*\.target\s+(sm_\w+)", re.MULTILINE)
_LISTINGS = (".sass", ".txt", ".asm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One thing that was named: its SASS, and as much of the rest as it has.

    `cubin` is None for a listing, `ptx` where there is none, `kernel` for a file, and `assembly`
    unless ptxas ran here.
    """

    name: str
    sass: Sass
    cubin: bytes | None = None
    ptx: str | None = None
    kernel: Kernel | None = None
    assembly: Cubin | None = None

    def sides(self) -> tuple[Side, ...]:
        """Its functions, for a comparison."""
        said = resources_of(self.cubin) if self.cubin is not None else {}
        if self.assembly is not None:
            said = {**said, **{r.function: r for r in self.assembly.report.functions}}
        smem = self.kernel.spec.smem_bytes if self.kernel is not None else None
        return tuple(
            Side(
                name=self.name,
                function=function,
                ptxas=self.sass.ptxas,
                cubin_sha256=self.sass.cubin_sha256,
                resources=said.get(function.name),
                dynamic_smem_bytes=smem,
            )
            for function in self.sass.functions
        )


def is_file(what: str) -> bool:
    """Does the name speak of a file, not of a kernel of the catalogue?"""
    return Path(what).suffix in (".ptx", ".cubin", *_LISTINGS) or os.sep in what


def subject(what: str, *, ptxas: Tool | None = None) -> Subject:
    """Find and read what was named; `ptxas` assembles where something is assembled.

    Raises OSError for a file that cannot be read, ToolchainError for one that holds something else,
    and what `kernel_from` raises for a reference.
    """
    path = Path(what)
    if path.suffix == ".cubin":
        return _cubin(what, path.read_bytes())
    if path.suffix in _LISTINGS:
        listing = parse_listing(path.read_text(encoding="utf-8", errors="replace"), what)
        return Subject(name=what, sass=listing.sass())
    if is_file(what):
        return _ptx(what, path.read_text(encoding="utf-8"), ptxas)
    kernel = kernel_from(what, ptxas=ptxas)
    return Subject(
        name=what,
        sass=kernel.sass,
        cubin=kernel.cubin,
        ptx=kernel.ptx,
        kernel=kernel,
        assembly=kernel.assembly,
    )


def _cubin(name: str, data: bytes) -> Subject:
    return Subject(name=name, sass=disassemble(data), cubin=data, ptx=embedded_ptx(data))


def _ptx(name: str, ptx: str, ptxas: Tool | None) -> Subject:
    """Foreign PTX: what ptxas gave up is worth a remark, but no reason to hide the SASS."""
    target = _TARGET.search(ptx)
    cubin = assemble(ptx, target=target[1] if target else DEFAULT_TARGET, ptxas=ptxas)
    for loss in cubin.report.losses:
        note(f"ptxas {cubin.ptxas}: {loss}")
    return Subject(name=name, sass=disassemble(cubin), cubin=cubin.bytes, ptx=ptx, assembly=cubin)
