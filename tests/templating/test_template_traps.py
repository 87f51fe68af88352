"""Jinja fails silently in many ways; here each of them is an error with template and line.

Every row of `TRAPS` was tried on a plain Jinja environment: it rendered, and what it rendered was
not what the template seems to say.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import ptxgen
from ptxgen.errors import TemplateError

pytestmark = pytest.mark.unit


class Thing:
    """A record with a method, as a template may be handed by mistake."""

    count = 4

    def total(self) -> int:
        return 4


TRAPS: Mapping[str, tuple[str, dict[str, object], int, str]] = {
    # name: (template, numbers, line of the error, words of the error)
    "undefined name": ("ret;\nmov.u32 %a, ${ x };\n", {}, 2, "undefined name 'x'"),
    "undefined name as an argument": (
        "# macro m(a)\nret;\n# endmacro\n${ m(nope) }\n", {}, 4, "undefined name 'nope'",
    ),
    "undefined name in a branch not taken": (
        "# if 0\n${ nope }\n# endif\n", {}, 2, "undefined name 'nope'",
    ),
    "undefined attribute": ("${ x.nope }\n", {"x": Thing()}, 1, "no attribute 'nope'"),
    "undefined attribute as an argument": (
        "# macro m(a)\nmov.u32 %a, ${ a };\n# endmacro\n\n${ m(x.nope) }\n", {"x": Thing()}, 2,
        "no attribute 'nope'",
    ),
    "None in a hole": ("ret;\n${ x }\n", {"x": None}, 2, "filled with None"),
    "True in a hole": ("${ x }\n", {"x": True}, 1, "filled with True"),
    "float in a hole": ("${ x }\n", {"x": 1.5}, 1, "filled with 1.5"),
    "list in a hole": ("${ [1, 2] }\n", {}, 1, "filled with [1, 2]"),
    "bound method in a hole": ("${ x.total }\n", {"x": Thing()}, 1, "(method)"),
    "None joined to text": ("${ '%a + ' ~ x }\n", {"x": None}, 1, "filled with None"),
    "float joined to text": ("${ '%a + ' ~ x ~ 'b' }\n", {"x": 0.5}, 1, "filled with 0.5"),
    "bound method in a padded hole": ("${ x.total | pad(8) }\n", {"x": Thing()}, 1, "(method)"),
    "float with separators": ("${ x | comma }\n", {"x": 1.5}, 1, "filled with 1.5"),
    "negative hexadecimal": ("${ x | hex }\n", {"x": -1}, 1, "no hexadecimal spelling"),
    "f32 that is too large": ("${ x | f32 }\n", {"x": 1e300}, 1, "too large"),
    "f32 of text": ("${ x | f32 }\n", {"x": "1.0"}, 1, "f32 takes a number"),
    "comment on a statement line": (
        "# for i in range(4) // two\nret;\n# endfor\n", {}, 1, "// divides here",
    ),
    "comment on a branch": ("\n# if x // why\nret;\n# endif\n", {"x": 1}, 2, "// divides here"),
    "floor division": ("ret;\n${ 7 // 2 }\n", {}, 2, "// divides here"),
    "division": ("${ 8 / 2 }\n", {}, 1, "/ makes a float"),
    "remainder": ("# if x % 2\nret;\n# endif\n", {"x": 1}, 1, "% is a remainder"),
    "formatting by %": ("${ '%d' % x }\n", {"x": 1}, 1, "% is a remainder"),
    "dict": ("${ {'a': 1} }\n", {}, 1, "a dict has no fields"),
    "set in a loop": (
        "# set x = 0\n# for i in range(3)\n# set x = x + 16\n# endfor\n${ x }\n", {}, 3,
        "set of 'x' in a loop",
    ),
    "set of a number in a loop": (
        "# for i in range(3)\n# set x = 1\n# endfor\n${ x }\n", {"x": 0}, 2, "set of 'x' in a loop",
    ),
    "set of an outer loop's name": (
        "# for i in range(2)\n# set j = i\n# for k in range(2)\n# set j = j + k\n# endfor\n${ j }\n"
        "# endfor\n", {}, 4, "set of 'j' in a loop",
    ),
    "set of an argument in a loop": (
        "# macro m(a)\n# for i in range(2)\n# set a = a + 1\n# endfor\n${ a }\n# endmacro\n"
        "${ m(1) }\n", {}, 3, "set of 'a' in a loop",
    ),
    "set under a branch in a loop": (
        "# set x = 0\n# for i in range(2)\n# if i\n# set x = 1\n# endif\n# endfor\n${ x }\n", {}, 4,
        "set of 'x' in a loop",
    ),
    "lines joined": ("ret;\n#- if 1\nret;\n# endif\n", {}, 2, "#- joins lines"),
    "comment off the line start": ("ret; ## why\n", {}, 1, "only at the start of a line"),
    "comment behind a statement": ("# if 1 ## why\nret;\n# endif\n", {}, 1, "only at the start"),
    "include": ("\n# include 'lib/sync.ptx.j2'\n", {}, 2, "include sees every name"),
    "import with context": (
        "# import 'lib/sync.ptx.j2' as sync with context\n", {}, 1, "import with context",
    ),
    "computed import": ("# import x as sync\n", {"x": "lib/sync.ptx.j2"}, 1, "names its file"),
    "extends": ("# extends 'lib/sync.ptx.j2'\n", {}, 1, "extends hides"),
    "test": ("# if x is defined\nret;\n# endif\n", {"x": 1}, 1, "No test named 'defined'"),
    "unknown macro": (
        "# import 'lib/sync.ptx.j2' as sync\n${ sync.nope() }\n", {}, 2, "has no macro 'nope'",
    ),
    "missing argument": (
        "# import 'lib/wgmma.ptx.j2' as w\n${ w.wait_group() }\n", {}, 2, "'pending'",
    ),
    "argument too many": (
        "# import 'lib/wgmma.ptx.j2' as w\n${ w.fence(1) }\n", {}, 2, "not more than 0",
    ),
    "import of nothing": ("ret;\n# import 'lib/nope.ptx.j2' as n\n", {}, 2, "does not exist"),
    "unknown statement": ("ret;\n# loop 4\n", {}, 2, "unknown tag 'loop'"),
    "open loop": ("# for i in range(3)\nret;\n", {}, 2, "endfor"),
    "open hole": ("ret;\nmov.u32 %a, ${ x\n", {"x": 1}, 2, "end of template"),
    "attribute of None": ("${ x.y }\n", {"x": None}, 1, "'None' has no attribute 'y'"),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAPS)
def test_trap_is_an_error_with_template_and_line(name: str) -> None:
    text, numbers, line, words = TRAPS[name]
    with pytest.raises(TemplateError) as caught:
        ptxgen.render_text(text, "mine.ptx.j2", **numbers)
    message = str(caught.value)
    assert f"mine.ptx.j2:{line}" in message
    assert words in message


LEGAL: Mapping[str, tuple[str, dict[str, object], str]] = {
    "text and integers": ("${ x } ${ y }\n", {"x": "%a", "y": 7}, "%a 7\n"),
    "joined text": ("${ x ~ ' + ' ~ (8 * y) }\n", {"x": "%a", "y": 7}, "%a + 56\n"),
    "a set that stays in its pass": (
        "# for i in range(2)\n# set j = 8 * i\nadd ${ j };\n# endfor\n", {}, "add 0;\nadd 8;\n",
    ),
    "the same local name in two loops": (
        "# for i in range(1)\n# set j = 1\nadd ${ j };\n# endfor\n"
        "# for i in range(1)\n# set j = 2\nadd ${ j };\n# endfor\n", {}, "add 1;\nadd 2;\n",
    ),
    "PTX that Jinja's own delimiters would eat": (
        "{%r0, %r1}; {{1, 2}, {3, 4}}; {# <% %>\n", {}, "{%r0, %r1}; {{1, 2}, {3, 4}}; {# <% %>\n",
    ),
    "a hole over two lines": ("add ${ x +\n  1 };\n", {"x": 1}, "add 2;\n"),
    "a statement over two lines": ("# if (x and\n  x)\nret;\n# endif\n", {"x": 1}, "ret;\n"),
    "brackets in text of a statement": ("# set s = '('\nadd ${ s };\n", {}, "add (;\n"),
    "braces in text of a hole": ("add ${ '}${' };\nret;\n", {}, "add }${;\nret;\n"),
    "a comment that vanishes, one that stays": ("## gone\n// stays\n", {}, "// stays\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", LEGAL)
def test_legal_template(name: str) -> None:
    text, numbers, want = LEGAL[name]
    assert ptxgen.render_text(text, **numbers) == want


def test_every_broken_rule_is_listed() -> None:
    with pytest.raises(TemplateError) as caught:
        ptxgen.render_text("${ 1 / 2 }\nret;\n${ 1 % 2 }\n", "two.ptx.j2")
    assert [line.split(" ")[0] for line in str(caught.value).splitlines()] == [
        "two.ptx.j2:1:", "two.ptx.j2:3:",
    ]  # fmt: skip


def test_an_imported_file_sees_no_names(tmp_path: pytest.TempPathFactory) -> None:
    """A macro that takes a number from outside is an error, even where the caller was given it."""
    (tmp_path / "mine.ptx.j2").write_text("# macro m()\nret ${ tile };\n# endmacro\n")
    (tmp_path / "k.ptx.j2").write_text("# import 'mine.ptx.j2' as mine\nret ${ tile };\n")
    with pytest.raises(TemplateError, match=r"mine\.ptx\.j2:2: undefined name 'tile'"):
        ptxgen.render(tmp_path / "k.ptx.j2", tile=1)


def test_error_inside_a_macro_names_the_call_too() -> None:
    text = "# import 'lib/sync.ptx.j2' as sync\nret;\n${ sync.bar(x) }\n"
    with pytest.raises(TemplateError, match=r"^lib/sync\.ptx\.j2:\d+, called from k:3: "):
        ptxgen.render_text(text, "k", x=None)


def test_numpy_integers_are_integers() -> None:
    import numpy as np

    assert ptxgen.render_text("${ x } ${ x | hex }", x=np.int64(16)) == "16 0x10\n"
    with pytest.raises(TemplateError, match="filled with"):
        ptxgen.render_text("${ x }", x=np.float32(1))
    with pytest.raises(TemplateError, match="filled with"):
        ptxgen.render_text("${ x }", x=np.True_)
