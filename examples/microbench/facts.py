"""Render the measured part of FACTS.md from the record.

    PYTHONPATH=. python examples/microbench/facts.py

Text outside the two markers is left alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
RECORD = HERE.parent / "results" / "microbench.jsonl"
DOCUMENT = HERE / "FACTS.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
HEAD = "# Facts of the H200 that no manual states\n"
Row = Mapping[str, object]


def render(rows: Sequence[Row]) -> str:
    """A section a fact, in the order of the record."""
    parts = [_where(rows)]
    for row in rows:
        script = str(row["script"]).rpartition("/")[2]
        parts.append(f"### {row['fact']}\n\n{row.get('question', '')}\n")
        parts.append(f"{str(row['finding']).strip()}.\n")
        if "emulator" in row:
            parts.append(f"Emulator: {row['emulator']}.\n")
        parts.append(f"Measured by [{script}]({script}) on {str(row['date'])[:10]}.\n")
    return "\n".join(parts)


def _where(rows: Sequence[Row]) -> str:
    places = {f"{row['device']}, driver {row['driver']}" for row in rows}
    return (
        f"Measured on {' and '.join(sorted(places))}, by `run_all.py`; all numbers are in "
        "`examples/results/microbench.jsonl`.\n"
    )


def placed(document: str, measured: str) -> str:
    """The document with a new text between the markers; they are added where there are none."""
    block = f"{BEGIN}\n\n{measured}\n{END}"
    if BEGIN not in document:
        return f"{document.rstrip()}\n\n{block}\n".lstrip()
    before, _, rest = document.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"{DOCUMENT.name} has {BEGIN} without {END}")
    return f"{before}{block}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, default=RECORD)
    parser.add_argument("--document", type=Path, default=DOCUMENT)
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.record.read_text("utf-8").splitlines() if line]
    old = options.document.read_text("utf-8") if options.document.exists() else HEAD
    options.document.write_text(placed(old, render(rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
