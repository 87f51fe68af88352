"""SASS as data and its control flow, on disassemblies that were captured once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ptxgen.errors import ToolchainError
from ptxgen.toolchain.disassemble import parse_json
from ptxgen.toolchain.flow import Flow, flow
from ptxgen.toolchain.lineinfo import LineTable, line_tables
from ptxgen.toolchain.sass import (
    CATEGORY_NAMES,
    GMMA,
    Instruction,
    Sass,
    SassFunction,
    category,
    count,
    mix,
    mix_table,
    opcode_regex,
)

pytestmark = pytest.mark.unit

VERSIONS = ("13.0", "13.5")


def ring(data: Path, version: str) -> Sass:
    return parse_json((data / f"wgmma_ring.{version}.json").read_text())


def program(*lines: str) -> SassFunction:
    """A function from lines such as "@P0 BRA 0x20", 16 bytes each."""
    instructions = []
    for index, line in enumerate(lines):
        predicate, _, rest = line.partition(" ") if line.startswith("@") else ("", "", line)
        opcode, _, operands = rest.partition(" ")
        instructions.append(
            Instruction(address=16 * index, opcode=opcode, operands=operands, predicate=predicate)
        )
    return SassFunction(name="k", instructions=tuple(instructions))


def loops(graph: Flow) -> list[tuple[int, list[int]]]:
    """(address of the header, addresses of all instructions) of each loop, inner first."""
    return [
        (graph.code[graph.blocks[x.header].start].address,
         [i.address for i in graph.instructions(x)])
        for x in graph.loops
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "opcode", "matches"),
    [
        ("HGMMA", "HGMMA.64x256x16.F32.BF16", True),
        ("HGMMA.64x256x16", "HGMMA.64x256x16.F32.BF16", True),
        ("HGMMA.64x25", "HGMMA.64x256x16.F32.BF16", False),  # whole modifiers only
        ("HGMMA.64x256x16.F32.BF16", "HGMMA.64x256x16.F32", False),
        ("UTMALDG.2D", "UTMALDG.2D.MULTICAST", True),
        ("UTMALDG.2D$", "UTMALDG.2D.MULTICAST", False),
        ("UTMALDG.2D$", "UTMALDG.2D", True),
        ("UTMALDG.*.MULTICAST", "UTMALDG.3D.MULTICAST", True),
        ("UTMALDG.*.MULTICAST", "UTMALDG.MULTICAST", False),
        ("LDL|STL", "STL.64", True),
        ("LDL|STL", "STLX", False),
        ("UTMA*", "UTMACMDFLUSH", True),
        ("LD", "LDG.E", False),
    ],
)
def test_opcode_patterns(pattern: str, opcode: str, matches: bool) -> None:
    assert (opcode_regex(pattern).fullmatch(opcode) is not None) is matches


@pytest.mark.parametrize(
    ("opcode", "group"),
    [
        ("HGMMA.64x64x16.F32.BF16", "tensor"),
        ("HMMA.16816.F32", "tensor"),
        ("UTMALDG.2D", "tma"),
        ("UTMACMDFLUSH", "tma"),
        ("UBLKCP.S.G", "tma"),
        ("SYNCS.EXCH.64", "mbarrier"),
        ("BAR.SYNC.DEFER_BLOCKING", "sync"),
        ("WARPGROUP.ARRIVE", "sync"),
        ("STSM.16.M88.4", "memory"),
        ("ULDC.64", "memory"),
        ("ELECT", "warp"),
        ("BRXU", "control"),
        ("IMAD.WIDE.U32", "alu"),
        ("LEA", "alu"),
    ],
)
def test_categories(opcode: str, group: str) -> None:
    assert category(opcode) == group
    assert group in CATEGORY_NAMES


@pytest.mark.parametrize("version", VERSIONS)
def test_json_of_a_kernel(data: Path, version: str) -> None:
    sass = ring(data, version)
    function = sass.function("wgmma_ring")
    assert sass.ptxas.startswith(version)
    assert [i.address for i in function.instructions[:3]] == [0, 16, 32]
    assert function.instructions[0].opcode == "LDC"
    assert count(function.code, "HGMMA.64x64x16.F32.BF16") == 4
    assert count(function.code, "UTMALDG.2D.MULTICAST") == 1
    (dec,) = [i for i in function.code if i.matches("USETMAXREG.DEALLOC")]
    assert dec.operand_list == ("0x28",)
    guarded = [i for i in function.code if i.matches("SYNCS.ARRIVE.TRANS64.A1T0")]
    assert [i.predicate for i in guarded] == ["@!P1"]
    assert all(i.function == "wgmma_ring" for i in function.code)
    assert function.code[-1].opcode != "NOP"
    assert len(function.instructions) % 8 == 0  # padded to the 128-byte fetch unit
    assert function.registers_named == 55


@pytest.mark.parametrize("version", VERSIONS)
def test_main_loop(data: Path, version: str) -> None:
    graph = flow(ring(data, version).function())
    (loop,) = graph.innermost(GMMA)
    body = graph.instructions(loop)
    assert count(body, "HGMMA") == 4
    # The spin-wait's slow path stands behind EXIT and still belongs to the loop.
    assert count(body, "SYNCS.PHASECHK.TRANS64.TRYWAIT") == 2
    exit_address = next(i.address for i in graph.code if i.opcode == "EXIT")
    assert any(i.address > exit_address for i in body)
    assert count(body, "UTMALDG|STG|EXIT") == 0
    # Around it: the setmaxnreg retry, two spin-waits, the producer's loop.
    assert len(graph.loops) == 5
    (copies,) = graph.innermost("UTMALDG")
    assert count(graph.instructions(copies), "HGMMA") == 0


def test_nested_loops_and_the_innermost_match() -> None:
    graph = flow(program(
        "MOV R0,RZ",            # 0x00
        "MOV R1,RZ",            # 0x10  outer header
        "HGMMA.64x64x16 R24",   # 0x20  inner header
        "@P0 BRA 0x20",         # 0x30
        "IADD3 R0,R0,0x1",      # 0x40
        "@P1 BRA 0x10",         # 0x50
        "EXIT",                 # 0x60
    ))  # fmt: skip
    assert loops(graph) == [(0x20, [0x20, 0x30]), (0x10, [0x10, 0x20, 0x30, 0x40, 0x50])]
    assert [loop.header for loop in graph.innermost("HGMMA")] == [graph.loops[0].header]
    # What only the outer loop holds is found there; what no loop holds is found nowhere.
    assert [loop.header for loop in graph.innermost("IADD3")] == [graph.loops[1].header]
    assert graph.innermost("EXIT") == ()


def test_two_loops_side_by_side() -> None:
    graph = flow(program(
        "HGMMA R24", "@P0 BRA 0x0", "HGMMA R24", "@P1 BRA 0x20", "EXIT",
    ))  # fmt: skip
    assert len(graph.innermost("HGMMA")) == 2


def test_condition_as_an_operand_falls_through() -> None:
    graph = flow(program("MOV R0,RZ", "BRA.U UP0,0x0", "EXIT"))
    assert graph.blocks[0].successors == (0, 1)
    assert loops(graph) == [(0, [0, 0x10])]


def test_unconditional_branch_does_not_fall_through() -> None:
    graph = flow(program("BRA 0x20", "MOV R0,RZ", "EXIT"))
    assert graph.blocks[0].successors == (2,)


def test_reconvergence_point_of_a_barrier() -> None:
    # BSYNC right before its point falls through; elsewhere it jumps there.
    graph = flow(program(
        "BSSY B0,0x40", "@P0 BRA 0x30", "BSYNC B0", "BSYNC B0", "EXIT",
    ))  # fmt: skip
    assert [b.successors for b in graph.blocks] == [(2, 1), (3, 2), (3,), ()]


def test_branch_table(data: Path) -> None:
    sass = parse_json((data / "branch_table.13.5.json").read_text())
    graph = flow(sass.function("first"))
    (loop,) = graph.loops  # the five targets come back to the loop's end
    assert count(graph.instructions(loop), "BRXU") == 1
    assert count(graph.instructions(loop), "STG") == 6


def test_unreachable_tail_is_no_loop(data: Path) -> None:
    function = program("EXIT", "BRA 0x10", "NOP", "NOP")
    assert [i.opcode for i in function.code] == ["EXIT"]
    assert flow(function).loops == ()
    assert flow(SassFunction(name="empty", instructions=())).blocks == ()


def test_mix(data: Path) -> None:
    code = ring(data, "13.5").function().code
    table = mix(code)
    assert table["tensor"] == {"HGMMA.64x64x16.F32.BF16": 4}
    assert table["tma"] == {"UTMALDG.2D": 1, "UTMALDG.2D.MULTICAST": 1}
    assert sum(sum(c.values()) for c in table.values()) == len(code)
    assert "tensor 4" in mix_table(code)
    assert "    4  HGMMA.64x64x16.F32.BF16" in mix_table(code)


def test_text_and_json(data: Path) -> None:
    sass = ring(data, "13.5")
    text = str(sass)
    assert "/*0760*/       HGMMA.64x64x16.F32.BF16 R24, gdesc[UR16], R24" in text
    assert "L_0670:" in text  # the main loop's header
    assert json.loads(json.dumps(sass.to_dict()))["functions"][0]["name"] == "wgmma_ring"


def test_choice_of_function(data: Path) -> None:
    sass = parse_json((data / "branch_table.13.5.json").read_text())
    with pytest.raises(KeyError, match="second, first"):
        sass.function()
    with pytest.raises(KeyError, match="third"):
        sass.function("third")
    assert sass.function("second").name == "second"


def test_lines_join_by_address(data: Path) -> None:
    text = (data / "wgmma_ring.13.5.json").read_text()
    table = LineTable(rows=((0, 21), (0x10, 37), (0x30, 0)))
    code = parse_json(text, {"wgmma_ring": table}).function().code
    assert [i.line for i in code[:5]] == [21, 37, 37, None, None]
    assert str(code[0]).endswith("// PTX line 21")


@pytest.mark.parametrize(
    "text", ["", "{}", "[1, 2, 3]", '[{}, [{"function-name": "k"}]]', "[[],[]]"]
)
def test_foreign_json(text: str) -> None:
    with pytest.raises(ToolchainError, match="PTXGEN_NVDISASM"):
        parse_json(text)


@pytest.mark.parametrize("data_", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + bytes(30), b"MZ" * 100])
def test_line_table_of_what_is_no_cubin(data_: bytes) -> None:
    assert line_tables(data_) == {}


def test_helpers_that_nvdisasm_lists_apart_belong_to_their_entry(data: Path) -> None:
    """nvdisasm 13.0 gives an entry the length of its section, and its helpers rows of their own."""
    second, first = parse_json((data / "two_entries.13.0.json").read_text()).functions
    assert (first.name, second.name) == ("first", "second")
    assert [i.address for i in first.instructions] == list(range(0, 2816, 16))
    assert [i.opcode for i in first.instructions].count("RET.REL.NODEC") == 3
    assert second.instructions[-1].address == 512 - 16
