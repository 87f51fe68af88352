"""README.md says what is so: what needs neither an assembler nor a run."""

from __future__ import annotations

import contextlib
import io

import pytest
import readme
from typer.testing import CliRunner

from ptxgen import env, kernel
from ptxgen.app.cli import app
from ptxgen.kernels.registry import FAMILIES
from runtime.bench import speed

pytestmark = pytest.mark.unit


def test_the_table_of_knobs_is_the_registry() -> None:
    assert env.table() in readme.text()


def test_the_tables_of_speed_are_the_records() -> None:
    """`python -m runtime.bench.speed` rewrites them."""
    assert f"{speed.BEGIN}\n\n{speed.sections_of()}\n\n{speed.END}" in readme.text()


def test_every_kernel_is_in_the_table() -> None:
    for name in FAMILIES:
        assert f"\n| `{name}` | " in readme.text()


def test_the_ptx_excerpt_is_in_the_ptx() -> None:
    rest: str = kernel("gemm").ptx
    for part in readme.block_with("$CONSUME_STAGE:").split("        ...\n"):
        _, found, rest = rest.partition(part)
        assert found, part


@pytest.mark.parametrize(
    ("words", "printed"), [s for s in readme.sessions() if s[0][0] != "run"], ids=str
)
def test_every_session_prints_what_is_shown(words: list[str], printed: str) -> None:
    assert CliRunner().invoke(app, words).output.rstrip("\n") == printed


def test_python_that_only_renders_prints_what_is_shown() -> None:
    rendering = [pair for pair in readme.python_with_output() if "render_text" in pair[0]]
    assert rendering
    for code, shown in rendering:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec("import ptxgen\n" + code, {})
        assert printed.getvalue().rstrip("\n") == shown.rstrip("\n")


def test_every_command_is_listed() -> None:
    listed = readme.block_with("ptxgen doctor  ")
    names = {c.name or c.callback.__name__ for c in app.registered_commands if c.callback}
    names |= {group.name for group in app.registered_groups}
    for name in names - {"demo"}:  # `make demo` runs it
        assert f"\nptxgen {name} " in "\n" + listed
