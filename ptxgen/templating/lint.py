"""What a template may not say, because Jinja would put something wrong into PTX without a word.

Every template is held to these rules when it is parsed: ours, and those that people write with our
macros. A template may loop over a known count, branch on a field, add and multiply integers. Sizes,
quotients and remainders arrive computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from jinja2 import meta, nodes

from ptxgen.errors import TemplateError
from ptxgen.templating.scan import scan

_COMPUTE = "compute it in Python and pass the number"
_FORBIDDEN: Mapping[type[nodes.Node], str] = {
    nodes.FloorDiv: "// divides here (it starts a comment in the PTX text only): drop the comment, "
    f"or {_COMPUTE}",
    nodes.Mod: f"% is a remainder or formats text: {_COMPUTE}",
    nodes.Div: f"/ makes a float: {_COMPUTE}",
    nodes.Dict: "a dict has no fields to check: pass a dataclass",
    nodes.Include: "include sees every name of this template: import the file and call a macro",
    nodes.Extends: "extends hides which file a line comes from: import the file and call a macro",
    nodes.Block: "block hides which file a line comes from: write a macro",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a parsed template takes: outside names and imported files, with their first lines."""

    names: Mapping[str, int]
    imports: Mapping[str, int]


def check_text(source: str, name: str) -> None:
    """The rules on lines. Raises TemplateError with every broken one."""
    _require(_line_problems(source), name)


def examine(tree: nodes.Template, name: str, known: frozenset[str]) -> Facts:
    """The facts of a template; `known` are the names that every template has.

    Raises TemplateError with every broken rule of the tree.
    """
    facts = Facts(names=_outside_names(tree, known), imports=_imports(tree))
    _require([*_node_problems(tree), *_lost_sets(tree, facts.names)], name)
    return facts


def _require(problems: Iterable[tuple[int, str]], name: str) -> None:
    lines = [f"{name}:{line}: {text}" for line, text in sorted(problems)]
    if lines:
        raise TemplateError("\n".join(lines))


def _outside_names(tree: nodes.Template, known: frozenset[str]) -> dict[str, int]:
    names = meta.find_undeclared_variables(tree) - known
    found: dict[str, int] = {}
    for node in tree.find_all(nodes.Name):
        if node.ctx == "load" and node.name in names:
            found[node.name] = min(node.lineno, found.get(node.name, node.lineno))
    return found


def _import_nodes(tree: nodes.Template) -> Iterator[nodes.Import | nodes.FromImport]:
    yield from tree.find_all(nodes.Import)
    yield from tree.find_all(nodes.FromImport)


def _imports(tree: nodes.Template) -> dict[str, int]:
    return {
        node.template.value: node.lineno
        for node in _import_nodes(tree)
        if isinstance(node.template, nodes.Const)
    }


def _line_problems(source: str) -> Iterator[tuple[int, str]]:
    for line in scan(source):
        start = line.text.lstrip()
        if line.kind == "statement" and start.startswith(("#-", "#+")):
            yield line.number, f"{start[:2]} joins lines: write `# `"
        if line.kind != "comment" and "##" in line.text:
            yield line.number, "## is a comment only at the start of a line: give it its own line"


def _node_problems(tree: nodes.Template) -> Iterator[tuple[int, str]]:
    for kind, text in _FORBIDDEN.items():
        for found in tree.find_all(kind):
            yield found.lineno, text
    for node in _import_nodes(tree):
        if node.with_context:
            yield node.lineno, "import with context: a macro sees its arguments alone"
        if not isinstance(node.template, nodes.Const):
            yield node.lineno, "an import names its file: one that is computed cannot be checked"


def _lost_sets(tree: nodes.Template, outside: Mapping[str, int]) -> Iterator[tuple[int, str]]:
    """Every `set`, inside a loop, of a name that lives outside of it: gone after each pass."""

    def walk(node: nodes.Node, bound: set[str], outer: frozenset[str]) -> Iterator[tuple[int, str]]:
        if isinstance(node, (nodes.Assign, nodes.AssignBlock)):
            for name in _targets(node.target):
                if name in outer:
                    yield (
                        node.lineno,
                        f"set of {name!r} in a loop ends with the pass: outside, {name} stays what "
                        f"it was; {_COMPUTE}",
                    )
                bound.add(name)
        elif isinstance(node, nodes.For):
            inner = set(bound) | set(_targets(node.target))
            for child in (*node.body, *node.else_):
                yield from walk(child, inner, frozenset(bound))
        elif isinstance(node, nodes.Macro | nodes.CallBlock):
            inner = set(bound) | {arg.name for arg in node.args}
            for child in node.body:
                yield from walk(child, inner, outer)
        else:
            for child in node.iter_child_nodes():
                yield from walk(child, bound, outer)

    yield from walk(tree, set(outside), frozenset())


def _targets(target: nodes.Node) -> Iterator[str]:
    if isinstance(target, nodes.Name):
        yield target.name
    for name in target.find_all(nodes.Name):
        yield name.name


def missing_names(
    name: str, given: frozenset[str], facts_of: Callable[[str], Facts]
) -> Iterator[tuple[str, str, int]]:
    """(template, name, line) of every name that a template, or a file it imports, is not given.

    Jinja would swallow such a name when it is only passed on as an argument.
    """
    seen = {name}
    pending = [name]
    while pending:
        template = pending.pop()
        facts = facts_of(template)
        for missing, line in facts.names.items():
            if missing not in given:
                yield template, missing, line
        given = frozenset()  # an imported file sees its macros' arguments alone
        pending += [file for file in facts.imports if file not in seen]
        seen.update(facts.imports)
