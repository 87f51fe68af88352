"""How mma.sync and sparse matrices add, and what sums do at the ends of their range.

mma    random data, and the hypothesis of sum_model that gives most D bit for bit; of 8-bit floats,
       which ptxas widens to f16, two sums over half of K each, to which C is added
tiny   factors and accumulators half of which are subnormal: their exponent, and their bits
huge   sums beyond the largest number of D
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from accumulation import N, form
from lab import Array, Fact, Lab, Seen, main
from mma_probe import M, Mma, kept_columns, products
from sum_model import best, evaluate, for_type
from wgmma_probe import ROWS, TYPES, product

TILES = 24
MMAS = {
    "mma.f16.k8": Mma(input="f16", k=8), "mma.f16.k16": Mma(input="f16", k=16),
    "mma.f16.k16.f16": Mma(input="f16", k=16, d="f16"), "mma.bf16.k8": Mma(input="bf16", k=8),
    "mma.bf16.k16": Mma(input="bf16", k=16), "mma.tf32.k4": Mma(input="tf32", k=4),
    "mma.tf32.k8": Mma(input="tf32", k=8), "mma.e4m3.k32": Mma(input="e4m3", k=32),
    "mma.e5m2.k32": Mma(input="e5m2", k=32), "mma.e4m3.k32.f16": Mma(input="e4m3", k=32, d="f16"),
    "mma.sp.f16.k16": Mma(input="f16", k=16, sparse=True),
    "mma.sp.f16.k32": Mma(input="f16", k=32, sparse=True),
    "mma.sp.tf32.k16": Mma(input="tf32", k=16, sparse=True),
    "mma.sp.e4m3.k64": Mma(input="e4m3", k=64, sparse=True),
}  # fmt: skip
SPARSE = ("f16.f32", "bf16.f32", "tf32.f32", "e4m3.f32", "f16.f16")
RANGES = ("f16.f32", "bf16.f32", "tf32.f32", "e4m3.f32", "e5m2.f32", "f16.f16", "e4m3.f16")
LEAST = {"f16": -14, "bf16": -126, "tf32": -126, "e4m3": -6, "e5m2": -14}


def drawn(input_: str, d: str, shape: tuple[int, ...], n: int, k: int) -> tuple[Array, ...]:
    """A `[*shape, kept]`, B `[.., n, k]`, C: as in `accumulation`, of any shape."""
    rng = np.random.default_rng(4)
    *lead, rows, kept = shape
    scale = 16.0 if input_ in ("e4m3", "e5m2") else 1.0
    a, b = (rng.standard_normal(s) * scale for s in ((*lead, rows, kept), (*lead, n, k)))
    a, b = (_exact(x, input_) for x in (a, b))
    c = rng.standard_normal((*lead, rows, n)) * scale * scale
    return a, b, c.astype(np.float16 if d == "f16" else np.float32)


def _exact(x: Array, input_: str) -> Array:
    values = x.astype(np.float32)
    if input_ == "tf32":
        return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return values.astype(TYPES[input_])


def sparse_operands(name: str) -> tuple[Array, Array, Array, Array]:
    """A as it is kept, B, C, and where A's columns lie along K."""
    op = form(name, n=N, sparse=True)
    a, b, c = drawn(op.input, op.d, (ROWS, op.k // 2), N, op.k)
    return a, b, c, kept_columns(Mma(input=op.input, k=op.k, sparse=True))


def range_operands(name: str, where: str) -> tuple[Array, Array, Array]:
    """A near the least normal number of its type, or large; products and C of one size."""
    op = form(name, n=N)
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((rows, op.k)) for rows in (ROWS, N))
    c = rng.standard_normal((ROWS, N))
    least = LEAST[op.input]
    top = 15 if op.d == "f16" else 127
    if where == "tiny":
        up = min(-least, 100)
        a, b, c = a * 2.0**least, b * 2.0**up, c * 2.0 ** (least + up)
    elif where == "low":  # sums that are subnormal themselves
        half = -7 if op.d == "f16" else max(least, -70)
        size = max(2 * half, -20 if op.d == "f16" else -140)
        a, b, c = a * 2.0**half, b * 2.0 ** (size - half), c * 2.0 ** (size + 3)
    else:
        half = min(top // 2, -least, 8 if op.input == "e4m3" else 63)
        a, b = a * 2.0**half, b * 2.0 ** min(top - 1 - half, half)
        c = np.clip(c * 2.0 ** (top - 1), -(2.0**top), 2.0**top)
    dtype = np.float16 if op.d == "f16" else np.float32
    return _exact(a, op.input), _exact(b, op.input), c.astype(dtype)


def observe(lab: Lab) -> Seen:
    seen = {}
    for name, mma in MMAS.items():
        seen[name] = products(lab, mma, *drawn(mma.input, mma.d, (TILES, M, mma.kept), 8, mma.k))
    for name in SPARSE:
        a, b, c, _ = sparse_operands(name)
        words = np.full(128, 0x44444444, np.uint32)
        op = form(name, n=N, sparse=True)
        seen[f"wgmma.sp.{name}"] = product(lab, op, a, b, c, words)
    for name in RANGES:
        for where in ("tiny", "low", "huge"):
            seen[f"{where}.{name}"] = product(lab, form(name, n=N), *range_operands(name, where))
    return seen


def rows_of(a: Array, b: Array, c: Array, columns: Array) -> tuple[Array, Array, Array]:
    """A row of factors for each element of D; along the K of B, zeros where A has none."""
    whole = np.zeros((*a.shape[:-1], b.shape[-1]))
    whole[..., columns] = a.astype(np.float64)
    shape = (*c.shape, b.shape[-1])
    left = np.broadcast_to(whole[..., :, None, :], shape).reshape(-1, shape[-1])
    right = np.broadcast_to(b.astype(np.float64)[..., None, :, :], shape).reshape(-1, shape[-1])
    return left, right, c.ravel()


def widened(a: Array, b: Array, c: Array, dtype: type, sparse: bool) -> Array:
    """What the SASS of a mma.sync of 8-bit floats does: two HMMA of f16, and a sum."""
    k = np.arange(a.shape[1])
    lower = k // 4 % 2 == 0 if sparse else k % 4 < 2
    model = replace(for_type("f16", dtype), group=a.shape[1])
    total = np.zeros(len(c), dtype)
    for half in (lower, ~lower):
        total = evaluate(model, a[:, half], b[:, half], total, dtype)
    return (total.astype(np.float64) + c.astype(np.float64)).astype(dtype)


def finding(seen: Seen) -> tuple[str, object]:
    numbers: dict[str, object] = {}
    words = []
    named = {name: (mma.input, mma.d) for name, mma in MMAS.items()}
    named |= {f"wgmma.sp.{name}": tuple(name.split(".")) for name in SPARSE}
    for name, (input_, d) in named.items():
        if name in MMAS:
            mma = MMAS[name]
            a, b, c = drawn(input_, d, (TILES, M, mma.kept), 8, mma.k)
            columns = kept_columns(mma)
        else:
            a, b, c, columns = sparse_operands(name.removeprefix("wgmma.sp."))
        rows, found = rows_of(a, b, c, columns), seen[name].ravel()
        if name in MMAS and input_ in ("e4m3", "e5m2"):
            share = float((widened(*rows, found.dtype.type, MMAS[name].sparse) == found).mean())
            fits = [(share, "lower halves of registers, upper halves, each as f16, then C")]
        else:
            fits = best(*rows, found)
        numbers[name] = [{"share": share, "model": str(m)} for share, m in fits[:4]]
        words.append(f"{name}: {fits[0][1]} gives {fits[0][0]:.1%}")
    for name in RANGES:
        input_, d = name.split(".")
        for where in ("tiny", "low", "huge"):
            numbers[f"{where}.{name}"] = _range(name, where, seen[f"{where}.{name}"])
    return "; ".join(words), numbers


def _range(name: str, where: str, d: Array) -> dict[str, object]:
    """How many D the model of normal numbers gives, and what becomes of sums that are too large."""
    input_, _ = name.split(".")
    a, b, c = range_operands(name, where)
    left, right, held = rows_of(a, b, c, np.arange(a.shape[-1]))
    shares = {}
    for least in (True, False):
        model = for_type(input_, d.dtype.type)
        got = evaluate(model, left, right, held, d.dtype.type, LEAST[input_] if least else None)
        key = "subnormals have the least exponent" if least else "their own"
        shares[key] = float((got == d.ravel()).mean())
    exact = (left * right).sum(axis=1) + held.astype(np.float64)
    over = np.abs(exact) > float(np.finfo(d.dtype).max)
    ends = d.ravel()[over]
    return {
        **shares, "sums too large": int(over.sum()), "of them infinite": int(np.isinf(ends).sum()),
        "the largest number": int((np.abs(ends) == np.finfo(d.dtype).max).sum()),
    }  # fmt: skip


if __name__ == "__main__":
    question = "How do mma.sync and sparse matrices add, and sums at the ends of their range?"
    main(Fact(id="accumulation_forms", question=question), observe, finding)
