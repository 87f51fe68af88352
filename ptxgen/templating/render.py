"""Render a template into PTX text with its source map."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

import jinja2

from ptxgen.errors import TemplateError
from ptxgen.templating.environment import TEMPLATE_ROOT, Environment, environment
from ptxgen.templating.format import format_lines
from ptxgen.templating.lint import Facts, missing_names
from ptxgen.templating.source_map import Place, split
from ptxgen.view import View
from ptxgen.view.sections import ptx_view

# What an expression of a template can raise; HoleError is a ValueError.
_EXPRESSION_ERRORS = (
    jinja2.TemplateRuntimeError, ArithmeticError, AttributeError, LookupError,
    TypeError, ValueError,
)  # fmt: skip
# How Jinja speaks of a macro that an imported file does not have, and how we do.
_JINJA_WORDS = (
    "'jinja2.environment.TemplateModule object' has no attribute",
    "the imported file has no macro",
)


class Rendered(str):
    """PTX text that remembers which template lines wrote it.

    `chains[i]` are the template places behind line i (from 0), innermost macro first.
    """

    chains: tuple[tuple[Place, ...], ...]

    def __new__(cls, text: str, chains: tuple[tuple[Place, ...], ...] = ()) -> Rendered:
        rendered = super().__new__(cls, text)
        rendered.chains = chains
        return rendered

    def __getnewargs__(self) -> tuple[str, tuple[tuple[Place, ...], ...]]:  # type: ignore[override]
        return str(self), self.chains

    def view(self, *, fold: bool = False) -> View:
        """The text with colours, folded by its sections; a pointer shows each template line.

        With `fold`, text too is cut behind the first section.
        """
        tips = [_called_from(chain) for chain in self.chains]
        return ptx_view(self.splitlines(), tips, fold=fold)

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> Mapping[str, str]:
        return {**self.view()._repr_mimebundle_(), "text/plain": str(self)}

    def locate(self, line: int) -> str:
        """The template line and macro calls behind PTX line `line` (from 1), in words."""
        chain = self.chains[line - 1] if 0 < line <= len(self.chains) else ()
        return _called_from(chain)


def render(path: str | Path, numbers: Mapping[str, object]) -> Rendered:
    """Render a template file: a path of the caller's, or else a name under ptx_templates/.

    A file of the caller's may import files that lie beside it, and all of ours. Raises
    TemplateError (template and line) for a missing file or name, a malformed statement, a broken
    rule of `lint`, or a hole filled with something that is not text or an integer.
    """
    file = Path(path)
    if file.is_file():
        env = environment(file.resolve().parent)
        return _render(env, file.name, numbers, lambda: env.get_template(file.name))
    if not (TEMPLATE_ROOT / file).is_file():
        raise TemplateError(
            f"template {str(path)!r} not found: neither a file nor a name under ptx_templates/ "
            "(for example kernels/gemm.ptx.j2)"
        )
    return render_own(file.as_posix(), numbers)


def render_own(name: str, numbers: Mapping[str, object]) -> Rendered:
    """Render a template of ours, whatever files the working directory may hold."""
    env = environment()
    return _render(env, name, numbers, lambda: env.get_template(name))


def render_text(text: str, name: str, numbers: Mapping[str, object]) -> Rendered:
    """Render template text; `name` is what errors and the source map call it."""
    env = environment()

    def compile_text() -> jinja2.Template:
        code = env.compile(text, name, name)
        return env.template_class.from_code(env, code, env.make_globals(None))

    return _render(env, name, numbers, compile_text)


def _render(
    env: Environment,
    name: str,
    numbers: Mapping[str, object],
    load: Callable[[], jinja2.Template],
) -> Rendered:
    try:
        with env.lock:  # the facts of a text belong to whoever parsed it last
            template = load()
            _require_names(env, name, numbers)
        marked = template.render(numbers)
    except jinja2.TemplateSyntaxError as error:
        raise TemplateError(f"{error.name or name}:{error.lineno}: {error.message}") from None
    except _EXPRESSION_ERRORS as error:
        where = _called_from(_frames(error.__traceback__)) or name
        raise TemplateError(f"{where}: {str(error).replace(*_JINJA_WORDS)}") from None
    lines = format_lines(split(marked))
    return Rendered("\n".join(line.text for line in lines) + "\n", tuple(x.chain for x in lines))


def _require_names(env: Environment, name: str, numbers: Mapping[str, object]) -> None:
    """Ask beforehand for every name that the template and its imports take from outside."""

    def facts_of(template: str) -> Facts:
        if template != name:
            env.get_template(template)
        return env.facts[template]

    try:
        missing = sorted(missing_names(name, frozenset(numbers), facts_of))
    except jinja2.TemplateNotFound as error:
        line = env.facts[name].imports.get(str(error.name), 0)
        where = f"{name}:{line}" if line else name
        raise TemplateError(f"{where}: imports {error.name!r}, which does not exist") from None
    if missing:
        given = ", ".join(sorted(numbers)) or "none"
        raise TemplateError(
            "\n".join(
                f"{template}:{line}: undefined name {what!r}; "
                + (f"names given: {given}" if template == name else "macros see their arguments")
                for template, what, line in missing
            )
        )


def _called_from(chain: tuple[Place, ...]) -> str:
    return ", called from ".join(map(str, chain))


def _frames(trace: TracebackType | None) -> tuple[Place, ...]:
    """The template lines of a traceback, innermost first; Jinja has put them in."""
    places: list[Place] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if "__jinja_exception__" in trace.tb_frame.f_globals:
            short = code.co_filename.removeprefix(f"{TEMPLATE_ROOT}/")
            places.append(Place(short, trace.tb_lineno))
        trace = trace.tb_next
    return tuple(reversed(places))
