"""`emit`, `inspect`, `verify` and `sass`: a kernel as text, as a report, as checks, as SASS."""

from __future__ import annotations

import os
import re
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from ptxgen.api import kernel_from
from ptxgen.app.lines import Lines
from ptxgen.app.output import Answer, note
from ptxgen.toolchain.assemble import DEFAULT_TARGET, assemble
from ptxgen.toolchain.disassemble import disassemble
from ptxgen.toolchain.sass import Sass
from ptxgen.toolchain.verify import VerifyReport

_TARGET = re.compile(r"^\s*\.target\s+(sm_\w+)", re.MULTILINE)
_SASS_STYLES = (
    (r"//.*", "dim"),
    (r"/\*[0-9a-f]+\*/", "dim"),
    (r"\b[HQIB]GMMA\S*", "bold magenta"),
    (r"\b(UTMA|UBLK)\w*\S*", "bold cyan"),
    (r"\bSYNCS\S*", "bold yellow"),
)


def emit(reference: str, file: Path | None = None) -> Answer:
    """The PTX of a kernel, on stdout or in a file."""
    kernel = kernel_from(reference)
    data: dict[str, object] = {"reference": kernel.reference, "entry": kernel.spec.entry}
    if file is not None:
        file.write_text(kernel.ptx, encoding="utf-8")
        lines = kernel.ptx.count("\n")
        return Answer(
            data={**data, "file": str(file), "lines": lines},
            view=Text(f"{file}: {kernel.spec.entry}, {lines:,} lines"),
        )
    return Answer(data={**data, "ptx": str(kernel.ptx)}, view=ptx_text(kernel.ptx))


def inspect(reference: str) -> Answer:
    """Everything there is to say about a kernel, on one page."""
    report = kernel_from(reference).report()
    views: list[RenderableType] = [Text(report.reference, style="bold")]
    for title, text in report.sections():
        views.append(Text(f"\n{title}", style="bold cyan"))
        views.append(Padding(Lines(text), (0, 0, 0, 2)))
    return Answer(data=report.to_dict(), view=Group(*views))


def verify(reference: str) -> Answer:
    """Every promise of a kernel, held against its SASS."""
    kernel = kernel_from(reference)
    report = kernel.check_sass()
    return Answer(
        data={"reference": kernel.reference, **report.to_dict()},
        view=verify_view(report),
        ok=report.ok,
    )


def verify_view(report: VerifyReport) -> Group:
    """The rows of a verification as a table, reasons below those that fail."""
    head, resources = str(report).splitlines()[:2]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("", "check", "want", "got"):
        table.add_column(column)
    for row in report.rows:
        mark = ("ok", "green") if row.ok else ("BAD", "bold red")
        table.add_row(Text(*mark), row.name, row.want, row.got)
        if not row.ok and row.why:
            table.add_row("", Text(f"why: {row.why}", style="red"), "", "")
    style = "bold green" if report.ok else "bold red"
    return Group(Text(head, style=style), Lines(resources), Padding(table, (0, 0, 0, 2)))


def sass(what: str) -> Answer:
    """The SASS of a kernel reference, a PTX file, or a cubin."""
    listing = _sass_of(what)
    head = (
        f"// cubin {listing.cubin_sha256[:12]}, ptxas {listing.ptxas}, "
        f"nvdisasm {listing.nvdisasm}\n"
    )
    return Answer(data=listing.to_dict(), view=sass_text(head + str(listing)))


def ptx_text(ptx: str) -> Text:
    """PTX with colours, for a terminal."""
    text = Syntax("", "ptx", theme="ansi_dark").highlight(ptx)
    text.rstrip()
    text.append("\n")
    text.no_wrap, text.overflow = True, "ignore"  # lines stay whole, so that they can be copied
    return text


def sass_text(listing: str) -> Text:
    """SASS with the tensor, TMA and mbarrier instructions marked, for a terminal."""
    text = Text(listing)
    for pattern, style in _SASS_STYLES:
        text.highlight_regex(pattern, style)
    return text


def _sass_of(what: str) -> Sass:
    path = Path(what)
    if path.suffix == ".cubin":
        return disassemble(path.read_bytes())
    if path.suffix == ".ptx" or os.sep in what:
        return _sass_of_ptx(path)
    return kernel_from(what).sass


def _sass_of_ptx(path: Path) -> Sass:
    """Foreign PTX: what ptxas gave up is worth a remark, but no reason to hide the SASS."""
    ptx = path.read_text(encoding="utf-8")
    target = _TARGET.search(ptx)
    cubin = assemble(ptx, target=target[1] if target else DEFAULT_TARGET)
    for loss in cubin.report.losses:
        note(f"ptxas {cubin.ptxas}: {loss}")
    return disassemble(cubin)
