"""Reports on a terminal: a line that is too long goes on under its second column."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.style import Style

_SECOND_COLUMN = re.compile(r"\s*\S+(?: \S+)*\s{2,}(?=\S)")


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of text, each wrapped to the width there is with a hanging indent."""

    text: str
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        style = console.get_style(self.style) if self.style else Style.null()
        for line in self.text.splitlines():
            for part in wrap(line, options.max_width):
                yield Segment(part, style)
                yield Segment.line()


def wrap(line: str, width: int) -> list[str]:
    """One line as several of at most `width` columns; continued where its second column begins."""
    if len(line) <= width:
        return [line]
    found = _SECOND_COLUMN.match(line)
    hang = found.end() if found else len(line) - len(line.lstrip()) + 2
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=" " * (hang if hang <= width // 2 else 4),
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
