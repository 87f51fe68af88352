"""Which template line, through which macro calls, produced each line of PTX.

Every text line of a template is bracketed by two marks before Jinja compiles it; macros nest, so
reading the rendered text with a stack gives each output line its call chain, innermost first.
"""

from __future__ import annotations

from dataclasses import dataclass

from jinja2.ext import Extension

from ptxgen.templating.scan import scan

_PUSH, _SEP, _POP, _BLANK = "\x01", "\x02", "\x03", "\x04"


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
    i = 0
    while i < len(marked):
        c = marked[i]
        if c == _PUSH:
            end = marked.index(_SEP, i)
            template, _, number = marked[i + 1 : end].rpartition(":")
            stack.append(Place(template, int(number)))
            i = end
        elif c == _POP:
            stack.pop()
        elif c == _BLANK:
            keep = True
        elif c == "\n":
            if keep:
                lines.append(Line("".join(text), chain))
            text, chain, keep = [], (), False
        else:
            text.append(c)
            if not c.isspace():
                keep = True
                if len(stack) > len(chain):
                    chain = tuple(reversed(stack))
        i += 1
    if keep:
        lines.append(Line("".join(text), chain))
    return lines
