"""Which template line, through which macro calls, produced each line of PTX.

Every text line of a template is bracketed by two marks before Jinja compiles it; macros nest, so
reading the rendered text with a stack gives each output line its call chain, innermost first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from jinja2.ext import Extension

from ptxgen.templating.scan import scan

_PUSH, _SEP, _POP, _BLANK = "\x01", "\x02", "\x03", "\x04"
# a mark or the end of a line, what a push names, or the text between two of them
_PIECE = re.compile(
    rf"([{_POP}{_BLANK}\n])|{_PUSH}([^{_SEP}]*){_SEP}|([^{_PUSH}{_POP}{_BLANK}\n]+)"
)


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a template."""

    template: str
    line: int

    def __str__(self) -> str:
        return f"{self.template}:{self.line}"


class MarkLines(Extension):
    """Brackets the text lines of a template with marks that name the line."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        out: list[str] = []
        for line in scan(source):
            if line.kind == "text":
                start = f"{_PUSH}{name}:{line.number}{_SEP}" if line.opens else ""
                out.append(start + line.text + (_POP if line.closes else ""))
            elif line.kind == "blank":
                out.append(_BLANK)  # or Jinja would swallow it after a line statement
            else:
                out.append(line.text)
        return "\n".join(out)


@dataclass(frozen=True, slots=True)
class Line:
    """A rendered line and its chain of places, innermost first."""

    text: str
    chain: tuple[Place, ...]


def split(marked: str) -> list[Line]:
    """Strip the marks from rendered text and give each line the longest chain that wrote in it.

    Lines that hold nothing but marks (the rest of a line that was one macro call) disappear; blank
    lines of a template stay.
    """
    lines: list[Line] = []
    stack: list[Place] = []
    text: list[str] = []
    chain: tuple[Place, ...] = ()
    keep = False
    for mark, place, words in _PIECE.findall(marked + "\n"):
        if words:
            text.append(words)
            if not words.isspace():
                keep = True
                if len(stack) > len(chain):
                    chain = tuple(reversed(stack))
        elif place:
            template, _, number = place.rpartition(":")
            stack.append(Place(template, int(number)))
        elif mark == _POP:
            stack.pop()
        elif mark == _BLANK:
            keep = True
        else:
            if keep:
                lines.append(Line("".join(text), chain))
            text, chain, keep = [], (), False
    return lines
