"""The path check, on cubins that nvcc made from the CUDA programs in path/."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ptxgen.toolchain.assemble import assemble
from ptxgen.toolchain.cache import Store
from ptxgen.toolchain.cubin_info import resources_of
from ptxgen.toolchain.disassemble import disassemble
from ptxgen.toolchain.discover import Tool
from ptxgen.toolchain.intent import INTENTS, by_kind, intent_of, statements
from ptxgen.toolchain.lineinfo import embedded_ptx
from ptxgen.toolchain.listing import parse_listing
from ptxgen.toolchain.paths import PATHS, UNPACKED, PathReport, check_paths

CUBINS = Path(__file__).parent / "path"
FP8 = UNPACKED.name

# cubin, function -> path: (verdict, SASS instructions, PTX statements beside them)
EXPECTED = {
    ("wgmma", "wgmma_bf16"): {"wgmma": ("native", 2, 2)},
    ("wgmma", "wgmma_e4m3"): {"wgmma on fp8": ("native", 1, 1)},
    ("mma_sync", "mma_f16"): {
        "mma.sync": ("native", 1, 1),
        "ldmatrix": ("native", 2, 2),
        "plain store to shared memory": ("plain", 1, 1),
    },
    ("mma_sync", "mma_sparse_f16"): {"mma.sync, sparse": ("native", 1, 1)},
    ("cp_async", "cp_async"): {
        "cp.async": ("native", 1, 1),
        "plain store to global memory": ("plain", 1, 1),
    },
    ("tma", "tma_elected"): {
        "TMA tensor load": ("native", 1, 1),
        "TMA tensor store": ("native", 1, 1),
        "bulk copy": ("native", 1, 1),
    },
    ("tma", "tma_thread_0"): {
        "TMA tensor load": ("slow", 1, 1),
        "bulk copy": ("slow", 1, 1),
    },
    ("plain", "plain"): {
        "plain load from global memory": ("plain", 1, 1),
        "plain store to shared memory": ("plain", 1, 1),
        "plain load from shared memory": ("plain", 1, 1),
        "plain store to global memory": ("plain", 1, 1),
    },
    ("spill", "spill"): {
        "local memory": ("spill", 16, 0),
        "plain load from global memory": ("plain", 48, 48),
        "plain store to global memory": ("plain", 48, 48),
    },
}
BAD = {("tma", "tma_thread_0"), ("spill", "spill"), ("mma_sync_fp8", "mma_e4m3")}


def check(cubin: str, function: str, *, ptx: bool = True) -> PathReport:
    data = (CUBINS / f"{cubin}.cubin").read_bytes()
    reports = check_paths(disassemble(data), embedded_ptx(data) if ptx else None)
    return next(r for r in reports if r.function == function)


@pytest.mark.asm
@pytest.mark.parametrize(("cubin", "function"), EXPECTED)
def test_every_path_is_told_apart(cubin: str, function: str) -> None:
    expected = EXPECTED[cubin, function]
    report = check(cubin, function)
    for path, (verdict, count, asked) in expected.items():
        row = report.row(path)
        assert (row.verdict, row.count, row.asked) == (verdict, count, asked), path
    plain = {row.path for row in report.rows if row.verdict == "plain"}
    assert {row.path for row in report.rows} - plain == set(expected) - plain
    assert report.ok is ((cubin, function) not in BAD)


@pytest.mark.asm
def test_fp8_mma_sync_is_unpacked_to_f16() -> None:
    row = check("mma_sync_fp8", "mma_e4m3").row(FP8)
    assert (row.verdict, row.intent, row.asked) == ("fallback", "mma.sync on fp8", 1)
    assert row.opcodes["HMMA.16816.F32"] == 2  # K = 32 as twice K = 16
    assert row.opcodes["F2FP.F16.E4M3.UNPACK_B"] == 12  # 6 registers, two halves each
    # The same cubin without PTX inside: found from the SASS alone.
    bare = check("mma_sync_fp8_stripped", "mma_e4m3")
    assert not bare.has_ptx
    assert not bare.ok
    assert bare.row(FP8).count == 2
    assert "no PTX to compare with" in str(bare)


@pytest.mark.asm
def test_without_ptx_the_paths_are_the_same() -> None:
    for cubin, function in (("wgmma", "wgmma_bf16"), ("tma", "tma_thread_0"), ("spill", "spill")):
        with_ptx, without = check(cubin, function), check(cubin, function, ptx=False)
        assert [(r.path, r.verdict, r.count) for r in with_ptx.rows] == [
            (r.path, r.verdict, r.count) for r in without.rows
        ]


@pytest.mark.asm
def test_report_as_text_json_and_page() -> None:
    report = check("spill", "spill")
    assert "local memory: spill" in str(report)
    assert json.loads(json.dumps(report.to_dict()))["ok"] is False
    assert "<table" in report.html()
    with pytest.raises(KeyError, match="the paths are plain load"):
        report.row("wgmma")


@pytest.mark.asm
def test_int4_is_a_call(assembler: Tool, disassembler: Tool, store: Store) -> None:
    """The helper that ptxas calls works with int8; the row says what became of the PTX."""
    ptx = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p) {
    .reg .b32 %a<4>, %b<2>, %c<4>; .reg .b64 %p;
    ld.param.u64 %p, [p];
    ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%p];
    ld.global.v2.b32 {%b0, %b1}, [%p+16];
    ld.global.v4.b32 {%c0, %c1, %c2, %c3}, [%p+32];
    mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32
        {%c0, %c1, %c2, %c3}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%c0, %c1, %c2, %c3};
    st.global.v4.b32 [%p+32], {%c0, %c1, %c2, %c3};
    ret;
}
"""
    cubin = assemble(ptx, ptxas=assembler, store=store)
    (report,) = check_paths(disassemble(cubin, nvdisasm=disassembler, store=store), ptx)
    row = report.row("mma.sync on int4")
    assert row.verdict == "fallback"
    assert "a helper of its own" in row.note
    assert not report.ok


