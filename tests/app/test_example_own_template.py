"""examples/own_template.py: it assembles without losses, and prints what it promises."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from ptxgen.toolchain.assemble import assemble, require_clean
from ptxgen.toolchain.disassemble import disassemble
from ptxgen.toolchain.discover import all_ptxas

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.delitem(sys.modules, "own_template", raising=False)
    import own_template

    return vars(own_template)


@pytest.mark.asm
@pytest.mark.parametrize("tool", all_ptxas(), ids=lambda t: t.version_text)
def test_it_assembles_and_one_thread_issues_tma(example, tool) -> None:
    kernel = example["Scale"](example["Tile"](rows=32, columns=64))
    cubin = require_clean(assemble(kernel.ptx, ptxas=tool))
    opcodes = [i.opcode for i in disassemble(cubin).function("scale").code]
    assert opcodes.count("UTMALDG.2D") == opcodes.count("UTMASTG.2D") == 1
    assert "BRA.U.ANY" not in opcodes  # ptxas would loop over lanes


@pytest.mark.emu
def test_it_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PTXGEN_BACKEND", "emulator")
    runpy.run_path(str(EXAMPLES / "own_template.py"), run_name="__main__")
    assert "D == alpha X for all 20,000 elements: True" in capsys.readouterr().out
