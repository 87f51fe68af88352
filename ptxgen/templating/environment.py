"""The only Jinja environment of the project.

Jinja's own delimiters collide with ordinary PTX (`{%r0, %r1}` would open a block), so:

    ${ expr }        a hole
    # for ...        a line statement (also if, macro, call, set, import)
    ## text          a template comment; it vanishes
    // text          a PTX comment; it stays

Jinja has silent failures that would put a wrong number into PTX. They are errors here: undefined
names, and holes filled with anything but `str` or `int` (None, True, floats, bound methods).
"""

from __future__ import annotations

from pathlib import Path

import jinja2
from jinja2 import nodes

from ptxgen.templating import filters
from ptxgen.templating.source_map import MarkLines

TEMPLATE_ROOT = Path(__file__).resolve().parents[2] / "ptx_templates"


class HoleError(ValueError):
    """A hole was filled with something that has no meaning in PTX."""


def _only_text_and_integers(value: object) -> str | int:
    if isinstance(value, jinja2.StrictUndefined):
        str(value)  # raises UndefinedError with Jinja's own message
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise HoleError(
            f"a hole was filled with {value!r} ({type(value).__name__}); only text and integers may "
            "appear in PTX. Compute it in Python, or format it with a filter such as f32"
        )
    return value


def environment(*search: Path) -> jinja2.Environment:
    """The environment; `search` directories come before the project's own templates."""
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*search, TEMPLATE_ROOT]),
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="${",
        variable_end_string="}",
        comment_start_string="<#",
        comment_end_string="#>",
        line_statement_prefix="#",
        line_comment_prefix="##",
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        finalize=_only_text_and_integers,
        extensions=[MarkLines],
    )
    env.globals.clear()
    env.globals["range"] = range
    filters.install(env)
    return env


def free_names(env: jinja2.Environment, source: str, name: str) -> dict[str, int]:
    """Names that a template takes from outside, each with the line of its first use."""
    tree = env.parse(source, name=name)
    bound = set(env.globals)
    for node in tree.find_all((nodes.Name, nodes.Import, nodes.FromImport, nodes.Macro)):
        if isinstance(node, nodes.Name) and node.ctx in ("store", "param"):
            bound.add(node.name)
        elif isinstance(node, nodes.Import):
            bound.add(node.target)
        elif isinstance(node, nodes.FromImport):
            bound.update(n if isinstance(n, str) else n[1] for n in node.names)
        elif isinstance(node, nodes.Macro):
            bound.add(node.name)
    free: dict[str, int] = {}
    for node in tree.find_all(nodes.Name):
        if node.ctx == "load" and node.name not in bound and node.name != "caller":
            free.setdefault(node.name, node.lineno)
    return free
