"""Template lines by kind, so that the source map and the lint agree on what they are.

statement   # for ...      and the lines on which its brackets stay open
comment     ## ...         vanishes
text        anything else; `opens` and `closes` tell where a hole spans lines
blank
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

STRING = r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\''
_STRING = re.compile(STRING)
_IN_HOLE = re.compile(rf"{STRING}|[{{}}]")


@dataclass(frozen=True, slots=True)
class TemplateLine:
    """One line of a template. `number` counts from 1."""

    number: int
    text: str
    kind: Literal["statement", "comment", "text", "blank"]
    opens: bool = True  # the line does not continue a hole of the line before
    closes: bool = True  # no hole stays open at its end


def scan(source: str) -> Iterator[TemplateLine]:
    """The lines of a template in order."""
    depth = 0  # open braces of a hole that spans lines
    brackets = 0  # open brackets of a statement that spans lines
    for number, text in enumerate(source.split("\n"), start=1):
        start = text.lstrip()
        if brackets or (not depth and start.startswith("#") and not start.startswith("##")):
            code = _STRING.sub("", text)
            brackets += sum(map(code.count, "([{")) - sum(map(code.count, ")]}"))
            yield TemplateLine(number, text, "statement")
        elif depth or start:
            if not depth and start.startswith("##"):
                yield TemplateLine(number, text, "comment")
                continue
            before, depth = depth, _hole_depth(text, depth)
            yield TemplateLine(number, text, "text", opens=not before, closes=not depth)
        else:
            yield TemplateLine(number, text, "blank")


def _hole_depth(text: str, depth: int) -> int:
    """Brace depth inside a hole at the end of a line; 0 outside of holes."""
    position = 0
    while True:
        if not depth:
            position = text.find("${", position)
            if position < 0:
                return 0
            depth, position = 1, position + 2
        token = _IN_HOLE.search(text, position)
        if token is None:
            return depth
        depth += {"{": 1, "}": -1}.get(token.group(), 0)
        position = token.end()
