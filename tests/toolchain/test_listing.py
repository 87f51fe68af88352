"""Listings as data: each tool's text, labels, encodings, live registers, scheduling."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxgen.errors import ToolchainError
from ptxgen.toolchain.control import decode
from ptxgen.toolchain.disassemble import disassemble, run_nvdisasm
from ptxgen.toolchain.discover import Tool
from ptxgen.toolchain.lineinfo import embedded_ptx
from ptxgen.toolchain.listing import Live, parse_listing
from ptxgen.toolchain.sassmap import sass_map

CUBINS = Path(__file__).parent / "path"

# Cut from nvdisasm 13.5 (-c -hex -lrm count) and cuobjdump 13.5 (-sass).
NVDISASM = """
\t.section\t.text.k,"ax",@progbits
                                                  // | GPR | PRED | UGPR |
        .global         k                         // |     |      |      |
.text.k:                                          // |     |      |      |
  /*0000*/       S2R R2, SR_TID.X ; /* 0x0000000000027919 */  // |     |      |      |
                                   /* 0x000ea20000002100 */  // |  2  |      |      |
.L_x_1:                                                              // +.....+......+......+
  /*0010*/       IMAD.MOV R6, RZ, RZ, -R2 ; /* 0x000000ffff067224 */  // |     |      |      |
                                   /* 0x004fca00078e0a00 */  // |  3  |  1   |  12  |
  /*0020*/  @!P0 BRA `(.L_x_1) ; /* 0x0000000000048947 */  // |     |      |      |
                                   /* 0x000fea0003800000 */  // |  1  |      |      |
  /*0030*/       ERRBAR; /* 0x00000000000079ab */  // |     |      |      |
                                   /* 0x000fc00000000000 */  // |  1  |      |      |
"""
CUOBJDUMP = """
Fatbin elf code:
\tcode for sm_90a
\t\tFunction : first
\t.headerflags\t@"EF_CUDA_SM90 EF_CUDA_ACCELERATORS"
        /*0000*/                   LDC R1, c[0x0][0x28] ;          /* 0x00000a00ff017b82 */
                                                                   /* 0x000fe20000000800 */
        /*0010*/              @!P0 BRA 0x0 ;                       /* 0xfffffffc00f08947 */
                                                                   /* 0x000fea000383ffff */
\t\tFunction : second
        /*0000*/                   EXIT ;                          /* 0x000000000000794d */
                                                                   /* 0x000fea0003800000 */
"""


@pytest.mark.unit
def test_nvdisasm_text() -> None:
    (function,) = parse_listing(NVDISASM).functions
    assert function.name == "k"
    first, second, branch, bare = function.rows
    assert (first.instruction.opcode, first.instruction.operands) == ("S2R", "R2, SR_TID.X")
    assert first.encoding == 0x000EA20000002100_0000000000027919
    assert first.live == Live(general=2)
    assert second.live == Live(general=3, predicates=1, uniform=12)
    assert branch.instruction.predicate == "@!P0"
    assert branch.instruction.target == 0x10  # the label, as an address
    assert (bare.instruction.opcode, bare.instruction.operands) == ("ERRBAR", "")


@pytest.mark.unit
def test_cuobjdump_text() -> None:
    first, second = parse_listing(CUOBJDUMP).functions
    assert (first.name, second.name) == ("first", "second")
    assert first.rows[1].instruction.target == 0
    assert first.rows[0].live is None
    assert second.rows[0].instruction.opcode == "EXIT"


@pytest.mark.unit
def test_our_own_text_comes_back(data: Path) -> None:
    from ptxgen.toolchain.disassemble import parse_json

    sass = parse_json((data / "wgmma_ring.13.5.json").read_text())
    head = "// cubin 123abc, ptxas 13.5.37, nvdisasm 13.5.40\n"
    back = parse_listing(head + str(sass)).sass()
    assert [str(f) for f in back.functions] == [str(f) for f in sass.functions]
    assert (back.ptxas, back.nvdisasm, back.cubin_sha256) == ("13.5.37", "13.5.40", "123abc")


@pytest.mark.unit
def test_text_without_sass_is_refused() -> None:
    with pytest.raises(ToolchainError, match=r"notes\.txt: no SASS"):
        parse_listing("dear diary", "notes.txt")


@pytest.mark.unit
def test_control_bits() -> None:
    # S2R R2: raises scoreboard 2 until R2 is there; nothing to wait for.
    load = decode(0x000EA20000002100_0000000000027919)
    assert (load.stall, load.yields, load.write, load.read, load.waits) == (1, False, 2, None, ())
    # IMAD.MOV of what S2R brought: waits for scoreboard 2, 5 cycles to its own reader.
    move = decode(0x004FCA00078E0A00_000000FFFF067224)
    assert (move.stall, move.yields, move.write, move.waits) == (5, True, None, (2,))
    assert str(load) == "B------ R- W2 - S01"
    assert str(move) == "B--2--- R- W- Y S05"


@pytest.mark.asm
def test_text_and_json_of_nvdisasm_agree(disassembler: Tool) -> None:
    """The two readers: the same instructions, predicates and targets."""
    for name in ("tma", "spill"):  # loops over lanes, two functions; local memory
        data = (CUBINS / f"{name}.cubin").read_bytes()
        text = run_nvdisasm(data, disassembler, ("-c", "-hex", "-lrm", "count"))
        listed = {f.name: f for f in parse_listing(text).functions}
        for function in disassemble(data).functions:
            rows = listed[function.name].rows
            for row, instruction in zip(rows, function.code, strict=False):
                assert row.encoding is not None
                other = row.instruction
                assert other.address == instruction.address
                assert (other.predicate, other.opcode) == (
                    instruction.predicate,
                    instruction.opcode,
                )
                assert other.target == instruction.target


@pytest.mark.asm
def test_scheduling_agrees_with_dependencies() -> None:
    """Who reads what a load brings waits for the scoreboard that the load raises."""
    (function,) = sass_map((CUBINS / "plain.cubin").read_bytes()).functions
    load = next(r for r in function.rows if r.instruction.opcode == "LDG.E.128")
    store = next(r for r in function.rows if r.instruction.opcode == "STS.128")
    assert load.control is not None
    assert store.control is not None
    assert load.control.write in store.control.waits
    assert load.instruction.operand_list[0] == store.instruction.operand_list[1]


@pytest.mark.asm
def test_map_of_a_foreign_cubin_shows_its_own_ptx() -> None:
    data = (CUBINS / "mma_sync.cubin").read_bytes()
    shown = sass_map(data)
    function = next(f for f in shown.functions if f.name == "mma_f16")
    mma = next(r for r in function.rows if r.instruction.base == "HMMA")
    assert mma.ptx.startswith("mma.sync.aligned.m16n8k16")
    assert function.most_live is not None
    text = shown.text()
    assert "schedule" in text
    assert "ldmatrix.sync.aligned.m8n8.x4.shared.b16" in text
    assert "mma.sync" in shown.html()


@pytest.mark.asm
def test_map_names_template_lines() -> None:
    shown = sass_map(
        (CUBINS / "plain.cubin").read_bytes(), locate=lambda line: f"plain.ptx.j2:{line}"
    )
    assert "plain.ptx.j2:38" in shown.text()  # the load


@pytest.mark.unit
def test_embedded_ptx() -> None:
    ptx = embedded_ptx((CUBINS / "plain.cubin").read_bytes())
    assert ptx is not None
    assert ptx.splitlines()[37].strip().startswith("ld.global")
    assert embedded_ptx((CUBINS / "mma_sync_fp8_stripped.cubin").read_bytes()) is None
    assert embedded_ptx(b"not an ELF file") is None
