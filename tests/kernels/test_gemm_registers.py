"""Rows through registers: the self-test on exact integers, and that it would notice.

tests/gpu/test_gemm_registers_gpu.py runs the same self-test with every ptxas there is.
"""

from __future__ import annotations

import pytest
from gemm_registers import SELF_TESTS, assert_exact
from machines import Runner
from mutants import Mutant

import ptxgen
from ptxgen.errors import HazardError

pytestmark = pytest.mark.emu

SHAPE = (136, 144, 464)  # several tiles, ragged; two laps of most rings, and K that ends in a stage


@pytest.mark.parametrize("text", SELF_TESTS)
def test_exact(text: str, runner: Runner) -> None:
    assert_exact(ptxgen.kernel_from(text), SHAPE, runner, text)


def test_registers_that_are_loaded_too_early_are_noticed(runner: Runner) -> None:
    """What the assembler must not do, done by hand: the next stage's rows before the wait."""
    if "cuda" in runner.backends:
        pytest.skip("mutants are for the emulator")
    kernel = ptxgen.kernel_from(SELF_TESTS[0])
    ptx = str(kernel.ptx)
    wait = "wgmma.wait_group.sync.aligned 0;"
    assert ptx.count(wait) == 1
    early = Mutant(ptx.replace(wait, "wgmma.wait_group.sync.aligned 1;"), kernel)
    with pytest.raises((HazardError, AssertionError)):
        assert_exact(early, SHAPE, runner, "early")
