"""The template tree: nothing unused, nothing dead, one instruction a macro of lib/."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import pytest
from coverage_kernels import TEMPLATES, rendered_places, table_calls, template_files
from jinja2 import nodes

from ptxgen.templating.environment import environment
from ptxgen.templating.scan import scan
from ptxgen.templating.source_map import Place

pytestmark = pytest.mark.unit

FILES = dict(template_files())
each_file = pytest.mark.parametrize("name", FILES)


def tree(name: str) -> nodes.Template:
    """Parsing holds the file to the lint, too."""
    return environment().parse(FILES[name], name=name)


def test_there_are_templates_and_nothing_else() -> None:
    assert {name.split("/")[0] for name in FILES} == {"lib", "blocks", "kernels"}
    others = {
        p.name for p in TEMPLATES.rglob("*") if p.is_file() and not p.name.endswith(".ptx.j2")
    }
    assert {name for name in others if not name.endswith(".pyc")} == {"__init__.py", "py.typed"}


@each_file
def test_layers(name: str) -> None:
    """lib imports nothing, blocks import lib, kernels import both."""
    allowed = {"lib": (), "blocks": ("lib",), "kernels": ("lib", "blocks")}[name.split("/")[0]]
    imported = {node.template.value.split("/")[0] for node in tree(name).find_all(nodes.Import)}
    assert imported <= set(allowed)


@each_file
def test_every_import_is_used(name: str) -> None:
    imported = [node.target for node in tree(name).find_all(nodes.Import)]
    used = {node.name for node in tree(name).find_all(nodes.Name) if node.ctx == "load"}
    assert [target for target in imported if target not in used] == []


def macros() -> Iterator[tuple[str, nodes.Macro]]:
    for name in FILES:
        for macro in tree(name).find_all(nodes.Macro):
            yield name, macro


def calls(name: str) -> Iterator[tuple[str, str]]:
    """(file, macro) of everything that a template calls."""
    files = {node.target: node.template.value for node in tree(name).find_all(nodes.Import)}
    means = {alias: [file] for alias, file in files.items()}
    for node in tree(name).find_all(nodes.Assign):  # `out = one if ... else another` means both
        if isinstance(node.target, nodes.Name):
            chosen = [x.name for x in node.node.find_all(nodes.Name) if x.name in files]
            means[node.target.name] = [files[alias] for alias in chosen]
    for node in tree(name).find_all(nodes.Getattr):
        if isinstance(node.node, nodes.Name):
            for file in means.get(node.node.name, ()):
                yield file, node.attr
    for node in tree(name).find_all(nodes.Name):
        yield name, node.name


def test_every_macro_is_called() -> None:
    called = {call for name in FILES for call in calls(name)} | table_calls()
    assert [(name, m.name) for name, m in macros() if (name, m.name) not in called] == []


def test_every_line_is_rendered_by_some_kernel() -> None:
    """No branch of a template is dead, and the assembly test sees all of them."""
    lines = {
        Place(name, line.number): line.text
        for name, text in FILES.items()
        for line in scan(text)
        if line.kind == "text" and line.opens
    }
    assert len(lines) > 300  # the scan itself may not come to nothing
    places = rendered_places()
    unseen = {str(place): text for place, text in lines.items() if place not in places}
    assert unseen == {}


def instructions(body: Iterable[nodes.Node]) -> int:
    """Instructions of the longest way through a macro. A branch takes one of its sides."""
    text = ""
    branches = 0
    for node in body:
        if isinstance(node, nodes.If):
            sides = [node.body, *(side.body for side in node.elif_), node.else_]
            branches += max(instructions(side) for side in sides)
        elif isinstance(node, nodes.Output):
            text += "".join(
                n.data if isinstance(n, nodes.TemplateData) else "x" for n in node.nodes
            )
    code = [re.sub(r"[\x01-\x04]|//.*", "", line) for line in text.splitlines()]
    return branches + sum(
        line.count(";") for line in code if not re.match(r"\W*\.reg|.*\.reg", line)
    )


@pytest.mark.parametrize(
    ("name", "macro"),
    [
        pytest.param(name, macro, id=f"{name}:{macro.name}")
        for name, macro in macros()
        if name.startswith("lib/")
    ],
)
def test_a_lib_macro_is_one_instruction_or_says_that_it_is_an_idiom(
    name: str, macro: nodes.Macro
) -> None:
    lines = FILES[name].splitlines()
    above: list[str] = []
    for line in reversed(lines[: macro.lineno - 1]):
        if not line.startswith("##"):
            break
        above.insert(0, line)
    idiom = bool(above) and above[0].startswith("## Idiom: ")
    count = instructions(macro.body)
    assert count > 1 if idiom else count == 1


@each_file
def test_every_file_opens_with_what_it_is_for(name: str) -> None:
    """lib and blocks by a comment that vanishes; kernels by the contract block that stays."""
    first = next(line for line in FILES[name].splitlines() if not line.startswith("# import"))
    assert first.startswith("// ${entry}" if name.startswith("kernels/") else "## ")


@each_file
def test_instructions_name_the_isa_section(name: str) -> None:
    """Every file of lib/ says where the PTX ISA describes its instructions."""
    if name.startswith("lib/"):
        head = "".join(FILES[name].splitlines()[:3])
        assert re.search(r"PTX ISA \d+", head)
