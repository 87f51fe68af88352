"""What no barrier shows by itself: inits to the async proxy, the grid before to this one."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from emulate import SMEM, module, run

from ptxgen.errors import HazardError
from ptxgen.spec import Dim3
from runtime.emulator.machine import Machine
from runtime.emulator.memory import GlobalMemory
from runtime.emulator.report import RegisterUse, Report

pytestmark = pytest.mark.emu

# Thread 0 makes a barrier, FENCE, everybody meets; thread 32 copies 16 bytes with it.
COPY = """
mov.u32 %r1, smem; mov.u32 %r60, %tid.x; setp.eq.u32 %p1, %r60, 0; setp.eq.u32 %p2, %r60, 32;
@%p1 mbarrier.init.shared::cta.b64 [%r1], 1;
FENCE
bar.sync 0;
ld.param.u64 %rd1, [x];
@%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 16;
@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+16], [%rd1], 16, [%r1];
$WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1], 0;
@!%p3 bra $WAIT;
"""


def copies(fence: str) -> Report:
    source = module(COPY.replace("FENCE", fence), [".u64 x"], head=SMEM)
    x = np.zeros(4, np.uint32)
    return run(source, {"x": x}, block=64, smem=32, machine=Machine(hazards=True))


@pytest.mark.parametrize(
    "fence",
    ["@%p1 fence.mbarrier_init.release.cluster;", "@%p1 fence.proxy.async.shared::cta;",
     "fence.proxy.async;"],
)  # fmt: skip
def test_a_fence_shows_an_init_to_the_async_proxy(fence: str) -> None:
    assert copies(fence).advice == ()


@pytest.mark.parametrize("fence", ["", "membar.cta;", "@%p2 fence.mbarrier_init.release.cluster;"])
def test_a_barrier_alone_does_not(fence: str) -> None:
    """Nor does a fence for the generic proxy, or one by a thread that made no barrier."""
    (advice,) = copies(fence).advice
    assert (advice.code, advice.severity) == ("mbarrier-init-proxy", "advice")
    assert "fence.mbarrier_init" in advice.cure


LOAD = "ld.param.u64 %rd1, [x]; ld.global.u32 %r1, [%rd1];"
GLOBAL_COPY = """
mov.u32 %r1, smem; mov.u32 %r60, %tid.x; setp.eq.u32 %p1, %r60, 0; ld.param.u64 %rd1, [x];
@%p1 mbarrier.init.shared::cta.b64 [%r1], 1; fence.proxy.async;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 16;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+16], [%rd1], 16, [%r1];
bar.sync 0;
$WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1], 0;
@!%p3 bra $WAIT;
"""
ONE_WARP_WAITS = """
mov.u32 %r60, %tid.x; setp.lt.u32 %p1, %r60, 32;
@%p1 griddepcontrol.wait;
"""


def beside(body: str, *, pdl: bool = True, hazards: bool = True) -> None:
    memory = GlobalMemory()
    x = np.zeros(4, np.uint32)
    Machine(hazards=hazards).launch(
        module(body, [".u64 x"], head=SMEM), grid=Dim3(1), block=Dim3(64), smem_bytes=32,
        params={"x": struct.pack("<Q", memory.add(x, "x"))}, memory=memory, pdl=pdl,
    )  # fmt: skip


@pytest.mark.parametrize(
    "body", [LOAD, GLOBAL_COPY, f"{LOAD} griddepcontrol.wait;", f"{ONE_WARP_WAITS} {LOAD}"]
)
def test_global_memory_before_the_wait_for_the_grid_before(body: str) -> None:
    """Also where the wait comes too late, or another warp has waited and nothing says so."""
    with pytest.raises(HazardError, match="grid-dependency"):
        beside(body)


@pytest.mark.parametrize(
    "body",
    [f"griddepcontrol.wait; {LOAD}", f"griddepcontrol.wait; {GLOBAL_COPY}",
     f"{ONE_WARP_WAITS} bar.sync 0; {LOAD}"],
)  # fmt: skip
def test_the_wait_and_what_passes_it_on(body: str) -> None:
    beside(body)


def test_an_ordinary_launch_has_nothing_to_wait_for() -> None:
    beside(LOAD, pdl=False)
    beside(LOAD, hazards=False)


@pytest.mark.parametrize("count", [16, 20, 264])
def test_illegal_register_counts_are_findings(count: int) -> None:
    """Below the least, no multiple of 8, above the most."""
    directives = ".reqntid 128\n.maxnreg 128"
    source = module(f"setmaxnreg.dec.sync.aligned.u32 {count};", directives=directives)
    with pytest.raises(HazardError, match=f"setmaxnreg to {count} registers"):
        run(source, block=128)


def test_the_report_says_what_setmaxnreg_did() -> None:
    """Warpgroup 1 of two hands 88 of its 128 registers over, and warpgroup 0 takes 40 of them."""
    body = """
    mov.u32 %r1, %tid.x; shr.u32 %r1, %r1, 7; setp.eq.u32 %p1, %r1, 0; @%p1 bra $TAKES;
    setmaxnreg.dec.sync.aligned.u32 40; bra $END;
    $TAKES: setmaxnreg.inc.sync.aligned.u32 168;
    $END: ret;
    """
    source = module(body, directives=".reqntid 256\n.maxnreg 128")
    use = RegisterUse(128, (168,) * 4 + (40,) * 4, (1,) * 8)
    assert run(source, block=256, grid=2).registers == (use,)
