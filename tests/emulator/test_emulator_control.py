"""Control flow, warp-wide instructions, barriers, atomics, memory spaces and calls."""

from __future__ import annotations

import numpy as np
import pytest
from emulate import module, run, u32

from ptxgen.errors import (
    Deadlock,
    EmulatorError,
    HazardError,
    LaunchError,
    PtxSyntaxError,
    UnsupportedPtx,
)
from ptxgen.spec import Dim3
from runtime.emulator.machine import Machine

pytestmark = pytest.mark.emu

STORE = "ld.param.u64 %rd60, [d]; mad.wide.u32 %rd60, %r60, 4, %rd60; st.global.b32 [%rd60], {};"
LINEAR = "mov.u32 %r60, %tid.x;"


def lanes(body: str, result: str = "%r1", *, block: int = 32, **options: object) -> list[int]:
    """Run a body in every thread and return one 32-bit register of each."""
    d = np.zeros(block, np.uint32)
    head = str(options.pop("head", ""))
    source = module(f"{LINEAR}\n{body}\n{STORE.format(result)}", [".u64 d"], head=head)
    run(source, {"d": d}, block=block, **options)  # type: ignore[arg-type]
    return [int(v) for v in d]


def finding(source: str, **options: object) -> str:
    """The code of the finding that a program must raise, which must name a cure and a line."""
    with pytest.raises(HazardError) as caught:
        run(source, **options)  # type: ignore[arg-type]
    (found,) = caught.value.findings
    assert found.cure or found.reason
    assert found.lines
    return found.code


def test_divergent_if_else_meets_again() -> None:
    body = """
    and.b32 %r2, %r60, 3; setp.lt.u32 %p1, %r2, 2;
    @%p1 bra $THEN;
    mov.u32 %r1, 100; bra $JOIN;
    $THEN: mov.u32 %r1, 200;
    $JOIN: vote.sync.ballot.b32 %r3, 1, 0xffffffff; add.u32 %r1, %r1, %r60;
    """.replace("ballot.b32 %r3, 1,", "ballot.b32 %r3, %p1,")
    assert lanes(body) == [(200 if i % 4 < 2 else 100) + i for i in range(32)]


def test_loops_with_lane_dependent_trip_counts() -> None:
    body = """
    mov.u32 %r1, 0; mov.u32 %r2, 0;
    $LOOP: setp.ge.u32 %p1, %r2, %r60; @%p1 bra $END;
    add.u32 %r1, %r1, %r2; add.u32 %r2, %r2, 1; bra $LOOP;
    $END: add.u32 %r1, %r1, 1000;
    """
    assert lanes(body) == [1000 + i * (i - 1) // 2 for i in range(32)]


def test_nested_divergence_and_early_exit() -> None:
    """Lanes that left do not come back, and the others still meet."""
    d = np.full(32, 7, np.uint32)
    body = f"""{LINEAR}
    setp.lt.u32 %p1, %r60, 8; @%p1 ret;
    mov.u32 %r1, 1;
    setp.lt.u32 %p2, %r60, 16; @%p2 bra $A;
    mov.u32 %r1, 2; setp.lt.u32 %p3, %r60, 24; @%p3 bra $A; mov.u32 %r1, 3;
    $A: activemask.b32 %r2; popc.b32 %r2, %r2; mad.lo.u32 %r1, %r1, 100, %r2;
    {STORE.format("%r1")}"""
    run(module(body, [".u64 d"]), {"d": d})
    assert d.tolist() == [7] * 8 + [124] * 8 + [224] * 8 + [324] * 8


def test_reused_register_names_stay_apart() -> None:
    """%r1 first differs between lanes and then is one value a warp: two registers in truth."""
    body = """
    shr.u32 %r1, %r60, 5; shfl.sync.idx.b32 %r1, %r1, 0, 31, 0xffffffff;
    setp.eq.u32 %p1, %r1, 1; @%p1 bra $ONE; mov.u32 %r1, 10; bra $END; $ONE: mov.u32 %r1, 11; $END:
    """
    assert lanes(body, block=64) == [10] * 32 + [11] * 32


def test_uniform_register_written_in_one_arm() -> None:
    """A uniform value that is changed in a divergent arm differs between lanes after it."""
    body = """
    mov.u32 %r1, 5; setp.lt.u32 %p1, %r60, 4; @!%p1 bra $END; mov.u32 %r1, 6; $END:
    """
    assert lanes(body) == [6] * 4 + [5] * 28


def test_predicated_writes_keep_other_lanes() -> None:
    body = """
    mov.u32 %r1, %r60; setp.gt.u32 %p1, %r60, 29;
    @%p1 mov.u32 %r1, 0; @!%p1 add.u32 %r1, %r1, 1;
    """
    assert lanes(body) == [i + 1 for i in range(30)] + [0, 0]


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("up.b32 %r1, %r60, 3, 0", lambda i: i - 3 if i >= 3 else i),
        ("down.b32 %r1, %r60, 2, 31", lambda i: i + 2 if i < 30 else i),
        ("bfly.b32 %r1, %r60, 5, 31", lambda i: i ^ 5),
        ("idx.b32 %r1, %r60, 9, 31", lambda i: 9),
        # segments of 8 lanes: c = 31 with segment mask 0b11000
        ("bfly.b32 %r1, %r60, 4, 0x1807", lambda i: i ^ 4),
        ("down.b32 %r1, %r60, 7, 0x1807", lambda i: i + 7 if i % 8 == 0 else i),
    ],
)
def test_shuffles(text: str, source: object) -> None:
    assert lanes(f"shfl.sync.{text}, 0xffffffff;") == [source(i) for i in range(32)]  # type: ignore[operator]


