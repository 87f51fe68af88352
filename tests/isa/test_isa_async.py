"""Asynchronous stores, reductions and copies on the emulator against their definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import case_kernel
import ml_dtypes
import numpy as np
import pytest
from case_kernel import CaseKernel
from test_isa_emulator import execute

from ptxgen.isa.forms import FORMS, Form

pytestmark = pytest.mark.emu

TYPES = {
    "u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64, "b32": np.uint32,
    "b64": np.uint64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32,
    "f64": np.float64,
}  # fmt: skip
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


def combined(kernel: CaseKernel, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Bytes `[thread, n]` after the reduction of a case."""
    dtype = np.dtype(TYPES[str(kernel.case.axes["type"])])
    a, b = (np.ascontiguousarray(x).view(dtype) for x in (old, new))
    operation = str(kernel.case.axes["op"]).removesuffix(".noftz")
    return COMBINE[operation](a, b).astype(dtype).view(np.uint8)


def form_of(id: str) -> list[tuple[CaseKernel, str]]:
    """The cases of a form, each with its module."""
    kernels = case_kernel.kernels(next(form for form in FORMS if form.id == id))
    texts = case_kernel.entries(kernels)
    return [(kernel, case_kernel.module([kernel], texts)) for kernel in kernels]


def cells(kernel: CaseKernel, arrays: Mapping[str, np.ndarray], where: str) -> np.ndarray:
    """What the cells of all threads begin with, `[thread, 64]` bytes."""
    name, at = {
        "shared": ("inputs", kernel.shared_in_at), "global": ("outputs", kernel.gmem_at),
    }[where]  # fmt: skip
    return arrays[name][at:][: 64 * kernel.total].reshape(-1, 64).copy()


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
                value = combined(kernel, part, value)
            part[:] = value
        result, _ = execute(kernel, case_kernel.module([kernel], texts))
        seen = np.ascontiguousarray(kernel.registers(result).T).view(np.uint8)
        np.testing.assert_array_equal(seen, want, err_msg=kernel.id)


def test_bulk_reductions_into_global_memory() -> None:
    for kernel, ptx in form_of("cp.reduce.async.bulk.store"):
        arrays = kernel.arrays(0)
        want, new = cells(kernel, arrays, "global"), cells(kernel, arrays, "shared")
        want[:, :32] = combined(kernel, want[:, :32], new[:, :32])
        result, _ = execute(kernel, ptx)
        found = np.frombuffer(result, np.uint8)[kernel.gmem_at :][: want.size].reshape(-1, 64)
        np.testing.assert_array_equal(found, want, err_msg=kernel.id)


def test_bulk_reductions_into_the_peer() -> None:
    """The source lies at +0 of the own cell, the destination at +32 of the peer's."""
    for kernel, ptx in form_of("cp.reduce.async.bulk.peer"):
        before = cells(kernel, kernel.arrays(0), "shared")
        want = combined(kernel, before[:, 32:48], before[PEER, :16])
        result, _ = execute(kernel, ptx)
        seen = np.ascontiguousarray(kernel.registers(result)[1:].T).view(np.uint8)
        np.testing.assert_array_equal(seen, want, err_msg=kernel.id)


def test_a_true_predicate_ignores_the_source() -> None:
    for kernel, ptx in form_of("cp.async.ignore"):
        arrays = kernel.arrays(0)
        size = int(kernel.case.axes["size"])
        want, source = cells(kernel, arrays, "shared"), cells(kernel, arrays, "global")
        ignores = arrays["inputs"][: kernel.shared_in_at].view(np.uint64) != 0
        assert 0 < ignores.sum() < len(ignores)  # both happen
        want[:, :size] = np.where(ignores[:, None], 0, source[:, :size])
        result, _ = execute(kernel, ptx)
        found = np.frombuffer(result, np.uint8)[kernel.shared_out_at :][: want.size]
        np.testing.assert_array_equal(found.reshape(-1, 64), want, err_msg=kernel.id)
