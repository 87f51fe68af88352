"""The only Jinja environment of the project.

Jinja's own delimiters collide with ordinary PTX (`{%r0, %r1}` would open a block), so:

    ${ expr }        a hole
    # for ...        a line statement (also if, macro, call, set, import)
    ## text          a template comment; it vanishes
    // text          a PTX comment; it stays

Jinja has silent failures that would put a wrong number into PTX. They are errors here: undefined
names, holes filled with anything but text and integers, and what `lint` lists.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from pathlib import Path

import jinja2
from jinja2 import nodes

from ptxgen.templating import filters
from ptxgen.templating.lint import Facts, check_text, examine
from ptxgen.templating.source_map import MarkLines

TEMPLATE_ROOT = Path(__file__).resolve().parents[2] / "ptx_templates"


class Environment(jinja2.Environment):
    """Jinja with our syntax. `facts` has an entry for every template that was parsed."""

    def __init__(self, search: tuple[Path, ...]) -> None:
        # Blocks and comments inside a line would break the source map, so nothing can open one.
        super().__init__(
            loader=jinja2.FileSystemLoader(search),
            block_start_string="\x05",
            block_end_string="\x06",
            variable_start_string="${",
            variable_end_string="}",
            comment_start_string="\x07",
            comment_end_string="\x08",
            line_statement_prefix="#",
            line_comment_prefix="##",
            keep_trailing_newline=True,
            undefined=jinja2.StrictUndefined,
            autoescape=False,
            finalize=filters.whole,
            extensions=[MarkLines],
        )
        self.tests.clear()
        self.filters.clear()
        self.globals.clear()
        self.filters.update(filters.FILTERS)
        self.globals.update(filters.FUNCTIONS)
        self.facts: dict[str, Facts] = {}
        self.lock = threading.RLock()

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        """Jinja's single way from text to tree: hold every template to the rules here."""
        label = name or "<text>"
        check_text(source, label)
        tree = super()._parse(source, name, filename)
        self.facts[label] = examine(tree, label, frozenset(self.globals))
        for concat in tree.find_all(nodes.Concat):  # a ~ b prints anything; finalize sees the sum
            concat.nodes = [self._whole(operand) for operand in concat.nodes]
        return tree

    def _whole(self, operand: nodes.Expr) -> nodes.Expr:
        return nodes.Filter(
            operand, "whole", [], [], None, None, lineno=operand.lineno, environment=self
        )


@lru_cache(maxsize=32)
def environment(*search: Path) -> Environment:
    """The environment; `search` directories come before the project's own templates."""
    return Environment((*search, TEMPLATE_ROOT))