def test_shuffle_predicate_says_who_was_in_range() -> None:
    body = "shfl.sync.up.b32 %r2|%p1, %r60, 1, 0, 0xffffffff; selp.u32 %r1, 1, 0, %p1;"
    assert lanes(body) == [0] + [1] * 31


def test_votes_match_redux_elect() -> None:
    body = """
    and.b32 %r2, %r60, 1; setp.eq.u32 %p1, %r2, 1;
    vote.sync.ballot.b32 %r3, %p1, 0xffffffff;
    vote.sync.any.pred %p2, %p1, 0xffffffff; vote.sync.all.pred %p3, %p1, 0xffffffff;
    match.any.sync.b32 %r4, %r2, 0xffffffff;
    redux.sync.add.u32 %r5, %r60, 0xffffffff;
    redux.sync.max.s32 %r6, %r60, 0xffffffff;
    elect.sync %r7|%p4, 0xfffffff0;
    """.replace("0xfffffff0", "0xffffffff")
    assert lanes(body, "%r3") == [0xAAAAAAAA] * 32
    assert lanes(body, "%r4") == [0x55555555 << (i & 1) for i in range(32)]
    assert lanes(body, "%r5") == [496] * 32
    assert lanes(body, "%r6") == [31] * 32
    assert sum(lanes(body + "selp.u32 %r1, 1, 0, %p4;")) == 1
    assert lanes(body + "selp.u32 %r1, 2, 1, %p2; @%p3 mov.u32 %r1, 9;") == [2] * 32


def test_special_registers_in_three_dimensions() -> None:
    d = np.zeros(2 * 3 * 24, np.uint32)
    body = f"""
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;
    mad.lo.u32 %r60, %r3, 2, %r2; mad.lo.u32 %r60, %r60, 4, %r1;
    mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; mov.u32 %r6, %nctaid.x;
    mad.lo.u32 %r7, %r5, %r6, %r4; mad.lo.u32 %r60, %r7, 24, %r60;
    {STORE.format("%r60")}"""
    run(module(body, [".u64 d"]), {"d": d}, grid=Dim3(2, 3), block=Dim3(4, 2, 3))
    assert d.tolist() == list(range(144))


def test_block_that_is_no_multiple_of_a_warp() -> None:
    assert lanes("vote.sync.ballot.b32 %r1, %p1, 0xffffffff;".replace("%p1,", "%p1,", 1).join(
        ["setp.ge.u32 %p1, %r60, 0;", ""]), block=40) == [0xFFFFFFFF] * 32 + [0xFF] * 8  # fmt: skip


SHARED = ".shared .align 16 .b8 buffer[1024];"


