"""The four-column summary of the ISA table at the end of a run."""

from __future__ import annotations

import columns
import pytest

from ptxgen.isa.forms import FORMS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for group in terminalreporter.stats.values() for report in group]
    seen = [
        value
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == "isa" and report.when == "call"
    ]
    if seen:
        terminalreporter.section("ISA table")
        for line in columns.summary(seen, FORMS):
            terminalreporter.write_line(line)
