"""How an answer leaves the program: drawn on a terminal, plain in a pipe, JSON with --json.

    exit 0   it worked, and what was checked holds
    exit 1   a check failed, or an error of `ptxgen.errors`: its message on stderr, no traceback
    exit 2   the command line itself is wrong (or, from `check`, the emulator cannot run a program)

With --json stdout holds one JSON object and nothing else; "ok" in it says what the exit code says.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.text import Text

from ptxgen.errors import PtxgenError

PIPE_COLUMNS = 1_000  # nothing is wrapped for a reader that is a program


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command found: as data for --json, and as something that rich can draw.

    `failure` is the exit code when it is not `ok`.
    """

    data: Mapping[str, object]
    view: RenderableType
    ok: bool = True
    failure: int = 1


def deliver(make: Callable[[], Answer], *, as_json: bool) -> int:
    """Make an answer, print it, and return the exit code."""
    try:
        answer = make()
    except (PtxgenError, OSError) as error:
        return _fail(error, as_json=as_json)
    if as_json:
        _print_json({"ok": answer.ok, **answer.data})
    else:
        draw(answer.view)
    return 0 if answer.ok else answer.failure


def draw(view: RenderableType) -> None:
    """Print on stdout: styled and fitted to a terminal, or plain and never wrapped in a pipe.

    Bare `Text` is not wrapped on a terminal either, so that code can be copied from it.
    """
    console = Console(highlight=False, emoji=False)
    if console.is_terminal:
        console.print(view, soft_wrap=isinstance(view, Text), crop=False)
        return
    if isinstance(view, Text):
        sys.stdout.write(view.plain if view.plain.endswith("\n") else view.plain + "\n")
        return
    console = Console(width=PIPE_COLUMNS, color_system=None, highlight=False, emoji=False)
    with console.capture() as captured:
        console.print(view)
    for line in captured.get().splitlines():
        sys.stdout.write(line.rstrip() + "\n")


def note(text: str) -> None:
    """Say something beside the answer, on stderr."""
    print(text, file=sys.stderr)


def plain(value: object) -> Any:
    """Data that strict JSON can hold: tuples as lists; paths, NaN, inf and all else as text."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float) and isfinite(value):
        return value
    return str(value)


def _print_json(data: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps(plain(data), indent=2, allow_nan=False) + "\n")


def _fail(error: PtxgenError | OSError, *, as_json: bool) -> int:
    if isinstance(error, OSError):
        kind, message = "OSError", _os_message(error)
    else:
        kind, message = type(error).__name__, str(error)
    note(f"{kind}: {message}")
    if as_json:
        details = getattr(error, "violations", ())
        body = {"type": kind, "message": message, "violations": details}
        _print_json({"ok": False, "error": body})
    return 1


def _os_message(error: OSError) -> str:
    where = f"{Path(str(error.filename))}: " if error.filename else ""
    return where + (error.strerror or str(error))


def show_warnings_plainly() -> None:
    """From here on a warning is what it says on stderr, not which line of ours said it."""
    warnings.showwarning = _show_warning


def _show_warning(
    message: Warning | str, category: type[Warning], *_where: object, **_how: object
) -> None:
    note(f"{category.__name__}: {message}")