def test_shared_memory_and_barrier() -> None:
    body = """
    mov.u32 %r2, buffer; mad.lo.u32 %r3, %r60, 4, %r2; st.shared.u32 [%r3], %r60;
    bar.sync 0;
    sub.u32 %r4, 127, %r60; mad.lo.u32 %r3, %r4, 4, %r2; ld.shared.u32 %r1, [%r3];
    """
    assert lanes(body, block=128, head=SHARED) == [127 - i for i in range(128)]


def test_vector_and_narrow_accesses() -> None:
    body = """
    mov.u32 %r2, buffer; mad.lo.u32 %r3, %r60, 16, %r2;
    add.u32 %r4, %r60, 1; add.u32 %r5, %r60, 2; add.u32 %r6, %r60, 3;
    st.shared.v4.u32 [%r3], {%r60, %r4, %r5, %r6};
    ld.shared.v2.u32 {%r7, %r8}, [%r3+8];
    mov.u32 %r9, 0xff80; st.shared.u16 [%r3+2], %r9;
    ld.shared.s8 %r10, [%r3+2]; ld.shared.u8 %r11, [%r3+3];
    add.u32 %r1, %r7, %r8; add.s32 %r1, %r1, %r10; add.u32 %r1, %r1, %r11;
    """
    assert lanes(body, head=SHARED) == [2 * i + 5 - 128 + 255 for i in range(32)]


def test_generic_addresses_of_every_space() -> None:
    """One register may hold addresses of two spaces in different lanes."""
    body = """
    mov.u32 %r2, buffer; mad.lo.u32 %r3, %r60, 4, %r2; cvt.u64.u32 %rd1, %r3;
    cvta.shared.u64 %rd1, %rd1;
    mov.u64 %rd2, frame; cvta.local.u64 %rd2, %rd2;
    mov.u64 %rd3, table; cvta.const.u64 %rd3, %rd3;
    st.u32 [%rd1], %r60; ld.shared.u32 %r4, [%r3];
    st.u32 [%rd2+4], %r60; ld.local.u32 %r5, [frame+4];
    ld.u32 %r6, [%rd3+8];
    setp.lt.u32 %p1, %r60, 16; selp.b64 %rd4, %rd1, %rd3, %p1; ld.u32 %r7, [%rd4];
    isspacep.shared %p2, %rd4; selp.u32 %r8, 1000, 0, %p2;
    add.u32 %r1, %r4, %r5; add.u32 %r1, %r1, %r6; add.u32 %r1, %r1, %r7; add.u32 %r1, %r1, %r8;
    """
    head = SHARED + ".const .u32 table[4] = {5, 6, 7, 8};"
    got = lanes(".local .align 8 .b8 frame[16];\n" + body, head=head)
    assert got == [3 * i + 7 + 1000 for i in range(16)] + [2 * i + 7 + 5 for i in range(16, 32)]


def test_global_variables_and_initialisers() -> None:
    head = ".global .u32 t[3] = {10, 20, 30};\n.global .u64 p = generic(t)+4;"
    assert lanes("ld.global.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1+4];", head=head) == [30] * 32


def test_calls_are_inlined() -> None:
    head = """
    .func (.param .b32 out) square(.param .b32 x) {
      .reg .b32 %a; .reg .pred %q;
      ld.param.b32 %a, [x]; setp.gt.u32 %q, %a, 20; @%q bra $BIG;
      mul.lo.u32 %a, %a, %a; st.param.b32 [out], %a; ret;
      $BIG: st.param.b32 [out], 0; ret;
    }
    .func (.reg .b32 y) twice(.reg .b32 x) { add.u32 y, x, x; ret; }
    """
    body = """
    { .param .b32 a; .param .b32 r; st.param.b32 [a], %r60; call.uni (r), square, (a);
      ld.param.b32 %r2, [r]; }
    call (%r1), twice, (%r2);
    """
    assert lanes(body, head=head) == [2 * i * i if i <= 20 else 0 for i in range(32)]


