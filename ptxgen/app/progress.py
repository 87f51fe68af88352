"""Progress of what takes long: a bar on a terminal, nothing anywhere else.

    for case in track(cases, "measuring"):
        ...

The bar is drawn on stderr and wiped when the loop ends, so that stdout holds results alone. What is
printed meanwhile stands above the bar. It moves between two items and never beside one, so that it
takes no time from what is being measured.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

T = TypeVar("T")


def track(items: Iterable[T], what: str, *, total: int | None = None) -> Iterator[T]:
    """The items, one by one; a terminal shows how many are done and how long the rest may take.

    `total` is how many there are, where `items` cannot say so; without either the bar only moves.
    """
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    count = len(items) if total is None and isinstance(items, Sized) else total
    bar = Progress(
        *columns,
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
        redirect_stdout=sys.stdout.isatty(),  # a pipe gets its lines as they are
    )
    with bar as progress:
        yield from progress.track(items, total=count, description=what)
