"""ptxas's output as data, from logs that were captured from ptxas 13.0 and 13.5."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ptxgen.toolchain.advice import ADVICE, advice_for
from ptxgen.toolchain.diagnostics import (
    AssemblyReport,
    Diagnostic,
    Resources,
    annotate,
    parse_log,
    render_all,
    shorten,
    statement_at,
)

pytestmark = pytest.mark.unit

LOGS = sorted((Path(__file__).parent / "data" / "logs").glob("*.log"))


def log(name: str) -> str:
    return (Path(__file__).parent / "data" / "logs" / f"{name}.log").read_text()


@pytest.mark.parametrize("version", ["13.0", "13.5"])
def test_clean(version: str) -> None:
    report = parse_log(log(f"clean.{version}"))
    assert report.entry() == Resources(
        function="k", entry=True, target="sm_90a", registers=58, smem_bytes=65536
    )
    assert report.diagnostics == ()
    assert report.losses == ()
    assert report.other == ()


def test_spill() -> None:
    report = parse_log(log("spill.13.0"))
    entry = report.entry()
    assert (entry.stack_bytes, entry.spill_store_bytes, entry.spill_load_bytes) == (456, 452, 452)
    assert (entry.registers, entry.barriers, entry.cumulative_stack_bytes) == (32, 1, 456)
    (loss,) = report.losses
    assert "452 B of spill stores" in loss
    assert "cure" in loss


def test_two_entries_and_a_function() -> None:
    report = parse_log(log("two_entries.13.0"))
    assert [(e.function, e.registers) for e in report.entries] == [("second", 8), ("first", 18)]
    assert [f.function for f in report.functions if not f.entry] == ["helper"]
    assert report.entry("first").registers == 18
    with pytest.raises(KeyError, match="second, first"):
        report.entry()


def test_resources_of_older_wording() -> None:
    # ptxas 12 lists constant banks and leaves out what is zero.
    report = parse_log(
        "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
        "ptxas info    : Used 24 registers, 600 bytes cmem[0], 8 bytes cmem[2]\n"
    )
    assert report.entry().cmem_bytes == 608
    assert report.entry().barriers == 0


@pytest.mark.parametrize(
    ("name", "kind", "code", "line"),
    [
        ("setmaxnreg_entry.13.0", "setmaxnreg-entry", "C7508", None),
        ("pipeline_registers.13.5", "serial-pipeline-registers", "C7511", 270),
        ("accumulator_read.13.0", "serial-accumulator-read", "C7514", None),
        ("accumulator_read.13.5", "serial-accumulator-read", "C7514", None),  # "in line 0"
        # One and the same remark, whose number moved:
        ("divergent_arrive.13.0", "serial-divergent-arrive", "C7520", None),
        ("divergent_arrive.13.5", "serial-divergent-arrive", "C7519", 49),
        # One and the same remark, whose words changed:
        ("wait_injected.13.0", "wait-injected", "C7517", 49),
        ("wait_injected.13.5", "wait-injected", "C7517", 49),
        ("multicast_sm_90.13.0", "target-advisory", "", 14),
    ],
)
def test_advisories(name: str, kind: str, code: str, line: int | None) -> None:
    report = parse_log(log(name))
    (found,) = report.advisories
    assert found.advice is not None
    assert (found.advice.name, found.code, found.line) == (kind, code, line)
    assert report.errors == ()
    assert any(found.text in loss for loss in report.losses)
    assert report.other == ()


def test_two_remarks_on_one_kernel() -> None:
    report = parse_log(log("two_remarks.13.0"))
    assert [(d.code, d.line, d.function) for d in report.advisories] == [
        ("C7519", 50, "k"),
        ("C7511", None, "k"),
    ]


@pytest.mark.parametrize(
    ("name", "kinds", "lines"),
    [
        ("newer.13.0", ["version-unknown"], [1]),
        ("newer.13.5", ["version-unknown"], [1]),
        ("version_too_low.13.0", ["version-too-low"] * 5, [46, 47, 48, 49, 2]),
        ("sm90.13.5", ["target-too-low"] * 4, [46, 47, 48, 49]),
        ("smem.13.0", ["shared-memory"], [None]),
        ("setmaxnreg_above_entry.13.0", ["setmaxnreg-above-entry"], [14]),
        ("instruction_registers.13.0", ["instruction-registers"], [143]),
        ("semantic.13.0", [None] * 4, [14, 15, 16, 14]),
    ],
)
def test_refusals(name: str, kinds: list[str | None], lines: list[int | None]) -> None:
    errors = parse_log(log(name)).errors
    assert [e.advice.name if e.advice else None for e in errors] == kinds
    assert [e.line for e in errors] == lines


def test_unknown_remarks_are_kept_word_for_word() -> None:
    text = "Something that no release has said yet in line 12"
    report = parse_log(
        f"ptxas info    : (C7999) {text}\nptxas warning : plain words\nnot from ptxas at all\n"
    )
    coded, plain = report.advisories
    assert (coded.code, coded.text, coded.line, coded.advice) == ("C7999", text, 12, None)
    assert plain.text == "plain words"
    assert report.other == ("not from ptxas at all",)
    assert text in str(report)


def test_plain_information_is_no_loss() -> None:
    report = parse_log("ptxas info    : Overriding maximum register limit 256 for 'k'\n")
    assert len(report.diagnostics) == 1
    assert report.losses == ()


def test_annotation_names_both_lines() -> None:
    ptx = "\n".join(f"line {n};" for n in range(1, 20))
    asked: list[int] = []

    def locate(line: int) -> str | None:
        asked.append(line)
        return "gemm.ptx.j2:7  mov.u33" if line == 14 else None

    first, second, *_ = annotate(parse_log(log("semantic.13.0")), ptx, locate).errors
    assert (first.source, first.origin) == ("line 14;", "gemm.ptx.j2:7  mov.u33")
    assert (second.source, second.origin) == ("line 15;", "")
    assert asked == [14, 15, 16, 14]
    assert "ptx   line 14;" in str(first)
    assert "from  gemm.ptx.j2:7" in str(first)


def test_statement_over_several_lines() -> None:
    # ptxas names the last line of a statement.
    lines = [
        "mov.u32 %a, 1;",
        "wgmma.mma_async {%d0,  // accumulators",
        "  %d1},",
        "  %a, 1;",
        "x;",
    ]
    assert statement_at(lines, 4) == "wgmma.mma_async {%d0, %d1}, %a, 1;"
    assert statement_at(lines, 1) == "mov.u32 %a, 1;"
    assert statement_at([".version 8.0", ".target sm_90a"], 2) == ".target sm_90a"
    assert statement_at(["$L:", "bra $L"], 2) == "bra $L"


def test_annotation_of_a_line_that_is_not_there() -> None:
    report = AssemblyReport(diagnostics=(Diagnostic(severity="error", text="t", line=99),))
    assert annotate(report, "one line").errors[0].source == ""


def test_repeated_refusals_are_shown_once_with_all_lines() -> None:
    errors = [Diagnostic(severity="error", text="same", line=n) for n in (40, 7, 9)]
    text = render_all([*errors, Diagnostic(severity="error", text="other", line=8)])
    assert text.splitlines() == [
        "PTX line 7: error: same",
        "    also  PTX line 9, 40",
        "PTX line 8: error: other",
    ]


def test_advice_is_given_once() -> None:
    text = render_all(parse_log(log("sm90.13.5")).errors)
    assert text.count("cure") == 1
    assert text.count("not supported on .target") == 4


def test_long_lines_are_shortened() -> None:
    names = ", ".join(f"%acc{i}" for i in range(128))
    line = f"wgmma.mma_async {{{names}}}, %a, %b, 1, 1, 1, 0, 0;"
    assert len(shorten(line)) <= 120
    assert shorten(line).endswith("1, 1, 1, 0, 0;")
    assert shorten("  mov.u32   %a, 1; ") == "mov.u32 %a, 1;"


@pytest.mark.parametrize("path", LOGS, ids=lambda p: p.stem)
def test_report_is_json_and_complete(path: Path) -> None:
    report = parse_log(path.read_text())
    assert json.loads(json.dumps(report.to_dict()))["other"] == []
    said = [d.text for d in report.diagnostics]
    for line in path.read_text().splitlines():  # every numbered remark is somewhere
        if found := re.search(r"\(C\d+\) (.*)", line):
            assert found[1].strip() in said


def test_every_row_of_the_table_is_complete_and_reachable() -> None:
    assert len({row.name for row in ADVICE}) == len(ADVICE)
    for row in ADVICE:
        assert row.meaning
        assert row.cause
        assert row.cure


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        # Texts of the two binaries that need a situation which `assemble` never makes.
        ("Potential Performance Loss: 'setmaxnreg' ignored to maintain compatibility across "
         "compilation units.", "setmaxnreg-relocatable"),
        ("Potential Performance Loss: 'setmaxnreg' ignored to allow debugging.",
         "setmaxnreg-debug"),
        ("Potential Performance Loss: 'setmaxnreg' ignored to maintain compatibility into "
         "'extern' call.", "setmaxnreg-call"),
        ("Potential Performance Loss: wgmma.mma_async instructions are serialized due to the "
         "presence of Extern calls in the function 'k'", "serial-extern-call"),
        ("Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
         "insufficient register resources for the function 'k'", "serial-function-registers"),
        ("Potential Performance Loss: wgmma.mma_async instructions are serialized due to ill "
         "formed pipeline stage in the function 'k'", "serial-ill-formed"),
        ("Potential Performance Loss: wgmma.mma_async instructions are serialized due to a new "
         "reason", "serial-other"),
        ("Potential Performance Loss: 'setmaxnreg' ignored for a new reason", "setmaxnreg-other"),
        ("PTX with .target 'sm_90a' cannot be compiled for architecture 'sm_90'",
         "target-mismatch"),
        ("SM version specified by .target is higher than default SM version assumed",
         "target-mismatch"),
        ("Instruction 'wgmma.fence' cannot be compiled for architecture 'sm_100a'",
         "target-too-low"),
        ("Advisory: Modifier '.sp::ordered_metadata' should be used on instruction 'mma' instead "
         "of modifier '.sp' as it is expected to have substantially reduced performance on some "
         "future architectures", "sparse-metadata"),
        ("Advisory: Modifier '.a' should be used with modifier '.b' otherwise it is expected to "
         "have substantially reduced performance", "modifier-advisory"),
        (".minnctapersm is ignored when neither .maxntid nor .reqntid is specified.",
         "minnctapersm-alone"),
        ("Value of minnctapersm for entry k is out of range. minnctapersm will be ignored",
         "minnctapersm-range"),
        ("Too big maxrregcount value specified 300, will be ignored", "register-limit"),
        ("For profile sm_90a adjusting per thread register count of 16 to lower bound of 24",
         "register-limit"),
        (".sync_restrict::reads modifier deprecated in PTX version 9.5, use .sync_restrict::read",
         "deprecated"),
        ("Value 'sm_9a' is not defined for option 'gpu-name'", "target-unknown"),
    ],
)  # fmt: skip
def test_advice_by_words(text: str, kind: str) -> None:
    row = advice_for(text)
    assert row is not None
    assert row.name == kind


def test_every_numbered_remark_is_explained_in_full() -> None:
    """What happened, where, the usual cause, the cure: for every log that holds a remark."""
    explained = 0
    for path in LOGS:
        report = annotate(parse_log(path.read_text()), "\n".join(["op;"] * 400))
        for remark in report.advisories:
            text = str(remark)
            assert "means " in text, path.name
            assert "cause " in text, path.name
            assert "cure  " in text, path.name
            if remark.line is not None:
                assert f"PTX line {remark.line}:" in text
                assert "ptx   op;" in text
            explained += 1
    assert explained >= 10
