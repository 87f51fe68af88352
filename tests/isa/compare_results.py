"""Does a result agree with what the H200 answered? Bit for bit, or within the form's bound."""

from __future__ import annotations

import numpy as np
import values
from case_kernel import CaseKernel, digest
from goldens import Golden

from ptxgen.isa.forms import Bound, Operand


def difference(kernel: CaseKernel, result: bytes, inputs: str, golden: Golden) -> str:
    """What is different, in words, or ""."""
    if golden.fault:
        return f"the H200 did not run it ({golden.fault}), the emulator did"
    if golden.inputs != inputs:
        return "the inputs are not those of the record: record again"
    if kernel.case.form.semantic == "runs" or golden.digest == digest(result):
        return ""
    if kernel.case.form.semantic == "bits":
        return f"digest {digest(result)}, the H200 has {golden.digest}"
    # The emulator computes approximations exactly, the hardware does not.
    theirs = np.frombuffer(bytes.fromhex(golden.values), np.uint64)
    ours = kernel.registers(result)
    bound = kernel.case.bound
    far = 0.0
    for row, operand, other in zip(
        ours, _expanded(kernel), theirs.reshape(ours.shape), strict=True
    ):
        far = max(far, excess(operand.type, row, other, bound))
    return f"{far:.0f} ulp from the H200; the bound is {bound}" if far else ""


def _expanded(kernel: CaseKernel) -> list[Operand]:
    return [operand for operand in kernel.seen for _ in operand.registers]


def excess(type_: str, ours: np.ndarray, theirs: np.ndarray, bound: Bound) -> float:
    """The largest distance, in units of the last place, of a pair that no bound allows; 0 if none.

    NaN is NaN, and both zeros are one.
    """
    base, _, packed = type_.partition("x")
    dtype = values.FLOATS[base]
    unsigned = values.UNSIGNED[8 * dtype.itemsize]
    worst = 0.0
    for i in range(int(packed or 1)):
        shift = np.uint64(i * 8 * dtype.itemsize)
        a, b = ((x >> shift).astype(unsigned).view(dtype) for x in (ours, theirs))
        distance = np.abs(_ordinal(a) - _ordinal(b))
        x, y = a.astype(np.float64), b.astype(np.float64)
        allowed = np.maximum(bound.absolute, bound.relative * np.abs(x))
        with np.errstate(invalid="ignore"):
            near = (distance <= bound.ulp) | (np.abs(x - y) <= allowed)
        near |= np.isnan(x) & np.isnan(y)
        worst = max(worst, float(max(np.where(near, 0, distance))))
    return worst


def _ordinal(x: np.ndarray) -> np.ndarray:
    """Integers in the order of the floats, adjacent floats one apart; both zeros are 0."""
    bits = 8 * x.dtype.itemsize
    raw = x.view(values.UNSIGNED[bits]).astype(np.int64)
    magnitude = raw & ((1 << (bits - 1)) - 1)
    negative = (raw >> (bits - 1)) & 1 if bits < 64 else (raw < 0).astype(np.int64)
    return np.where(negative, -magnitude, magnitude).astype(object)  # differences need 65 bits
