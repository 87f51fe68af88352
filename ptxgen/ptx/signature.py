"""The launch signature of an entry: what a host must pass, and how large the launch must be."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ptxgen.errors import PtxSyntaxError
from ptxgen.spec import Dim3

from . import ast
from .lexer import closing
from .parser import parse


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One `.param`. `type` is its declared type ("b8" for an aggregate), `size` and `align` bytes.

    `count` is the array extent, or None for a scalar. `pointer` is true when the declaration says
    `.ptr`; without it a 64-bit pointer cannot be told from a number.
    """

    name: str
    type: str
    align: int
    size: int
    count: int | None
    pointer: bool

    @property
    def is_tensor_map(self) -> bool:
        """A 128-byte aggregate aligned to 64 B or more: the shape of a CUtensorMap."""
        return self.type == "b8" and self.size == 128 and self.align >= 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What an `.entry` declares. `block` and `cluster` are None where it leaves them open."""

    entry: str
    target: str
    ptx_version: tuple[int, int]
    params: tuple[Parameter, ...]
    block: Dim3 | None
    cluster: Dim3 | None
    max_threads: int | None


def signature(module: ast.Module, entry: str | None = None) -> Signature:
    """The signature of `entry` (or of the only entry). Raises KeyError for an unknown entry."""
    function = module.entry(entry)
    block, cluster = function.dim3("reqntid"), function.dim3("reqnctapercluster")
    maxntid = function.dim3("maxntid")
    if block and maxntid:
        raise PtxSyntaxError(
            f"entry {function.name} has both .reqntid and .maxntid; keep one", line=function.line
        )
    largest = block or maxntid
    return Signature(
        entry=function.name,
        target=module.target[0],
        ptx_version=module.version,
        params=tuple(_parameter(p) for p in function.params),
        block=Dim3(*block) if block else None,
        cluster=Dim3(*cluster) if cluster else None,
        max_threads=Dim3(*largest).size if largest else None,
    )


def parameters(source: str, entry: str) -> tuple[Parameter, ...]:
    """What `entry` declares, of a text whose bodies are not read: a small part of parsing it all.

    Raises KeyError where the text has no such entry, PtxSyntaxError for a list that is no PTX.
    """
    header = re.search(rf"^[^\n/]*(\.entry\s+{re.escape(entry)}(?![\w$])\s*)(\()?", source, re.M)
    if header is None:
        raise KeyError(f"no entry {entry}")
    if header[2] is None:
        return ()
    listed = source[header.start(1) : closing(source, header.start(2))]
    module = parse(f".version 8.0\n.target sm_90a\n.address_size 64\n{listed};")
    (function,) = module.functions
    return tuple(_parameter(p) for p in function.params)


def _parameter(variable: ast.Variable) -> Parameter:
    return Parameter(
        name=variable.name,
        type=variable.type,
        align=variable.align,
        size=variable.size,
        count=variable.size // variable.element_bytes if variable.shape else None,
        pointer=bool(variable.pointer),
    )