def test_atomics_and_reductions() -> None:
    d = np.zeros(8, np.uint32)
    f = np.zeros(2, np.float32)
    body = f"""{LINEAR}
    ld.param.u64 %rd1, [d]; ld.param.u64 %rd2, [f];
    atom.global.add.u32 %r1, [%rd1], 1;
    red.global.max.u32 [%rd1+4], %r60; red.global.or.b32 [%rd1+8], %r60;
    atom.global.inc.u32 %r2, [%rd1+12], 9; atom.global.cas.b32 %r3, [%rd1+16], 0, %r60;
    atom.global.exch.b32 %r3, [%rd1+20], %r60; red.global.add.s32 [%rd1+24], -1;
    red.global.add.f32 [%rd2], 0f3F000000;
    """
    run(module(body, [".u64 d", ".u64 f"]), {"d": d, "f": f}, grid=2, block=64)
    # 128 increments modulo 10; cas stores lane 1 of the first warp (lane 0 stores 0 over 0)
    assert d.tolist() == [128, 63, 63, 8, 1, 63, 2**32 - 128, 0]
    assert f[0] == 64.0


def test_named_barriers_producer_consumer() -> None:
    """bar.arrive of 32 threads and bar.sync of 32: the count is 64."""
    body = """
    mov.u32 %r2, buffer; and.b32 %r3, %r60, 31; mad.lo.u32 %r4, %r3, 4, %r2;
    setp.lt.u32 %p1, %r60, 32; @%p1 bra $PRODUCE;
    bar.sync 3, 64; ld.shared.u32 %r1, [%r4]; bra $END;
    $PRODUCE: st.shared.u32 [%r4], %r60; bar.arrive 3, 64; mov.u32 %r1, 0; $END:
    """
    assert lanes(body, block=64, head=SHARED) == [0] * 32 + list(range(32))


def test_barrier_reductions() -> None:
    body = """
    setp.lt.u32 %p1, %r60, 40; bar.red.popc.u32 %r1, 0, %p1;
    bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, %p1;
    @%p2 add.u32 %r1, %r1, 1000; @%p3 add.u32 %r1, %r1, 100;
    """
    assert lanes(body, block=64) == [140] * 64


def test_last_block_done() -> None:
    """CTAs run one after another, and an atomic counter finds the last one."""
    d = np.zeros(3, np.uint32)
    body = """
    ld.param.u64 %rd1, [d]; mov.u32 %r1, %ctaid.x; add.u32 %r1, %r1, 1;
    red.global.add.u32 [%rd1], %r1; membar.gl; atom.global.add.u32 %r2, [%rd1+4], 1;
    setp.ne.u32 %p1, %r2, 4; @%p1 ret; ld.global.u32 %r3, [%rd1]; st.global.u32 [%rd1+8], %r3;
    """
    run(module(body, [".u64 d"]), {"d": d}, grid=5, block=1)
    assert d.tolist() == [15, 5, 15]


SPIN = """
    ld.param.u64 %rd1, [d]; mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, WHO; @%p1 bra $SET;
    $SPIN: ld.acquire.gpu.global.u32 %r2, [%rd1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra $SPIN;
    st.global.u32 [%rd1+4], %r2; ret;
    $SET: mov.u32 %r3, 7; st.release.gpu.global.u32 [%rd1], %r3;
"""


def test_ctas_that_wait_for_a_later_one_run_together() -> None:
    """The first CTA spins on a flag that the second sets: both fit the machine at once."""
    d = np.zeros(2, np.uint32)
    run(module(SPIN.replace("WHO", "1"), [".u64 d"]), {"d": d}, grid=2, block=1)
    assert d.tolist() == [7, 7]


def test_spinning_on_a_flag_that_nobody_sets_is_a_deadlock() -> None:
    d = np.zeros(2, np.uint32)
    with pytest.raises(Deadlock, match=r"CTA \(0,0,0\) warp 0 .*PTX line \d+: spins"):
        run(module(SPIN.replace("WHO", "9"), [".u64 d"]), {"d": d}, grid=2, block=1)


def test_long_loops_are_no_deadlock_but_are_bounded() -> None:
    body = "mov.u32 %r1, 0; $L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 5000; @%p1 bra $L;"
    assert lanes(body) == [5000] * 32
    with pytest.raises(EmulatorError, match="no end after 1,000 basic blocks"):
        lanes(body, machine=Machine(max_blocks=1000))


