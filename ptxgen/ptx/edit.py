"""Change a PTX text through its tree: cut or replace statements, leave every other byte alone.

Line numbers survive: what is cut keeps its line breaks, so that a message about an edited program
still points into the original.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from . import ast


def replace(module: ast.Module, edits: Mapping[ast.Span, str]) -> str:
    """The source of `module` with the text of each span replaced.

    Raises ValueError when spans overlap or lie outside the source.
    """
    pieces: list[str] = []
    position = 0
    for span in sorted(edits):
        if span.start < position or not span.start <= span.end <= len(module.source):
            raise ValueError(f"span {span.start}..{span.end} overlaps another or is out of range")
        old = module.source[span.start : span.end]
        new = edits[span]
        missing = old.count("\n") - new.count("\n")
        pieces += [module.source[position : span.start], new, "\n" * max(missing, 0)]
        position = span.end
    pieces.append(module.source[position:])
    return "".join(pieces)


def remove(module: ast.Module, statements: Iterable[ast.Statement]) -> str:
    """The source of `module` without the given statements."""
    return replace(module, {ast.Span(*s.span): "" for s in statements})
