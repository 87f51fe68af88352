"""Code: numbered lines, coloured by what their words do.

Whoever makes a view says which part of a line plays which role; `lexical` does so for PTX and SASS.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from ptxgen.view.base import TEXT_COLUMNS, View
from ptxgen.view.palette import Role, role_ansi, role_css


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line, and the role that colours it."""

    text: str
    role: Role = ""


@dataclass(frozen=True, slots=True)
class CodeLine:
    """One line: its pieces, the number in front of it, and what a pointer over it shows."""

    spans: tuple[Span, ...]
    number: str = ""
    tip: str = ""

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class Code(View):
    """Lines of code. On a page, more than `rows` of them scroll inside a frame.

    Text has the lines alone, without numbers, so that it can be copied and assembled. On a page
    the numbers are there to be seen, but are not copied either.
    """

    lines: tuple[CodeLine, ...]
    rows: int = 48

    def text(self, *, width: int = TEXT_COLUMNS, color: bool = False) -> str:
        del width  # code is never cut
        if not color:
            return "\n".join(line.text for line in self.lines)
        return "\n".join(
            "".join(role_ansi(span.text, span.role) for span in line.spans) for line in self.lines
        )

    def html(self) -> str:
        digits = max((len(line.number) for line in self.lines), default=0)
        body = "\n".join(_line(line, digits) for line in self.lines)
        frame = f"{_FRAME};max-height:{1.45 * self.rows:g}em"
        return f'{_STYLE}<pre class="pg-code" style="{frame}">{body}</pre>'

    def __str__(self) -> str:
        return self.text()


# On the element itself, since a notebook has rules of its own for <pre>. It must be one: what
# exports notebooks keeps blanks in nothing else.
_FRAME = (
    "font:12px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow:auto;"
    "margin:4px 0 8px;padding:6px 10px;border:1px solid rgba(128,128,128,.35);border-radius:6px;"
    "color:inherit;background:none;white-space:pre"
)
_STYLE = (
    "<style>.pg-code i{font-style:normal;opacity:.45;user-select:none}"
    f"{role_css('.pg-code')}</style>"
)


def _line(line: CodeLine, digits: int) -> str:
    number = f"<i>{line.number:>{digits}}  </i>" if digits else ""
    words = "".join(_spans(line.spans))
    return (
        f'<span title="{escape(line.tip)}">{number}{words}</span>' if line.tip else number + words
    )


def _spans(spans: tuple[Span, ...]) -> Iterator[str]:
    for span in spans:
        text = escape(span.text)
        if text:
            yield f'<span class="{span.role}">{text}</span>' if span.role else text
