"""SVG of a grid. Inline SVG uses `currentColor`, so it follows the page it stands in."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from ptxgen.view.palette import Tone, colours

if TYPE_CHECKING:
    from ptxgen.view.grid import Grid

FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
TEXT_SIZE, TITLE_SIZE = 11, 12  # px
CHARACTER = 6.7  # px of one character of text, rounded up over common monospace fonts
HEIGHT = 20  # px of a cell
LINE = 17  # px of a line of text
MARGIN = 10
INLINE_MARGIN = 1  # a page has margins of its own
_STANDALONE = (
    "<style>svg{color:#1b1f24;background:#fff}"
    "@media(prefers-color-scheme:dark){svg{color:#e6e9ee;background:#14171b}}</style>"
)


def draw(grid: Grid, *, standalone: bool) -> str:
    """The SVG document or fragment of a grid."""
    margin = MARGIN if standalone else INLINE_MARGIN
    cell_width = round(max(grid.characters * CHARACTER + 8, 14))
    labels = max(map(len, (*grid.row_labels, grid.corner)), default=0)
    left = margin + (round(labels * CHARACTER) + 8 if labels else 0)
    parts: list[str] = []
    y = margin
    if grid.title:
        parts.append(_text(margin, y + 12, grid.title, weight="bold", size=TITLE_SIZE))
        y += LINE + 4
    if grid.column_labels:
        parts.append(_text(left - 8, y + 11, grid.corner, anchor="end", opacity=0.7))
        for i, label in enumerate(grid.column_labels):
            x = left + (i + 0.5) * cell_width
            parts.append(_text(x, y + 11, label, anchor="middle", opacity=0.7))
        y += LINE
    for i, row in enumerate(grid.rows):
        if grid.row_labels:
            parts.append(_text(left - 8, y + 14, grid.row_labels[i], anchor="end", opacity=0.7))
        x = left
        for cell in row:
            width = cell_width * cell.span
            parts += _cell(x, y, width, grid.cut(cell), cell.tone, cell.tip)
            x += width
        y += HEIGHT
    y += 8
    width = left + cell_width * grid.columns + margin
    if grid.legend:
        legend, legend_right, y = _legend(grid, margin, y, width)
        parts += legend
        width = max(width, legend_right)
    for note in grid.notes:
        parts.append(_text(margin, y + 12, note, opacity=0.85))
        y += LINE
    longest = max(map(len, grid.notes), default=0) * CHARACTER
    longest = max(longest, len(grid.title) * CHARACTER * TITLE_SIZE / TEXT_SIZE)
    width = max(width, round(longest) + 2 * margin)
    return _document(width, y + margin, grid.title, parts, standalone)


def _document(width: int, height: int, title: str, parts: list[str], standalone: bool) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}" '
        f'font-family="{FONT}" font-size="{TEXT_SIZE}" fill="currentColor">\n'
        f"{_STANDALONE if standalone else ''}{body}\n</svg>"
    )


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    weight: str = "normal",
    size: int = TEXT_SIZE,
    opacity: float = 1.0,
    ink: str = "currentColor",
) -> str:
    if not text:
        return ""
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-weight="{weight}" '
        f'font-size="{size}" opacity="{opacity:g}" fill="{ink}" xml:space="preserve">'
        f"{escape(text)}</text>"
    )


def _cell(x: float, y: float, width: float, label: str, tone: Tone, tip: str) -> Iterator[str]:
    pair = colours(tone)
    title = f"<title>{escape(tip)}</title>" if tip else ""
    # A fill of "none" catches no pointer, so a plain cell with a tip asks for all of its area.
    events = ' pointer-events="all"' if tip else ""
    yield (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{HEIGHT}" fill="{pair.fill}" '
        f'fill-opacity="{pair.opacity:g}" stroke="#808080" stroke-opacity=".55" '
        f'stroke-width=".7"{events}>{title}</rect>'
    )
    if label:
        yield _text(x + width / 2, y + 14, label, anchor="middle", ink=pair.ink).replace(
            "<text ", '<text pointer-events="none" '
        )


def _legend(grid: Grid, margin: int, y: int, width: int) -> tuple[list[str], int, int]:
    """The swatches in rows no wider than the drawing; their right edge; the next free y."""
    parts: list[str] = []
    x, right = margin, 0
    for cell in grid.legend:
        each = round(len(cell.label) * CHARACTER) + 16
        if x > margin and x + each > max(width, 600):
            x, y = margin, y + HEIGHT + 3
        parts += _cell(x, y, each, cell.label, cell.tone, cell.tip)
        x += each + 6
        right = max(right, x + margin)
    return parts, right, y + HEIGHT + 8
