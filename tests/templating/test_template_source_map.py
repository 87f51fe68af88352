"""Every PTX line knows the template line that wrote it, and the macro calls on the way there."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

import ptxgen
from ptxgen.templating import Rendered

pytestmark = pytest.mark.unit

MACROS = """\
## a comment that vanishes, then a blank line

# macro inner(x)
add.u32 %a, %a, ${x};

# if x
sub.u32 %a, %a, ${x};
# endif
# endmacro

# macro outer(x)
// outer
${ inner(x) }
# endmacro
"""

KERNEL = """\
# import "m.ptx.j2" as m
.version 8.0

# for i in range(2)
mov.u32 %i, ${i};
${ m.outer(i) }
# endfor
@%p ${ m.inner(0) }
ret;
"""


@pytest.fixture
def rendered(tmp_path: Path) -> Rendered:
    (tmp_path / "m.ptx.j2").write_text(MACROS)
    (tmp_path / "k.ptx.j2").write_text(KERNEL)
    return ptxgen.render(tmp_path / "k.ptx.j2")


def test_chains(rendered: Rendered) -> None:
    """Unrolled passes, nested macros, a macro behind a guard, and branches of a macro."""
    located = [
        (text, rendered.locate(number))
        for number, text in enumerate(rendered.splitlines(), start=1)
        if text
    ]
    inner, sub = "m.ptx.j2:4, called from m.ptx.j2:13", "m.ptx.j2:7, called from m.ptx.j2:13"
    assert located == [
        (".version 8.0", "k.ptx.j2:2"),
        ("mov.u32 %i, 0;", "k.ptx.j2:5"),
        ("// outer", "m.ptx.j2:12, called from k.ptx.j2:6"),
        ("add.u32 %a, %a, 0;", f"{inner}, called from k.ptx.j2:6"),
        ("mov.u32 %i, 1;", "k.ptx.j2:5"),
        ("// outer", "m.ptx.j2:12, called from k.ptx.j2:6"),
        ("add.u32 %a, %a, 1;", f"{inner}, called from k.ptx.j2:6"),
        ("sub.u32 %a, %a, 1;", f"{sub}, called from k.ptx.j2:6"),
        ("@%p add.u32 %a, %a, 0;", "m.ptx.j2:4, called from k.ptx.j2:8"),
        ("ret;", "k.ptx.j2:9"),
    ]


def test_every_line_has_a_chain(rendered: Rendered) -> None:
    lines = rendered.splitlines()
    assert len(rendered.chains) == len(lines)
    assert [bool(chain) for chain in rendered.chains] == [bool(text) for text in lines]


def test_lines_out_of_range_have_no_place(rendered: Rendered) -> None:
    assert rendered.locate(0) == rendered.locate(10_000) == ""


def test_the_map_survives_copies(rendered: Rendered) -> None:
    for twin in (copy.deepcopy(rendered), pickle.loads(pickle.dumps(rendered))):
        assert isinstance(twin, Rendered)
        assert twin == rendered
        assert twin.chains == rendered.chains


def test_wrapped_lines_keep_their_place() -> None:
    text = ptxgen.render_text('ret;\nmma ${ reg_list("acc", 0, 40) }, %a;\nret;\n', "k")
    assert [text.locate(n) for n in range(1, len(text.splitlines()) + 1)] == [
        "k:1", *["k:2"] * 5, "k:3",
    ]  # fmt: skip


def test_every_line_of_the_gemm_has_its_place() -> None:
    """The kernel that everything else stands on: no line of it comes from nowhere."""
    ptx = ptxgen.kernel("gemm").ptx
    root = Path(ptxgen.__file__).parents[1] / "ptx_templates"
    sources: dict[str, list[str]] = {}
    for text, chain in zip(ptx.splitlines(), ptx.chains, strict=True):
        assert bool(text) == bool(chain), text
        for place in chain:
            if place.template not in sources:
                sources[place.template] = (root / place.template).read_text().splitlines()
            assert 0 < place.line <= len(sources[place.template])
        if chain:
            assert chain[-1].template == "kernels/gemm.ptx.j2"
    (mma,) = {
        chain
        for text, chain in zip(ptx.splitlines(), ptx.chains, strict=True)
        if "wgmma.mma_async" in text and "//" not in text
    }
    assert [place.template for place in mma] == [
        "lib/wgmma.ptx.j2", "blocks/multiply.ptx.j2", "blocks/multiply.ptx.j2",
        "kernels/gemm.ptx.j2",
    ]  # fmt: skip
    assert "wgmma.mma_async" in sources["lib/wgmma.ptx.j2"][mma[0].line - 1]
    assert "mma_async" in sources["blocks/multiply.ptx.j2"][mma[1].line - 1]
