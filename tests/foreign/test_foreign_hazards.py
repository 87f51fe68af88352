"""Programs that are right stay silent when hazards are checked, but for what is disputed."""

from __future__ import annotations

import launching
import pytest
from launching import CASES

from ptxgen.app.sweep import Schedule
from runtime.emulator.backend import EmulatorBackend
from runtime.emulator.report import Report

pytestmark = pytest.mark.emu

SCHEDULES = ("eager:round_robin:0", "latest:random:1", "random:priority:2")
# Advice, never an error, and why it is given.
ADVICE = {
    "cas_max": {"race-atomic"},  # compare-and-swap starts from a plain load
    # nvcc fences no inits, and a stage is read, released and filled again
    "barrier_pipeline": {"mbarrier-init-proxy", "proxy-fence-read"},
    "bulk_copy": {"mbarrier-init-proxy"},
    "triton/matmul_wgmma": {"proxy-fence-side"},  # cp.async by all, the fence before wgmma
    "triton/column_sums": {"race-same-value"},  # every warp stores the sum that they share
}


@pytest.mark.parametrize("name", CASES)
def test_a_program_that_is_right_breaks_no_rule(name: str) -> None:
    case = launching.case_of(name)
    advice: set[str] = set()
    for text in SCHEDULES:
        how = Schedule.parse(text)
        machine = EmulatorBackend(
            schedule=how.turns, seed=how.seed, mode=how.mode, hazards=True
        )  # fmt: skip
        found = launching.launch(launching.source(name), case, "emulator", machine)
        launching.check(case, found, name)
        report = machine.wait(machine.stream(None, "cpu"))
        assert isinstance(report, Report)
        advice |= {f.code for f in report.advice}
    assert advice == ADVICE.get(name, set())
