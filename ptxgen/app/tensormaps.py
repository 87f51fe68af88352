"""`ptxgen layout tensormap`: our tensor-map rules and encoder against a driver's answers."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from ptxgen.app.output import Answer
from ptxgen.layout.tensor_map import compare_with_driver


def compare(path: Path) -> Answer:
    """Ask ourselves every question that the file's driver was asked."""
    comparison = compare_with_driver(path)
    return Answer(
        data={
            "path": comparison.path,
            "driver": comparison.driver,
            "rows": comparison.rows,
            "accepted": comparison.accepted,
            "refused": comparison.refused,
            "reasons": comparison.reasons,
            "disagreements": comparison.disagreements,
        },
        view=Text(str(comparison)),
        ok=comparison.ok,
    )
