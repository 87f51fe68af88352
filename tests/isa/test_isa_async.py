"""st.async and red.async on the emulator against their definition, byte by byte."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import case_kernel
import numpy as np
import pytest
from test_isa_emulator import execute

from ptxgen.isa.forms import FORMS, Form

pytestmark = pytest.mark.emu

TYPES = {"u32": np.uint32, "s32": np.int32, "u64": np.uint64, "b32": np.uint32}
COMBINE: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": lambda old, b: old + b,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "inc": lambda old, b: np.where(old >= b, 0, old + 1),
    "dec": lambda old, b: np.where((old == 0) | (old > b), b, old - 1),
}
THREADS = 64  # of the cluster
PEER = np.r_[32:64, 0:32]  # the same lane of the other CTA


@pytest.mark.parametrize(
    "form", [f for f in FORMS if f.id in ("st.async", "red.async")], ids=lambda form: form.id
)
def test_values_arrive_in_the_peer(form: Form) -> None:
    """Each thread sends to +16 of its peer's cell, and sees what its peer has sent."""
    kernels = case_kernel.kernels(form)
    texts = case_kernel.entries(kernels)
    for kernel in kernels:
        inputs = kernel.arrays(0)["inputs"]
        sent = inputs[: kernel.shared_in_at].view(np.uint64).reshape(-1, THREADS)[:, PEER]
        cells = inputs[kernel.shared_in_at :][: 64 * THREADS].reshape(THREADS, 64)
        want = cells[:, 16:32].copy()
        operand = kernel.read_operands[0]
        width = operand.bits // 8
        for i, slots in enumerate(sent):
            value = slots[:, None].view(np.uint8)[:, :width]
            part = want[:, i * width : (i + 1) * width]
            if form.id == "red.async":
                dtype = TYPES[str(kernel.case.axes["type"])]
                old, new = (np.ascontiguousarray(x).view(dtype)[:, 0] for x in (part, value))
                combined = COMBINE[str(kernel.case.axes["op"])](old, new).astype(dtype)
                value = combined[:, None].view(np.uint8)
            part[:] = value
        result, _ = execute(kernel, case_kernel.module([kernel], texts))
        seen = np.ascontiguousarray(kernel.registers(result).T).view(np.uint8)
        np.testing.assert_array_equal(seen, want, err_msg=kernel.id)
