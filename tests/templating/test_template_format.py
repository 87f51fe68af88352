"""The formatting pass moves white space and nothing else, and finds nothing to do twice."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ptxgen
from ptxgen.ptx.lexer import tokenize
from ptxgen.templating.format import format_lines
from ptxgen.templating.source_map import Line

pytestmark = pytest.mark.unit


def formatted(text: str) -> str:
    return "\n".join(line.text for line in format_lines([Line(t, ()) for t in text.split("\n")]))


def tokens(text: str) -> list[str]:
    """PTX tokens; the lexer makes one of a whole vector, white space included."""
    return [re.sub(r"\s+", "", token.text) for token in tokenize(text)]


def comments(text: str) -> list[str]:
    return [line.split("//", 1)[1].strip() for line in text.splitlines() if "//" in line]


registers = st.integers(0, 300).map(lambda n: f"%r{n}")
vectors = st.lists(registers, min_size=1, max_size=70).map(lambda names: f"{{{','.join(names)}}}")
operands = st.one_of(
    registers, vectors, st.sampled_from(["[%a + 8]", "0f3f800000", "[%m, {%x, %y}]", "1"])
)
comment = st.sampled_from(["", "", "", "  // { ( why"])
guard = st.sampled_from(["", "@%p ", "@!%p  "])
instructions = st.builds(
    lambda guard, opcode, args, tail: f"{guard}{opcode} {', '.join(args)};{tail}",
    guard, st.sampled_from(["mov.u32", "wgmma.mma_async.sync"]),
    st.lists(operands, min_size=1, max_size=4), comment,
)  # fmt: skip
lines = st.one_of(
    instructions,
    st.sampled_from(["", "  ", "$LOOP:", "// a { comment", ".reg .b32 %r<4>;", "ret;", "bra $L;"]),
)
blocks = st.recursive(
    lines,
    lambda inner: st.lists(inner, max_size=5).map(lambda body: "\n".join(["{", *body, "}"])),
    max_leaves=20,
)
programs = st.lists(blocks, max_size=8).map("\n".join)


@given(programs)
def test_tokens_and_comments_stay(text: str) -> None:
    assert tokens(formatted(text)) == tokens(text)
    assert comments(formatted(text)) == comments(text)


@given(programs)
def test_formatting_twice_changes_nothing(text: str) -> None:
    once = formatted(text)
    assert formatted(once) == once


@given(programs)
def test_layout(text: str) -> None:
    """At most one blank line, none inside a brace; at most 16 names a row; indentation by depth."""
    result = formatted(text)
    assert "\n\n\n" not in result
    assert not re.search(r"\{\n\n", result)
    assert not re.search(r"\n\n *\}\n", result)
    for line in result.splitlines():
        assert line == line.rstrip()
        for names in re.findall(r"%r\d+(?:, ?%r\d+)*", line.split("//")[0]):
            assert names.count("%") <= 16 or "[" in line or "," not in names
    depth = 0
    for line in result.splitlines():
        if line.strip() in ("{", "}"):
            depth -= line.strip() == "}"
            assert len(line) - len(line.lstrip()) == 4 * depth
            depth += line.strip() == "{"


def test_a_kernel_as_a_person_would_write_it() -> None:
    text = """\
.visible .entry k(
.param .u64 out,   // where
.param .u32 n
)
.reqntid 128
{
.reg .b32 %r<4>;


{

$WAIT:
@!%p bra $WAIT;

}
mul.lo.u32 %a,
%b, 8;
ret;
}"""
    assert formatted(text) == """\
.visible .entry k(
    .param .u64 out,   // where
    .param .u32 n
)
.reqntid 128
{
    .reg .b32 %r<4>;

    {
    $WAIT:
        @!%p bra $WAIT;
    }
    mul.lo.u32 %a,
        %b, 8;
    ret;
}"""  # fmt: skip


@pytest.mark.parametrize(
    ("count", "rows"),
    [(16, 1), (17, 4), (32, 4), (33, 5), (128, 10)],  # head, rows of 16, what follows the list
)
def test_register_lists_wrap_at_16_names(count: int, rows: int) -> None:
    text = ptxgen.render_text(f"mma ${{ reg_list('acc', 0, {count}) }}, %a, 1;  // why\n")
    lines = text.splitlines()
    assert len(lines) == rows
    if rows > 1:
        assert lines[0] == "mma"
        assert lines[1].startswith("    {%acc0, %acc1,")
        assert all(line.startswith("     %acc") for line in lines[2:-1])
        assert lines[-2].endswith(f"%acc{count - 1}}},")
        assert lines[-1] == "    %a, 1;  // why"


def test_a_list_at_the_end_keeps_its_semicolon() -> None:
    lines = ptxgen.render_text("st [%a], ${ reg_list('r', 0, 17) };\n").splitlines()
    assert lines[0] == "st [%a],"
    assert lines[-1] == "     %r16};"


def test_the_gemm_is_formatted() -> None:
    ptx = str(ptxgen.kernel("gemm").ptx)
    assert formatted(ptx) == ptx.rstrip("\n")
