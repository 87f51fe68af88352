"""Runs a notebook as its kernel would, cell by cell, in this process.

A cell is plain Python (no magics). The value of a last line that is an expression is shown: what it
offers a notebook is asked for, as IPython does.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Ran:
    """What running gave: all names at the end, what each code cell showed and printed."""

    names: dict[str, Any] = field(default_factory=dict)
    shown: list[Mapping[str, str]] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)


def load(path: Path) -> list[dict[str, Any]]:
    """The cells, as the file has them."""
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return cells


def code_cells(path: Path) -> list[str]:
    """The text of every code cell."""
    return ["".join(cell["source"]) for cell in load(path) if cell["cell_type"] == "code"]


def run_notebook(path: Path) -> Ran:
    """Run every code cell in one namespace. What a cell raises names the cell."""
    ran = Ran(names={"__name__": "__main__"})
    for number, code in enumerate(code_cells(path), 1):
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                ran.shown.append(_run(code, f"<code cell {number}>", ran.names))
        except Exception as error:
            error.add_note(f"in code cell {number} of {path.name}:\n{code}")
            raise
        ran.printed.append(printed.getvalue())
    return ran


def _run(code: str, name: str, names: dict[str, Any]) -> Mapping[str, str]:
    """Run one cell; the representations of its last expression, none if it has no value."""
    body = ast.parse(code, name).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, type_ignores=[]), name, "exec"), names)
    if last is None:
        return {}
    value = eval(compile(ast.Expression(last.value), name, "eval"), names)
    return {} if value is None else representations(value)


def representations(value: Any) -> Mapping[str, str]:
    """By media type, what a notebook would be given."""
    bundle = getattr(value, "_repr_mimebundle_", None)
    return {"text/plain": repr(value)} if bundle is None else bundle()
