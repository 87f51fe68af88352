"""SASS listings as data: the text of `nvdisasm`, of `cuobjdump -sass`, and our own.

Text holds two things that nvdisasm's JSON does not: the 128-bit encoding of an instruction, which
carries its scheduling (see control.py), and the number of live registers behind it. It is also what
people send each other. This file is the only one that reads it.

    /*0dd0*/  HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8], R24 ;  /* 0x03e00000081879f0 */
                                                               /* 0x000fe2000bf01818 */ // | 135 |

Branch targets are labels in nvdisasm's text; they become addresses here, as they are in the JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ptxgen.errors import ToolchainError
from ptxgen.toolchain.sass import Instruction, Sass, SassFunction

_INSTRUCTION = re.compile(
    r"^\s*/\*(?P<address>[0-9a-f]{4,})\*/\s+"
    r"(?:(?P<predicate>@!?U?P\w+)\s+)?(?P<opcode>[A-Z]\w*(?:\.\w+)*)"
    r"(?P<operands>[^;/]*?)\s*;?\s*(?P<rest>(?:/\*|//).*)?$"
)
_ENCODING = re.compile(r"/\* 0x([0-9a-f]{16}) \*/")
_SECOND_HALF = re.compile(r"^\s+/\* 0x[0-9a-f]{16} \*/")
_LABEL = re.compile(r"^\s*(?P<name>[.$\w]+):")
_FUNCTION = re.compile(r"^\s*(?:\.section\s+\.text\.(?P<section>[^,\s]+)|Function : (?P<dump>\S+))")
_OUR_LABEL = re.compile(r"L_[0-9a-f]+$")
_REFERENCE = re.compile(r"`\((?P<name>[^)]+)\)")
_PTX_LINE = re.compile(r"// PTX line (\d+)")
_COLUMNS = re.compile(r"// \|((?:\s*(?:GPR|PRED|UGPR|UPRED)\s*\|)+)")
_COUNTS = re.compile(r"// \|([\d\s|]+)\|\s*$")
_PRODUCER = re.compile(r"// cubin (?P<sha>\w*), ptxas (?P<ptxas>[\d.]*), nvdisasm (?P<tool>[\d.]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Registers that hold a value still needed: general, predicate, uniform, uniform predicate."""

    general: int = 0
    predicates: int = 0
    uniform: int = 0
    uniform_predicates: int = 0


_LIVE_FIELDS = {
    "GPR": "general",
    "PRED": "predicates",
    "UGPR": "uniform",
    "UPRED": "uniform_predicates",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One instruction of a listing, with what only a listing has (None where it has not)."""

    instruction: Instruction
    encoding: int | None = None  # 128 bits
    live: Live | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFunction:
    """One function of a listing, its padding included."""

    name: str
    rows: tuple[Listed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All functions of a listing, in the order of the text."""

    functions: tuple[ListedFunction, ...]
    cubin_sha256: str = ""
    ptxas: str = ""
    nvdisasm: str = ""

    def sass(self) -> Sass:
        """The instructions alone, as `disassemble` would give them."""
        return Sass(
            functions=tuple(
                SassFunction(name=f.name, instructions=tuple(r.instruction for r in f.rows))
                for f in self.functions
            ),
            cubin_sha256=self.cubin_sha256,
            ptxas=self.ptxas,
            nvdisasm=self.nvdisasm,
        )


def parse_listing(text: str, name: str = "the listing") -> Listing:
    """Read a listing; errors call it `name`. Raises ToolchainError if it holds no SASS."""
    reader = _Reader()
    for line in text.splitlines():
        reader.line(line)
    functions = tuple(reader.functions())
    if not functions:
        raise ToolchainError(
            f"{name}: no SASS instruction in it (it begins {text[:60]!r}).\n"
            "Cure: give the output of `nvdisasm -c`, `cuobjdump -sass` or `ptxgen sass`."
        )
    producer = _PRODUCER.search(text)
    if producer is None:
        return Listing(functions=functions)
    sha, ptxas, tool = producer["sha"], producer["ptxas"], producer["tool"]
    return Listing(functions=functions, cubin_sha256=sha, ptxas=ptxas, nvdisasm=tool)


class _Reader:
    """Walks the lines once; references to labels are resolved at the end of each function."""

    def __init__(self) -> None:
        self._name = ""
        self._rows: dict[str, list[Listed]] = {}
        self._labels: dict[str, dict[str, int]] = {}
        self._pending: list[str] = []  # labels in front of the next instruction
        self._columns: tuple[str, ...] = ()

    def line(self, line: str) -> None:
        if columns := _COLUMNS.search(line):
            self._columns = tuple(c.strip() for c in columns[1].split("|") if c.strip())
        elif found := _FUNCTION.match(line):
            self._start(found["section"] or found["dump"])
        elif found := _INSTRUCTION.match(line):
            self._instruction(found)
        elif _SECOND_HALF.match(line):
            self._second_half(line)
        elif found := _LABEL.match(line):
            self._label(found["name"])

    def functions(self) -> Iterator[ListedFunction]:
        for name, rows in self._rows.items():
            labels = self._labels[name]
            if rows:
                yield ListedFunction(name=name, rows=tuple(_resolved(r, labels) for r in rows))

    def _start(self, name: str) -> None:
        self._name = name
        self._rows.setdefault(name, [])
        self._labels.setdefault(name, {})
        self._pending = []

    def _label(self, label: str) -> None:
        name = label.removeprefix(".text.")
        if name in self._rows or _OUR_LABEL.match(label):
            return
        if label.startswith((".L", "$")):
            self._pending.append(label)
        else:  # `name:` opens a function in our own listings
            self._start(name)

    def _instruction(self, found: re.Match[str]) -> None:
        if not self._name:
            self._start("")
        rest = found["rest"] or ""
        encoding = _ENCODING.search(rest)
        line = _PTX_LINE.search(rest)
        address = int(found["address"], 16)
        for label in self._pending:
            self._labels[self._name][label] = address
        self._pending = []
        self._rows[self._name].append(
            Listed(
                instruction=Instruction(
                    address=address,
                    opcode=found["opcode"],
                    operands=found["operands"].strip(),
                    predicate=found["predicate"] or "",
                    function=self._name,
                    line=int(line[1]) if line else None,
                ),
                encoding=int(encoding[1], 16) if encoding else None,
                live=self._live(rest),
            )
        )

    def _second_half(self, line: str) -> None:
        """The upper 64 bits of the instruction above, and often its live counts."""
        rows = self._rows.get(self._name)
        encoding = _ENCODING.search(line)
        if not rows or encoding is None or rows[-1].encoding is None:
            return
        whole = rows[-1].encoding | int(encoding[1], 16) << 64
        rows[-1] = replace(rows[-1], encoding=whole, live=self._live(line) or rows[-1].live)

    def _live(self, text: str) -> Live | None:
        found = _COUNTS.search(text)
        cells = [cell.strip() for cell in found[1].split("|")] if found else []
        if not any(cells) or len(cells) != len(self._columns):
            return None
        counts = {
            _LIVE_FIELDS[column]: int(cell)
            for column, cell in zip(self._columns, cells, strict=True)
            if cell
        }
        return Live(**counts)


def _resolved(row: Listed, labels: dict[str, int]) -> Listed:
    def address(found: re.Match[str]) -> str:
        at = labels.get(found["name"])
        return found[0] if at is None else f"0x{at:x}"

    operands = _REFERENCE.sub(address, row.instruction.operands)
    if operands == row.instruction.operands:
        return row
    return replace(row, instruction=replace(row.instruction, operands=operands))
