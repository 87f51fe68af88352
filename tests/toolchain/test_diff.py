"""The SASS diff: what counts as the same, what is named as changed, moved, added, removed."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ptxgen.toolchain.assemble import assemble
from ptxgen.toolchain.cache import Store
from ptxgen.toolchain.diff import Diff, FunctionDiff, Side, compare, diff
from ptxgen.toolchain.diff.align import key
from ptxgen.toolchain.disassemble import disassemble, parse_json
from ptxgen.toolchain.discover import Tool
from ptxgen.toolchain.flow import flow
from ptxgen.toolchain.listing import parse_listing
from ptxgen.toolchain.sass import SassFunction
from ptxgen.view import page


def side(*lines: str, name: str = "k") -> Side:
    """A function from lines `opcode operands`; the address of line n is n * 0x10."""
    text = "\n".join(f"/*{n * 16:04x}*/ {line} ;" for n, line in enumerate(lines))
    return Side(name=name, function=parse_listing(f"{name}:\n{text}\n").sass().function())


def ring(data: Path, version: str = "13.5") -> Side:
    sass = parse_json((data / f"wgmma_ring.{version}.json").read_text())
    return Side(name=f"ring {version}", function=sass.function(), ptxas=version)


def kinds(found: FunctionDiff) -> list[tuple[str, str]]:
    """(kind, opcode) of all lines that differ."""
    return [
        (line.kind, instruction.opcode)
        for region in found.regions
        for line in region.lines
        for instruction in [line.a or line.b]
        if line.kind != "same" and instruction is not None
    ]


LOOP = (
    "S2R R2, SR_TID.X",                      # 0000
    "MOV R3, RZ",                            # 0010
    "LDG.E R4, desc[UR4][R2.64]",            # 0020: the loop begins
    "IMAD R5, R4, R3, R2",                   # 0030
    "IADD3 R3, R3, 0x1, RZ",                 # 0040
    "ISETP.GE.U32.AND P0, PT, R3, 0x40, PT",  # 0050
    "@!P0 BRA 0x20",                         # 0060
    "STG.E desc[UR4][R2.64], R5",            # 0070
    "EXIT",
)  # fmt: skip


def with_lines(*edits: tuple[str, str]) -> tuple[str, ...]:
    text = "\n".join(LOOP)
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return tuple(text.split("\n"))


def renamed(function: SassFunction, seed: int = 1) -> SassFunction:
    """The same code with general registers, uniform registers and predicates dealt out anew."""
    deal = random.Random(seed)
    names: dict[str, str] = {}
    for prefix, count in (("R", 24), ("UR", 62), ("P", 7), ("UP", 7)):
        numbers = list(range(count))
        deal.shuffle(numbers)  # below R24: what stands there covers no other register unnamed
        names |= {f"{prefix}{old}": f"{prefix}{new}" for old, new in enumerate(numbers)}

    def rename(text: str) -> str:
        return re.sub(r"\b(?:UR|R|UP|P)\d+\b", lambda m: names.get(m[0], m[0]), text)

    code = tuple(
        replace(i, operands=rename(i.operands), predicate=rename(i.predicate))
        for i in function.instructions
    )
    return replace(function, instructions=code)


def moved(function: SassFunction, by: int) -> SassFunction:
    """The same code at other addresses, branch targets along with it."""
    code = []
    for i in function.instructions:
        operands = i.operands
        if i.target is not None:
            operands = re.sub(r"0x[0-9a-f]+$", f"0x{i.target + by:x}", operands)
        code.append(replace(i, address=i.address + by, operands=operands))
    return replace(function, instructions=tuple(code))


# --- the same -------------------------------------------------------------------------------------


@pytest.mark.unit
@pytest.mark.parametrize("seed", range(3))
def test_names_and_addresses_do_not_count(data: Path, seed: int) -> None:
    a = ring(data)
    b = replace(a, function=moved(renamed(a.function, seed), 0x100))
    found = compare(a, b)
    assert found.equal, kinds(found)
    assert found.verdict == "the same code"
    assert found.totals()["same"] == len(a.function.code)


@pytest.mark.unit
def test_reuse_flags_do_not_count() -> None:
    b = side(*with_lines(("IMAD R5, R4, R3", "IMAD R5, R4.reuse, R3")))
    assert compare(side(*LOOP), b).equal


@pytest.mark.unit
def test_zero_from_any_zero_is_the_same() -> None:
    a = side("UMOV UR4, URZ", "UMOV UR5, URZ", "MOV R24, UR4", "MOV R25, UR5", "EXIT")
    b = side("UMOV UR4, URZ", "UMOV UR5, URZ", "MOV R24, UR4", "MOV R25, UR4", "EXIT")
    assert compare(a, b).equal
    one = side("UMOV UR4, URZ", "UMOV UR5, 0x1", "MOV R24, UR4", "MOV R25, UR4", "EXIT")
    assert not compare(a, one).equal


# --- not the same ---------------------------------------------------------------------------------


@pytest.mark.unit
@pytest.mark.parametrize(
    ("edit", "kind", "note"),
    [
        (("R3, 0x40, PT", "R3, 0x80, PT"), "changed", "0x40 -> 0x80"),
        (("STG.E desc", "STG.E.STRONG.GPU desc"), "changed", "STG.E -> STG.E.STRONG.GPU"),
        (("ISETP.GE.U32", "ISETP.GT.U32"), "changed", ".GE -> .GT"),
        (("IMAD R5, R4, R3, R2", "IMAD R5, R3, R4, R2"), "changed", "reads another value"),
        (("[R2.64], R5", "[R2.64], R4"), "changed", "reads another value"),
        (("@!P0 BRA", "@P0 BRA"), "changed", "@!P0 -> @P0"),
    ],
)
def test_one_change_is_one_line(edit: tuple[str, str], kind: str, note: str) -> None:
    found = compare(side(*LOOP), side(*with_lines(edit)))
    differing = [line for r in found.regions for line in r.lines if line.kind != "same"]
    assert [(line.kind, line.note) for line in differing] == [(kind, note)]
    assert not found.equal


@pytest.mark.unit
def test_branch_that_leads_elsewhere() -> None:
    lines = ("@P0 BRA 0x30", "MOV R1, RZ", "MOV R2, RZ", "MOV R3, RZ", "EXIT")
    shorter = ("@P0 BRA 0x20", *lines[1:])
    (differing,) = [
        line
        for r in compare(side(*lines), side(*shorter)).regions
        for line in r.lines
        if line.kind != "same"
    ]
    assert (differing.kind, differing.note) == ("changed", "branches elsewhere")


@pytest.mark.unit
def test_added_in_the_loop() -> None:
    grown = with_lines(("IADD3 R3, R3", "IMAD R6, R5, R5, RZ\nIMAD R5, R6, R5, RZ\nIADD3 R3, R3"))
    found = compare(side(*LOOP), side(*grown))
    assert kinds(found) == [("added", "IMAD"), ("added", "IMAD")]
    assert found.verdict.startswith("2 more IMAD in the load loop")
    back = compare(side(*grown), side(*LOOP))
    assert kinds(back) == [("removed", "IMAD"), ("removed", "IMAD")]
    assert back.verdict.startswith("2 fewer IMAD in the load loop")


@pytest.mark.unit
def test_verdict_does_not_call_other_operands_the_same_code() -> None:
    mma = "HGMMA.64x64x16.F32.BF16 R24, gdesc[UR4], R24, gsb0"
    a = side("WARPGROUP.ARRIVE", mma, "EXIT")
    b = side("WARPGROUP.ARRIVE", mma.replace("[UR4],", "[UR4].tnspB,"), "EXIT")
    assert compare(a, b).verdict.startswith("same tensor opcodes, other operands")
    bigger = side("WARPGROUP.ARRIVE", mma.replace("64x64", "64x128"), "EXIT")
    assert compare(a, bigger).verdict == (
        "1 HGMMA.64x64x16.F32.BF16 became 1 HGMMA.64x128x16.F32.BF16"
    )


@pytest.mark.unit
def test_moved_within_a_region() -> None:
    shuffled = list(LOOP)
    shuffled[3], shuffled[4] = shuffled[4], shuffled[3]
    found = compare(side(*LOOP), side(*shuffled))
    assert found.totals()["moved"] == 2  # one instruction: where it was, and where it is
    assert "1 instruction in another order" in found.verdict


@pytest.mark.unit
def test_moved_out_of_the_loop() -> None:
    inside = with_lines(("IADD3 R3, R3", "LDC R7, c[0x0][0x210]\nIADD3 R3, R3"))
    outside = ("S2R R2, SR_TID.X", "LDC R7, c[0x0][0x210]", *LOOP[1:6], "@!P0 BRA 0x30", *LOOP[7:])
    found = compare(side(*inside), side(*outside))
    lines = [line for r in found.regions for line in r.lines if line.kind == "moved"]
    assert {line.note for line in lines} == {"to 0x0010 in the outside loops",
                                             "from 0x0040 in the load loop"}  # fmt: skip


@pytest.mark.unit
def test_key() -> None:
    code = side(*LOOP).function.code
    assert key(code[6]) == "@!P BRA *"
    assert key(code[2]) == "LDG.E R,desc[UR][R.64]"
    assert key(code[5]) == "ISETP.GE.U32.AND P,PT,R,0x40,PT"


@pytest.mark.unit
def test_regions_have_roles_and_nest(data: Path) -> None:
    found = compare(ring(data), ring(data))
    names = [(" / ".join([*r.inside, r.name]), r.depth) for r in found.regions]
    assert ("outside loops", 0) in names
    assert ("MMA loop", 1) in names
    assert ("producer loop", 1) in names
    assert ("setmaxnreg retry", 1) in names
    waits = [name for name, _ in names if name.endswith("spin-wait")]
    assert "MMA loop / spin-wait" in waits
    assert "producer loop / spin-wait" in waits
    total = sum(r.count("same") for r in found.regions)
    assert total == len(flow(ring(data).function).code)  # every instruction is in one region


@pytest.mark.unit
def test_two_assemblers(data: Path) -> None:
    """13.0 and 13.5 on one PTX: the same tensor and TMA code, whatever else they schedule."""
    found = compare(ring(data, "13.0"), ring(data, "13.5"))
    assert not found.equal
    assert found.verdict.startswith("same tensor and TMA code")
    counts = found.totals()
    assert counts["same"] > 0.6 * len(found.a.function.code)
    for row in found.opcodes:
        if row.category in ("tensor", "tma"):
            assert row.delta == 0


@pytest.mark.unit
def test_every_instruction_is_in_the_result_once(data: Path) -> None:
    a, b = ring(data, "13.0"), ring(data, "13.5")
    lines = [line for r in compare(a, b).regions for line in r.lines]
    assert sorted(x.a.address for x in lines if x.a) == [i.address for i in a.function.code]
    assert sorted(x.b.address for x in lines if x.b) == [i.address for i in b.function.code]


# --- modules, numbers, pages ----------------------------------------------------------------------


@pytest.mark.unit
def test_functions_pair_by_name_or_else_by_place() -> None:
    one, two = side(*LOOP, name="one"), side("EXIT", name="two")
    found = diff([one, two], [two])
    assert [f.a.function.name for f in found.functions] == ["two"]
    assert found.only_a == ("one",)
    assert not found.equal
    assert "one is only in the first" in found.verdict
    other = diff([side(*LOOP, name="old")], [side(*LOOP, name="new")])
    assert other.equal


@pytest.mark.unit
def test_resources_that_nobody_said_are_unknown() -> None:
    rows = {row.name: row for row in compare(side(*LOOP), side(*LOOP)).resources}
    assert rows["registers"].delta is None
    assert rows["instructions"].a == rows["instructions"].b == len(LOOP)
    assert rows["code, bytes"].a == 16 * len(LOOP)
    spilled = compare(side(*LOOP), side(*LOOP[:-1], "STL [R1], R5", "EXIT"))
    assert "0 -> 1 spill stores" in spilled.verdict


@pytest.mark.unit
def test_text_json_and_page(data: Path) -> None:
    found = diff([ring(data, "13.0")], [ring(data, "13.5")])
    text = found.text()
    assert text.splitlines()[0] == found.verdict
    assert "Instructions by place" in text
    assert "\x1b[" not in text
    assert "\x1b[" in found.text(color=True)
    assert json.loads(json.dumps(found.to_dict()))["equal"] is False
    html = page(found, "ring")
    assert "<script" not in html
    assert not re.search(r"(src|href)=|url\(|@import", html)  # the page opens alone
    assert "lines the same</summary>" in html
    assert found.html() in found._repr_mimebundle_()["text/html"]


@pytest.mark.unit
def test_the_page_escapes_names() -> None:
    found: Diff = diff([replace(side(*LOOP), name="<b>&")], [side(*LOOP[:-2], "EXIT")])
    assert "<b>&" not in found.html()
    assert "&lt;b&gt;&amp;" in found.html()


@pytest.mark.asm
def test_a_changed_constant_from_ptx(
    assembler: Tool, disassembler: Tool, store: Store, ring_ptx: str
) -> None:
    """One number of the PTX changes one instruction of each load's barrier, and nothing else."""

    def made(ptx: str) -> Side:
        cubin = assemble(ptx, ptxas=assembler, store=store)
        sass = disassemble(cubin, nvdisasm=disassembler, store=store)
        return Side(name="ring", function=sass.function(), resources=cubin.report.entry())

    a = made(ring_ptx)
    assert compare(a, made(ring_ptx.replace("%is_producer", "%first_half"))).equal
    found = compare(a, made(ring_ptx.replace("%bar], 16384", "%bar], 8192")))
    assert [k for k, _ in kinds(found)] == ["changed"]
    assert "0x4000 -> 0x2000" in [x.note for r in found.regions for x in r.lines]
    assert found.verdict == "same tensor and TMA code; 1 with other operands (producer loop)"
