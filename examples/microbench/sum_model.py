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
    `cut` is "zero" (truncation) or "floor"; `final` is "rz", "rn", or "rz13", which leaves 13
    fraction bits.
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
    groups = [g for g in (2, 4, 8, 16, 32, 64) if g <= k]
    return [
        Model(fraction=f, group=g, exponent=e, c=c, cut=cut, final=final)
        for f, g, e, c, cut, final in product(
            range(10, 31),
            groups,
            ("sum", "own"),
            ("first", "after"),
            ("zero", "floor"),
            ("rz", "rn", "rz13"),
        )
    ]


def for_type(input_: str, dtype: type) -> Model:
    """What dense wgmma was found to do."""
    narrow = input_ in ("e4m3", "e5m2")
    group = 32 if narrow else 8 if input_ == "tf32" else 16
    final = "rn" if dtype is np.float16 else "rz13" if narrow else "rz"
    return Model(fraction=13 if narrow else 25, group=group, final=final)


def evaluate(
    model: Model, a: Array, b: Array, c: Array, dtype: type, least: int | None = None
) -> Array:
    """The model's D for rows of factors `a`, `b` `[outputs, k]` (float64) and `c` `[outputs]`.

    With `least`, subnormal factors (and sums) count with the least exponent of their type.
    """
    products = a * b
    if model.exponent == "sum":
        exponents = _exponent(a, least) + _exponent(b, least)  # factors are 1.xxx * 2 ** e
    else:
        exponents = _exponent(products)
    exponents = np.where(products == 0, _NOTHING, exponents)
    low = None if least is None else -14 if dtype is np.float16 else -126
    total = np.zeros(len(c)) if model.c == "after" else c.astype(np.float64)
    for start in range(0, products.shape[1], model.group):
        part = slice(start, start + model.group)
        total = _add(model, total, products[:, part], exponents[:, part], dtype, low)
    if model.c == "after":
        only = c.astype(np.float64)[:, None]
        total = _add(model, total, only, _exponent(only), dtype, low)
    return total.astype(dtype)


def _exponent(x: Array, least: int | None = None) -> Array:
    found = np.frexp(x)[1] - 1
    return np.where(x == 0, _NOTHING, found if least is None else np.maximum(found, least))


def _add(
    model: Model, total: Array, terms: Array, exponents: Array, dtype: type, low: int | None
) -> Array:
    all_terms = np.concatenate([total[:, None], terms], axis=1)
    largest = np.maximum(_exponent(total, low), exponents.max(axis=1))
    scale = np.where(largest <= _NOTHING, 0, model.fraction - largest)[:, None]
    whole = np.ldexp(all_terms, scale)
    whole = np.trunc(whole) if model.cut == "zero" else np.floor(whole)
    summed = np.ldexp(whole.sum(axis=1), -scale[:, 0])
    return _rounded(summed, model.final, dtype)


def _rounded(x: Array, mode: str, dtype: type) -> Array:
    with np.errstate(over="ignore"):
        near = x.astype(dtype)
    if mode != "rn":
        over = (np.abs(near.astype(np.float64)) > np.abs(x)) & (np.abs(x) < 2.0**128)
        near = np.where(over, np.nextafter(near, dtype(0)), near)
    if mode == "rz13" and dtype is np.float32:
        near = (near.view(np.uint32) & np.uint32(0xFFFFFC00)).view(np.float32)
    return near.astype(np.float64)


def best(
    a: Array, b: Array, c: Array, d: Array, few: int = 256, more: int = 24
) -> list[tuple[float, Model]]:
    """The hypotheses that give most of `d` bit for bit, best first, with that share.

    All are tried on `few` outputs, the best `more` of them on all.
    """
    dtype = d.dtype.type
    some = np.linspace(0, len(d) - 1, min(few, len(d))).astype(int)

    def share(model: Model, at: Array | slice) -> float:
        got = evaluate(model, a[at], b[at], c[at], dtype)
        return float((got == d[at]).mean())

    tried = sorted(hypotheses(a.shape[1]), key=lambda m: -share(m, some))
    return sorted(((share(m, slice(None)), m) for m in tried[:more]), key=lambda pair: -pair[0])
