"""PTX to look at, whoever wrote it: the contract on top, then one section a banner.

A banner is a comment line of equals signs and a title; the kernels' templates open each role's code
with one. Text is folded away by section on a page; on a terminal it stays one piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ptxgen.view.base import Stack, View
from ptxgen.view.compare import Folded
from ptxgen.view.lexical import ptx

_BANNER = re.compile(r"\s*// =+ (?P<title>\S.*)")
_UNFOLDED_LINES = 40  # a text this short needs no folds


@dataclass(frozen=True, slots=True)
class Section:
    """Lines first..last (from 1) of the text, and what they are."""

    title: str
    first: int
    last: int

    @property
    def words(self) -> str:
        return f"{self.title}  ·  lines {self.first}–{self.last}"


def sections(lines: Sequence[str]) -> tuple[Section, ...]:
    """The contract (the comments that the text opens with), the declarations, one a banner."""
    starts = list(_starts(lines))
    ends = [first - 1 for first, _ in starts[1:]] + [len(lines)]
    return tuple(
        Section(title, first, last) for (first, title), last in zip(starts, ends, strict=True)
    )


def _starts(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """(first line, title) of every section."""
    opening = next((i for i, line in enumerate(lines) if not line.startswith("//")), len(lines))
    if opening:
        yield 1, "contract"
    if opening < len(lines):
        yield opening + 1, "declarations" if opening else "code"
    for number, line in enumerate(lines[opening:], opening + 1):
        found = _BANNER.match(line)
        if found is not None:
            yield number, found["title"]


def ptx_view(lines: Sequence[str], tips: Sequence[str] = (), *, fold: bool = False) -> View:
    """The view of a text; `tips[i]` names the template line behind line i.

    With `fold`, text shows the first section only, and how long the rest is.
    """
    if len(lines) <= _UNFOLDED_LINES:
        return ptx(lines, tips=tips)
    return Stack(
        tuple(
            Folded(
                words=section.words,
                inner=ptx(
                    lines[section.first - 1 : section.last],
                    first=section.first,
                    tips=tips[section.first - 1 : section.last],
                ),
                opened=at == 0,
                instead=section.words if fold and at else "",
            )
            for at, section in enumerate(sections(lines))
        ),
        gap="\n",
    )
