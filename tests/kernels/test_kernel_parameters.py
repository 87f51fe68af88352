"""What a launch passes by place: the spec of a kernel lists what its entry declares, in order."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from gemm_pitches import COPIED, DIRECT, LOADED

import ptxgen
import runtime
from ptxgen.errors import ArgumentError
from ptxgen.kernels.proofs import PROOFS
from ptxgen.ptx import parameters
from runtime.checks import require_parameters

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("reference", sorted({*PROOFS, *DIRECT, *COPIED, *LOADED}))
def test_the_spec_lists_what_the_entry_declares(reference: str) -> None:
    """Maps, pointers and scalars lie in another order where threads copy, and TMA stores."""
    kernel = ptxgen.kernel_from(reference)
    declared = parameters(kernel.ptx, kernel.spec.entry)
    require_parameters(kernel.spec, ((p.name, p.size) for p in declared))


def test_the_emulator_refuses_another_order() -> None:
    """It passes values by name, and could run what a GPU cannot."""
    kernel = ptxgen.kernel_from("quantize")
    *first, last = kernel.spec.params
    turned = SimpleNamespace(
        ptx=kernel.ptx, plan=kernel.plan, spec=replace(kernel.spec, params=(last, *first))
    )
    x, q = (np.zeros((1, 16), kind) for kind in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn))
    scale = np.zeros(1, np.float32)
    with pytest.raises(ArgumentError, match="in the order of the entry"):
        runtime.launch(turned, x=x, q=q, scale=scale, backend="emulator")
