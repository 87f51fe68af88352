"""A kernel's promises against its SASS: good twins hold, each bad twin fails in its own row."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ptxgen.errors import SassMismatch
from ptxgen.toolchain.assemble import assemble
from ptxgen.toolchain.cache import Store
from ptxgen.toolchain.diagnostics import AssemblyReport, Diagnostic, Resources
from ptxgen.toolchain.disassemble import disassemble, parse_json
from ptxgen.toolchain.discover import Tool
from ptxgen.toolchain.sass import Sass
from ptxgen.toolchain.verify import (
    ALWAYS_WGMMA,
    Count,
    Expectation,
    GroupSize,
    NoLosses,
    NotPerLane,
    Promise,
    Resource,
    Setmaxnreg,
    VerifyReport,
    forbidden,
    verify,
)

# What tests/toolchain/data/wgmma_ring.ptx says of itself: four wgmma a k-block in one group, two
# loads of which one is multicast, four barriers, one setmaxnreg a role.
RING = Expectation(
    entry="wgmma_ring",
    promises=(
        *ALWAYS_WGMMA,
        Count(pattern="HGMMA.64x64x16.F32.BF16", where="mma_loop", multiple_of=4, at_least=4),
        Count(pattern="HGMMA", operand="gsb0", where="mma_loop", at_least=1),
        GroupSize(size=4),
        Setmaxnreg(dec=(40,), inc=(232,)),
        Count(pattern="UTMALDG.2D$", exactly=1),
        Count(pattern="UTMALDG.2D.MULTICAST", exactly=1),
        Count(pattern="SYNCS.EXCH.64", exactly=4),
        Resource(field="registers", exactly=232),
        Resource(field="smem_bytes", at_most=232_448),
    ),
)
ENTRY = Resources(function="wgmma_ring", entry=True, registers=232, smem_bytes=32_800)
REPORT = AssemblyReport(functions=(ENTRY,))


def captured(data: Path, name: str = "wgmma_ring.13.5") -> Sass:
    return parse_json((data / f"{name}.json").read_text())


def broken(report: VerifyReport) -> list[str]:
    return [row.name for row in report.rows if not row.ok]


@pytest.mark.unit
@pytest.mark.parametrize("version", ["13.0", "13.5"])
def test_good_twin_holds(data: Path, version: str) -> None:
    report = verify(captured(data, f"wgmma_ring.{version}"), REPORT, RING)
    assert report.ok, str(report)
    assert report.require() is report
    assert json.loads(json.dumps(report.to_dict()))["ok"] is True
    assert f"{len(RING.promises)} checks hold" in str(report)
    assert "232 registers" in str(report)  # resources belong to every report


@pytest.mark.unit
@pytest.mark.parametrize(
    ("promise", "got"),
    [
        (Count(pattern="HGMMA", where="mma_loop", multiple_of=3), "4 in the loop at 0x0670"),
        (Count(pattern="HGMMA", where="mma_loop", at_least=5), "4 in the loop at 0x0670"),
        (Count(pattern="UTMALDG.2D.MULTICAST", exactly=2), "1: 0x0420 UTMALDG.2D.MULTICAST"),
        (Count(pattern="UTMALDG.3D", exactly=1), "0"),
        (Count(pattern="SYNCS.PHASECHK", at_most=3), "and 1 more"),
        (Count(pattern="HGMMA", operand="gsb0", exactly=4), "1: 0x08b0"),
        (Count(pattern="STG", where="mma_loop", at_least=1), "0 in the loop"),
        (forbidden("ELECT", "for this test"), "1: 0x0220 ELECT"),
        (GroupSize(size=1), "4 in 1 group"),
        (GroupSize(pattern="QGMMA", size=1), "0 in 0 groups"),
        (Setmaxnreg(dec=(40,), inc=(240,)), "DEALLOC 40, TRY_ALLOC 232"),
        (Setmaxnreg(dec=(40,), inc=(232, 232)), "DEALLOC 40, TRY_ALLOC 232"),
        (Setmaxnreg(), "DEALLOC 40, TRY_ALLOC 232"),
        (Resource(field="registers", exactly=168), "232"),
        (Resource(field="registers", at_most=168), "232"),
    ],
)
def test_bad_promise_fails_and_shows_what_is_there(data: Path, promise: Promise, got: str) -> None:
    report = verify(captured(data), REPORT, Expectation(promises=(promise,)))
    (row,) = report.rows
    assert not row.ok
    assert got in row.got
    assert row.want
    with pytest.raises(SassMismatch, match="1 of 1 checks fail"):
        report.require()


@pytest.mark.unit
def test_no_mma_loop_fails(data: Path) -> None:
    promise = Count(pattern="HGMMA", where="mma_loop", multiple_of=4)
    sass = captured(data, "branch_table.13.5")
    module = AssemblyReport(functions=(Resources(function="first", entry=True),))
    (row,) = verify(sass, module, Expectation(entry="first", promises=(promise,))).rows
    assert not row.ok
    assert row.got == "no loop that holds a warpgroup MMA"


@pytest.mark.unit
def test_copy_in_a_loop_over_lanes(data: Path) -> None:
    sass = captured(data, "per_lane.13.5")
    (row,) = verify(sass, REPORT, Expectation(promises=(NotPerLane(),))).rows
    assert not row.ok
    assert row.got.startswith("2: ")
    assert "elect.sync" in row.why


@pytest.mark.unit
def test_losses_fail(data: Path) -> None:
    spilled = AssemblyReport(functions=(replace(ENTRY, spill_store_bytes=8, stack_bytes=8),))
    remark = Diagnostic(severity="info", code="C7999", text="Potential Performance Loss: new")
    for report, says in [
        (spilled, "8 B of spill stores"),
        (replace(REPORT, diagnostics=(remark,)), "(C7999)"),
    ]:
        (row,) = verify(captured(data), report, Expectation(promises=(NoLosses(),))).rows
        assert not row.ok
        assert says in row.got


@pytest.mark.unit
def test_missing_entry_names_what_there_is(data: Path) -> None:
    with pytest.raises(SassMismatch, match="the cubin has: wgmma_ring"):
        verify(captured(data), REPORT, replace(RING, entry="gemm"))
    with pytest.raises(SassMismatch, match="the module has: none"):
        verify(captured(data), AssemblyReport(), RING)


@pytest.mark.unit
@pytest.mark.parametrize(
    "make",
    [
        lambda: Count(pattern="HGMMA"),
        lambda: Resource(field="registers"),
        lambda: Resource(field="register", exactly=1),
    ],
)
def test_promise_that_holds_nothing_is_refused(make: object) -> None:
    with pytest.raises(ValueError, match=r"wants nothing|the report has"):
        make()  # type: ignore[operator]


def check(
    ptx: str, expectation: Expectation, tool: Tool, nvdisasm: Tool, store: Store
) -> VerifyReport:
    cubin = assemble(ptx, ptxas=tool, store=store)
    return verify(disassemble(cubin, nvdisasm=nvdisasm, store=store), cubin.report, expectation)


@pytest.mark.asm
def test_ring_on_every_ptxas(
    assembler: Tool, disassembler: Tool, store: Store, ring_ptx: str
) -> None:
    check(ring_ptx, RING, assembler, disassembler, store).require()


BAD_TWINS = {
    # edit of the PTX -> rows that must fail. The names are those of the promises above.
    "no .minnctapersm: setmaxnreg is dropped": (
        (".minnctapersm 1\n", "\n"),
        {"ptxas advisories, spills, stack frames", "USETMAXREG", "registers"},
    ),
    "a guard that several lanes may pass": (
        ("elect.sync _|%elected, -1;",
         "and.b32 %x, %tid_x, 28;\n    setp.eq.u32 %elected, %x, 0;"),
        {"TMA issued lane by lane"},
    ),
    "one load is not multicast": (
        (".multicast::cluster", ""),
        {"UTMALDG.2D$", "UTMALDG.2D.MULTICAST"},
    ),
    "a barrier is not initialised": (
        ("    mbarrier.init.shared::cta.b64 [%empty+8], 1;\n", ""),
        {"SYNCS.EXCH.64"},
    ),
}  # fmt: skip


@pytest.mark.asm
@pytest.mark.parametrize("name", BAD_TWINS)
def test_bad_twin_on_every_ptxas(
    assembler: Tool, disassembler: Tool, store: Store, ring_ptx: str, name: str
) -> None:
    (old, new), rows = BAD_TWINS[name]
    assert old in ring_ptx
    ptx = ring_ptx.replace(old, new)
    if name.startswith("one load"):  # without multicast the mask operand goes too
        ptx = ptx.replace("[%bar], %mask;", "[%bar];")
    assert set(broken(check(ptx, RING, assembler, disassembler, store))) == rows


@pytest.mark.asm
def test_serialised_wgmma_on_every_ptxas(
    assembler: Tool, disassembler: Tool, store: Store, ring_ptx: str
) -> None:
    """Reading an accumulator between the MMAs of a group: every MMA waits, and two rows say so."""
    mma = "    wgmma.mma_async"
    at = ring_ptx.rindex(mma)
    ptx = f"{ring_ptx[:at]}    st.global.f32 [%d], %acc0;\n{ring_ptx[at:]}"
    failed = broken(check(ptx, RING, assembler, disassembler, store))
    assert "ptxas advisories, spills, stack frames" in failed
    assert "wgmma per group" in failed
