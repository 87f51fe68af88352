"""CUDA and Triton programs on the GPU and on the emulator: the same bits, and NumPy's."""

from __future__ import annotations

import launching
import pytest
from launching import CASES
from machines import assert_same_bits

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", CASES)
def test_the_emulator_agrees_with_the_gpu(name: str) -> None:
    case, ptx = launching.case_of(name), launching.source(name)
    found = {backend: launching.launch(ptx, case, backend) for backend in ("cuda", "emulator")}
    for backend, arrays in found.items():
        launching.check(case, arrays, f"{name} on {backend}")
    if not case.rtol:
        for array in case.expected:
            assert_same_bits(found["cuda"][array], found["emulator"][array], f"{name}: {array}")
