"""Fields of problems and configs as tables."""

from __future__ import annotations

from collections.abc import Mapping

from ptxgen.configs.base import options, spell
from ptxgen.kernels.base import KernelSource
from ptxgen.view import Row, Table


def named_values(values: Mapping[str, object]) -> Table:
    """Names and values, spelled as in a kernel reference."""
    return Table(
        columns=("", ""),
        rows=tuple(Row((name, spell(value))) for name, value in values.items()),
        left=frozenset({0, 1}),
    )


def fields_table(source: KernelSource) -> Table:
    """One row of all fields of a kernel, derived ones filled in."""
    values = {
        name: spell(getattr(part, name))
        for part in (source.problem, source.resolved)
        for name in options(type(part))
    }
    columns = tuple(values)
    return Table(
        columns=columns, rows=(Row(tuple(values.values())),), left=frozenset(range(len(columns)))
    )
