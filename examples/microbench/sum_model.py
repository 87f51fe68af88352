"""Models of how tensor cores add: products aligned to the largest, cut, summed, then rounded.

    for each group of `group` products along k:
        unit  = 2 ** (largest exponent among the products and the running sum - fraction)
        sum   = every term cut to whole units, added exactly
        then rounded to f32 (or f16)

All arithmetic is exact in float64: a term is fewer than 2 ** 40 units.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

Array = np.ndarray
_NOTHING = -10_000  # the exponent of zero


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One hypothesis.

    `fraction` bits stay below the largest exponent. `exponent` of a product: "sum" of those of its
    factors, or "own" after normalisation. `c` joins the "first" group, or is added "after" it all.
    `cut` is "zero" (truncation) or "floor"; `final` is "rz" or "rn".
    """

    fraction: int
    group: int
    exponent: str = "sum"
    c: str = "first"
    cut: str = "zero"
    final: str = "rz"

    def __str__(self) -> str:
        return (
            f"groups of {self.group}, {self.fraction} fraction bits, exponent {self.exponent}, "
            f"c {self.c}, cut {self.cut}, final {self.final}"
        )


def hypotheses(k: int) -> list[Model]:
    """All that are tried for an instruction of this k."""
    groups = [g for g in (2, 4, 8, 16, 32) if g <= k]
    return [
        Model(fraction=f, group=g, exponent=e, c=c, cut=cut, final=final)
        for f, g, e, c, cut, final in product(
            range(10, 31),
            groups,
            ("sum", "own"),
            ("first", "after"),
            ("zero", "floor"),
            ("rz", "rn"),
        )
    ]


def evaluate(model: Model, a: Array, b: Array, c: Array, dtype: type) -> Array:
    """The model's D for rows of factors `a`, `b` `[outputs, k]` (float64) and `c` `[outputs]`."""
    products = a * b
    if model.exponent == "sum":
        exponents = np.frexp(a)[1] + np.frexp(b)[1] - 2  # factors are 1.xxx * 2 ** e
    else:
        exponents = np.frexp(products)[1] - 1
    exponents = np.where(products == 0, _NOTHING, exponents)
    total = np.zeros(len(c)) if model.c == "after" else c.astype(np.float64)
    for start in range(0, products.shape[1], model.group):
        part = slice(start, start + model.group)
        total = _add(model, total, products[:, part], exponents[:, part], dtype)
    if model.c == "after":
        only = c.astype(np.float64)[:, None]
        total = _add(model, total, only, _exponent(only), dtype)
    return total.astype(dtype)


def _exponent(x: Array) -> Array:
    return np.where(x == 0, _NOTHING, np.frexp(x)[1] - 1)


def _add(model: Model, total: Array, terms: Array, exponents: Array, dtype: type) -> Array:
    all_terms = np.concatenate([total[:, None], terms], axis=1)
    largest = np.maximum(_exponent(total), exponents.max(axis=1))
    scale = np.where(largest == _NOTHING, 0, model.fraction - largest)[:, None]
    whole = np.ldexp(all_terms, scale)
    whole = np.trunc(whole) if model.cut == "zero" else np.floor(whole)
    summed = np.ldexp(whole.sum(axis=1), -scale[:, 0])
    return _rounded(summed, model.final, dtype)


def _rounded(x: Array, mode: str, dtype: type) -> Array:
    near = x.astype(dtype)
    if mode == "rz":
        over = np.abs(near.astype(np.float64)) > np.abs(x)
        near = np.where(over, np.nextafter(near, dtype(0)), near)
    return near.astype(np.float64)


def best(a: Array, b: Array, c: Array, d: Array, few: int = 256) -> list[tuple[float, Model]]:
    """The hypotheses that give most of `d` bit for bit, best first, with that share.

    All are tried on the first `few` outputs, the best eight of them on all.
    """
    dtype = d.dtype.type

    def share(model: Model, count: int) -> float:
        got = evaluate(model, a[:count], b[:count], c[:count], dtype)
        return float((got == d[:count]).mean())

    tried = sorted(hypotheses(a.shape[1]), key=lambda m: -share(m, few))
    return sorted(((share(m, len(d)), m) for m in tried[:8]), key=lambda pair: -pair[0])
