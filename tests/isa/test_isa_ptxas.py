"""Column 2: ptxas takes every case at its least and at the newest `.version`, and no other.

All cases of one header go through one process; each form reads its own part of the answer.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache

import assembly
import isa_columns
import pytest
from isa_columns import Record

from ptxgen.isa.forms import FORMS, NEWEST, TARGETS, Case, Form
from ptxgen.isa.forms.base import target_before, version_before
from ptxgen.toolchain.discover import ptxas

pytestmark = pytest.mark.asm

NEWEST_TARGET = "sm_90a"
# Of the combinations that legal() excludes, so many of each form are shown to ptxas.
ILLEGAL_SAMPLE = 24
# ptxas 13.0 takes fence.acquire and .release with .version 8.5; 13.5 as the manual says, from 8.6.
TAKEN_EARLY = re.compile(r"fence:(acquire|release)\.") if ptxas().version < (13, 5) else None

each_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.id)


@cache
def groups() -> dict[tuple[tuple[int, int], str], list[Case]]:
    """All cases by their least header."""
    found: dict[tuple[tuple[int, int], str], list[Case]] = defaultdict(list)
    for form in FORMS:
        for case in form.cases():
            found[case.ptx, case.target].append(case)
    return found


@cache
def newest() -> dict[str, list[str]]:
    """What ptxas refuses with the newest header."""
    cases = [case for form in FORMS for case in form.cases()]
    return assembly.refusals(cases, NEWEST, NEWEST_TARGET)


@cache
def least() -> dict[str, list[str]]:
    """What ptxas refuses with its own least header."""
    refused: dict[str, list[str]] = {}
    for (ptx, target), cases in groups().items():
        refused |= assembly.refusals(cases, ptx, target)
    return refused


@cache
def accepted_below() -> dict[str, str]:
    """Cases that assemble below what the table says, with the header that was enough."""
    accepted: dict[str, str] = {}
    for (ptx, target), cases in groups().items():
        older = version_before(ptx)
        headers = [(ptx, target_before(target))]
        if older is not None and TARGETS[target] <= older:
            headers.append((older, target))
        for version, chip in headers:
            if chip is not None:
                refused = assembly.refusals(cases, version, chip, parse_only=True)
                how = f"{version[0]}.{version[1]} {chip}"
                accepted |= {case.id: how for case in cases if case.id not in refused}
    return accepted


@cache
def accepted_illegal() -> dict[str, list[str]]:
    """Form id -> cases outside legal() that ptxas takes all the same, of an even sample."""
    sample: list[Case] = []
    for form in FORMS:
        illegal = [axes for axes in form.combinations() if not form.legal(axes)]
        stride = -(-len(illegal) // ILLEGAL_SAMPLE) or 1
        sample += [form.case(axes) for axes in illegal[::stride]]
    refused = assembly.refusals(sample, NEWEST, NEWEST_TARGET, parse_only=True)
    accepted: dict[str, list[str]] = defaultdict(list)
    for case in sample:
        if case.id not in refused:
            accepted[case.form.id].append(case.id)
    return accepted


@each_form
def test_ptxas_assembles(form: Form, record_property: Record) -> None:
    ids = [case.id for case in form.cases()]
    refused = {
        id: {"newest": newest().get(id), "least": least().get(id)}
        for id in ids
        if id in newest() or id in least()
    }
    isa_columns.record(record_property, "ptxas", form, len(ids) - len(refused))
    assert refused == {}


@each_form
def test_the_least_version_and_target_are_the_least(form: Form) -> None:
    early = {c.id: accepted_below()[c.id] for c in form.cases() if c.id in accepted_below()}
    assert {k: v for k, v in early.items() if not (TAKEN_EARLY and TAKEN_EARLY.match(k))} == {}


@each_form
def test_what_is_not_legal_is_refused(form: Form) -> None:
    assert accepted_illegal().get(form.id, []) == []
