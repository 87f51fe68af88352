"""Which words of a line of PTX or SASS to colour. Nothing is parsed: a line is looked at alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ptxgen.view.code import Code, CodeLine, Span
from ptxgen.view.palette import Role

# First words of opcodes -> role, PTX and SASS. The longest that fits decides.
_ROLES: Mapping[str, Role] = {
    "wgmma": "tensor", "mma": "tensor", "ldmatrix": "tensor", "stmatrix": "tensor",
    "cp.async.bulk": "tma", "cp.reduce.async.bulk": "tma", "prefetch.tensormap": "tma",
    "tensormap": "tma",
    "mbarrier": "mbarrier",
    "HGMMA": "tensor", "QGMMA": "tensor", "IGMMA": "tensor", "BGMMA": "tensor", "HMMA": "tensor",
    "IMMA": "tensor", "DMMA": "tensor", "BMMA": "tensor", "QMMA": "tensor",
    "UTMA": "tma", "UBLK": "tma",
    "SYNCS": "mbarrier",
}  # fmt: skip
_PTX = re.compile(
    r"(?P<space>\s*)(?:(?P<label>\$\w+:)|(?P<guard>@!?%\w+\s+)?(?P<opcode>[a-z][\w.:]*))?"
)
_SASS = re.compile(
    r"(?P<muted>\s*/\*[0-9a-f]+\*/)(?P<guard>\s+(?:@!?\w+\s+)?)(?P<opcode>[A-Z][\w.]*)"
)
_PTX_WORD = re.compile(r"(?P<directive>(?<![\w.])\.[a-z]\w*)|(?P<label>\$\w+)")
_COMMENT = "//"


def opcode_role(opcode: str) -> Role:
    """The role of an opcode of PTX or SASS; empty for one like any other."""
    fits = [name for name in _ROLES if opcode.startswith(name)]
    return _ROLES[max(fits, key=len)] if fits else ""


def ptx(lines: Iterable[str], *, first: int = 1, tips: Sequence[str] = (), rows: int = 48) -> Code:
    """PTX as code. Lines are numbered from `first`; `tips[i]` is what line i shows on a page."""
    return Code(
        lines=tuple(
            CodeLine(tuple(_ptx_spans(line)), str(first + i), tips[i] if i < len(tips) else "")
            for i, line in enumerate(lines)
        ),
        rows=rows,
    )


def sass(lines: Iterable[str], *, rows: int = 48) -> Code:
    """A listing of SASS as code: instructions behind their `/*address*/`, labels, comments."""
    return Code(lines=tuple(CodeLine(tuple(_sass_spans(line))) for line in lines), rows=rows)


def plain(text: str) -> Code:
    """Lines of text that are no code: a report in columns, an error."""
    return Code(lines=tuple(CodeLine((Span(line),)) for line in text.splitlines()))


def _ptx_spans(line: str) -> Iterable[Span]:
    code, slashes, comment = line.partition(_COMMENT)
    found = _PTX.match(code)
    if found is not None:
        yield Span(found["space"])
        if found["label"]:
            yield Span(found["label"], "label")
        if found["guard"]:
            yield Span(found["guard"])
        if found["opcode"]:
            yield Span(found["opcode"], opcode_role(found["opcode"]) or "opcode")
        code = code[found.end() :]
    at = 0
    for word in _PTX_WORD.finditer(code):
        yield Span(code[at : word.start()])
        yield Span(word[0], "directive" if word["directive"] else "label")
        at = word.end()
    yield Span(code[at:])
    yield Span(slashes + comment, "comment")


def _sass_spans(line: str) -> Iterable[Span]:
    code, slashes, comment = line.partition(_COMMENT)
    found = _SASS.match(code)
    if found is None:
        yield Span(code, "label" if code.strip().endswith(":") else "")
    else:
        yield Span(found["muted"], "comment")
        yield Span(found["guard"])
        yield Span(found["opcode"], opcode_role(found["opcode"]) or "opcode")
        yield Span(code[found.end() :])
    yield Span(slashes + comment, "comment")
