"""HAZARDS.md is what the table and the twins make of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

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


def hazard_calls(path: Path) -> Iterator[tuple[int, str, dict[str, str]]]:
    """(line, code, constant keywords) of every `hazard(...)` whose code is written out."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "hazard" and node.args:
            code = node.args[0]
            if isinstance(code, ast.Constant):
                constants = {
                    str(k.arg): str(k.value.value)
                    for k in node.keywords
                    if isinstance(k.value, ast.Constant)
                }
                yield node.lineno, str(code.value), constants


def test_detectors_do_not_repeat_the_table() -> None:
    """What a finding does not say itself comes from its rule: it stands there once."""
    repeated = [
        f"{path.name}:{line} {code} {name}"
        for path in sorted((ROOT / "runtime" / "emulator").glob("*.py"))
        for line, code, constants in hazard_calls(path)
        for name, text in constants.items()
        if text == getattr(RULES[code], name, None)
    ]
    assert repeated == []
