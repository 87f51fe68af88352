"""The table itself: unique names, sane fields, and the document that is made from it."""

from __future__ import annotations

import re
from collections import Counter
from fnmatch import fnmatchcase

import pytest

from ptxgen.isa.document import ROOT, answered, document
from ptxgen.isa.forms import FORMS, TARGETS, VERSIONS, cases
from ptxgen.isa.forms.base import parse_operands
from ptxgen.isa.forms.gaps import REFUSED

pytestmark = pytest.mark.unit
# The opcode of an instruction that has a line, or a brace before it, for itself.
OPCODE = re.compile(r"^\s*(?:\{ )?(?:@\S+ )?([a-z][a-z0-9]*)(?=[. ;{].*[;}]$|;$)", re.MULTILINE)


def test_ids_are_unique() -> None:
    for ids in (Counter(form.id for form in FORMS), Counter(case.id for case in cases())):
        assert [name for name, n in ids.items() if n > 1] == []


def test_the_table_is_as_large_as_the_isa() -> None:
    """An axis that vanishes takes its cases with it silently: hold the size."""
    assert len(FORMS) > 300
    assert len(list(cases())) > 5500


def test_headers_are_real() -> None:
    assert {case.ptx for case in cases()} <= set(VERSIONS)
    assert {case.target for case in cases()} <= set(TARGETS)


def test_every_case_has_its_own_text() -> None:
    """Two cases of a form that spell the same instruction differ in how they are run, or one is
    of no use."""
    for form in FORMS:
        seen: dict[tuple[str, str], str] = {}
        for case in form.cases():
            key = (case.text, repr((case.run, case.operands)))
            assert key not in seen, (case.id, seen[key])
            seen[key] = case.id


def test_operand_lists() -> None:
    parsed = list(parse_operands("d:f32*4 a:u32~shift b:@shared c:pred*1", "read"))
    assert [(o.name, o.type, o.count, o.domain) for o in parsed] == [
        ("d", "f32", 4, ""),
        ("a", "u32", None, "shift"),
        ("b", "@shared", None, ""),
        ("c", "pred", 1, ""),
    ]
    assert [o.spelled for o in parsed] == ["{%d0, %d1, %d2, %d3}", "%a", "%b", "{%c0}"]
    assert [o.bits for o in parsed] == [32, 32, 32, 1]


def test_every_opcode_of_a_template_is_in_the_table() -> None:
    """The kernels and the macro library, of this project and of its examples."""
    texts = [text for case in cases() for text in (case.text, *case.run.before, *case.run.after)]
    known = {word for text in texts for word in OPCODE.findall(text)}
    templates = [*(ROOT / "ptx_templates").rglob("*.j2"), *(ROOT / "examples").rglob("*.ptx.j2")]
    found = {
        word: path.name
        for path in templates
        for word in OPCODE.findall(path.read_text(encoding="utf-8"))
    }
    assert len(templates) > 20
    assert len(found) > 90
    assert {word: name for word, name in found.items() if word not in known} == {}


def test_every_gap_is_a_gap() -> None:
    """A pattern that matches nothing is left over."""
    ids = [case.id for case in cases()]
    assert [p for p in REFUSED if not any(fnmatchcase(id, p) for id in ids)] == []


def test_document_is_in_sync() -> None:
    """Run `python -m ptxgen.isa.document` after changing the table or recording answers."""
    assert (ROOT / "ISA.md").read_text(encoding="utf-8") == document(FORMS, answered())
