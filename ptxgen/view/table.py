"""Tables: named columns, rows that may carry a tone and a remark, notes below."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from ptxgen.view.base import TEXT_COLUMNS, View
from ptxgen.view.palette import Tone, ansi, colours

_CELL = "padding:2px 12px 2px 0;white-space:pre"
_RULE = "border-bottom:1px solid rgba(128,128,128,.5)"


@dataclass(frozen=True, slots=True)
class Row:
    """One row: a text for each column, and a remark after the last one."""

    cells: tuple[str, ...]
    remark: str = ""
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(View):
    """A table. Columns whose index is in `left` hold words; the others numbers, set right."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    title: str = ""
    left: frozenset[int] = frozenset({0})
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                raise ValueError(f"{len(row.cells)} cells in {len(self.columns)} columns: {row}")

    def text(self, *, width: int = TEXT_COLUMNS, color: bool = False) -> str:
        del width  # a table is never cut
        widths = [max(map(len, column)) for column in zip(*self._grid(), strict=True)]
        lines = [self.title] if self.title else []
        if any(self.columns):
            lines.append(self._line(self.columns, widths).rstrip())
        for row in self.rows:
            line = self._line(row.cells, widths)
            if row.remark:
                line = f"{line}  {row.remark}"
            line = line.rstrip()
            lines.append(ansi(line, row.tone) if color else line)
        return "\n".join([*lines, *self.notes])

    def html(self) -> str:
        head = "".join(self._cell("th", i, name, _RULE) for i, name in enumerate(self.columns))
        thead = f"<thead><tr>{head}<th></th></tr></thead>" if any(self.columns) else ""
        body = []
        for row in self.rows:
            pair = colours(row.tone)
            # A plain row says so: the stripes of a notebook's tables would look like a tone.
            fill = "transparent" if row.tone == "plain" else _css_fill(row.tone)
            cells = "".join(self._cell("td", i, text) for i, text in enumerate(row.cells))
            cells += f'<td style="text-align:left;{_CELL}">{escape(row.remark)}</td>'
            body.append(f'<tr style="background:{fill};color:{pair.ink}">{cells}</tr>')
        title = f"<div><b>{escape(self.title)}</b></div>" if self.title else ""
        notes = "".join(f'<div style="opacity:.8">{escape(note)}</div>' for note in self.notes)
        return (
            '<div style="font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px">'
            f'{title}<table style="border-collapse:collapse;color:inherit">'
            f"{thead}<tbody>{''.join(body)}</tbody></table>"
            f"{notes}</div>"
        )

    def __str__(self) -> str:
        return self.text()

    def _grid(self) -> list[tuple[str, ...]]:
        return [self.columns, *(row.cells for row in self.rows)]

    def _line(self, cells: tuple[str, ...], widths: list[int]) -> str:
        return "  ".join(
            cell.ljust(w) if i in self.left else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(cells, widths, strict=True))
        )

    def _cell(self, tag: str, index: int, text: str, more: str = "") -> str:
        align = "left" if index in self.left else "right"
        return f'<{tag} style="text-align:{align};{_CELL};{more}">{escape(text)}</{tag}>'


def _css_fill(tone: Tone) -> str:
    pair = colours(tone)
    if pair.opacity == 1.0:
        return pair.fill
    red, green, blue = (int(pair.fill[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{pair.opacity})"
