"""Kernels that somebody else wrote: PTX text in, something that `runtime.launch` runs out.

The `.entry` signature is all that is known of such a kernel, so the caller gives what PTX leaves
open: block and cluster where no directive fixes them, dynamic shared memory, and at each launch the
grid and what the parameters hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from ptxgen.errors import ArgumentError, UnsupportedPtx, Violation
from ptxgen.isa import arch
from ptxgen.ptx import ast, parse
from ptxgen.ptx.pointers import written
from ptxgen.ptx.signature import Parameter, Signature, signature
from ptxgen.spec import (
    ANY_DTYPE,
    Access,
    ArrayMeta,
    DeviceLimits,
    Dim3,
    KernelSpec,
    LaunchPlan,
    Param,
    PointerParam,
    Scalar,
    ScalarParam,
    Step,
    TensorMapParam,
)
from ptxgen.toolchain import assemble as assembler
from ptxgen.toolchain import disassemble as disassembler
from ptxgen.toolchain.assemble import Cubin
from ptxgen.toolchain.sass import Sass
from ptxgen.view import Heading, Shown, Stack, View
from ptxgen.view.sections import ptx_view

DEFAULT_BLOCK = (256, 1, 1)
Extents = tuple[int, ...]

_TARGET = re.compile(r"sm_(\d+)([af]?)")
_HANDLES = frozenset({"texref", "samplerref", "surfref"})


class ForeignKernel(Shown):
    """One entry of a PTX text. Assembled and disassembled when first asked for.

    Anything that ptxas remarks (spills, lost performance) is in `assembly.report`, and no error:
    it is somebody else's program.
    """

    def __init__(
        self, ptx: str, module: ast.Module, spec: KernelSpec, *, pdl: bool = False
    ) -> None:
        self._ptx = ptx
        self._spec = spec
        self._pdl = pdl
        self.module = module

    @property
    def ptx(self) -> str:
        """The text as it was given; a `Rendered` still knows its template lines."""
        return self._ptx

    @property
    def spec(self) -> KernelSpec:
        """Entry, parameters, block, cluster, dynamic shared memory."""
        return self._spec

    @cached_property
    def assembly(self) -> Cubin:
        """The cubin with ptxas's report. Raises ToolMissing, AssembleError."""
        locate: Callable[[int], str | None] | None = getattr(self._ptx, "locate", None)
        return assembler.assemble(self._ptx, locate=locate)

    @property
    def cubin(self) -> bytes:
        """The bytes that a launch on a GPU loads."""
        return self.assembly.bytes

    @cached_property
    def sass(self) -> Sass:
        """The disassembly as data; `str()` is the listing."""
        return disassembler.disassemble(self.assembly)

    def plan(
        self, args: Mapping[str, ArrayMeta], scalars: Mapping[str, Scalar], device: DeviceLimits
    ) -> LaunchPlan:
        """One launch, whose grid the caller gives."""
        step = Step(entry=self.spec.entry, grid=Dim3(), scalars={}, pdl=self._pdl)
        return LaunchPlan(steps=(step,), open_grid=True)

    def view(self) -> View:
        """The parameters, and the PTX; nothing is assembled for it."""
        text = ptx_view(self._ptx.splitlines(), fold=True)
        return Stack((Heading(words=self.spec.entry), self.spec.view(), text))

    def __repr__(self) -> str:
        return f"<ForeignKernel {self.spec.entry}>"

    __str__ = __repr__  # a kernel is named in messages; text() is what there is to see


def load_ptx(
    text: str,
    entry: str | None = None,
    block: Extents | None = None,
    cluster: Extents | None = None,
    smem: int = 0,
    *,
    pdl: bool = False,
) -> ForeignKernel:
    """A kernel from the text of any PTX module for Hopper, whoever or whatever wrote it.

    `entry` names the kernel, as PTX or as C++ source spells it; it may be left out where there is
    only one. `block` and `cluster` are extents along x, y, z; by default those of `.reqntid` and
    `.reqnctapercluster`, else (256, 1, 1) threads and (1, 1, 1) CTAs. `smem` is the dynamic shared
    memory in bytes. With `pdl` a launch may start before the grid in front of it has ended, as far
    as griddepcontrol.wait lets it (programmatic dependent launch).

    The result goes to `runtime.launch(k, x, out, 1000, grid=(4, 1, 1))`. Arguments are given by
    parameter name or in order: arrays (or plain numbers) for 64-bit parameters, numbers for
    scalars, `runtime.tensor_map(x, box=...)` for 128-byte tensor maps, bytes for other aggregates.

    Raises PtxSyntaxError for text that is not PTX, ArgumentError for an entry that is not there
    and for what its directives do not allow, UnsupportedPtx for parameters that are textures.
    PTX ISA 11.4 (performance directives) and 11.8 (cluster dimensions).
    """
    module = parse(text)
    declared = signature(module, _find(module, entry).name)
    shape = Dim3(*(block or declared.block or DEFAULT_BLOCK))
    group = Dim3(*(cluster or declared.cluster or (1,)))
    broken = [*_target_violations(declared), *_shape_violations(declared, shape, group, smem)]
    if broken:
        raise ArgumentError(f"{declared.entry}: cannot be loaded", broken)
    stored = written(module.entry(declared.entry))
    spec = KernelSpec(
        entry=declared.entry,
        params=tuple(_param(p, p.name in stored) for p in declared.params),
        block=shape,
        cluster=group,
        smem_bytes=smem,
        target=declared.target,
        ptx_version=declared.ptx_version,
    )
    return ForeignKernel(text, module, spec, pdl=pdl)


