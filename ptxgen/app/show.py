"""`emit`, `inspect`, `verify` and `sass`: a kernel as text, as a report, as checks, as SASS."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from ptxgen.api import kernel_from
from ptxgen.app.lines import Lines
from ptxgen.app.output import Answer, note
from ptxgen.app.sides import Subject, is_file, subject
from ptxgen.app.views import rich_text
from ptxgen.errors import ToolchainError
from ptxgen.toolchain.paths import check_paths
from ptxgen.toolchain.sassmap import sass_map
from ptxgen.toolchain.verify import VerifyReport
from ptxgen.view.base import Stack
from ptxgen.view.lexical import ptx
from ptxgen.view.lexical import sass as code
from ptxgen.view.page import page


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


def verify(what: str) -> Answer:
    """Every promise of a kernel held against its SASS, or the hardware paths of a foreign file."""
    if is_file(what):
        return _verify_file(what)
    kernel = kernel_from(what)
    report = kernel.check_sass()
    paths = check_paths(kernel.sass, kernel.ptx)
    return Answer(
        data={
            "reference": kernel.reference,
            **report.to_dict(),
            "paths": [path.to_dict() for path in paths],
        },
        view=Group(verify_view(report), Text(), rich_text(Stack(paths))),
        ok=report.ok,
    )


def _verify_file(what: str) -> Answer:
    """No promises are known of a foreign kernel; a fallback, a loop over lanes, a spill are bad."""
    found = subject(what)
    paths = check_paths(found.sass, found.ptx)
    losses = found.assembly.report.losses if found.assembly is not None else ()
    return Answer(
        data={"file": what, "paths": [p.to_dict() for p in paths], "losses": list(losses)},
        view=rich_text(Stack(paths)),
        ok=all(path.ok for path in paths) and not losses,
    )


def verify_view(report: VerifyReport) -> Text:
    """The rows of a verification as a table, reasons beside those that fail."""
    return rich_text(report)


def sass(what: str, *, beside: bool = False, html: Path | None = None) -> Answer:
    """The SASS of a kernel, a PTX file, or a cubin; with `beside` all that goes with it."""
    found = subject(what)
    if beside or html is not None:
        return _sass_map(found, html)
    listing = found.sass
    head = (
        f"// cubin {listing.cubin_sha256[:12]}, ptxas {listing.ptxas}, "
        f"nvdisasm {listing.nvdisasm}\n"
    )
    return Answer(data=listing.to_dict(), view=sass_text(head + str(listing)))


def _sass_map(found: Subject, html: Path | None) -> Answer:
    if found.cubin is None:
        raise ToolchainError(
            f"{found.name}: a listing has no live registers and no encodings to show.\n"
            "Cure: give the cubin, the PTX or the kernel that it came from."
        )
    locate = found.kernel.ptx.locate if found.kernel is not None else None
    shown = sass_map(found.cubin, ptx=found.ptx, locate=locate)
    if html is not None:
        html.write_text(page(shown, found.name), encoding="utf-8")
        note(f"wrote {html}")
    return Answer(data=shown.to_dict(), view=rich_text(shown))


def ptx_text(text: str) -> Text:
    """PTX with colours, for a terminal. Lines stay whole, so that they can be copied."""
    return _whole(rich_text(ptx(text.splitlines())))


def sass_text(listing: str) -> Text:
    """SASS with its tensor, TMA and mbarrier instructions marked, for a terminal."""
    return _whole(rich_text(code(listing.splitlines())))


def _whole(text: Text) -> Text:
    text.append("\n")
    text.no_wrap, text.overflow = True, "ignore"
    return text
