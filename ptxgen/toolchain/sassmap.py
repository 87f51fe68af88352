"""SASS with everything that stands beside it: PTX and template line, live registers, scheduling.

    sass_map(cubin) -> SassMap        text() and html() show it

nvdisasm is run twice: its JSON gives the instructions, its text (listing.py) the live registers and
the encodings, whose control bits say how each instruction is scheduled (control.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from ptxgen.toolchain import discover
from ptxgen.toolchain.assemble import Cubin
from ptxgen.toolchain.cache import Store, content_key, shared_store
from ptxgen.toolchain.control import Control, decode
from ptxgen.toolchain.diagnostics import shorten, statement_at
from ptxgen.toolchain.disassemble import disassemble, run_nvdisasm
from ptxgen.toolchain.discover import Tool
from ptxgen.toolchain.lineinfo import embedded_ptx
from ptxgen.toolchain.listing import Listed, Listing, Live, parse_listing
from ptxgen.toolchain.sass import Instruction, category
from ptxgen.view.base import Shown, Stack, View
from ptxgen.view.palette import Tone
from ptxgen.view.table import Row, Table

# Code with encodings, and after each instruction the number of live registers.
_OPTIONS = ("-c", "-hex", "-lrm", "count")
_TONES: dict[str, Tone] = {"tensor": 4, "tma": 0, "mbarrier": 1}
_PTX_COLUMNS = 72  # a longer statement is cut in the table, not in the data
_LEGEND = (
    "live: general registers that hold a value still needed, + uniform ones",
    "schedule: B scoreboards that it waits for; R, W those that it raises until its operands are "
    "read, its result is written; Y another warp may go first; S cycles to the next issue",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapRow:
    """One instruction. `ptx` is the statement at its PTX line, `origin` the template line."""

    instruction: Instruction
    live: Live | None
    control: Control | None
    ptx: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionMap:
    """One function, in the order of its code."""

    name: str
    rows: tuple[MapRow, ...]

    @property
    def most_live(self) -> MapRow | None:
        """The instruction with the most live general registers: where a spill would begin."""
        known = [row for row in self.rows if row.live is not None]
        return max(known, key=lambda row: row.live.general if row.live else 0, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SassMap(Shown):
    """All functions of a cubin."""

    functions: tuple[FunctionMap, ...]
    cubin_sha256: str = ""
    ptxas: str = ""
    nvdisasm: str = ""

    def view(self) -> View:
        return Stack(tuple(_table(function) for function in self.functions))

    def to_dict(self) -> dict[str, object]:
        return {
            "cubin_sha256": self.cubin_sha256,
            "ptxas": self.ptxas,
            "nvdisasm": self.nvdisasm,
            "functions": [asdict(function) for function in self.functions],
        }


def sass_map(
    cubin: Cubin | bytes,
    *,
    ptx: str | None = None,
    locate: Callable[[int], str | None] | None = None,
    nvdisasm: Tool | None = None,
    store: Store | None = None,
) -> SassMap:
    """Lay a cubin's SASS beside its PTX.

    Args:
        cubin: from `assemble`, or the bytes of a cubin from elsewhere.
        ptx: its PTX; the text that -lineinfo keeps in the cubin when None.
        locate: PTX line (from 1) -> its template line.
        nvdisasm: the disassembler; `discover.nvdisasm()` when None.
        store: the cache; the shared one under PTXGEN_CACHE_DIR when None.

    Raises ToolMissing and ToolchainError like `disassemble`.
    """
    data = cubin if isinstance(cubin, bytes) else cubin.bytes
    tool = nvdisasm or discover.nvdisasm()
    sass = disassemble(data, nvdisasm=tool, store=store)
    text = ptx if ptx is not None else embedded_ptx(data)
    rows = {
        (function.name, row.instruction.address): row
        for function in _listing(data, sass.cubin_sha256, tool, store).functions
        for row in function.rows
    }
    beside = _Beside(text.splitlines() if text is not None else [], locate)
    return SassMap(
        functions=tuple(
            FunctionMap(
                name=function.name,
                rows=tuple(
                    _row(i, rows.get((function.name, i.address)), beside) for i in function.code
                ),
            )
            for function in sass.functions
        ),
        cubin_sha256=sass.cubin_sha256,
        ptxas=sass.ptxas,
        nvdisasm=sass.nvdisasm,
    )


def _listing(data: bytes, digest: str, tool: Tool, store: Store | None) -> Listing:
    key = content_key(
        [("nvdisasm", f"{tool.version_text} {tool.build}"), ("options", " ".join(_OPTIONS)),
         ("cubin", digest)]
    )  # fmt: skip
    store = store or shared_store("sass")
    cached = store.get(key)
    text = cached.decode() if cached is not None else run_nvdisasm(data, tool, _OPTIONS)
    if cached is None:
        store.put(key, text.encode())
    return parse_listing(text, f"the text of {tool}")


@dataclass(frozen=True, slots=True)
class _Beside:
    """The PTX and its templates, by PTX line."""

    lines: list[str]
    locate: Callable[[int], str | None] | None

    def ptx(self, line: int | None) -> str:
        known = line is not None and 1 <= line <= len(self.lines)
        return shorten(statement_at(self.lines, line)) if known and line is not None else ""

    def origin(self, line: int | None) -> str:
        return (self.locate(line) or "") if self.locate is not None and line is not None else ""


def _row(instruction: Instruction, listed: Listed | None, beside: _Beside) -> MapRow:
    encoding = listed.encoding if listed is not None else None
    return MapRow(
        instruction=instruction,
        live=listed.live if listed is not None else None,
        control=decode(encoding) if encoding is not None else None,
        ptx=beside.ptx(instruction.line),
        origin=beside.origin(instruction.line),
    )


def _table(function: FunctionMap) -> View:
    peak = function.most_live
    notes = [*_LEGEND]
    if peak is not None and peak.live is not None:
        at = f"0x{peak.instruction.address:04x}"
        notes.insert(0, f"most live: {peak.live.general} general registers at {at}")
    columns = ("addr", "SASS", "live", "schedule", "line", "PTX")
    has_origin = any(row.origin for row in function.rows)
    return Table(
        title=function.name,
        columns=(*columns, "template") if has_origin else columns,
        rows=tuple(_lines(function, has_origin)),
        left=frozenset({0, 1, 3, 5, 6}),
        notes=tuple(notes),
    )


def _lines(function: FunctionMap, has_origin: bool) -> Iterator[Row]:
    """Rows of the table; PTX only where it begins: one statement becomes many instructions."""
    before: int | None = None
    for row in function.rows:
        instruction = row.instruction
        new = instruction.line != before
        before = instruction.line
        cells = (
            f"{instruction.address:04x}",
            f"{instruction.predicate:>5} {instruction.opcode} "
            f"{', '.join(instruction.operand_list)}".rstrip(),
            _live(row.live),
            str(row.control) if row.control is not None else "",
            str(instruction.line or "") if new else "",
            _cut(row.ptx) if new else "",
        )
        tone = _TONES.get(category(instruction.opcode), "plain")
        yield Row((*cells, row.origin if new else "") if has_origin else cells, tone=tone)


def _cut(ptx: str) -> str:
    return ptx if len(ptx) <= _PTX_COLUMNS else ptx[: _PTX_COLUMNS - 4] + " ..."


def _live(live: Live | None) -> str:
    if live is None:
        return ""
    return f"{live.general}+{live.uniform}" if live.uniform else str(live.general)
