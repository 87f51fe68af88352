"""Tiers of tests, as pytest hooks for conftest.py.

Every test carries the marker of one tier. A tier whose tools are missing skips and says why; in
continuous integration (CI=true) that is an error, and so is a tier that takes half again its share
of the ten minutes that `make test` may take.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import cache

import pytest

# Seconds of wall time on two cores. What has no row here (gpu) has no share.
SHARES = {"unit": 90.0, "asm": 180.0, "emu": 330.0}
TIERS = (*SHARES, "gpu")
TOLERANCE = 1.5


class Tally:
    """What one tier did, summed over all worker processes."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.seconds = 0.0


TALLIES = {tier: Tally() for tier in TIERS}


@cache
def missing(tier: str) -> str:
    """Why a tier cannot run on this machine; empty if it can."""
    from ptxgen.errors import ToolMissing

    if tier == "asm":
        from ptxgen.toolchain import discover

        try:
            discover.ptxas()
            discover.nvdisasm()
        except ToolMissing as error:
            return str(error).splitlines()[0]
    if tier == "gpu":
        from ptxgen.app import machine

        driver = machine.driver()
        if driver.usable_gpu is None:
            return driver.problem or "the driver shows no GPU of compute capability 9.0"
    return ""


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() == "true"


def tier_of(keywords: object) -> str | None:
    return next((tier for tier in TIERS if tier in keywords), None)  # type: ignore[operator]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse tests without a tier; skip those of a tier that this machine cannot run."""
    for item in items:
        tier = next((t for t in TIERS if item.get_closest_marker(t)), None)
        if tier is None:
            raise pytest.UsageError(f"{item.nodeid} has none of the markers {', '.join(TIERS)}")
        reason = missing(tier)
        if reason and tier != "gpu" and in_ci():
            raise pytest.UsageError(f"CI must run the {tier} tier, but: {reason}")
        if reason:
            item.add_marker(pytest.mark.skip(reason=f"{tier} tier: {reason}"))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    tier = tier_of(report.keywords)
    if tier is None:
        return
    TALLIES[tier].seconds += report.duration
    if report.when == "call" or report.outcome != "passed":
        TALLIES[tier].outcomes[report.outcome] += 1


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """The table of tiers. Wall time is the sum over tests, shared among the workers."""
    terminalreporter.section("tiers")
    line = "{:6} {:>7} {:>7} {:>8} {:>9} {:>7}"
    terminalreporter.write_line(
        line.format("tier", "passed", "failed", "skipped", "wall s", "share")
    )
    for tier, tally in TALLIES.items():
        if tally.outcomes:
            share = f"{SHARES[tier]:.0f}" if tier in SHARES else ""
            counts = [tally.outcomes[name] for name in ("passed", "failed", "skipped")]
            terminalreporter.write_line(
                line.format(tier, *counts, f"{_wall(tally, config):.1f}", share)
            )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a tier that takes far more than its share fails the run."""
    if not in_ci() or hasattr(session.config, "workerinput"):
        return
    for tier, share in SHARES.items():
        wall = _wall(TALLIES[tier], session.config)
        if wall > TOLERANCE * share:
            print(f"\nthe {tier} tier took {wall:.0f} s, its share is {share:.0f} s")
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _wall(tally: Tally, config: pytest.Config) -> float:
    return tally.seconds / max(config.getoption("numprocesses", None) or 1, 1)
