"""wgmma on the emulator against the definition: layouts, fragments and sparsity written once more.

Only the least N of each form, with all of its flags; other widths differ in a loop bound alone.
"""

from __future__ import annotations

import case_kernel
import numpy as np
import pytest
from case_kernel import CaseKernel
from test_isa_emulator import execute
from test_isa_mma import TYPES, spread, unpack

from ptxgen.isa.forms import FORMS, Form

pytestmark = pytest.mark.emu

N = 8
A_BYTES = 64 * 32
WGMMA = [form for form in FORMS if form.id.startswith("wgmma.") and form.updates]


def operand(
    memory: np.ndarray, type_: str, shape: tuple[int, int], stride: int, mn_major: bool
) -> np.ndarray:
    """`[rows, k]` from core matrices without swizzle; `stride` bytes between 8-row groups."""
    values = memory.view(np.dtype(TYPES[type_]))
    size = values.itemsize
    row, column = np.indices(shape)
    if mn_major:
        at = row // 8 * stride + row % 8 * size + column // 8 * 128 + column % 8 * 16
    else:
        per = 16 // size
        at = row // 8 * stride + row % 8 * 16 + column // per * 128 + column % per * size
    return values[at // size].astype(np.float64)


def fragment_a(values: np.ndarray) -> np.ndarray:
    """Four registers of 128 threads, `[4, 128, per]`, to `[64, 8 * per]`."""
    per = values.shape[2]
    out = np.zeros((64, 8 * per))
    for thread in range(128):
        warp, g, t = thread // 32, thread % 32 // 4, thread % 4
        for j in range(4):
            row, column = 16 * warp + g + 8 * (j % 2), per * (4 * (j // 2) + t)
            out[row, column : column + per] = values[j, thread].astype(np.float64)
    return out


def fragment_d(values: np.ndarray, type_: str) -> np.ndarray:
    """`[registers, 128, per]` to `[64, 8]`."""
    out = np.zeros((64, N))
    for thread in range(128):
        warp, g, t = thread // 32, thread % 32 // 4, thread % 4
        flat = values[:, thread].reshape(-1)
        for i, value in enumerate(flat):
            out[16 * warp + g + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * t + i % 2] = float(value)
    return out


def expected(kernel: CaseKernel, inputs: np.ndarray) -> np.ndarray:
    axes, names = kernel.case.axes, kernel.case.names
    a_type, b_type, d_type = str(axes["a"]), str(names["b"]), str(axes["d"])
    k = int(names["k"]) if "k" in names else 16
    sparse = "selector" in axes
    slots = inputs[: kernel.shared_in_at].view(np.uint64).reshape(-1, kernel.total)
    memory = inputs[kernel.shared_in_at :]
    named, at = {}, 0
    for o in kernel.read_operands:
        named[o.name] = slots[at : at + len(o.registers)]
        at += len(o.registers)
    transposes = [bool(int(x)) for x in str(axes.get("transpose", "0, 0")).split(", ")]
    if "a_regs" in named:
        a = fragment_a(unpack(named["a_regs"], a_type))
    else:
        shape = (64, k // 2 if sparse else k)
        a = operand(memory[:A_BYTES], a_type, shape, 256, transposes[0])
    if sparse:
        words = named["e"][0].reshape(4, 32)
        selector = int(axes["selector"])
        a = np.concatenate(
            [spread(a[16 * w : 16 * w + 16], words[w], a_type, k, selector) for w in range(4)]
        )
    stride = 512 if sparse else 256
    extent = N * (64 if sparse else 32)
    b = operand(memory[A_BYTES : A_BYTES + extent], b_type, (N, k), stride, transposes[-1])
    signs = [int(x) for x in str(axes.get("scale", "1, 1")).split(", ")]
    out = signs[0] * signs[1] * (a @ b.T)
    if str(axes["d_scale"]) != "0":
        out = out + fragment_d(unpack(named["acc"], d_type), d_type)
    if d_type == "s32":
        if axes.get("sat"):
            out = np.clip(out, -(2**31), 2**31 - 1)
        out = out.astype(np.int64).astype(np.int32).astype(np.float64)
    return out.astype(TYPES[d_type]).astype(np.float64)


@pytest.mark.parametrize("form", WGMMA, ids=lambda form: form.id)
def test_wgmma_is_the_product(form: Form) -> None:
    kernels = [k for k in case_kernel.kernels(form) if k.case.axes["n"] == N]
    kernels = [k for k in kernels if not k.case.refused]
    texts = case_kernel.entries(kernels)
    for kernel in kernels:
        inputs = kernel.arrays(0)["inputs"]
        got, _ = execute(kernel, case_kernel.module([kernel], texts))
        d_type = str(kernel.case.axes["d"])
        found = fragment_d(unpack(kernel.registers(got), d_type), d_type)
        np.testing.assert_array_equal(found, expected(kernel, inputs), err_msg=kernel.id)