# --- entries -------------------------------------------------------------------------------------


def _find(module: ast.Module, wanted: str | None) -> ast.Function:
    """The entry of this name, mangled or not, or the only one there is."""
    entries = module.entries
    found = [e for e in entries if wanted in (None, e.name)]
    found = found or [e for e in entries if wanted == source_name(e.name)]
    if len(found) == 1:
        return found[0]
    raise ArgumentError(
        "which kernel of this PTX?",
        [
            Violation(
                field="entry",
                got="nothing" if wanted is None else repr(wanted),
                rule="must name one of " + (", ".join(e.name for e in entries) or "no entries"),
                fix=f"entry={entries[0].name!r}" if entries else "give PTX that has an .entry",
            )
        ],
    )


def source_name(symbol: str) -> str:
    """A function's name in C++ source, without namespaces: `_ZN2ns4copyEPf` is `copy`."""
    if not symbol.startswith("_Z"):
        return symbol
    rest, name = symbol[2:].removeprefix("N"), symbol
    while digits := re.match(r"\d+", rest):
        start = digits.end()
        end = start + int(digits[0])
        name, rest = rest[start:end], rest[end:]
    return name


# --- what the directives allow -------------------------------------------------------------------


def _target_violations(declared: Signature) -> Iterator[Violation]:
    match = _TARGET.fullmatch(declared.target)
    number, suffix = (int(match[1]), match[2]) if match else (0, "")
    if match and (number == 90 or (number < 90 and not suffix)):
        return
    yield Violation(
        field="target",
        got=declared.target,
        rule="must run on sm_90a",
        why="features of one architecture (the a and f targets) and newer ones are not Hopper's",
        fix="compile the program for sm_90a, or for sm_90 and below without a suffix",
    )


def _shape_violations(
    declared: Signature, block: Dim3, cluster: Dim3, smem: int
) -> Iterator[Violation]:
    """Block, cluster and shared memory against the entry's directives and the hardware."""
    if declared.block and block != declared.block:
        yield Violation(
            field="block",
            got=str(block),
            rule=f"must be {declared.block}: the entry says .reqntid",
            fix="leave block out, and it is taken from the PTX",
        )
    elif declared.max_threads and block.size > declared.max_threads:
        yield Violation(
            field="block",
            got=f"{block} = {block.size} threads",
            rule=f"must have at most {declared.max_threads}: the entry says .maxntid",
            why="ptxas has given each thread as many registers as fit that number",
            fix="use a smaller block, or compile with larger __launch_bounds__",
        )
    if declared.cluster and cluster != declared.cluster:
        yield Violation(
            field="cluster",
            got=str(cluster),
            rule=f"must be {declared.cluster}: the entry says .reqnctapercluster",
            fix="leave cluster out, and it is taken from the PTX",
        )
    if not 0 <= smem <= arch.SMEM_PER_CTA_BYTES:
        yield Violation(
            field="smem",
            got=f"{smem:,}",
            rule=f"must be 0..{arch.SMEM_PER_CTA_BYTES:,} B of dynamic shared memory",
        )


# --- parameters ----------------------------------------------------------------------------------


def _param(declared: Parameter, stored: bool) -> Param:
    """What a launch may pass for a declared parameter.

    Compilers declare signed and unsigned numbers alike, so integers go by their width alone.
    """
    name = declared.name
    if declared.type in _HANDLES:
        raise UnsupportedPtx(
            f"parameter {name} is a .{declared.type}: textures and surfaces cannot be passed; use "
            "plain loads, or address the object by a .u64 handle"
        )
    if declared.is_tensor_map:
        return TensorMapParam(
            name=name,
            arg=name,
            dtype=ANY_DTYPE,
            axes=(),
            box=(),
            use="reduce" if stored else "load",
        )
    if declared.count is not None:
        return ScalarParam(name=name, ptx_type=f"b8[{declared.size}]")
    if declared.type in ("u64", "s64", "b64"):
        access: Access = "read_write" if stored else "read"
        return PointerParam(name=name, arg=name, dtype=ANY_DTYPE, access=access, align=1)
    if declared.type in ("f32", "f64"):
        return ScalarParam(name=name, ptx_type=declared.type)
    return ScalarParam(name=name, ptx_type=f"b{8 * declared.size}")
