"""`ptxgen prove`: parts that are kept, the page, and that PROOFS.md says what it should."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ptxgen.app import prove
from ptxgen.app.cli import app
from ptxgen.app.prove import Left, Options, Proof
from ptxgen.app.prove_page import line, page, totals
from ptxgen.errors import ArgumentError
from ptxgen.kernels.proofs import PROOFS

pytestmark = pytest.mark.emu

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "tests" / "foreign" / "subjects.py"
SURVIVOR = Left(fate="survived", operator="drop fence", line=7, was="membar.cta;", by="")
HARMLESS = Left(
    fate="equivalent", operator="setmaxnreg -8", line=9, was="setmaxnreg.dec.sync.aligned.u32 40;",
    by="9.7.19.5 setmaxnreg: the total stays within the pool, 1 <= 2; so no inc waits",
)  # fmt: skip
PROOF = Proof(
    name="gemm", program=False, verdict="pass", runs=150, findings=(), advice=(), killed=98,
    by_advice=1, killers={"deadlock": 97, "proxy-fence": 1}, left=(HARMLESS, SURVIVOR), seconds=3.0,
)  # fmt: skip


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading of PROOFS.md."""
    text = (ROOT / "PROOFS.md").read_text(encoding="utf-8")
    part = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = [row.strip("| ").split(" | ") for row in part.splitlines() if row.startswith("|")]
    return found[2:]


def test_the_page_says_what_it_should_of_its_kernels() -> None:
    """150 schedules, nothing found; at least 95 % killed of all, and every survivor is shown.

    The page tells of the commit that it names: a kernel that came later is on the next one.
    `test_proofs` has all of them every time.
    """
    table = {row[0].strip("`"): row[1:] for row in rows("Kernels")}
    assert len(table) >= 23
    assert [name for name in PROOFS if name in table] == list(table)
    for cells in table.values():
        schedules, findings, mutants, killed, _, survived, equivalent, score, raw = cells
        assert (schedules, findings) == ("150", "0")
        assert int(mutants) == int(killed) + int(survived) + int(equivalent)
        assert min(float(score.rstrip(" %")), float(raw.rstrip(" %"))) >= 95.0
    assert len(rows("Survivors")) == sum(int(cells[5]) for cells in table.values())


def test_every_equivalent_has_its_rule_on_the_page() -> None:
    table = rows("Equivalent mutants")
    assert len(table) == sum(int(row[7]) for row in rows("Kernels"))
    for _, mutant, was, rule in table:
        if mutant == "descriptor leading stride":
            assert "reads of operands in a run are of the same places" in rule
            continue
        assert "setmaxnreg" in mutant
        assert was.startswith("`setmaxnreg.")
        held, pool = re.findall(r"= ([\d,]+) registers of the ([\d,]+)", rule)[0]
        assert int(held.replace(",", "")) <= int(pool.replace(",", ""))


def test_the_page_covers_every_foreign_program() -> None:
    table = {row[0].strip("`"): row[1:4] for row in rows("Foreign programs")}
    folder = ROOT / "tests" / "foreign"
    stems = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.ptx")}
    assert set(table) == stems - {"wmma_tile"}  # it uses what the emulator does not execute
    assert set(map(tuple, table.values())) == {("pass", "150", "0")}


def test_what_the_counts_mean() -> None:
    assert PROOF.mutants == 100
    assert PROOF.percent == pytest.approx(100 * 98 / 99)
    assert PROOF.raw_percent == pytest.approx(98.0)
    assert not PROOF.ok
    assert replace(PROOF, left=(HARMLESS,)).ok
    assert not replace(PROOF, left=(), verdict="fail").ok


def test_a_page_names_what_is_left_and_what_was_found() -> None:
    program = replace(
        PROOF, name="sum", program=True, verdict="fail", runs=2, left=(), killed=0, by_advice=0,
        killers={}, advice=("race-atomic",), findings=("error trap: it did [eager:random:1]",),
    )  # fmt: skip
    text = page([PROOF, program], Options(sample=100))
    assert "| `gemm` | 150 | 0 | 100 | 98 | 1 | 1 | 1 | 99.0 % | 98.0 % |" in text
    assert "| `gemm` | drop fence | `membar.cta;` | nobody noticed |" in text
    assert "the total stays within the pool, 1 <= 2 |" in text
    assert "| `deadlock` | 97 |" in text
    assert "| `sum` | fail | 2 | 1 | race-atomic |" in text
    assert "* `sum`: error trap: it did [eager:random:1]" in text
    assert "A fixed sample of 100 mutants: one" in text
    assert totals([PROOF, program]) == (
        "1 kernel and 1 foreign program, 152 clean runs, 1 finding. 100 mutants: 98 killed, "
        "1 survived, 1 equivalent."
    )
    assert line(PROOF, True, "1/2").endswith("98 of 100 mutants killed (99.0 %), kept")


def command(*words: str) -> Sequence[str]:
    return ("prove", "--programs", str(PROGRAMS), "--only", "switch_branches", *words)


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Six schedules of a small program: the second time it is not run again."""
    words = command("--seeds", "2", "--folder", str(tmp_path / "parts"))
    first = CliRunner().invoke(app, words)
    assert first.exit_code == 0, first.output
    assert "1/1 switch_branches: pass, 6 schedules, 0 findings" in first.stderr
    again = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "page.md")])
    assert again.stderr.rstrip().endswith("kept")
    assert "| `switch_branches` | pass | 6 | 0 | - |" in (tmp_path / "page.md").read_text()
    assert again.stdout.startswith("0 kernels and 1 foreign program, 6 clean runs, 0 findings.")


def test_a_file_without_programs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nothing.py"
    path.write_text("x = 1\n")
    with pytest.raises(ArgumentError, match=r"must define subjects\(\)"):
        prove.tasks(path, Options())


def test_a_program_that_fails_is_reported_with_its_schedule(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text(f"""
import sys
sys.path.insert(0, {str(PROGRAMS.parent)!r})
from subjects import ForeignSubject

def wrong():
    subject = ForeignSubject("switch_branches")
    subject.ptx = subject.ptx.replace("ret;", "trap;")
    return subject

def subjects():
    return {{"broken": wrong}}
""")
    (task,) = prove.tasks(path, Options(only="broken"))
    found = prove.prove(task, Options(seeds=2))
    assert (found.verdict, found.runs) == ("fail", 1)
    assert found.findings == ("error trap: the program executed trap [eager:round_robin:0]",)
