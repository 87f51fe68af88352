"""What PTX asks for: its matrix and copy instructions, by entry, each with its lines.

This reads just enough PTX for `paths.py` to lay it beside the SASS: opcodes, and which entry they
are in. It takes any PTX, also what nvcc made; it checks nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_FUNCTION = re.compile(r"\.(entry|func)\b(?:\s*\([^)]*\))?\s+([\w$.]+)")
_OPCODE = re.compile(
    r"(?:^|[{}:])\s*(?:@!?%?[\w$]+\s+)?(?P<opcode>[a-z]\w*(?:(?:\.|::)\w+)*)\s*[^{}]*$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One PTX instruction: its opcode with all modifiers, and its first and last line (from 1)."""

    opcode: str
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One kind of matrix or copy instruction of PTX.

    `pattern` is a regular expression for the PTX opcode; `paths` are the hardware paths (the names
    of paths.PATHS) that count as its own.
    """

    name: str
    pattern: str
    paths: tuple[str, ...]

    def matches(self, opcode: str) -> bool:
        return re.match(self.pattern, opcode) is not None


_FP8 = r".*\.e[45]m[23]\b"
_TO_SHARED = r"\.shared::(cluster|cta)\.global\b"
_BULK_TENSOR = r"cp\.async\.bulk\.tensor\..*"

# The first row that matches an opcode is its kind. Where no path is named, the path has its name.
INTENTS: tuple[Intent, ...] = tuple(
    Intent(name=name, pattern=pattern, paths=paths or (name,))
    for name, pattern, *paths_ in (
        ("wgmma, sparse", r"wgmma\.mma_async\.sp\b"),
        ("wgmma on fp8", rf"wgmma\.mma_async{_FP8}"),
        ("wgmma on int8", r"wgmma\.mma_async.*\.[su]8\b"),
        ("wgmma on bits", r"wgmma\.mma_async.*\.b1\b"),
        ("wgmma", r"wgmma\.mma_async\b"),
        ("mma.sync on fp8, sparse", rf"mma\.sp\b{_FP8}"),
        ("mma.sync, sparse", r"mma\.sp\b"),
        ("mma.sync on fp8", rf"mma\.sync\b{_FP8}"),
        ("mma.sync on int4", r"mma\.sync\b.*\.[su]4\b"),
        ("mma.sync on int8", r"mma\.sync\b.*\.[su]8\b"),
        ("mma.sync on bits", r"mma\.sync\b.*\.b1\b"),
        ("mma.sync on f64", r"mma\.sync\b.*\.f64\b"),
        ("mma.sync", r"mma\.sync\b"),
        ("wmma", r"wmma\.mma\b", "mma.sync", "mma.sync on int8", "mma.sync on f64"),
        ("ldmatrix", r"ldmatrix\b"),
        ("stmatrix", r"stmatrix\b"),
        ("TMA tensor prefetch", r"cp\.async\.bulk\.prefetch\.tensor\b"),
        ("TMA tensor reduction", r"cp\.reduce\.async\.bulk\.tensor\b"),
        ("TMA tensor load, multicast", rf"{_BULK_TENSOR}{_TO_SHARED}.*multicast"),
        ("TMA tensor load", rf"{_BULK_TENSOR}{_TO_SHARED}"),
        ("TMA tensor store", rf"{_BULK_TENSOR}\.global\.shared::cta\b"),
        ("bulk prefetch", r"cp\.async\.bulk\.prefetch\b"),
        ("bulk reduction", r"cp\.reduce\.async\.bulk\b"),
        ("bulk copy", r"cp\.async\.bulk\.(shared|global)\b"),
        ("cp.async", r"cp\.async\.c[ag]\b"),
        ("st.async", r"st\.async\b"),
        ("red.async", r"red\.async\b"),
        ("load from global memory", r"ld(\.\w+)*\.global\b|ldu\.global\b",
         "plain load from global memory", "generic load"),
        ("store to global memory", r"st(\.\w+)*\.global\b",
         "plain store to global memory", "generic store"),
        ("load from shared memory", r"ld(\.\w+)*\.shared\b",
         "plain load from shared memory", "generic load"),
        ("store to shared memory", r"st(\.\w+)*\.shared\b",
         "plain store to shared memory", "generic store"),
        ("local memory", r"(ld|st)(\.\w+)*\.local\b"),
    )
    for paths in [tuple(paths_)]
)  # fmt: skip


def intent_of(opcode: str) -> Intent | None:
    """The kind of a PTX opcode; None for what neither multiplies matrices nor copies."""
    return next((row for row in INTENTS if row.matches(opcode)), None)


def statements(ptx: str) -> Mapping[str, tuple[Statement, ...]]:
    """The instructions of each entry, those of the functions that it may call among them."""
    text = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), ptx)
    entries: dict[str, tuple[Statement, ...]] = {}
    helpers: list[Statement] = []
    for kind, name, start, end in _bodies(text):
        body = tuple(_instructions(text, start, end))
        if kind == "entry":
            entries[name] = body
        else:
            helpers += body
    return {
        name: (*body, *helpers) if any(s.opcode.startswith("call") for s in body) else body
        for name, body in entries.items()
    }


def _bodies(text: str) -> Iterator[tuple[str, str, int, int]]:
    """(entry or func, name, where its braces begin, where they end)."""
    for found in _FUNCTION.finditer(text):
        start = text.find("{", found.end())
        semicolon = text.find(";", found.end())
        if start < 0 or 0 <= semicolon < start:
            continue  # a declaration
        yield found[1], found[2], start, _closing(text, start)


def _closing(text: str, start: int) -> int:
    depth = 0
    for found in re.finditer(r"[{}]", text[start:]):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return start + found.start()
    return len(text)


def _instructions(text: str, start: int, end: int) -> Iterator[Statement]:
    at = start + 1
    while (stop := text.find(";", at, end)) >= 0:
        # Vectors of registers stand in braces of their own: opcode {%r0, %r1}, [%rd0];
        piece = re.sub(r"\{[^{};]*\}", lambda v: " " * len(v[0]), text[at:stop].replace("\n", " "))
        found = _OPCODE.search(piece)
        if found is not None:
            yield Statement(
                opcode=found["opcode"],
                first_line=text.count("\n", 0, at + found.start("opcode")) + 1,
                last_line=text.count("\n", 0, stop) + 1,
            )
        at = stop + 1


def by_kind(body: Iterable[Statement]) -> Mapping[Intent, tuple[Statement, ...]]:
    """The matrix and copy instructions among the statements, in the order of INTENTS."""
    groups: dict[Intent, list[Statement]] = {}
    for statement in body:
        kind = intent_of(statement.opcode)
        if kind is not None:
            groups.setdefault(kind, []).append(statement)
    return {kind: tuple(groups[kind]) for kind in INTENTS if kind in groups}
