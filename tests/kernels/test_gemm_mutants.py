"""Every promise about the SASS of a GEMM can be broken: mutants of its PTX, and who sees them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pytest
from batches import verify_all

from ptxgen.kernels import registry
from ptxgen.toolchain.verify import VerifyReport

pytestmark = pytest.mark.asm

BASE = "gemm:tile=128x64x64,stages=2,cluster=2x1"
Edit = Callable[[str], str]


def drop(pattern: str, count: int = 0) -> Edit:
    """Remove the instructions that match (whole lines), at most `count` of them."""

    def edit(ptx: str) -> str:
        edited, done = re.subn(rf"^.*{pattern}.*\n", "", ptx, count=count, flags=re.MULTILINE)
        assert done, pattern
        return edited

    return edit


def change(pattern: str, new: str, count: int = 0) -> Edit:
    def edit(ptx: str) -> str:
        edited, done = re.subn(pattern, new, ptx, count=count)
        assert done, pattern
        return edited

    return edit


def before(pattern: str, text: str) -> Edit:
    """Insert text in front of the first match."""
    return change(rf"(?=(?m:^) *{pattern})", text + "\n", count=1)


PRODUCER_ELECTS = r"elect\.sync _\|%leader, 0xffffffff;(?=\s*@!%leader bra \$DONE)"
TILE_ENDS = r"add\.u32 %tile, %tile, %clusters;\n *\$CONSUME"
WARP_MMA = """{ .reg .b32 %x<8>; .reg .f32 %y<4>;
mov.b32 %x0, %smem; mov.b32 %x1, %smem; mov.b32 %x2, %smem; mov.b32 %x3, %smem;
mov.f32 %y0, 0f00000000; mov.f32 %y1, %y0; mov.f32 %y2, %y0; mov.f32 %y3, %y0;
mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%y0, %y1, %y2, %y3}, {%x0, %x1, %x2, %x3},
{%x0, %x1}, {%y0, %y1, %y2, %y3};
st.shared.v4.f32 [%smem], {%y0, %y1, %y2, %y3}; }"""
LOCAL_ARRAY = """{ .reg .b64 %p, %q, %i; .reg .b32 %v; .local .align 4 .b8 a[256];
mov.u64 %p, a; cvt.u64.u32 %i, %thread; mad.lo.u64 %q, %i, 4, %p; st.local.u32 [%q], %smem;
cvt.u64.u32 %i, %warp; mad.lo.u64 %q, %i, 4, %p; ld.local.u32 %v, [%q];
st.shared.u32 [%smem], %v; }"""
LOAD_ROWS = """{ .reg .b32 %v; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%v}, [%smem];
st.shared.u32 [%smem], %v; }"""
CALL = """{ .reg .b64 %f; .reg .b32 %v; .param .b32 arg; .param .b32 result;
ld.shared.u64 %f, [%smem]; st.param.b32 [arg], %smem;
$PROTOTYPE: .callprototype (.param .b32 _) _ (.param .b32 _);
call (result), %f, (arg), $PROTOTYPE;
ld.param.b32 %v, [result]; st.shared.u32 [%smem], %v; }"""

# Mutant -> (edit, part of the name of a row that must turn BAD).
MUTANTS: Mapping[str, tuple[Edit, str]] = {
    "a smaller N in one wgmma": (
        lambda ptx: re.sub(
            r"m64n64k16(\S*)\s+\{(.*?)\}",
            lambda m: f"m64n56k16{m[1]} {{{', '.join(m[2].split(',')[:28])}}}",
            ptx, count=1, flags=re.DOTALL,
        ),
        "HGMMA.64x64x16",
    ),
    "one wgmma less": (
        lambda ptx: re.sub(r"wgmma\.mma_async[^;]*;", "", ptx, count=1), "HGMMA in the MMA loop",
    ),
    "a group for every wgmma": (
        change(r"(wgmma\.mma_async[^;]*;)", r"\1 wgmma.commit_group.sync.aligned;"), "per group",
    ),
    "no wait for the grid before": (drop(r"griddepcontrol\.wait;"), "ACQBULK"),
    "no wait for wgmma in the loop": (
        drop(r"wgmma\.wait_group\.sync\.aligned 1;"), "WARPGROUP.DEPBAR before a release",
    ),
    "a stage is multiplied before it is full": (
        change(
            r"mbarrier\.try_wait\S* %complete, \[%full_s\], %parity;\s*@!%complete bra \$WAIT;", "",
        ),
        "SYNCS.PHASECHK in the MMA loop",
    ),
    "no release of stages": (drop(r"@%release_now mbarrier"), "SYNCS.ARRIVE in the MMA loop"),
    "release before the wait": (
        before(
            r"wgmma\.wait_group\.sync\.aligned 1;",
            "@%releases mbarrier.arrive.shared::cluster.b64 _, [%release];",
        ),
        "before a release arrive",
    ),
    "B is not loaded": (drop(r"cp\.async\.bulk\.tensor.*multicast"), "UTMALDG.2D"),
    "B is not multicast": (
        change(r"\.multicast::cluster(.*), 3;", r"\1;"), "UTMALDG.2D.MULTICAST",
    ),
    "part of D is not stored": (drop(r"\[%tmap_d, \{", 1), "UTMASTG.2D"),
    "stores are not committed": (drop(r"cp\.async\.bulk\.commit_group"), "UTMACMDFLUSH"),
    "no proxy fence": (drop(r"fence\.proxy\.async"), "FENCE.VIEW.ASYNC after STS"),
    "no barrier before the store": (
        change(r"(fence\.proxy\.async\S*;)\s*bar\.sync %slab_barrier, 128;", r"\1"),
        "BAR.SYNC after",
    ),
    "D is not written to its slab": (drop(r"stmatrix\.sync", 1), "STSM"),
    "D is not rounded": (change(r"cvt\.rn\.bf16x2\.f32 (%pair\d), .*;", r"mov.b32 \1, 0;"), "F2FP"),
    "the producer keeps its registers": (drop(r"setmaxnreg\.dec"), "USETMAXREG"),
    "consumers take fewer registers": (
        change(r"setmaxnreg\.inc\S* 232", "setmaxnreg.inc.sync.aligned.u32 160"), "registers",
    ),
    "no CTA count, so setmaxnreg is ignored": (drop(r"\.minnctapersm"), "ptxas advisories"),
    "TMA is issued by thread 0": (
        change(PRODUCER_ELECTS, "setp.eq.u32 %leader, %thread, 0;"),
        "TMA behind ELECT",
    ),
    "TMA is issued by a lane that ptxas cannot tell": (
        change(PRODUCER_ELECTS, "setp.eq.u32 %leader, %thread, 0;"),
        "issued lane by lane",
    ),
    "nobody is elected": (
        change(r"elect\.sync _\|%leader, 0xffffffff;", "setp.eq.u32 %leader, %thread, 0;"),
        "ELECT",
    ),
    "a barrier is not initialised": (drop(r"mbarrier\.init.*full \+ 8\]"), "SYNCS.EXCH"),
    "consumers wait for each other": (before(TILE_ENDS, "bar.arrive 9, 256;"), "BAR.ARV"),
    "A goes through registers": (before(r"wgmma\.mma_async", LOAD_ROWS), "LDSM in the MMA loop"),
    "a warp-wide MMA": (before(TILE_ENDS, WARP_MMA), "HMMA"),
    "an array in local memory": (before(TILE_ENDS, LOCAL_ARRAY), "LDL|STL"),
    "a call": (before(TILE_ENDS, CALL), "CALL"),
}  # fmt: skip


# What ptxas says of these names neither function nor line, so they cannot share a module.
ALONE = ("no CTA count, so setmaxnreg is ignored", "a call")


def reports() -> Mapping[str, VerifyReport]:
    """The verification of every mutant, and of the kernel itself under the name ""."""
    source = registry.build(*registry.parse_reference(BASE))
    ptx, expectation = str(source.rendered), source.expectation
    texts = {"": ptx, **{name: edit(ptx) for name, (edit, _) in MUTANTS.items()}}
    assert [name for name, text in texts.items() if text == ptx] == [""]
    alone = [{name: (texts.pop(name), expectation)} for name in ALONE]
    batch = {name: (text, expectation) for name, text in texts.items()}
    return {name: row for part in (batch, *alone) for name, row in verify_all(part).items()}


def test_every_mutant_is_seen_and_every_promise_can_be_broken() -> None:
    """One test, since one process of each tool serves all mutants."""
    rows = {name: report.rows for name, report in reports().items()}
    bad = {name: [row.name for row in found if not row.ok] for name, found in rows.items()}
    assert bad.pop("") == []
    unseen = {
        name: names for name, names in bad.items() if not any(MUTANTS[name][1] in n for n in names)
    }
    assert unseen == {}
    promises = {row.name for row in rows[""]}
    assert promises - {name for names in bad.values() for name in names} == set()
