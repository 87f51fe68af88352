"""Code as a view: nothing is lost, blanks survive, the words that matter are coloured."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from ptxgen import kernel
from ptxgen.view.compare import Folded
from ptxgen.view.lexical import opcode_role, plain, ptx, sass
from ptxgen.view.palette import INKS, Ink
from ptxgen.view.sections import ptx_view, sections

pytestmark = pytest.mark.unit

PTX = """\
$LOOP:
    @!%more bra $LOOP;  // a < b
    wgmma.fence.sync.aligned;
    .reg .b32 %x<4>;
    mbarrier.init.shared::cta.b64 [%full + 0], 1;
    cp.async.bulk.tensor.2d.shared::cluster.global [%a], [%m, {%k, %r}], [%f];""".splitlines()


class Words(HTMLParser):
    """The text of a fragment, and the text by class."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.numbers = "", ""
        self.roles: dict[str, list[str]] = {}
        self._open: list[tuple[str, str]] = []
        self.feed(html)
        assert self._open == [], "every tag is closed"

    def handle_starttag(self, tag, attrs) -> None:
        self._open.append((tag, dict(attrs).get("class") or ""))

    def handle_endtag(self, tag) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data) -> None:
        tag, role = self._open[-1]
        if tag == "i":
            self.numbers += data
        elif tag != "style":
            self.text += data
            if role and tag == "span":
                self.roles.setdefault(role, []).append(data)


def test_ptx_loses_nothing() -> None:
    code = ptx(PTX, first=7)
    assert str(code) == "\n".join(PTX)
    words = Words(code.html())
    assert words.text == "\n".join(PTX)
    assert words.numbers.split() == [str(7 + i) for i in range(len(PTX))]


def test_roles_of_ptx() -> None:
    roles = Words(ptx(PTX).html()).roles
    assert roles["tensor"] == ["wgmma.fence.sync.aligned"]
    assert roles["mbarrier"] == ["mbarrier.init.shared::cta.b64"]
    assert roles["tma"] == ["cp.async.bulk.tensor.2d.shared::cluster.global"]
    assert roles["label"] == ["$LOOP:", "$LOOP"]
    assert roles["comment"] == ["// a < b"]
    assert roles["directive"] == [".reg", ".b32"]
    assert roles["opcode"] == ["bra"]


def test_roles_of_sass() -> None:
    lines = [
        "L_0ce0:",
        "  /*0ce0*/   @P0 HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8], R24    // PTX line 294",
        "  /*0cf0*/       UTMALDG.2D [UR4], [UR6]",
        "  /*0d00*/       SYNCS.ARRIVE.TRANS64 RZ, [R3+URZ], R2",
    ]
    words = Words(sass(lines).html())
    assert words.text == "\n".join(lines)
    assert words.roles["tensor"] == ["HGMMA.64x256x16.F32.BF16"]
    assert words.roles["tma"] == ["UTMALDG.2D"]
    assert words.roles["mbarrier"] == ["SYNCS.ARRIVE.TRANS64"]
    assert words.roles["label"] == ["L_0ce0:"]


def test_the_longest_name_decides() -> None:
    assert opcode_role("cp.async.bulk.commit_group") == "tma"
    assert opcode_role("cp.async.commit_group") == ""


def test_code_stands_in_pre() -> None:
    """Exporters of notebooks keep blanks between two elements nowhere else."""
    assert re.search(r'<pre class="pg-code" style="font:[^"]*white-space:pre', ptx(PTX).html())


def test_a_pointer_shows_the_template_line() -> None:
    html = ptx(["ret;", "ret;"], tips=["a & b.ptx.j2:3"]).html()
    assert html.count("title=") == 1
    assert 'title="a &amp; b.ptx.j2:3"' in html


def test_a_terminal_gets_colours_and_the_same_text() -> None:
    coloured = ptx(PTX).text(color=True)
    assert "\x1b[1;35mwgmma" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == "\n".join(PTX)
    assert plain("as it is").text(color=True) == "as it is"


def contrast(a: str, b: str) -> float:
    """WCAG 2.1."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(a), luminance(b)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("ink", INKS.values(), ids=INKS)
def test_inks_can_be_read(ink: Ink) -> None:
    """On a white page and on the black of a dark notebook: WCAG asks for 4.5."""
    assert contrast(ink.light, "#ffffff") >= 4.5
    assert contrast(ink.dark, "#1e1e1e") >= 4.5


def test_sections_of_a_kernel_cover_it() -> None:
    lines = kernel("gemm").ptx.splitlines()
    found = sections(lines)
    assert found[0].title == "contract"
    assert [s.title.split(":")[0] for s in found[2:]] == ["everybody", "producer", "consumers"]
    assert [s.first for s in found] == [1, *(s.last + 1 for s in found[:-1])]
    assert found[-1].last == len(lines)
    view = ptx_view(lines)
    assert str(view) == "\n".join(lines)
    short = ptx_view(lines, fold=True).text()
    assert short.startswith("\n".join(lines[: found[0].last]))
    assert short.endswith(f"lines {found[-1].first}–{len(lines)}")


def test_short_code_is_not_folded() -> None:
    assert "<details" not in ptx_view(PTX).html()


def test_folds() -> None:
    inner = plain("inside")
    assert Folded(words="w", inner=inner).text() == "inside"
    assert Folded(words="w", inner=inner, instead="w").text() == "w"
    assert "<details open>" in Folded(words="w", inner=inner, opened=True).html()
    assert "<details>" in Folded(words="w", inner=inner).html()