def test_groups_of_one_warp_may_wait_for_each_other() -> None:
    """Lane 0 spins until lane 1, in the other arm, has written."""
    body = """
    mov.u32 %r2, buffer; mov.u32 %r3, 0; st.shared.u32 [%r2], %r3;
    bar.warp.sync 0xffffffff;
    setp.eq.u32 %p1, %r60, 0; @%p1 bra $WAIT;
    mov.u32 %r3, 5; st.shared.u32 [%r2], %r3; mov.u32 %r1, 1; bra $END;
    $WAIT: ld.volatile.shared.u32 %r1, [%r2]; setp.eq.u32 %p2, %r1, 0; @%p2 bra $WAIT;
    $END:
    """
    assert lanes(body, head=SHARED) == [5] + [1] * 31


@pytest.mark.parametrize("schedule", ["round_robin", "random"])
def test_cluster_barrier_and_distributed_shared_memory(schedule: str) -> None:
    d = np.zeros(8, np.uint32)
    body = """
    mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, buffer; add.u32 %r3, %r1, 100;
    st.shared.u32 [%r2], %r3;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    xor.b32 %r4, %r1, 1; mapa.shared::cluster.u32 %r5, %r2, %r4;
    ld.shared::cluster.u32 %r6, [%r5]; getctarank.shared::cluster.u32 %r7, %r5;
    mad.lo.u32 %r6, %r7, 1000, %r6;
    barrier.cluster.arrive; barrier.cluster.wait;
    mov.u32 %r8, %ctaid.x; ld.param.u64 %rd1, [d]; mad.wide.u32 %rd1, %r8, 4, %rd1;
    st.global.u32 [%rd1], %r6;
    """
    source = module(body, [".u64 d"], head=SHARED, directives=".explicitcluster")
    run(source, {"d": d}, grid=8, cluster=2, machine=Machine(schedule=schedule, seed=3))  # type: ignore[arg-type]
    assert d.tolist() == [1101, 100] * 4


# -- what is caught --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("add.u32 %r1, %r2, 1; st.global.u32 [%rd1], %r1;", "uninitialised-register"),
        ("ld.global.u32 %r1, [%rd9];", "uninitialised-register"),
        ("@%p1 bra $X; mov.u32 %r1, 1; $X:", "uninitialised-register"),
        ("setp.eq.u32 %p1, %r60, 3; @%p1 mov.u32 %r1, 1; st.global.u32 [%rd1], %r1;",
         "uninitialised-register"),
        ("ld.global.u32 %r1, [%rd1+128];", "out-of-bounds"),
        ("mov.u64 %rd2, 64; ld.global.u32 %r1, [%rd2];", "out-of-bounds"),
        ("mad.wide.u32 %rd1, %r60, 8, %rd1; st.global.u32 [%rd1], %r60;", "out-of-bounds"),
        ("mad.wide.u32 %rd1, %r60, 1, %rd1; ld.global.u32 %r1, [%rd1];", "misaligned"),
        ("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+4];", "misaligned"),
        ("ld.shared.u32 %r1, [buffer];", "uninitialised-memory"),
        ("st.shared.u32 [buffer+1022], %r60;", "misaligned"),
        ("st.shared.u32 [buffer+1024], %r60;", "out-of-bounds"),
        ("mov.u32 %r2, 64; st.shared.u32 [%r2], %r60;", "out-of-bounds"),  # the system's 1 KB
        ("setp.lt.u32 %p1, %r60, 8; @%p1 bra $X; bar.sync 0; $X:", "partial-warp"),
        ("setp.lt.u32 %p1, %r60, 8; @%p1 bra $X; shfl.sync.idx.b32 %r1, %r60, 9, 31, -1; $X:",
         "absent-lanes"),
        ("bar.sync 0, 40;", "named-barrier"),
        ("bar.sync 17;", "named-barrier"),
        ("barrier.cluster.wait;", "cluster-barrier"),
        ("barrier.cluster.arrive; barrier.cluster.arrive;", "cluster-barrier"),
        ("mov.u32 %r2, buffer; mapa.shared::cluster.u32 %r3, %r2, 3;", "cluster-rank"),
        ("trap;", "trap"),
    ],
)  # fmt: skip
def test_what_is_caught(body: str, code: str) -> None:
    d = np.zeros(32, np.uint32)
    source = module(f"{LINEAR} ld.param.u64 %rd1, [d];\n{body}", [".u64 d"], head=SHARED)
    assert finding(source, arrays={"d": d}) == code


