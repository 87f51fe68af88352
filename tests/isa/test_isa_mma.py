"""mma.sync and mma.sp on the emulator against the definition, element by element.

The maps from lanes and registers to rows and columns are written here once more, from the figures
of the PTX ISA (9.7.14.5 and 9.7.14.6), a number at a time.
"""

from __future__ import annotations

import case_kernel
import ml_dtypes
import numpy as np
import pytest
from test_isa_emulator import execute

from ptxgen.isa.forms import FORMS, Form

pytestmark = pytest.mark.emu

TYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f64": np.float64,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "s8": np.int8, "u8": np.uint8,
    "f32": np.float32, "s32": np.int32,
}  # fmt: skip
QUADS = "mma.m8n8k4"  # with fragments of its own
MMA = [f for f in FORMS if f.id.startswith("mma.") and f.id != QUADS and not f.refused]


def fields(text: str) -> tuple[int, int, str, str, str]:
    """(m, k, D, A, B) of an instruction."""
    words = text.split()[0].split(".")
    shape = next(w for w in words if w.startswith("m") and "n8k" in w)
    m, k = int(shape[1:].split("n8k")[0]), int(shape.split("k")[1])
    d, a, b = words[-4:-1]
    return m, k, d, a, b


def unpack(slots: np.ndarray, type_: str) -> np.ndarray:
    """[register, lane] u64 slots to the elements [register, lane, per register]."""
    dtype = np.dtype(TYPES[type_])
    words = slots.astype(np.uint64 if type_ == "f64" else np.uint32)[..., None]
    return np.ascontiguousarray(words).view(dtype)


def dense_a(values: np.ndarray, m: int) -> np.ndarray:
    registers, _, per = values.shape
    rows = 2 if m == 16 else 1
    out = np.zeros((m, registers // rows * 4 * per))
    for j in range(registers):
        for lane in range(32):
            for i in range(per):
                row = lane // 4 + (8 * (j % 2) if m == 16 else 0)
                chunk = j // 2 if m == 16 else j
                out[row, 4 * per * chunk + per * (lane % 4) + i] = float(values[j, lane, i])
    return out


def dense_b(values: np.ndarray) -> np.ndarray:
    registers, _, per = values.shape
    out = np.zeros((registers * 4 * per, 8))
    for j in range(registers):
        for lane in range(32):
            for i in range(per):
                out[4 * per * j + per * (lane % 4) + i, lane // 4] = float(values[j, lane, i])
    return out


def result(values: np.ndarray, type_: str, m: int) -> np.ndarray:
    out = np.zeros((m, 8))
    for j in range(len(values)):
        for lane in range(32):
            for i in range(values.shape[2]):
                half = j if type_ == "f16" else j // 2
                column = 2 * (lane % 4) + (i if type_ == "f16" else j % 2)
                out[lane // 4 + 8 * half, column] = float(values[j, lane, i])
    return out


def spread(kept: np.ndarray, words: np.ndarray, type_: str, k: int, selector: int) -> np.ndarray:
    """The whole A of a sparse one. Row r's metadata, for k elements, is k / 4 nibbles in order."""
    wide = type_ in ("f16", "bf16", "tf32")
    size = 2 if type_ == "tf32" else 4
    groups = k // size
    out = np.zeros((16, k))
    for r in range(16):
        for q in range(groups):
            quad = 4 * (r % 8)
            if wide:
                lane = quad + (selector if groups == 4 else 2 * selector + q // 4)
                nibble = int(words[lane]) >> (16 * (r // 8) + 4 * (q % 4)) & 15
            else:
                lane = quad + 2 * selector + r // 8 + 2 * (q // 8)
                nibble = int(words[lane]) >> (4 * (q % 8)) & 15
            if type_ == "tf32":
                out[r, 2 * q + {0x4: 0, 0xE: 1}[nibble]] = kept[r, q]
            else:
                out[r, 4 * q + (nibble & 3)] = kept[r, 2 * q]
                out[r, 4 * q + (nibble >> 2)] = kept[r, 2 * q + 1]
    return out


@pytest.mark.parametrize("form", MMA, ids=lambda form: form.id)
def test_mma_is_the_product(form: Form) -> None:
    kernels = case_kernel.kernels(form)
    texts = case_kernel.entries(kernels)
    for kernel in kernels:
        m, k, d_type, a_type, b_type = fields(kernel.case.text)
        arrays = kernel.arrays(0)
        slots = arrays["inputs"][: kernel.shared_in_at].view(np.uint64).reshape(-1, kernel.total)
        named = {}
        at = 0
        for operand in kernel.read_operands:
            named[operand.name] = slots[at : at + len(operand.registers)]
            at += len(operand.registers)
        a = dense_a(unpack(named["a"], a_type), m)
        if "e" in named:
            a = spread(a, named["e"][0], a_type, k, int(kernel.case.axes["selector"]))
        b = dense_b(unpack(named["b"], b_type))
        want = a @ b + result(unpack(named["c"], d_type), d_type, m)
        if d_type == "s32":
            if "satfinite" in kernel.case.text:
                want = np.clip(want, -(2**31), 2**31 - 1)
            want = want.astype(np.int64).astype(np.int32).astype(np.float64)
        got, _ = execute(kernel, case_kernel.module([kernel], texts))
        found = result(unpack(kernel.registers(got), d_type), d_type, m)
        np.testing.assert_array_equal(found, want.astype(TYPES[d_type]), err_msg=kernel.id)


def test_quad_pairs_multiply_by_themselves() -> None:
    """m8n8k4: threads 4 q .. 4 q + 3 and 16 + 4 q .. 16 + 4 q + 3 hold an 8x8x4 product."""
    (form,) = [form for form in FORMS if form.id == QUADS]
    for kernel in case_kernel.kernels(form):
        slots = kernel.arrays(0)["inputs"][: 12 * 256].view(np.uint64).reshape(12, 32)
        a, b = (
            unpack(part, "f16").transpose(1, 0, 2).reshape(32, 4)
            for part in (slots[:2], slots[2:4])
        )
        c = unpack(slots[4:], "f32")[:, :, 0]
        got, _ = execute(kernel, case_kernel.module([kernel], case_kernel.entries([kernel])))
        d = unpack(kernel.registers(got), "f32")[:, :, 0]
        along = kernel.case.axes["left"] == "row", kernel.case.axes["right"] == "col"
        for lane in range(32):
            first = lane % 16 // 4 * 4  # of the pair
            threads = [*range(first, first + 4), *range(first + 16, first + 20)]
            for i in range(8):
                row = (lane & 1) + (i & 2) + (4 if lane >= 16 else 0)
                column = (i & 4) + (lane & 2) + (i & 1)
                want = float(c[i, lane])
                for k in range(4):
                    x, y = (
                        factor[threads[n], k]
                        if straight
                        else factor[threads[4 * (n // 4) + k], n % 4]
                        for factor, n, straight in zip((a, b), (row, column), along, strict=True)
                    )
                    want += float(x) * float(y)
                assert d[i, lane] == np.float32(want), (kernel.id, lane, i)
