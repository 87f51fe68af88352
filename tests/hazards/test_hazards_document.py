"""HAZARDS.md is what the table and the twins make of it."""

from __future__ import annotations

import pytest

from ptxgen.isa import twins
from ptxgen.isa.hazards import ROOT, document
from ptxgen.isa.rules import CHAPTERS, RULES

pytestmark = pytest.mark.unit


def test_document_is_in_sync() -> None:
    """Run `python -m ptxgen.isa.hazards` after changing a rule or its twins."""
    assert (ROOT / "HAZARDS.md").read_text(encoding="utf-8") == document(CHAPTERS)


def test_every_rule_stands_once_and_says_everything() -> None:
    codes = [rule.code for chapter in CHAPTERS.values() for rule in chapter]
    assert len(codes) == len(set(codes)) == len(RULES)
    for rule in RULES.values():
        assert all((rule.title, rule.reason, rule.cure, rule.isa))
        assert (rule.when == "lint") == rule.code.startswith("lint-")
        assert rule.severity in ("error", "advice")


def test_marks_make_the_bad_twin() -> None:
    pair = twins.parse(
        "x",
        "// x: title\n// ptxgen check x.ptx --grid 2\n// bytes: %r\n"
        "a;  // good\n// bad: b;  // <- x, earlier\nc; // said\n",
    )
    assert (pair.title, pair.options, pair.says) == ("title", ("--grid", "2"), {"bytes": "%r"})
    assert pair.good.splitlines()[3:] == ["a;", "", "c; // said"]
    assert pair.bad.splitlines()[3:] == ["", "b;", "c; // said"]
    assert pair.lines == (5, 5)


@pytest.mark.parametrize(
    "text", ["// y: title\n// ptxgen check x.ptx\n", "// x: t\n// ptxgen check x.ptx\na; // <- y\n"]
)
def test_files_that_are_laid_out_otherwise_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^x: "):
        twins.parse("x", text)
