"""`ptxgen diff`: two kernels' SASS compared."""

from __future__ import annotations

from pathlib import Path

from ptxgen.app import views
from ptxgen.app.output import Answer, note
from ptxgen.app.sides import Subject, subject
from ptxgen.toolchain import discover
from ptxgen.toolchain.diff import Diff, diff
from ptxgen.view.page import page


def diff_of(a: str, b: str, *, ptxas_a: Path | None = None, ptxas_b: Path | None = None) -> Diff:
    """The comparison itself, for a notebook: what `a` and `b` name is what the command takes."""
    return diff(_subject(a, ptxas_a).sides(), _subject(b, ptxas_b).sides())


def compare(
    a: str,
    b: str,
    *,
    ptxas_a: Path | None = None,
    ptxas_b: Path | None = None,
    html: Path | None = None,
) -> Answer:
    """Compare two things that can be named; `html` also writes the page."""
    found = diff_of(a, b, ptxas_a=ptxas_a, ptxas_b=ptxas_b)
    if html is not None:
        html.write_text(page(found, f"{a} | {b}"), encoding="utf-8")
        note(f"wrote {html}")
    return Answer(data=found.to_dict(), view=views.rich_text(found), ok=found.equal)


def _subject(what: str, ptxas: Path | None) -> Subject:
    tool = discover.tool_at("ptxas", ptxas) if ptxas is not None else None
    return subject(what, ptxas=tool)
