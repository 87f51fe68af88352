"""Every rule has twins: the bad program is caught with all that its finding should say, the good
one, which differs by a few lines, is silent under every mode. `ptxgen.isa.twins` has the layout."""

from __future__ import annotations

from functools import cache

import pytest
from hazard_runs import check, one, options, unchecked

from ptxgen.app.check_many import plan
from ptxgen.app.sweep import MODES
from ptxgen.isa import twins
from ptxgen.isa.rules import RULES

pytestmark = pytest.mark.emu

SEEDS = 3  # a mode: one round robin, one random, one by priorities
MOST_LINES = 10  # that differ between twins: a move, or an exchange of names
read = cache(twins.read)


def test_every_rule_has_twins_and_they_follow_the_table() -> None:
    assert {path.stem for path in twins.FOLDER.glob("*.ptx")} == set(RULES)
    assert {code: read(code).title for code in RULES} == {r.code: r.title for r in RULES.values()}


@pytest.mark.parametrize("code", RULES)
def test_twins_differ_by_a_few_lines(code: str) -> None:
    pair = read(code)
    changes = [row for row in pair.difference if row.startswith(("+", "-"))]
    assert 1 <= len(changes) <= MOST_LINES
    assert pair.good != pair.bad


@pytest.mark.parametrize("code", RULES)
def test_the_bad_twin_is_caught(code: str) -> None:
    pair, rule = read(code), RULES[code]
    found = check(code, pair.bad, pair.options)
    finding = one(found)
    assert found.verdict == ("fail" if rule.severity == "error" else "pass")
    assert (finding.code, finding.severity) == (code, rule.severity)
    assert finding.lines == pair.lines
    assert finding.bytes_ == pair.says.get("bytes", "")
    assert finding.cure == pair.says.get("cure", rule.cure)
    assert finding.message
    assert finding.reason
    assert rule.when == "lint" or code == "deadlock" or finding.where


@pytest.mark.parametrize("code", [c for c, rule in RULES.items() if rule.when != "lint"])
@pytest.mark.parametrize("mode", MODES)
def test_the_bad_twin_passes_under_no_schedule(code: str, mode: str) -> None:
    """Another rule may come first under another schedule: what is not initialised yet is not yet
    unordered. But somebody always says something, and it does not depend on luck."""
    pair = read(code)
    for seed in range(SEEDS):
        turns = ("round_robin", "random", "priority")[seed]
        found = check(code, pair.bad, pair.options, mode=None, replay=f"{mode}:{turns}:{seed}")
        assert found.findings or found.advice


@pytest.mark.parametrize("code", RULES)
def test_the_good_twin_is_silent(code: str) -> None:
    pair = read(code)
    found = check(code, pair.good, pair.options, mode=None, seeds=SEEDS)
    assert found.verdict == "pass", found.findings
    assert found.advice == ()
    assert found.runs == SEEDS * len(MODES)


@pytest.mark.parametrize("code", [c for c, rule in RULES.items() if rule.when == "always"])
def test_rules_that_always_hold_need_no_checks(code: str) -> None:
    pair = read(code)
    schedule = plan(options(pair.options))[0]
    assert [f.code for f in unchecked(pair.bad, pair.options, schedule)] == [code]
    assert unchecked(pair.good, pair.options, schedule) == ()


@pytest.mark.parametrize("code", [c for c, rule in RULES.items() if rule.when == "checked"])
def test_rules_of_checked_runs_are_theirs_alone(code: str) -> None:
    """Without checks the same code is never given: `when` says who finds it."""
    pair = read(code)
    schedule = plan(options(pair.options))[0]
    assert code not in [f.code for f in unchecked(pair.bad, pair.options, schedule)]
