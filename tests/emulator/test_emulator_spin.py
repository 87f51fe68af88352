"""A warp that spins on memory lets others go on, also those whose CTA has not started."""

from __future__ import annotations

import numpy as np
import pytest
from emulate import module, run

from runtime.emulator.machine import SCHEDULES, Machine, Schedule

pytestmark = pytest.mark.emu

# CTA 0 spins on a flag that CTA 1 raises; CTA 1 only starts when nobody else can go on.
FLAG = """
ld.param.u64 %rd1, [flag]; mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 1; @%p1 bra $RAISE;
$SPIN: ld.acquire.gpu.global.u32 %r2, [%rd1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra $SPIN;
ret;
$RAISE: st.release.gpu.global.u32 [%rd1], 1;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("seed", range(3))
def test_a_spinning_cta_does_not_keep_the_next_one_out(schedule: Schedule, seed: int) -> None:
    flag = np.zeros(1, np.uint32)
    machine = Machine(sms=2, schedule=schedule, seed=seed, max_blocks=100_000)
    run(module(FLAG, [".u64 flag"]), {"flag": flag}, grid=2, machine=machine)
    assert flag[0] == 1
