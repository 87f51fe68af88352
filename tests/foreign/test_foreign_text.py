"""Foreign PTX as text: it passes the parser unchanged, and means the same when printed anew."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import pytest
from launching import CASES, HERE, source

from ptxgen.isa.forms import FORMS
from ptxgen.ptx import ast, edit, parse, print_module
from ptxgen.ptx.expressions import number

pytestmark = pytest.mark.unit

TEXTS = sorted(
    str(path.relative_to(HERE).with_suffix("")) for path in HERE.rglob("*.ptx")
)  # those that are only refused, too
POSITIONS = ("line", "span", "source", "text")  # where a node stands and how a number is spelled


def test_every_text_has_a_case_or_is_refused() -> None:
    assert set(TEXTS) - set(CASES) == {"wmma_tile"}
    assert {path.stem for path in HERE.glob("*.cu")} == {n for n in TEXTS if "/" not in n}
    assert len([name for name in CASES if "/" not in name]) >= 20
    assert len([name for name in CASES if "/" in name]) >= 5


def test_every_opcode_is_in_the_table_of_the_isa() -> None:
    table = {word for form in FORMS for word in re.findall(r"(?:^|[;}\s])([a-z]\w*)", form.text)}
    found = {i.opcode for name in TEXTS for f in parse(source(name)).functions
             for i in f.instructions()}  # fmt: skip
    assert len(found) > 50
    assert found - table == set()


def statements(items: tuple[object, ...]) -> Iterator[ast.Statement]:
    """Everything that ends in `;` or `:`, in textual order: functions and blocks are opened up."""
    for item in items:
        body = item.body if isinstance(item, ast.Function) else item
        if isinstance(body, ast.Block):
            yield from statements(body.body)
        else:
            yield item  # type: ignore[misc]


@pytest.mark.parametrize("name", TEXTS)
def test_taken_apart_and_put_together_it_is_the_same_text(name: str) -> None:
    """Every statement is cut out by its span and put back, comments between them staying."""
    module = parse(source(name))
    spans = {s.span for s in statements(module.items)}
    pieces = {span: module.source[span.start : span.end] for span in spans}
    variables = {s.span for s in statements(module.items) if isinstance(s, ast.Variable)}
    assert len(pieces) > 10
    assert edit.replace(module, pieces) == source(name)
    rest = edit.replace(module, dict.fromkeys(spans, ""))
    # Headers, braces, comments; a variable's span ends at its name, since several may share a `;`.
    assert re.sub(r"//[^\n]*", "", rest).count(";") == len(variables)
    instructions = sum(len(list(f.instructions())) for f in module.functions)
    assert instructions == sum(piece.endswith(";") and piece[0] != "." for piece in pieces.values())


@pytest.mark.parametrize("name", TEXTS)
def test_printed_anew_it_is_the_same_program(name: str) -> None:
    module = parse(source(name))
    printed = print_module(module)
    again = parse(printed)
    assert meaning(again) == meaning(module)
    assert print_module(again) == printed


def meaning(node: object) -> object:
    """A tree without positions and spellings, and without what only describes."""
    if isinstance(node, ast.Immediate):
        return node.kind, node.value
    if isinstance(node, ast.Name):
        return node.text
    if is_dataclass(node):
        return type(node).__name__, *(
            meaning(getattr(node, f.name)) for f in fields(node) if f.name not in POSITIONS
        )
    if isinstance(node, tuple):
        return tuple(meaning(item) for item in node)
    return node


def test_a_different_program_is_seen() -> None:
    text = source("block_sum")
    assert "add.f32" in text
    assert meaning(parse(text)) != meaning(parse(text.replace("add.f32", "sub.f32", 1)))
    assert number("0f3F800000").value != number("0f3F800001").value


def test_three_thousand_lines_parse_in_half_a_second() -> None:
    """All programs as one module, again and again until it is long enough."""
    head = ".version 9.0\n.target sm_90a\n.address_size 64\n"
    bodies, lines = [], 0
    while lines < 3_000:
        for name in CASES:
            text = source(name)
            bodies.append(text[text.index(".address_size") :].partition("\n")[2])
            lines += bodies[-1].count("\n")
    text = head + "".join(bodies)
    best = min(_seconds(text) for _ in range(3))  # the least: other processes only add
    assert best * 3_000 / text.count("\n") <= 0.5


def _seconds(text: str) -> float:
    start = time.perf_counter()
    parse(text)
    return time.perf_counter() - start
