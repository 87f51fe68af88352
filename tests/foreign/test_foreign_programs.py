"""CUDA programs through nvcc's PTX: the results are NumPy's, on every backend."""

from __future__ import annotations

import launching
import pytest
from launching import CASES
from machines import Runner, assert_same_bits

from runtime.emulator.backend import EmulatorBackend
from runtime.emulator.queue import Mode

pytestmark = pytest.mark.emu


@pytest.mark.parametrize("name", CASES)
def test_a_program_gives_what_numpy_gives(runner: Runner, name: str) -> None:
    case = launching.case_of(name)
    results = [launching.launch(launching.source(name), case, b) for b in runner.backends]
    for backend, found in zip(runner.backends, results, strict=True):
        launching.check(case, found, f"{name} on {backend}")
    if len(results) == 2 and not case.rtol:
        for array in case.expected:
            assert_same_bits(results[0][array], results[1][array], f"{name}: {array}, both")


@pytest.mark.parametrize("mode", ["random", "latest"])
@pytest.mark.parametrize("name", CASES)
def test_a_program_stands_any_order_of_warps_and_copies(name: str, mode: Mode) -> None:
    """Results stay the same when warps take turns at random and copies land late."""
    case = launching.case_of(name)
    machine = EmulatorBackend(schedule="random", seed=len(name), mode=mode)
    launching.check(case, launching.launch(launching.source(name), case, "emulator", machine), name)
