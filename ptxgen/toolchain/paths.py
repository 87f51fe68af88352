"""Which hardware path did each matrix and copy instruction of a cubin take?

    wgmma           the tensor cores, asynchronously         TMA        tensor tiles, by one thread
    mma.sync        the tensor cores, warp by warp           bulk       bytes, by one thread
    fp8 unpacked    to f16 first: there is no fp8 mma.sync   cp.async   past the registers
                    on Hopper                                plain      through the registers
    local           spills, or an array that is indexed

Where there is PTX (given, or kept inside the cubin by -lineinfo) each kind of instruction stands
beside what became of it: native, or a fallback? ptxas gives some instructions, HGMMA among them,
the line of their neighbour, so that a kind is judged by the whole kernel, not line by line; lines
serve to find what a fallback became.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

from ptxgen.toolchain.flow import Flow, flow
from ptxgen.toolchain.intent import Intent, Statement, by_kind, statements
from ptxgen.toolchain.registers import REGISTER, written
from ptxgen.toolchain.sass import GMMA, Instruction, Sass, SassFunction
from ptxgen.toolchain.verify.facts import TMA_ISSUE
from ptxgen.view.base import Shown, View
from ptxgen.view.palette import Tone
from ptxgen.view.table import Row, Table

Verdict: TypeAlias = Literal["native", "plain", "fallback", "slow", "spill", "local", "gone"]
GOOD: frozenset[Verdict] = frozenset({"native", "plain", "local", "gone"})
_UNPACK = "F2FP.*.*.UNPACK_B"
_SHOWN_LINES = 6
_LOCAL = "local memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """One way through the hardware, and the SASS that takes it."""

    name: str
    pattern: str
    verdict: Verdict = "native"
    note: str = ""


UNPACKED = Path(
    name="mma.sync on fp8, unpacked to f16", pattern="HMMA", verdict="fallback",
    note="no fp8 mma.sync on this chip: each fragment becomes f16 (F2FP), each MMA two HMMA at the "
    "rate of f16; wgmma has fp8",
)  # fmt: skip

# The first row that matches an opcode is its path.
PATHS: tuple[Path, ...] = (
    Path(name="wgmma, sparse", pattern="HGMMA.SP|QGMMA.SP|IGMMA.SP"),
    Path(name="wgmma on fp8", pattern="QGMMA"),
    Path(name="wgmma on int8", pattern="IGMMA"),
    Path(name="wgmma on bits", pattern="BGMMA"),
    Path(name="wgmma", pattern="HGMMA"),
    Path(name="mma.sync, sparse", pattern="HMMA.SP|IMMA.SP|QMMA.SP"),
    Path(name="mma.sync on fp8", pattern="QMMA"),
    Path(name="mma.sync on int4", pattern="IMMA.*.S4|IMMA.*.U4"),
    Path(name="mma.sync on int8", pattern="IMMA"),
    Path(name="mma.sync on bits", pattern="BMMA"),
    Path(name="mma.sync on f64", pattern="DMMA"),
    Path(name="mma.sync", pattern="HMMA"),
    Path(name="ldmatrix", pattern="LDSM"),
    Path(name="stmatrix", pattern="STSM"),
    Path(name="TMA tensor load, multicast", pattern="UTMALDG.*.MULTICAST"),
    Path(name="TMA tensor load", pattern="UTMALDG"),
    Path(name="TMA tensor store", pattern="UTMASTG"),
    Path(name="TMA tensor reduction", pattern="UTMAREDG"),
    Path(name="TMA tensor prefetch", pattern="UTMAPF"),
    Path(name="bulk copy", pattern="UBLKCP"),
    Path(name="bulk reduction", pattern="UBLKRED"),
    Path(name="bulk prefetch", pattern="UBLKPF"),
    Path(name="cp.async", pattern="LDGSTS"),
    Path(name="st.async", pattern="STAS"),
    Path(name="red.async", pattern="REDAS"),
    Path(name="plain load from global memory", pattern="LDG", verdict="plain"),
    Path(name="plain store to global memory", pattern="STG", verdict="plain"),
    Path(name="plain load from shared memory", pattern="LDS", verdict="plain"),
    Path(name="plain store to shared memory", pattern="STS", verdict="plain"),
    Path(name="generic load", pattern="LD", verdict="plain"),
    Path(name="generic store", pattern="ST", verdict="plain"),
    Path(
        name=_LOCAL, pattern="LDL|STL", verdict="spill",
        note="values that did not fit into registers",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRow:
    """One path that a kernel took, or one kind of PTX that became nothing.

    `opcodes` counts the SASS; `intent`, `asked` and `lines` are the PTX beside it: its kind, how
    many statements, and their first lines; empty without PTX.
    """

    path: str
    verdict: Verdict
    opcodes: Mapping[str, int]
    intent: str = ""
    asked: int = 0
    lines: tuple[int, ...] = ()
    note: str = ""

    @property
    def ok(self) -> bool:
        return self.verdict in GOOD

    @property
    def count(self) -> int:
        return sum(self.opcodes.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class PathReport(Shown):
    """The paths of one function. `has_ptx` says whether there was PTX to compare with."""

    function: str
    has_ptx: bool
    rows: tuple[PathRow, ...]

    @property
    def ok(self) -> bool:
        """No fallback, no loop over lanes, no spill."""
        return all(row.ok for row in self.rows)

    def row(self, path: str) -> PathRow:
        """The row of a path. Raises KeyError with the paths that there are."""
        found = next((row for row in self.rows if row.path == path), None)
        if found is None:
            raise KeyError(
                f"{path}: the paths are {', '.join(r.path for r in self.rows) or 'none'}"
            )
        return found

    def to_dict(self) -> dict[str, object]:
        rows = [{**asdict(row), "ok": row.ok} for row in self.rows]
        return {"function": self.function, "ok": self.ok, "has_ptx": self.has_ptx, "rows": rows}

    def view(self) -> View:
        """One row a path; the PTX that asked for it beside it."""
        bad = [row for row in self.rows if not row.ok]
        verdict = ", ".join(f"{row.path}: {row.verdict}" for row in bad) or "no fallback, no spill"
        beside = ("asked for by PTX",) if self.has_ptx else ()
        notes = [f"{row.path}: {row.note}" for row in self.rows if row.note]
        if not self.has_ptx:
            notes.append("no PTX to compare with: none in the cubin (nvcc -lineinfo keeps it)")
        return Table(
            title=f"{self.function}: {verdict}",
            columns=("", "path", "instructions", *beside),
            rows=tuple(_shown(row, self.has_ptx) for row in self.rows),
            left=frozenset({0, 1, 2, 3}),
            notes=tuple(notes),
        )

    def __str__(self) -> str:
        return self.text()


def check_paths(sass: Sass, ptx: str | None = None) -> tuple[PathReport, ...]:
    """The path of every matrix and copy instruction, function by function.

    Args:
        sass: of any cubin, made by whatever compiler.
        ptx: the PTX that the cubin came from, with the line numbers of its line tables.
    """
    bodies = statements(ptx) if ptx is not None else {}
    return tuple(_report(f, bodies.get(f.name)) for f in sass.functions)


def _report(function: SassFunction, body: tuple[Statement, ...] | None) -> PathReport:
    graph = flow(function)
    asked = by_kind(body) if body is not None else {}
    taken = _taken(graph.code)
    names = {path.name for path in taken} - {UNPACKED.name}
    rows = [_row(path, found, graph, asked) for path, found in taken.items()]
    for kind, stated in asked.items():
        if names.isdisjoint(kind.paths) and kind.name != _LOCAL:  # arrays may get registers
            became = _not_native(kind, stated, graph.code)
            rows = [row for row in rows if row.path != became.path or row.intent] + [became]
    order = {path.name: at for at, path in enumerate((UNPACKED, *PATHS))}
    rows.sort(key=lambda row: order.get(row.path, len(order)))
    return PathReport(function=function.name, has_ptx=body is not None, rows=tuple(rows))


def _taken(code: Iterable[Instruction]) -> Mapping[Path, list[Instruction]]:
    """Instructions by path, in the order of PATHS."""
    found: dict[Path, list[Instruction]] = {}
    unpacked: set[str] = set()  # registers that hold f16 unpacked from fp8
    for instruction in code:
        path = next((p for p in PATHS if instruction.matches(p.pattern)), None)
        if path is not None and path.pattern == "HMMA" and _reads(instruction) & unpacked:
            path = UNPACKED
        if path is not None:
            found.setdefault(path, []).append(instruction)
        if instruction.matches(_UNPACK):
            unpacked |= written(instruction)
        else:
            unpacked -= written(instruction)
    return {path: found[path] for path in (UNPACKED, *PATHS) if path in found}


def _reads(mma: Instruction) -> set[str]:
    """A and B of a warp MMA."""
    return set(REGISTER.findall(" ".join(mma.operand_list[1:3])))


def _row(
    path: Path,
    found: list[Instruction],
    graph: Flow,
    asked: Mapping[Intent, tuple[Statement, ...]],
) -> PathRow:
    verdict, note = path.verdict, path.note
    looped = _lane_by_lane(graph) & {i.address for i in found}
    if looped:
        verdict = "slow"
        note = (
            f"{len(looped)} of {len(found)} in a loop over lanes: ptxas could not prove that one "
            "lane issues it; guard it by elect.sync"
        )
    elif found[0].matches(GMMA) and len(found) > 1 and all(_closes(i) for i in found):
        note = "every one closes a group of its own: serialised, unless the PTX commits each"
    stated = [(kind, s) for kind, body in asked.items() if path.name in kind.paths for s in body]
    if path.verdict == "spill" and stated:
        verdict, note = "local", "the PTX uses local memory itself"
    return PathRow(
        path=path.name,
        verdict=verdict,
        opcodes=dict(Counter(i.opcode for i in found).most_common()),
        intent=", ".join(dict.fromkeys(kind.name for kind, _ in stated)),
        asked=len(stated),
        lines=tuple(s.first_line for _, s in stated),
        note=note,
    )


def _not_native(
    kind: Intent, stated: tuple[Statement, ...], code: Iterable[Instruction]
) -> PathRow:
    """A row for a kind of PTX whose own path no instruction takes."""
    lines = {line for s in stated for line in range(s.first_line, s.last_line + 1)}
    became = Counter(i.opcode for i in code if i.line in lines and i.base != "NOP")
    unpacked = kind.name.startswith("mma.sync on fp8") and any("UNPACK" in o for o in became)
    if unpacked:
        note = UNPACKED.note
    elif any(opcode.startswith("CALL") for opcode in became):
        note = "ptxas calls a helper of its own, which does it with other instructions"
    elif became:
        note = f"no instruction takes the path of {kind.name}"
    else:
        note = "nothing is left of it: removed as dead code, or merged into its neighbours"
    return PathRow(
        path=UNPACKED.name if unpacked else kind.name,
        verdict="fallback" if became else "gone",
        opcodes=dict(became.most_common()),
        intent=kind.name,
        asked=len(stated),
        lines=tuple(s.first_line for s in stated),
        note=note,
    )


def _lane_by_lane(graph: Flow) -> set[int]:
    """Addresses of TMA instructions in loops over lanes."""
    return {
        i.address
        for loop in graph.loops
        if any(b.matches("BRA.U.ANY") for b in graph.latch_instructions(loop))
        for i in graph.instructions(loop)
        if i.matches(TMA_ISSUE)
    }


def _closes(mma: Instruction) -> bool:
    return "gsb0" in mma.operand_list


def _shown(row: PathRow, has_ptx: bool) -> Row:
    opcodes = ", ".join(f"{n} {opcode}" for opcode, n in row.opcodes.items()) or "none"
    asked = f"{row.asked} {row.intent}{_lines(row.lines)}" if row.intent else ""
    cells = (row.verdict, row.path, opcodes)
    tone: Tone = "plain" if row.ok else "bad"
    return Row((*cells, asked) if has_ptx else cells, tone=tone)


def _lines(lines: tuple[int, ...]) -> str:
    """A few PTX lines, as text."""
    if not lines:
        return ""
    more = ", ..." if len(lines) > _SHOWN_LINES else ""
    return f" (PTX line {', '.join(map(str, lines[:_SHOWN_LINES]))}{more})"
