"""How wgmma adds: how many bits of a small addend survive, in which groups, and a model that fits.

gap      D = 1 +- 2^-g, scaled: the largest g at which the addend still changes D
passes   of random f32 D, how many come back unchanged when A and B are zero
groups   +big at k1, -big at k2, small at k=0: where the small one survives, it was added in
         another step than the pair
model    random data, and the hypothesis of sum_model that gives most D bit for bit
chain    whether four wgmmas in a row equal four launches of one
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from lab import Array, Fact, Lab, Seen, main
from sum_model import best
from wgmma_probe import ROWS, TYPES, Wgmma, product

FORMS = ("bf16.f32", "f16.f32", "f16.f16", "tf32.f32", "e4m3.f32", "e5m2.f32", "e4m3.f16")
EXPONENTS = np.arange(-8, 9)  # of the factors of one product: legal in every type
BIG = 2.0**8
N = 64


def form(name: str, **more: int) -> Wgmma:
    input_, d = name.split(".")
    return Wgmma(input=input_, d=d, **more)


def random(op: Wgmma, steps: int = 1) -> tuple[Array, Array, Array]:
    """A, B, C: normal, the factors exact in their type (tf32: low bits clear)."""
    rng = np.random.default_rng(1)
    k = op.k * steps
    a, b = (rng.standard_normal((rows, k)).astype(np.float32) for rows in (ROWS, N))
    if op.input == "tf32":
        a, b = ((x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for x in (a, b))
    scale = 16.0 if op.input in ("e4m3", "e5m2") else 1.0  # away from the subnormals
    a, b = ((x * scale).astype(TYPES[op.input]) for x in (a, b))
    c = rng.standard_normal((ROWS, N)) * scale * scale
    return a, b, c.astype(np.float16 if op.d == "f16" else np.float32)


def gap_operands(op: Wgmma) -> tuple[Array, Array, Array]:
    """One product a row and column, of both signs, against a C of 2^16 (f16: 2^8)."""
    a, b = np.zeros((ROWS, op.k)), np.zeros((N, op.k))
    count = len(EXPONENTS)
    a[:count, 0], a[count : 2 * count, 0] = 2.0**EXPONENTS, -(2.0**EXPONENTS)
    b[:count, 0] = 2.0**EXPONENTS
    top = 8 if op.d == "f16" else 16
    return a, b, np.full((ROWS, N), 2.0**top, np.float32 if op.d == "f32" else np.float16)


def pairs(op: Wgmma) -> list[tuple[int, int]]:
    return list(combinations(range(1, op.k), 2))


def group_rows(op: Wgmma) -> Array:
    """A row for each pair: +BIG, -BIG, and a small one at k = 0."""
    a = np.zeros((len(pairs(op)), op.k))
    for row, (k1, k2) in enumerate(pairs(op)):
        a[row, [0, k1, k2]] = 2.0**-8, BIG, -BIG
    return a


def group_small(op: Wgmma, lab: Lab) -> Array:
    """What is left of the small addend, for each pair; B is BIG for the big ones, 2^-8 at k = 0."""
    b = np.full((N, op.k), BIG if op.d == "f32" else 4.0)
    b[:, 0] = 2.0**-8
    rows = group_rows(op)
    left = []
    for start in range(0, len(rows), ROWS):
        a = np.zeros((ROWS, op.k))
        part = rows[start : start + ROWS]
        a[: len(part)] = part
        left.append(product(lab, op, a, b)[: len(part), 0])
    return np.concatenate(left).astype(np.float32)


def observe(lab: Lab) -> Seen:
    seen = {}
    for name in FORMS:
        op = form(name, n=N)
        seen[f"gap.{name}"] = product(lab, op, *gap_operands(op))
        a, b, c = random(op)
        seen[f"passes.{name}"] = product(lab, op, np.zeros_like(a), np.zeros_like(b), c)
        seen[f"model.{name}"] = product(lab, op, a, b, c)
        seen[f"groups.{name}"] = group_small(op, lab)
        a, b, c = random(op, steps=4)
        seen[f"chain.{name}"] = product(lab, form(name, n=N, steps=4), a, b, c)
        for step in range(4):
            part = slice(step * op.k, (step + 1) * op.k)
            c = product(lab, op, a[:, part], b[:, part], c)
        seen[f"apart.{name}"] = c
    return seen


def gaps(op: Wgmma, d: Array) -> dict[str, int]:
    """The largest gap at which an addend of each sign still counts in full, and still at all."""
    top = 8 if op.d == "f16" else 16
    count = len(EXPONENTS)
    change = d.astype(np.float64) - 2.0**top
    result = {}
    for word, sign, rows in (("plus", 1, 0), ("minus", -1, count)):
        part = change[rows : rows + count, :count]
        addend = EXPONENTS[:, None] + EXPONENTS[None, :]
        exact, any_ = part == sign * 2.0**addend, part != 0
        result[f"{word} exact"] = int((top - addend[exact]).max(initial=-99))
        result[f"{word} any"] = int((top - addend[any_]).max(initial=-99))
    return result


def finding(seen: Seen) -> tuple[str, object]:
    numbers, words = {}, []
    for name in FORMS:
        op = form(name, n=N)
        a, b, c = random(op)
        d = seen[f"model.{name}"]
        row, column = np.indices(d.shape).reshape(2, -1)
        a64, b64 = a.astype(np.float64)[row], b.astype(np.float64)[column]
        shuffled = np.random.default_rng(2).permutation(d.size)
        fits = best(a64[shuffled], b64[shuffled], c.ravel()[shuffled], d.ravel()[shuffled])
        survived = seen[f"groups.{name}"] != 0
        numbers[name] = {
            "gap": gaps(op, seen[f"gap.{name}"]),
            "D unchanged by zero": float((seen[f"passes.{name}"] == c).mean()),
            "pairs whose small addend survives": f"{int(survived.sum())} of {survived.size}",
            "such pairs": [p for p, kept in zip(pairs(op), survived, strict=True) if kept][:40],
            "models": [{"share": share, "model": str(m)} for share, m in fits[:4]],
            "chain equals launches": bool(
                np.array_equal(seen[f"chain.{name}"], seen[f"apart.{name}"])
            ),
        }
        words.append(f"{name}: {fits[0][1]} gives {fits[0][0]:.1%}")
    return "; ".join(words), numbers


if __name__ == "__main__":
    question = "How do the sums of wgmma round, and in what order?"
    main(Fact(id="accumulation", question=question), observe, finding)
