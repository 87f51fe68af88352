"""fns, szext, bmsk and the modes of prmt on the emulator against the pseudo-code of the PTX ISA.

Written a lane and a bit at a time, as the ISA has it.
"""

from __future__ import annotations

import case_kernel
import numpy as np
import pytest
from test_isa_emulator import execute

from ptxgen.isa.forms import FORMS, Form

pytestmark = pytest.mark.emu

ONES = 0xFFFFFFFF
# d.b3 d.b2 d.b1 d.b0 for selectors 0..3: the table of PTX ISA 9.7.9.7.
PERMUTES = {
    "f4e": ("3210", "4321", "5432", "6543"),
    "b4e": ("5670", "6701", "7012", "0123"),
    "rc8": ("0000", "1111", "2222", "3333"),
    "ecl": ("3210", "3211", "3222", "3333"),
    "ecr": ("0000", "1110", "2210", "3210"),
    "rc16": ("1010", "3232", "1010", "3232"),
}


def bmsk(a: int, b: int, mode: str, _: str) -> int:
    start, width = a & 31, b & 31
    mask0, mask1 = ONES << start & ONES, ONES << (start + width) & ONES
    if mode == "clamp" and a >= 32:
        mask0 = 0
    if start + width >= 32 or (mode == "clamp" and (a >= 32 or b >= 32)):
        mask1 = 0
    return mask0 & ~mask1


def szext(a: int, b: int, mode: str, type_: str) -> int:
    width = b & 31
    too_large = mode == "clamp" and b >= 32
    mask = 0 if too_large else ONES << width & ONES
    sign = type_ == "s32" and width and not too_large and a >> (width - 1) & 1
    return (a & ~mask) | (mask if sign else 0)


def fns(mask: int, base: int, offset: int) -> int:
    if offset == 0:
        return base if mask >> base & 1 else ONES
    at, count = base, abs(offset) - 1
    while 0 <= at < 32:
        if mask >> at & 1:
            if count == 0:
                return at
            count -= 1
        at += 1 if offset > 0 else -1
    return ONES


def prmt(a: int, b: int, c: int, mode: str) -> int:
    pool = (a | b << 32).to_bytes(8, "little")
    order = PERMUTES[mode][c & 3]
    return int.from_bytes(bytes(pool[int(digit)] for digit in reversed(order)), "little")


@pytest.mark.parametrize(
    "form",
    [f for f in FORMS if f.id in ("fns", "szext", "bmsk", "prmt")],
    ids=lambda form: form.id,
)
def test_bits(form: Form) -> None:
    kernels = case_kernel.kernels(form)
    texts = case_kernel.entries(kernels)
    for kernel in kernels:
        axes = kernel.case.axes
        mode = str(axes.get("mode", "")).strip(".")
        if form.id == "prmt" and not mode:
            continue
        inputs = kernel.arrays(0)["inputs"][: kernel.shared_in_at].view(np.uint64)
        sources = inputs.reshape(-1, 32).astype(np.uint32).tolist()
        result, _ = execute(kernel, case_kernel.module([kernel], texts))
        found = kernel.registers(result)[0].astype(np.uint32).tolist()
        for lane, values in enumerate(zip(*sources, strict=True)):
            if form.id == "fns":
                want = fns(values[0], values[1], values[2] - (values[2] >> 31 << 32))
            elif form.id == "prmt":
                want = prmt(*values, mode)
            else:
                function = bmsk if form.id == "bmsk" else szext
                want = function(*values, mode, str(axes.get("type", "")))
            assert found[lane] == want, (kernel.id, values)
