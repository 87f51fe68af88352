"""`ptxgen list`: the kernels and their fields, from the metadata that the parser and errors use."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from ptxgen.app.output import Answer
from ptxgen.configs.base import options, spell
from ptxgen.kernels.registry import FAMILIES, Family


def listing() -> Answer:
    """Every kernel family with its fields."""
    views = [view for family in FAMILIES.values() for view in (*_family(family), Text())]
    hint = Text("A kernel reference: NAME[:key=value,...]   for example ")
    hint.append("ptxgen emit gemm:tile=128x128x64,stages=max", style="bold")
    return Answer(
        data={"kernels": [_family_data(f) for f in FAMILIES.values()]},
        view=Group(*views, hint),
    )


def _rows(family: Family) -> list[dict[str, str]]:
    return [
        {
            "name": name,
            "of": of,
            "default": spell(field.default),
            "legal": field.metadata["legal"],
            "help": field.metadata["help"],
        }
        for of, cls in (("problem", family.problem), ("config", family.config))
        for name, field in options(cls).items()
    ]


def _family_data(family: Family) -> dict[str, object]:
    return {"name": family.name, "summary": family.summary, "fields": _rows(family)}


def _family(family: Family) -> tuple[Text, Table]:
    title = Text.assemble((family.name, "bold cyan"), "  ", family.summary)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("  field", no_wrap=True, style="bold")
    for column in ("default", "legal", "meaning"):
        table.add_column(column)
    for row in _rows(family):
        table.add_row(f"  {row['name']}", row["default"], row["legal"], row["help"])
    return title, table