@pytest.mark.unit
def test_serialised_wgmma_is_noted() -> None:
    hgmma = "HGMMA.64x8x16.F32.BF16 R24, gdesc[UR4], R24"
    text = f"k:\n/*0000*/ {hgmma}, gsb0 ;\n/*0010*/ {hgmma}, gsb0 ;\n/*0020*/ EXIT ;\n"
    (report,) = check_paths(parse_listing(text).sass())
    assert "serialised" in report.row("wgmma").note
    (grouped,) = check_paths(parse_listing(text.replace(", gsb0", "", 1)).sass())
    assert grouped.row("wgmma").note == ""


@pytest.mark.unit
def test_dead_code_is_no_fallback() -> None:
    ptx = ".entry k() { cp.async.cg.shared.global [%r0], [%rd0], 16; ret; }"
    (report,) = check_paths(parse_listing("k:\n/*0000*/ EXIT ;\n").sass(), ptx)
    assert report.row("cp.async").verdict == "gone"
    assert report.ok


@pytest.mark.unit
@pytest.mark.parametrize(
    ("opcode", "kind"),
    [
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16", "wgmma"),
        ("wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e4m3", "wgmma on fp8"),
        ("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16", "wgmma, sparse"),
        ("wgmma.mma_async.sync.aligned.m64n8k32.s32.u8.s8", "wgmma on int8"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "mma.sync"),
        ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "mma.sync on int8"),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "mma.sync on f64"),
        ("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
         "mma.sync, sparse"),
        ("cp.async.ca.shared.global", "cp.async"),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", "bulk copy"),
        ("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
         ".multicast::cluster", "TMA tensor load, multicast"),
        ("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group", "TMA tensor store"),
        ("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group",
         "TMA tensor reduction"),
        ("ld.relaxed.gpu.global.v4.f32", "load from global memory"),
        ("st.shared.b32", "store to shared memory"),
        ("wgmma.commit_group.sync.aligned", None),
        ("cp.async.commit_group", None),
        ("cp.async.bulk.wait_group.read", None),
        ("ld.param.u64", None),
    ],
)  # fmt: skip
def test_kinds_of_ptx(opcode: str, kind: str | None) -> None:
    found = intent_of(opcode)
    assert (found.name if found else None) == kind


@pytest.mark.unit
def test_every_kind_has_a_path() -> None:
    known = {path.name for path in PATHS} | {"mma.sync on fp8, sparse"}  # no such unit on any chip
    for kind in INTENTS:
        assert set(kind.paths) <= known, kind.name


@pytest.mark.unit
def test_statements_of_each_entry() -> None:
    ptx = """
.func helper() { cp.async.cg.shared.global [%a], [%b], 16; ret; }
.visible .entry one(.param .u64 p)
.reqntid 128
{ // st.global.u32 [%x], %y;   a comment
    @%p st.global.v2.u32
        [%x], {%y, %z};
$L: { ld.shared.u32 %y, [%x]; }
    call helper, ();
}
.visible .entry two() { ret; }
.extern .func elsewhere();
"""
    found = statements(ptx)
    one = [(s.opcode, s.first_line, s.last_line) for s in found["one"]]
    assert ("st.global.v2.u32", 6, 7) in one
    assert ("ld.shared.u32", 8, 8) in one
    assert [k.name for k in by_kind(found["one"])] == [
        "cp.async",  # of the function that it calls
        "store to global memory",
        "load from shared memory",
    ]
    assert by_kind(found["two"]) == {}


@pytest.mark.unit
def test_resources_of_a_foreign_cubin() -> None:
    spill = resources_of((CUBINS / "spill.cubin").read_bytes())["spill"]
    assert (spill.registers, spill.stack_bytes, spill.barriers) == (24, 32, 1)
    assert resources_of((CUBINS / "plain.cubin").read_bytes())["plain"].smem_bytes == 2048
    both = resources_of((CUBINS / "tma.cubin").read_bytes())
    assert set(both) == {"tma_elected", "tma_thread_0"}
    assert resources_of(b"\x7fELF\x02\x01 damaged") == {}
