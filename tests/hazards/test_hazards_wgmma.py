"""How wgmma goes wrong in practice, and that the finding names the right cure: fences order what
comes before, waits what comes after, and neither replaces the other."""

from __future__ import annotations

import pytest
from hazard_runs import check, codes, one, program

pytestmark = pytest.mark.emu

# Operands without swizzle: 64 x 16 for A at tile, 8 (or 16) x 16 for B 2 KB above. 128 threads.
SETUP = """
.reg .b32 %acc<8>, %a, %b, %at;
.reg .b64 %a_desc, %b_desc;
mad.lo.u32 %at, %thread, 32, %tile;
mov.u32 %n, 8;
CLEAR: st.shared.u32 [%at], 0; add.u32 %at, %at, 4;
sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra CLEAR;
fence.proxy.async.shared::cta; bar.sync 0;
shr.u32 %a, %tile, 4; add.u32 %b, %a, 128;
cvt.u64.u32 %a_desc, %a; or.b64 %a_desc, %a_desc, 0x1000080000;
cvt.u64.u32 %b_desc, %b; or.b64 %b_desc, %b_desc, 0x1000080000;
"""
FENCE = "wgmma.fence.sync.aligned;"
COMMIT = "wgmma.commit_group.sync.aligned;"
WAIT = "wgmma.wait_group.sync.aligned {};"
OUT = (".param .u64 out", ("--arg", "out=u32[128]:zeros"))
PUT = "ld.param.u64 %out, [out]; mad.wide.u32 %out, %thread, 4, %out; st.global.b32 [%out], %acc0;"


def mma(n: int = 8, scale: int = 0, first: int = 0) -> str:
    registers = ", ".join(f"%acc{first + i}" for i in range(n // 2))
    return (
        f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.bf16.bf16 {{{registers}}}, %a_desc, %b_desc, "
        f"{scale}, 1, 1, 0, 0;"
    )


def wgmma(*body: str) -> str:
    return program("\n".join((SETUP, *body)), OUT[0], threads=128)


RIGHT = {
    "one": (FENCE, mma(), COMMIT, WAIT.format(0), PUT),
    "one fence for many of the same shape":
        (FENCE, mma(), mma(scale=1), COMMIT, mma(scale=1), COMMIT, WAIT.format(0), PUT),
    "a fence before another shape":
        (FENCE, mma(), FENCE, mma(16), COMMIT, WAIT.format(0), PUT),
    "other accumulators need none":
        (FENCE, mma(), mma(8, first=4), COMMIT, WAIT.format(0), PUT),
    "the last of two may run on":
        (FENCE, mma(), COMMIT, mma(first=4), COMMIT, WAIT.format(1), PUT, WAIT.format(0)),
}  # fmt: skip
# body, the code, and what the cure must name
WRONG = {
    "no wait": ((FENCE, mma(), COMMIT, PUT, WAIT.format(0)), "wgmma-in-flight", "wait_group"),
    "no commit":
        ((FENCE, mma(), COMMIT, FENCE, mma(scale=1), WAIT.format(0), PUT), "wgmma-in-flight",
         "commit_group"),
    "one group too few":
        ((FENCE, mma(), COMMIT, WAIT.format(1), PUT, WAIT.format(0)), "wgmma-in-flight",
         "wait_group"),
    "a fence is no wait":
        ((FENCE, mma(), COMMIT, FENCE, PUT, WAIT.format(0)), "wgmma-in-flight", "wait_group"),
    "a barrier is no wait":
        ((FENCE, mma(), COMMIT, "bar.sync 0;", PUT, WAIT.format(0)), "wgmma-in-flight",
         "wait_group"),
    "no fence": ((mma(), COMMIT, WAIT.format(0), PUT), "wgmma-fence", "wgmma.fence"),
    "a wait is no fence":
        ((FENCE, mma(), COMMIT, WAIT.format(0), "mov.b32 %acc0, 0;", mma(scale=1), COMMIT,
          WAIT.format(0), PUT), "wgmma-fence", "wgmma.fence"),
    "another shape": ((FENCE, mma(), mma(16), COMMIT, WAIT.format(0), PUT), "wgmma-shape", "fence"),
    "the stage is written too early":
        ((FENCE, mma(), COMMIT, "bar.sync 0; st.shared.u32 [%mine], %thread;", WAIT.format(0), PUT),
         "stage-overwritten", "wait_group"),
}  # fmt: skip


@pytest.mark.parametrize("what", RIGHT)
def test_what_is_right_is_silent(what: str) -> None:
    assert codes(what, wgmma(*RIGHT[what]), OUT[1]) == set()


@pytest.mark.parametrize("what", WRONG)
def test_the_cure_is_the_missing_instruction(what: str) -> None:
    body, code, cure = WRONG[what]
    found = one(check(what, wgmma(*body), OUT[1]))
    assert found.code == code
    assert cure in found.cure
    assert codes(what, wgmma(*body), OUT[1]) == {code}


SKIP = "setp.ge.u32 %p, %thread, 128; @%p bra READY; mov.u32 %n, 8;"  # the producer warp
RELEASE = "mbarrier.arrive.shared::cta.b64 _, [%empty];"
REFILL = """setp.ne.u32 %p, %warp, 4; @%p bra CONSUME;
REUSE: mbarrier.try_wait.parity.shared::cta.b64 %done, [%empty], 0; @!%done bra REUSE;
and.b32 %at, %thread, 31; mad.lo.u32 %at, %at, 4, %tile; st.shared.u32 [%at], 1;
bra DONE;
CONSUME: {}
DONE:"""


@pytest.mark.parametrize(
    ("consume", "found"),
    [
        ((FENCE, mma(), COMMIT, WAIT.format(0), RELEASE), set()),
        ((FENCE, mma(), COMMIT, RELEASE, WAIT.format(0)), {"stage-overwritten"}),
    ],
)
def test_a_stage_that_is_released_before_wgmma_has_read_it(
    consume: tuple[str, ...], found: set[str]
) -> None:
    """The producer warp writes the stage as soon as it is released."""
    made = "@!%other mbarrier.init.shared::cta.b64 [%empty], 128;"
    setup = SETUP.replace("mov.u32 %n, 8;", SKIP)
    setup = setup.replace("fence.proxy", "READY: fence.proxy")
    body = "\n".join((made, setup, REFILL.format("\n".join(consume))))
    assert codes("release", program(body, OUT[0], threads=160), OUT[1]) == found


@pytest.mark.parametrize(("start", "found"), [(128, set()), (14500, {"out-of-bounds"})])
def test_an_operand_that_reaches_past_shared_memory(start: int, found: set[str]) -> None:
    """The descriptor has 14 bits for its start: more reads somewhere else."""
    body = (FENCE, mma(), COMMIT, WAIT.format(0), PUT)
    ptx = wgmma(*body).replace("add.u32 %b, %a, 128;", f"add.u32 %b, %a, {start};")
    said = codes("past", ptx, OUT[1])
    assert said <= found | {"uninitialised-memory"}
    assert bool(said) == bool(found)
