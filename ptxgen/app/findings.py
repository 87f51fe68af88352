"""Findings as text: the shape in which every command prints them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ptxgen.errors import Finding


def explain(
    finding: Finding,
    ptx: str,
    names: Mapping[str, str],
    where: Callable[[int], str] = lambda line: "",
) -> str:
    """A finding with its PTX lines: code and message, the lines, who, why, and the cure.

    Parameters go by the names that the caller gave them. `where` names the template line behind a
    PTX line.
    """

    def named(text: str) -> str:
        return re.sub(r"[\w$]+", lambda word: names.get(word[0], word[0]), text)

    rows = []
    for n in finding.lines:
        rows += [(f"line {n}", line_of(ptx, n)), ("from", where(n))]
    rows += [
        ("in", finding.where),
        ("bytes", named(finding.bytes_)),
        ("why", finding.reason),
        ("cure", finding.cure),
        ("PTX ISA", finding.isa),
    ]
    rows = [(name, text) for name, text in rows if text]
    width = max((len(name) for name, _ in rows), default=0)
    head = f"{finding.severity} {finding.code}: {named(finding.message)}"
    return "\n".join([head, *(f"  {name:{width}}  {text}" for name, text in rows)])


def line_of(ptx: str, number: int) -> str:
    """One line of the PTX, without its indentation."""
    lines = ptx.splitlines()
    return " ".join(lines[number - 1].split()) if 0 < number <= len(lines) else ""
