"""Which template line, through which macro calls, produced each line of PTX.

Every text line of a template is bracketed by two marks before Jinja compiles it; macros nest, so
reading the rendered text with a stack gives each output line its call chain, innermost first.
"""

from __future__ import annotations

from dataclasses import dataclass

from jinja2.ext import Extension

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
        opened = 0  # unclosed ${ of a hole that spans lines
        in_statement = 0  # unclosed parentheses of a line statement that spans lines
        for number, line in enumerate(source.split("\n"), start=1):
            text = line.lstrip()
            if in_statement or (not opened and text.startswith("#")):
                if not text.startswith("##"):
                    in_statement += line.count("(") - line.count(")")
                out.append(line)
                continue
            if not text and not opened:
                out.append(_BLANK)  # or Jinja would swallow it after a line statement
                continue
            before = opened
            opened += line.count("${") - _closings(line, before)
            start = "" if before else f"{_PUSH}{name}:{number}{_SEP}"
            out.append(start + line + ("" if opened else _POP))
        return "\n".join(out)


def _closings(line: str, already_open: int) -> int:
    """How many `}` of a line close a hole."""
    depth, closed, i = already_open, 0, 0
    while i < len(line):
        if line.startswith("${", i):
            depth += 1
            i += 2
            continue
        if line[i] == "}" and depth:
            depth -= 1
            closed += 1
        i += 1
    return closed


@dataclass(frozen=True, slots=True)
class Line:
    """A rendered line and its chain of places, innermost first."""

    text: str
    chain: tuple[Place, ...]


def split(marked: str) -> list[Line]:
    """Strip the marks from rendered text and give each line the chain it was written by.

    Lines that hold nothing but marks (the rest of a line that was one macro call) disappear; blank
    lines of a template stay.
    """
    lines: list[Line] = []
    stack: list[Place] = []
    text: list[str] = []
    chain: tuple[Place, ...] = ()
    blank = False
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
            blank = True
        elif c == "\n":
            if chain or blank:
                lines.append(Line("".join(text), chain))
            text, chain, blank = [], (), False
        else:
            if not c.isspace() and not chain:
                chain = tuple(reversed(stack))
            text.append(c)
        i += 1
    if chain:
        lines.append(Line("".join(text), chain))
    return lines
