"""The four columns of the ISA table: how a test tells what it has seen, and the summary at the end.

conftest.py makes this a plugin, since with several workers the process that writes the summary
collects no test, and so reads no conftest.py of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import pytest

from ptxgen.isa.forms import Form

Record: TypeAlias = Callable[[str, object], None]  # pytest's record_property

COLUMNS = {
    "macro": "macro emits",
    "ptxas": "ptxas assembles",
    "emulator": "emulator executes",
    "h200": "H200 agrees",
}


def record(record_property: Record, column: str, form: Form, passed: int) -> None:
    """`passed` cases of the form hold in this column."""
    record_property("isa", (column, form.id, passed))


def summary(properties: Iterable[tuple[str, str, int]], forms: Iterable[Form]) -> list[str]:
    """Lines for the terminal: a column each, with the cases that it holds of all there are."""
    forms = list(forms)
    total = sum(len(form.cases()) for form in forms)
    refused = sum(bool(case.refused) for form in forms for case in form.cases())
    passed: dict[str, dict[str, int]] = {}
    for column, form_id, count in properties:
        passed.setdefault(column, {})[form_id] = count
    lines = [f"{len(forms)} forms, {total:,} cases, of which the emulator refuses {refused}"]
    for column, title in COLUMNS.items():
        seen = passed.get(column, {})
        lines.append(
            f"  {title:<18} {sum(seen.values()):6,} cases of {len(seen)} forms"
            if seen
            else f"  {title:<18} not run"
        )
    return lines


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for group in terminalreporter.stats.values() for report in group]
    seen = [
        value
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == "isa" and report.when == "call"
    ]
    if seen:
        from ptxgen.isa.forms import FORMS

        terminalreporter.section("ISA table")
        for line in summary(seen, FORMS):
            terminalreporter.write_line(line)
