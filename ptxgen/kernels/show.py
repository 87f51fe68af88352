"""Fields of problems and configs as tables."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill

from ptxgen.configs.base import options, spell
from ptxgen.kernels.base import KernelSource
from ptxgen.view import Row, Table, View
from ptxgen.view.lexical import plain

_COLUMNS = 96


def named_values(values: Mapping[str, object]) -> Table:
    """Names and values, spelled as in a kernel reference."""
    return Table(
        columns=("", ""),
        rows=tuple(Row((name, spell(value))) for name, value in values.items()),
        left=frozenset({0, 1}),
    )


def fields_of(source: KernelSource) -> View:
    """All fields of a kernel, derived ones filled in, a few lines of `name=value`."""
    fields = [
        f"{name}={spell(getattr(part, name))}"
        for part in (source.problem, source.resolved)
        for name in options(type(part))
    ]
    return plain(fill("  ".join(fields), _COLUMNS, break_on_hyphens=False))
