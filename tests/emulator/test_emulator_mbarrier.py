"""mbarriers, multicast, setmaxnreg, ldmatrix and stmatrix."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from emulate import MAP, SMEM, module, run, tensor_map

from ptxgen.errors import Deadlock, HazardError
from ptxgen.spec import Dim3
from runtime.emulator.machine import Machine
from runtime.emulator.memory import GlobalMemory

pytestmark = pytest.mark.emu

INIT = (
    "mov.u32 %r1, smem; mov.u32 %r60, %tid.x; setp.eq.u32 %p1, %r60, 0;"
    "@%p1 mbarrier.init.shared::cta.b64 [%r1], {}; bar.sync 0;"
)


def test_phases_and_states() -> None:
    """Two phases of 64 arrivals; the state names the phase; parity 1 of a fresh barrier is over."""
    d = np.zeros(64, np.uint32)
    body = (
        INIT.format(64)
        + """
    mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1], 1; selp.u32 %r2, 1, 0, %p2;
    mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1], 0; selp.u32 %r3, 2, 0, %p2; bar.sync 0;
    mbarrier.arrive.shared::cta.b64 %rd1, [%r1];
    $A: mbarrier.try_wait.shared::cta.b64 %p3, [%r1], %rd1; @!%p3 bra $A;
    mbarrier.arrive.shared::cta.b64 %rd2, [%r1];
    $B: mbarrier.test_wait.parity.shared::cta.b64 %p3, [%r1], 1; @!%p3 bra $B;
    add.u32 %r2, %r2, %r3; ld.param.u64 %rd3, [d]; mad.wide.u32 %rd3, %r60, 4, %rd3;
    st.global.u32 [%rd3], %r2;
    """
    )
    report = run(module(body, [".u64 d"], head=SMEM), {"d": d}, block=64, smem=64)
    assert set(d.tolist()) == {1}
    assert report.events["mbarrier_phase"] == 2


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("mbarrier.arrive.shared::cta.b64 _, [%r1+8];", "mbarrier-uninitialised"),
        ("@%p1 mbarrier.init.shared::cta.b64 [%r1], 1;", "mbarrier-reinit"),
        ("mbarrier.init.shared::cta.b64 [%r1+8], 1;", "mbarrier-reinit"),  # by 32 lanes
        ("@%p1 mbarrier.init.shared::cta.b64 [%r1+8], 0;", "mbarrier-count"),
        ("@%p1 mbarrier.init.shared::cta.b64 [%r1+4], 1;", "misaligned"),
        (
            "mbarrier.arrive.shared::cta.b64 _, [%r1];",
            "mbarrier-overrun",
        ),  # 32 arrivals, 2 expected
        ("@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 2000000;", "mbarrier-tx"),
        ("st.shared.u32 [%r1+4], %r60;", "mbarrier-access"),
        ("ld.shared.u32 %r2, [%r1];", "mbarrier-access"),
        ("setmaxnreg.dec.sync.aligned.u32 72;", "setmaxnreg"),
    ],
)
def test_mbarrier_rules(body: str, code: str) -> None:
    with pytest.raises(HazardError) as caught:
        run(module(INIT.format(2) + body, head=SMEM, directives=".maxnreg 64"), smem=64)
    assert caught.value.findings[0].code == code


def test_setmaxnreg_beyond_the_pool_is_a_deadlock_that_names_it() -> None:
    body = """
    mov.u32 %r60, %tid.x; setp.lt.u32 %p1, %r60, 128; @%p1 bra $A;
    setmaxnreg.inc.sync.aligned.u32 240; bra $B; $A: setmaxnreg.dec.sync.aligned.u32 104; $B:
    """
    directives = ".reqntid 256\n.maxnreg 128"
    with pytest.raises(
        Deadlock, match=r"setmaxnreg.inc needs 3584 registers .* the CTA's pool has"
    ):
        run(module(body, directives=directives), block=256)
    good = body.replace("104", "24").replace("240", "232")
    run(module(good, directives=directives), block=256)


def test_multicast_fills_and_signals_every_cta_of_the_mask() -> None:
    x = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)
    d = np.zeros((4, 256), np.float32)
    body = """
    mov.u32 %r1, smem; add.u32 %r2, %r1, 2048; mov.u32 %r60, %tid.x; mov.u32 %r5, %cluster_ctarank;
    mov.b64 %rd1, t; cvta.param.u64 %rd1, %rd1; setp.eq.u32 %p1, %r60, 0;
    @%p1 mbarrier.init.shared::cta.b64 [%r2], 1; @%p1 fence.mbarrier_init.release.cluster;
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 1024;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    setp.eq.and.u32 %p2, %r5, 0, %p1; mov.b16 %h1, MASK;
    @%p2 COPY.multicast::cluster
        [%r1], [%rd1, {32, 8}], [%r2], %h1;
    $W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], 0; @!%p3 bra $W;
    ld.param.u64 %rd2, [d]; mov.u32 %r6, %ctaid.x; mad.wide.u32 %rd2, %r6, 1024, %rd2;
    mad.wide.u32 %rd2, %r60, 32, %rd2; mad.lo.u32 %r7, %r60, 32, %r1;
    ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r7]; st.global.v4.f32 [%rd2], {%f1, %f2, %f3, %f4};
    ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r7+16];
    st.global.v4.f32 [%rd2+16], {%f1, %f2, %f3, %f4};
    barrier.cluster.arrive; barrier.cluster.wait;
    """.replace(
        "COPY", "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
    )

    def launch(mask: str) -> None:
        memory = GlobalMemory()
        tmap = tensor_map(memory, x, (8, 32))
        Machine().launch(
            module(body.replace("MASK", mask), [MAP.format("t"), ".u64 d"], head=SMEM),
            grid=Dim3(4), block=Dim3(32), cluster=Dim3(2), smem_bytes=4096,
            params={"t": tmap, "d": struct.pack("<Q", memory.add(d))}, memory=memory,
        )  # fmt: skip

    launch("3")
    assert (d.reshape(4, 8, 32) == x[8:16, 32:]).all()
    with pytest.raises(HazardError, match="multicast mask 0x7 in a cluster of 2"):
        launch("7")
    with pytest.raises(Deadlock, match=r"bytes expected 1,024, delivered 0"):
        launch("1")  # the second CTA waits for bytes that nobody sends it


# -- ldmatrix and stmatrix -------------------------------------------------------------------------


@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_matrix_loads_and_stores(count: int, trans: str) -> None:
    """Register j of lane l holds row l / 4, columns 2 (l % 4) and the next, of matrix j."""
    x = np.arange(count * 64, dtype=np.uint16).reshape(count, 8, 8)
    loaded, stored = np.zeros((4, 32), np.uint32), np.zeros((count, 8, 8), np.uint16)
    registers = ", ".join(f"%r{10 + i}" for i in range(count))
    form = f"m8n8.x{count}{trans}.shared.b16"
    body = f"""
    mov.u32 %r60, %tid.x; mov.u32 %r1, smem; mad.lo.u32 %r2, %r60, 16, %r1;
    ld.param.u64 %rd1, [x]; mad.wide.u32 %rd1, %r60, 16, %rd1; setp.lt.u32 %p1, %r60, {8 * count};
    @%p1 ld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%rd1];
    @%p1 st.shared.v4.u32 [%r2], {{%r4, %r5, %r6, %r7}}; bar.warp.sync 0xffffffff;
    ldmatrix.sync.aligned.{form} {{{registers}}}, [%r2];
    stmatrix.sync.aligned.{form} [%r2+512], {{{registers}}}; bar.warp.sync 0xffffffff;
    @%p1 ld.shared.v4.u32 {{%r4, %r5, %r6, %r7}}, [%r2+512];
    ld.param.u64 %rd2, [s]; mad.wide.u32 %rd2, %r60, 16, %rd2;
    @%p1 st.global.v4.u32 [%rd2], {{%r4, %r5, %r6, %r7}};
    ld.param.u64 %rd3, [l]; mad.wide.u32 %rd3, %r60, 4, %rd3;
    """ + "".join(f"st.global.u32 [%rd3+{128 * i}], %r{10 + i};" for i in range(count))
    run(module(body, [".u64 x", ".u64 s", ".u64 l"], head=SMEM),
        {"x": x, "s": stored, "l": loaded}, smem=1024)  # fmt: skip
    lane = np.arange(32)
    for j in range(count):
        matrix = x[j].T if trans else x[j]
        low, high = matrix[lane // 4, 2 * (lane % 4)], matrix[lane // 4, 2 * (lane % 4) + 1]
        assert (loaded[j] == (high.astype(np.uint32) << 16 | low)).all()
    assert (stored == x).all()
