"""Render a template into PTX text with its source map."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import jinja2

from ptxgen.errors import TemplateError
from ptxgen.templating.environment import TEMPLATE_ROOT, HoleError, environment, free_names
from ptxgen.templating.format import format_lines
from ptxgen.templating.source_map import Place, split


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

    def locate(self, line: int) -> str:
        """The template line and macro calls behind PTX line `line` (from 1), in words."""
        chain = self.chains[line - 1] if 0 < line <= len(self.chains) else ()
        return ", called from ".join(str(place) for place in chain)


def render(path: str | Path, numbers: Mapping[str, object]) -> Rendered:
    """Render a template file: a path of the caller's, or a name under ptx_templates/.

    Raises TemplateError (template and line) for a missing file or name, a malformed statement, or
    a hole filled with something that is not text or an integer.
    """
    file = Path(path)
    if file.is_file():
        return render_text(file.read_text(encoding="utf-8"), file.name, numbers, (file.parent,))
    own = TEMPLATE_ROOT / file
    if not own.is_file():
        raise TemplateError(
            f"template {str(path)!r} not found: neither a file nor a name under ptx_templates/ "
            "(for example kernels/gemm.ptx.j2)"
        )
    return render_text(own.read_text(encoding="utf-8"), str(path), numbers)


def render_text(
    text: str, name: str, numbers: Mapping[str, object], search: tuple[Path, ...] = ()
) -> Rendered:
    """Render template text; `name` is what errors and the source map call it."""
    env = environment(*search)
    try:
        _require_names(env, text, name, numbers)
        code = env.compile(text, name, name)
        template = env.template_class.from_code(env, code, env.make_globals(None), None)
        marked = template.render(numbers)
    except jinja2.TemplateSyntaxError as error:
        raise TemplateError(f"{error.name or name}:{error.lineno}: {error.message}") from None
    except jinja2.TemplateNotFound as error:
        raise TemplateError(f"{name}: imports {error.name!r}, which does not exist") from None
    except (jinja2.UndefinedError, HoleError, TypeError, ValueError, KeyError) as error:
        raise TemplateError(f"{_failing_line(error.__traceback__, name)}: {error}") from None
    lines = format_lines(split(marked))
    return Rendered("\n".join(line.text for line in lines) + "\n", tuple(x.chain for x in lines))


def _require_names(
    env: jinja2.Environment, text: str, name: str, numbers: Mapping[str, object]
) -> None:
    """Jinja swallows an undefined name that is passed on as an argument, so ask beforehand."""
    missing = {n: line for n, line in free_names(env, text, name).items() if n not in numbers}
    if missing:
        listed = ", ".join(f"{n!r} (line {line})" for n, line in sorted(missing.items()))
        given = ", ".join(sorted(numbers)) or "none"
        raise TemplateError(f"{name}: undefined {listed}; names given: {given}")


def _failing_line(trace: TracebackType | None, name: str) -> str:
    """The innermost template frame of a traceback that Jinja has rewritten to template lines."""
    place = name
    while trace is not None:
        filename = trace.tb_frame.f_code.co_filename
        if filename == name or filename.endswith(".ptx.j2"):
            short = filename.removeprefix(f"{TEMPLATE_ROOT}/")
            place = f"{short}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
