"""Grids: labelled cells in rows and columns, drawn as text or as SVG.

A cell may span several columns. In text a grid wider than the page is cut into panels of whole
columns, each with its own headings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ptxgen.view.base import TEXT_COLUMNS, View
from ptxgen.view.palette import Tone, ansi
from ptxgen.view.svg import draw


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell: what stands in it, what its colour says, and what a pointer over it shows."""

    label: str = ""
    tone: Tone = "plain"
    tip: str = ""
    span: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid(View):
    """A drawing of cells. Every row's spans add up to the number of columns.

    `corner` names the row labels. `legend` cells explain tones; `notes` are lines below. Labels
    longer than `clip` characters a column are cut in text and SVG (0: the widest label decides).
    Panels of text hold whole groups of `group` columns where they can.
    """

    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    row_labels: tuple[str, ...] = ()
    column_labels: tuple[str, ...] = ()
    corner: str = ""
    legend: tuple[Cell, ...] = ()
    notes: tuple[str, ...] = ()
    clip: int = 0
    group: int = 1

    def __post_init__(self) -> None:
        for row in self.rows:
            if sum(cell.span for cell in row) != self.columns:
                raise ValueError(f"a row of {self.title!r} does not fill {self.columns} columns")
        if self.row_labels and len(self.row_labels) != len(self.rows):
            raise ValueError(f"{len(self.row_labels)} labels for {len(self.rows)} rows")
        if self.column_labels and len(self.column_labels) != self.columns:
            raise ValueError(f"{len(self.column_labels)} labels for {self.columns} columns")

    @property
    def columns(self) -> int:
        """Number of columns."""
        return sum(cell.span for cell in self.rows[0]) if self.rows else len(self.column_labels)

    @property
    def characters(self) -> int:
        """Characters of one column: enough for every label, or `clip`."""
        wide = [-(-len(cell.label) // cell.span) for row in self.rows for cell in row]
        wide += [len(label) for label in self.column_labels]
        return max(self.clip or max(wide, default=1), 1)

    def cut(self, cell: Cell) -> str:
        """A cell's label, cut to the room it has."""
        return cell.label[: self.characters * cell.span + cell.span - 1]

    # -- text --------------------------------------------------------------------------------------

    def text(self, *, width: int = TEXT_COLUMNS, color: bool = False) -> str:
        margin = max(map(len, (*self.row_labels, self.corner)), default=0)
        each = self.characters + 1
        per_panel = max((width - margin - 1) // each, 1)
        per_panel = (
            max(per_panel // self.group * self.group, 1) if per_panel >= self.group else per_panel
        )
        lines = [self.title] if self.title else []
        for first in range(0, self.columns, per_panel):
            last = min(first + per_panel, self.columns)
            if first:
                lines.append("")
            lines += self._panel(first, last, margin, color)
        if self.legend:
            swatches = (ansi(f" {c.label} ", c.tone) if color else c.label for c in self.legend)
            lines.append(("  " if color else ", ").join(swatches))
        return "\n".join([*(line.rstrip() for line in lines), *self.notes])

    def _panel(self, first: int, last: int, margin: int, color: bool) -> Iterator[str]:
        each = self.characters + 1
        if self.column_labels:
            labels = "".join(
                label[: each - 1].center(each - 1) + " " for label in self.column_labels[first:last]
            )
            yield f"{self.corner:{margin}} {labels}"
        for i, row in enumerate(self.rows):
            head = self.row_labels[i] if self.row_labels else ""
            parts = []
            for cell in _clip(row, first, last):
                body = _body(self.cut(cell), each * cell.span - 1, cell)
                parts.append(ansi(body, cell.tone) if color else body)
            yield f"{head:{margin}} " + " ".join(parts)

    # -- pictures ----------------------------------------------------------------------------------

    def svg(self, *, standalone: bool = True) -> str:
        """The drawing as SVG.

        Standalone it brings a background, light or dark as the viewer prefers; inline it takes the
        text colour of the page around it.
        """
        return draw(self, standalone=standalone)

    def html(self) -> str:
        return f'<div style="overflow-x:auto">{self.svg(standalone=False)}</div>'

    def _repr_svg_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        return self.text()


def _body(label: str, width: int, cell: Cell) -> str:
    """The characters of a cell. Spans are fenced, so that they can be told apart without colour."""
    if cell.span == 1:
        return label.center(width)
    return "|" + label.center(width - 1, "." if cell.tone == "muted" else " ")


def _clip(row: tuple[Cell, ...], first: int, last: int) -> Iterator[Cell]:
    """The cells of columns first..last-1; a cell on the border is cut and keeps its label."""
    at = 0
    for cell in row:
        span = min(at + cell.span, last) - max(at, first)
        if span > 0:
            yield replace(cell, span=span)
        at += cell.span
