"""Promises about order: good twins hold, and each edit of the PTX breaks the promise it should."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ptxgen.toolchain.assemble import assemble
from ptxgen.toolchain.cache import Store
from ptxgen.toolchain.diagnostics import AssemblyReport, Resources
from ptxgen.toolchain.disassemble import disassemble, parse_json
from ptxgen.toolchain.discover import Tool
from ptxgen.toolchain.listing import parse_listing
from ptxgen.toolchain.registers import read, written
from ptxgen.toolchain.sass import Instruction, Sass
from ptxgen.toolchain.verify import (
    ARRIVE_BEFORE_MMA,
    BARRIER_BEFORE_TMA_STORE,
    FENCE_BEFORE_TMA_STORE,
    WAIT_BEFORE_RELEASE,
    Count,
    Elected,
    Expectation,
    Guarded,
    Promise,
    Row,
    verify,
)

RING = (ARRIVE_BEFORE_MMA, WAIT_BEFORE_RELEASE, Elected(pattern="UTMALDG"))
STORE = (FENCE_BEFORE_TMA_STORE, BARRIER_BEFORE_TMA_STORE, Elected(pattern="UTMASTG"))
NAMES = {
    "arrive": ARRIVE_BEFORE_MMA.name,
    "wait": WAIT_BEFORE_RELEASE.name,
    "fence": FENCE_BEFORE_TMA_STORE.name,
    "barrier": BARRIER_BEFORE_TMA_STORE.name,
    "load elected": "UTMALDG behind ELECT",
    "store elected": "UTMASTG behind ELECT",
}


def rows(sass: Sass, promises: tuple[Promise, ...]) -> tuple[Row, ...]:
    name = sass.functions[0].name
    report = AssemblyReport(functions=(Resources(function=name, entry=True),))
    return verify(sass, report, Expectation(promises=promises)).rows


def broken(sass: Sass, promises: tuple[Promise, ...]) -> set[str]:
    return {row.name for row in rows(sass, promises) if not row.ok}


def listing(*lines: str) -> Sass:
    """SASS from lines `opcode operands`; the address of line n is n * 0x10."""
    text = "\n".join(f"/*{n * 16:04x}*/ {line} ;" for n, line in enumerate(lines))
    return parse_listing(f"k:\n{text}\n").sass()


# --- on SASS alone --------------------------------------------------------------------------------


@pytest.mark.unit
@pytest.mark.parametrize("version", ["13.0", "13.5"])
def test_ring_holds(data: Path, version: str) -> None:
    sass = parse_json((data / f"wgmma_ring.{version}.json").read_text())
    assert not broken(sass, RING)
    assert [row.got for row in rows(sass, RING)] == ["4 of 4", "1 of 1", "2 of 2"]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("gone", "name"),
    [("WARPGROUP.ARRIVE", "arrive"), ("WARPGROUP.DEPBAR", "wait"), ("ELECT", "load elected")],
)
def test_without_the_guard_the_row_fails(data: Path, gone: str, name: str) -> None:
    """ptxas puts a missing guard back where it can, so the guard is taken out of the SASS."""
    (function,) = parse_json((data / "wgmma_ring.13.5.json").read_text()).functions
    code = tuple(
        replace(i, opcode="NOP", operands="") if i.matches(gone) else i
        for i in function.instructions
    )
    assert broken(Sass(functions=(replace(function, instructions=code),)), RING) == {NAMES[name]}


FENCED = Guarded(pattern="UTMASTG", by="FENCE", since="STS", name="fenced")


@pytest.mark.unit
@pytest.mark.parametrize(
    ("lines", "holds"),
    [
        (("STS [R0], R1", "FENCE", "UTMASTG [UR4], [UR6]"), True),
        (("FENCE", "STS [R0], R1", "UTMASTG [UR4], [UR6]"), False),
        (("UTMASTG [UR4], [UR6]",), False),  # the start is not guarded here
        # One of two paths goes around the fence.
        (("@P0 BRA 0x20", "FENCE", "UTMASTG [UR4], [UR6]"), False),
        (("FENCE", "@P0 BRA 0x30", "NOP", "UTMASTG [UR4], [UR6]"), True),
        # The store of the first pass makes the second need a fence of its own.
        (("FENCE", "UTMASTG [UR4], [UR6]", "STS [R0], R1", "@P0 BRA 0x10", "EXIT"), False),
        (("FENCE", "UTMASTG [UR4], [UR6]", "STS [R0], R1", "@P0 BRA 0x0", "EXIT"), True),
        # Under a predicate a guard counts for its own predicate only, while that keeps its value.
        (("@P0 FENCE", "@P0 UTMASTG [UR4], [UR6]"), True),
        (("@P0 FENCE", "@!P0 UTMASTG [UR4], [UR6]"), False),
        (("@P0 FENCE", "UTMASTG [UR4], [UR6]"), False),
        (("@P0 FENCE", "ISETP.NE.AND P0, PT, R1, RZ, PT", "@P0 UTMASTG [UR4], [UR6]"), False),
    ],
)
def test_guard_on_every_path(lines: tuple[str, ...], holds: bool) -> None:
    (row,) = rows(listing(*lines, "EXIT"), (FENCED,))
    assert row.ok is holds
    assert holds or "UTMASTG" in row.got


@pytest.mark.unit
def test_nothing_to_guard_breaks_the_promise() -> None:
    (row,) = rows(listing("FENCE", "EXIT"), (FENCED,))
    assert (row.ok, row.got) == (False, "no such place")
    (row,) = rows(listing("ELECT P0, URZ, PT", "EXIT"), (Elected(pattern="UTMALDG"),))
    assert (row.ok, row.got) == (False, "no such place")


@pytest.mark.unit
@pytest.mark.parametrize(
    ("lines", "holds"),
    [
        (("ELECT P0, URZ, PT", "@P0 UTMALDG.2D [UR4], [UR6]"), True),
        (("ELECT P0, URZ, PT", "@!P0 BRA 0x30", "UTMALDG.2D [UR4], [UR6]"), True),
        (("ELECT P0, URZ, PT", "@!P0 EXIT", "UTMALDG.2D [UR4], [UR6]"), True),
        # Computed from ELECT, as where an election is joined with a test of the warp.
        (("ELECT P0, URZ, PT", "ISETP.LT.U32.AND P1, PT, R2, 0x20, P0",
          "@P1 UTMALDG.2D [UR4], [UR6]"), True),
        # Another predicate, or ELECT's after something else was written there.
        (("ELECT P0, URZ, PT", "@P1 UTMALDG.2D [UR4], [UR6]"), False),
        (("ELECT P0, URZ, PT", "ISETP.NE.AND P0, PT, R2, RZ, PT", "@P0 UTMALDG.2D [UR4], [UR6]"),
         False),
        # A branch on ELECT whose two ways meet again before the copy decides nothing.
        (("ELECT P0, URZ, PT", "@!P0 BRA 0x30", "NOP", "UTMALDG.2D [UR4], [UR6]"), False),
    ],
)  # fmt: skip
def test_behind_elect(lines: tuple[str, ...], holds: bool) -> None:
    (row,) = rows(listing(*lines, "EXIT"), (Elected(pattern="UTMALDG"),))
    assert row.ok is holds


@pytest.mark.unit
@pytest.mark.parametrize(
    ("text", "writes", "reads"),
    [
        ("IMAD R5, R6, R5, UR8", {"R5"}, {"R6", "R5", "UR8"}),
        ("STG.E desc[UR6][R2.64], R24", set(), {"UR6", "R2", "R24"}),
        ("ISETP.NE.U32.AND P0, PT, RZ, UR41, PT", {"P0"}, {"UR41"}),
        ("IADD3 R4, P1, R2, R3, RZ", {"R4", "P1"}, {"R2", "R3"}),
        ("SEL R5, R5, RZ, P0", {"R5"}, {"R5", "P0"}),
        ("SHFL.IDX PT, R4, R5, RZ, 0x1f", {"R4"}, {"R5"}),
        ("VOTEU.ANY UP0, P0", {"UP0"}, {"P0"}),
        ("ELECT P1, URZ, PT", {"P1"}, set()),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R3+URZ+0x20], R2", {"P0"}, {"R3", "R2"}),
        ("BRA.U UP0, 0x40", set(), {"UP0"}),
        ("R2P PR, R0, 0x7f", {f"P{n}" for n in range(7)}, {"R0"}),
    ],
)
def test_results_and_sources(text: str, writes: set[str], reads: set[str]) -> None:
    opcode, _, operands = text.partition(" ")
    instruction = Instruction(address=0, opcode=opcode, operands=operands)
    assert written(instruction) == writes
    assert read(instruction) == reads


# --- from PTX, on every ptxas ---------------------------------------------------------------------


def sass_of(ptx: str, tool: Tool, nvdisasm: Tool, store: Store) -> Sass:
    return disassemble(assemble(ptx, ptxas=tool, store=store), nvdisasm=nvdisasm, store=store)


def edited(ptx: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert old in ptx
        ptx = ptx.replace(old, new, 1)
    return ptx


@pytest.mark.asm
def test_release_before_the_wait(
    assembler: Tool, disassembler: Tool, store: Store, ring_ptx: str
) -> None:
    wait = "    wgmma.wait_group.sync.aligned 0;\n"
    arrive = "    @%p mbarrier.arrive.shared::cta.b64 _, [%bar];\n"
    ptx = edited(ring_ptx, (wait, ""), (arrive, arrive + wait))
    assert broken(sass_of(ptx, assembler, disassembler, store), RING) == {NAMES["wait"]}


@pytest.mark.asm
def test_second_group_without_a_fence(
    assembler: Tool, disassembler: Tool, store: Store, ring_ptx: str
) -> None:
    """Closing the group after its first MMA leaves the other three without a fence of their own."""
    end = "        %a_desc, %b_desc, 1, 1, 1, 0, 0;\n"
    ptx = edited(ring_ptx, (end, end + "    wgmma.commit_group.sync.aligned;\n"))
    assert broken(sass_of(ptx, assembler, disassembler, store), RING) == {NAMES["arrive"]}


@pytest.mark.asm
def test_identical_mmas_are_counted(
    assembler: Tool, disassembler: Tool, store: Store, ring_ptx: str
) -> None:
    """ptxas merges wgmma that it takes for the same: of four that overwrite D, one is left."""
    promise = Count(pattern="HGMMA", where="mma_loop", multiple_of=4, at_least=4)
    step = "    add.u64 %a_desc, %a_desc, 2;\n    add.u64 %b_desc, %b_desc, 2;\n"
    overwrites = ("%a_desc, %b_desc, 1,", "%a_desc, %b_desc, 0,")
    assert not broken(sass_of(ring_ptx, assembler, disassembler, store), (promise,))
    ptx = ring_ptx.replace(step, "").replace(*overwrites)
    (row,) = rows(sass_of(ptx, assembler, disassembler, store), (promise,))
    assert not row.ok
    assert row.got.startswith("1 in the loop")


STORE_TWINS = {
    "as it should be": ((), set()),
    "no fence": ((("    fence.proxy.async.shared::cta;\n", ""),), {"fence"}),
    "fence before the write": (
        (("    fence.proxy.async.shared::cta;\n", ""),
         ("    st.shared", "    fence.proxy.async.shared::cta;\n    st.shared")),
        {"fence"},
    ),
    "no barrier": (
        (("    fence.proxy.async.shared::cta;\n    bar.sync 1, 128;",
          "    fence.proxy.async.shared::cta;"),),
        {"barrier"},
    ),
    "a thread instead of an elected lane": (
        (("elect.sync _|%elected, -1;", "setp.eq.u32 %elected, %thread, 0;"),),
        {"store elected"},
    ),
}  # fmt: skip


@pytest.mark.asm
@pytest.mark.parametrize("name", STORE_TWINS)
def test_tma_store(
    assembler: Tool, disassembler: Tool, store: Store, data: Path, name: str
) -> None:
    edits, failing = STORE_TWINS[name]
    ptx = edited((data / "tma_store.ptx").read_text(), *edits)
    sass = sass_of(ptx, assembler, disassembler, store)
    assert broken(sass, STORE) == {NAMES[key] for key in failing}
