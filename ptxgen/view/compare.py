"""Two texts side by side, line by line: what stayed, changed, moved, came and went.

In a page A stands on the left and B on the right, and long runs without a difference are folded
away (click to open). In text the lines stand below each other, marked like those of a patch:

      same        - only in A, or A before a change       < moved away
                  + only in B, or B after it              > moved here
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, TypeAlias

from ptxgen.view.base import TEXT_COLUMNS, View, count
from ptxgen.view.palette import Role, role_css

Kind: TypeAlias = Literal["same", "changed", "moved", "added", "removed"]
CONTEXT_LINES = 3  # shown around each difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One line of one of the two texts: a label in front of it, and the text.

    `role` colours the first word of the text in a page.
    """

    label: str
    text: str
    role: Role = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One row. `left` is None for what was added, `right` for what was removed."""

    kind: Kind
    left: Side | None = None
    right: Side | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading(View):
    """A line above what follows. `level` 1 is the largest; `tone` good or bad colours it."""

    words: str
    level: int = 2
    tone: Literal["plain", "good", "bad"] = "plain"

    def text(self, *, width: int = TEXT_COLUMNS, color: bool = False) -> str:
        del width
        ink = {"plain": "1", "good": "1;32", "bad": "1;31"}[self.tone]
        return f"\x1b[{ink}m{self.words}\x1b[0m" if color else self.words

    def html(self) -> str:
        ink = {
            "plain": "currentColor",
            "good": "light-dark(#1a7f37,#3fb950)",
            "bad": "light-dark(#bf3989,#f778ba)",
        }[self.tone]
        bar = f"border-left:4px solid {ink};padding-left:12px" if self.tone != "plain" else ""
        size, below = max(13, 20 - 2 * self.level), 4 if self.level > 2 else 12
        style = f"font:600 {size}px/1.5 system-ui,sans-serif;margin:0 0 {below}px;{bar}"
        return f'<h{self.level} style="{style}">{escape(self.words)}</h{self.level}>'

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True, slots=True)
class Beside(View):
    """Views beside each other on a page that is wide enough; below each other in text."""

    parts: tuple[View, ...]

    def text(self, *, width: int = TEXT_COLUMNS, color: bool = False) -> str:
        return "\n\n".join(part.text(width=width, color=color) for part in self.parts)

    def html(self) -> str:
        inner = "".join(f"<div>{part.html()}</div>" for part in self.parts)
        return f'<div style="display:flex;flex-wrap:wrap;gap:16px 48px">{inner}</div>'

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded(View):
    """A view behind a line of words that opens it.

    On a page it begins closed, or `opened`. Text shows it open, unless `instead` says what stands
    there in its place.
    """

    words: str
    inner: View
    opened: bool = False
    instead: str = ""

    def text(self, *, width: int = TEXT_COLUMNS, color: bool = False) -> str:
        return self.instead or self.inner.text(width=width, color=color)

    def html(self) -> str:
        style = "cursor:pointer;font:600 13px system-ui,sans-serif;margin:12px 0"
        summary = f'<summary style="{style}">{escape(self.words)}</summary>'
        return f"<details{' open' * self.opened}>{summary}{self.inner.html()}</details>"

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(View):
    """The rows, with a title and the name of each side."""

    title: str
    left: str
    right: str
    rows: tuple[Pair, ...]
    context: int = CONTEXT_LINES

    def text(self, *, width: int = TEXT_COLUMNS, color: bool = False) -> str:
        lines = [f"\x1b[1m{self.title}\x1b[0m" if color else self.title]
        for run in _runs(self.rows, self.context):
            if isinstance(run, _Fold):
                lines.append(
                    _ink(f"      ... {count(len(run.rows), 'line')} the same", "same", color)
                )
            else:
                lines += [line for row in run for line in _text_lines(row, width, color)]
        return "\n".join(lines)

    def html(self) -> str:
        parts = [_STYLE, '<div class="pg-diff">', f"<h3>{escape(self.title)}</h3>"]
        parts.append(_html_row("head", ("", escape(self.left)), ("", escape(self.right)), "", ""))
        for run in _runs(self.rows, self.context):
            if isinstance(run, _Fold):
                inner = "".join(map(_html_pair, run.rows))
                label = count(len(run.rows), "line")
                parts.append(f"<details><summary>{label} the same</summary>{inner}</details>")
            else:
                parts += map(_html_pair, run)
        return "".join([*parts, "</div>"])

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True, slots=True)
class _Fold:
    rows: tuple[Pair, ...]


def _runs(rows: Sequence[Pair], context: int) -> Iterator[tuple[Pair, ...] | _Fold]:
    """Rows near a difference, and folds of those that are not."""
    near = [False] * len(rows)
    for at, row in enumerate(rows):
        if row.kind != "same":
            for n in range(max(0, at - context), min(len(rows), at + context + 1)):
                near[n] = True
    start = 0
    for at in range(1, len(rows) + 1):
        if at == len(rows) or near[at] != near[start]:
            run = tuple(rows[start:at])
            yield run if near[start] else _Fold(run)
            start = at


# --- text ----------------------------------------------------------------------------------------

_INK = {"same": "2", "changed": "33", "moved": "36", "added": "32", "removed": "31"}
_MARKS = {"same": ("", " "), "changed": ("-", "+"), "moved": ("<", ">"),
          "added": ("", "+"), "removed": ("-", "")}  # fmt: skip


def _ink(text: str, kind: Kind, color: bool) -> str:
    return f"\x1b[{_INK[kind]}m{text}\x1b[0m" if color else text


def _text_lines(row: Pair, width: int, color: bool) -> Iterator[str]:
    left, right = _MARKS[row.kind]
    sides = [(left, row.left), (right, row.right)]
    shown = [(mark, side) for mark, side in sides if side is not None and mark]
    for at, (mark, side) in enumerate(shown):
        line = f"  {mark} {side.label:>6}  {side.text}"
        if row.note and at == len(shown) - 1:
            line = f"{line:<{min(width, 78)}}  {row.note}"
        yield _ink(line.rstrip(), row.kind, color)


# --- HTML ----------------------------------------------------------------------------------------

# light-dark() follows the page's color-scheme, that is the reader's setting.
_RULES = """
.pg-diff{font:12px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;border:1px solid
light-dark(#d1d9e0,#3d444d);border-radius:6px;overflow:hidden;margin:0 0 16px}
.pg-diff h3{font:600 13px system-ui,sans-serif;margin:0;padding:7px 12px;
background:light-dark(#f6f8fa,#1c2128);border-bottom:1px solid light-dark(#d1d9e0,#3d444d)}
.pg-diff .r{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr) 21ch}
.pg-diff .r>*{padding:0 8px;white-space:pre-wrap;overflow-wrap:anywhere}
.pg-diff .c{padding-left:calc(7ch + 8px)!important;text-indent:-7ch}
.pg-diff .c i{font-style:normal;opacity:.55;display:inline-block;width:7ch;text-indent:0}
.pg-diff .head{font-weight:600;border-bottom:1px solid light-dark(#d1d9e0,#3d444d)}
.pg-diff .n{font-family:system-ui,sans-serif;font-size:11px;line-height:1.65;opacity:.75}
.pg-diff .removed .a,.pg-diff .changed .a{background:light-dark(#ffebe9,#3c1618)}
.pg-diff .added .b,.pg-diff .changed .b{background:light-dark(#dafbe1,#12311c)}
.pg-diff .moved .full{background:light-dark(#ddf4ff,#11263d)}
.pg-diff .none{background:light-dark(#f6f8fa80,#1c212880)}
.pg-diff summary{cursor:pointer;padding:1px 12px;font:11px/1.7 system-ui,sans-serif;opacity:.8;
background:light-dark(#f0f4f8,#20262e)}
"""
_STYLE = f"<style>{_RULES}{role_css('.pg-diff')}</style>"


def _html_pair(row: Pair) -> str:
    return _html_row(row.kind, _html_side(row.left), _html_side(row.right), row.note, "full")


def _html_side(side: Side | None) -> tuple[str, str] | None:
    if side is None:
        return None
    text = escape(side.text)
    if side.role:
        before, word, after = _first_word(text)
        text = f'{before}<span class="{side.role}">{word}</span>{after}'
    return side.label, text


def _first_word(text: str) -> tuple[str, str, str]:
    """Split off the first word that is no predicate."""
    start = text.find(" ") + 1 if text.startswith("@") else 0
    end = text.find(" ", start)
    end = len(text) if end < 0 else end
    return text[:start], text[start:end], text[end:]


def _html_row(
    kind: str, left: tuple[str, str] | None, right: tuple[str, str] | None, note: str, full: str
) -> str:
    def cell(side: tuple[str, str] | None, name: str) -> str:
        if side is None:
            return f'<div class="{name} none"></div>'
        label, text = side
        return f'<div class="{name} c {full}"><i>{escape(label)}</i>{text}</div>'

    return (
        f'<div class="r {kind}">{cell(left, "a")}{cell(right, "b")}'
        f'<div class="n">{escape(note)}</div></div>'
    )