def test_read_only_arrays_are_not_written() -> None:
    d = np.zeros(32, np.uint32)
    d.flags.writeable = False
    source = module(
        "ld.param.u64 %rd1, [d]; mov.u32 %r1, 1; st.global.u32 [%rd1], %r1;", [".u64 d"]
    )
    assert finding(source, arrays={"d": d}) == "read-only"


def test_guarded_definitions_on_every_path_are_no_finding() -> None:
    body = "setp.eq.u32 %p1, %r60, 3; @%p1 mov.u32 %r1, 1; @!%p1 mov.u32 %r1, 2;"
    assert lanes(body) == [1 if i == 3 else 2 for i in range(32)]


def test_deadlock_names_the_barrier_and_the_warps() -> None:
    """Warp 1 waits for 64 threads at barrier 2; warp 0 never comes."""
    body = f"{LINEAR} setp.lt.u32 %p1, %r60, 32; @%p1 ret; bar.sync 2, 64;"
    with pytest.raises(Deadlock) as caught:
        run(module(body), block=64)
    assert "CTA (0,0,0) warp 1 at PTX line" in str(caught.value)
    assert "named barrier 2: 32 of 64 threads arrived" in str(caught.value)


def test_unsupported_names_opcode_and_line_before_anything_runs() -> None:
    d = np.zeros(1, np.uint32)
    body = (
        "ld.param.u64 %rd1, [d]; mov.u32 %r1, 1; st.global.u32 [%rd1], %r1;\ntex.1d.v4.s32.s32 %r1;"
    )
    with pytest.raises(UnsupportedPtx, match=r"PTX line 10: tex.1d.v4.s32.s32: .*tex") as caught:
        run(module(body, [".u64 d"]), {"d": d})
    assert (caught.value.opcode, caught.value.line) == ("tex", 10)
    assert d[0] == 0


@pytest.mark.parametrize(
    ("body", "message"),
    [("mov.u32 %r1, %nothing;", "%nothing is not declared"), ("bra $NOWHERE;", "no label"),
     ("@%r1 ret;", "not a predicate"), ("add.u32 %rd1, %rd2, %rd3;", "has 64 bits")],
)  # fmt: skip
def test_bad_names_are_syntax_errors_with_a_line(body: str, message: str) -> None:
    with pytest.raises(PtxSyntaxError, match=message) as caught:
        run(module(body))
    assert caught.value.line == 9


def test_launches_that_the_entry_does_not_allow() -> None:
    source = module("ret;", directives=".reqntid 64\n.reqnctapercluster 2, 1, 1")
    with pytest.raises(
        LaunchError, match=r"block 32x1x1, but .reqntid says 64x1x1.*not a multiple"
    ):
        run(source, grid=3, block=32)
    with pytest.raises(LaunchError, match="takes x; unknown or missing: x"):
        run(module("ret;", [".u32 x"]))
    with pytest.raises(LaunchError, match="parameter x has 4 bytes, got 8"):
        run(module("ret;", [".u32 x"]), scalars={"x": u32(1) * 2})


def test_counts_are_exact() -> None:
    report = run(module("mov.u32 %r1, 0; $L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 10;"
                        " @%p1 bra $L;"), grid=3, block=64)  # fmt: skip
    assert report.count("add") == 3 * 2 * 10
    assert report.count("ret") == 3 * 2
    assert report.ctas == 3


def test_generated_code_has_no_name_from_the_ptx() -> None:
    source = module(
        ".reg .b32 evil; mov.u32 evil, 1; $evil_label: add.u32 evil, evil, 1;", [".u32 evil_p"]
    )
    kernel = Machine().compile(source, None, Dim3(32))
    for i in range(len(kernel.analysis.blocks)):
        for full in (True, False):
            assert "evil" not in kernel.source(i, full)
