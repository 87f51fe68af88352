"""Views of `ptxgen.view` on their way out: to a terminal or a pipe, or into a file."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from rich.text import Text

from ptxgen.errors import ArgumentError, Violation
from ptxgen.view import Grid, View, page
from ptxgen.view.base import TEXT_COLUMNS


def rich_text(view: View) -> Text:
    """The view as rich text: coloured and fitted to a terminal, plain in a pipe."""
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size((TEXT_COLUMNS, 40)).columns if terminal else TEXT_COLUMNS
    return Text.from_ansi(view.text(width=width, color=terminal))


def save(view: View, path: Path, title: str) -> None:
    """Write the view as a page (.html), as a drawing (.svg, one grid only) or as text (.txt).

    Raises ArgumentError for another suffix, or for a drawing of what is more than one grid.
    """
    match path.suffix:
        case ".html":
            text = page(view, title)
        case ".svg" if isinstance(view, Grid):
            text = view.svg()
        case ".txt":
            text = view.text() + "\n"
        case _:
            drawing = ".svg, " if isinstance(view, Grid) else ""
            raise unwritable(path, f".html, {drawing}.txt")
    path.write_text(text, encoding="utf-8")


def unwritable(path: Path, suffixes: str) -> ArgumentError:
    """The refusal of a file name."""
    return ArgumentError(
        "cannot write this kind of file",
        [
            Violation(
                field="--output",
                got=str(path),
                rule=f"the name must end in one of {suffixes}",
                why="the suffix says what to write",
            )
        ],
    )
