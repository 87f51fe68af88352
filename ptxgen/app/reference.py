"""What a GEMM should give, in float64, and how far a correct kernel may be from it.

The bound is per element and follows from the arithmetic, not from experience:

    |D - ref|  <=  u |ref|  +  K 2^-23 sum |a b|

Products of 16-bit floats are exact in f32. Each of K additions in f32 may lose up to one unit in
the last place (2^-23; tensor cores truncate) of a partial sum, which is at most sum |a b|. Rounding
the result to the type of D adds u |ref|, with u = 2^-8 for bf16, 2^-11 for f16, 2^-24 for f32.
Where both terms vanish (K = 0, or all zeros) only equality passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxgen.isa.dtypes import dtype

SIGNIFICAND_BITS = {"bf16": 8, "f16": 11, "f32": 24}  # with the hidden one
SUM_ULP = 2.0**-23
SMALLEST = {"bf16": 2.0**-133, "f16": 2.0**-24, "f32": 2.0**-149}  # subnormals round to these
INTEGER_LIMIT = 3  # integers -3..3: sums stay exact in f32 for K up to 1.8 million


def inputs(kind: str, m: int, n: int, k: int, name: str, seed: int) -> tuple[Any, Any]:
    """A [m, k] and B [n, k] of type `name`: standard normal numbers, or small integers."""
    rng = np.random.default_rng(seed)
    to = dtype(name).np_dtype

    def make(rows: int) -> Any:
        if kind == "integers":
            return rng.integers(-INTEGER_LIMIT, INTEGER_LIMIT + 1, (rows, k)).astype(to)
        return rng.standard_normal((rows, k), dtype=np.float32).astype(to)

    return make(m), make(n)


def poisoned(m: int, n: int, name: str) -> Any:
    """D [m, n] full of NaN, so that an element that nobody writes is seen."""
    return np.full((m, n), np.nan, np.float32).astype(dtype(name).np_dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """D against its float64 reference.

    `bound_used` is the largest share of its own bound that any element needs (1 is the limit);
    `first_bad` says where and what the first wrong element is.
    """

    rule: str
    elements: int
    wrong: int
    max_abs_error: float
    relative_error: float  # of the Frobenius norms
    bound_used: float
    first_bad: str = ""

    @property
    def ok(self) -> bool:
        return self.wrong == 0

    def verdict(self) -> str:
        if self.ok:
            return f"correct: {self.elements:,} of {self.elements:,} elements"
        return f"WRONG: {self.wrong:,} of {self.elements:,} elements; first {self.first_bad}"


def compare(a: Any, b: Any, d: Any, name: str, *, exact: bool) -> Comparison:
    """D [m, n] of type `name` against A [m, k] B [n, k]^T: within the bound, or `exact`ly equal.

    `exact` is for inputs whose sums are exact in f32: then D is the reference, rounded once.
    """
    a64, b64, d64 = (np.asarray(x, dtype=np.float64) for x in (a, b, d))
    reference = a64 @ b64.T
    error = np.abs(d64 - reference)
    k = a64.shape[1]
    bound = _bound(a64, b64, reference, name)
    if exact:
        good = d64 == reference.astype(dtype(name).np_dtype).astype(np.float64)
        rule = f"D equals the exact sum, rounded once to {name}"
    else:
        good = error <= bound
        rule = f"|D - ref| <= 2^-{SIGNIFICAND_BITS[name]} |ref| + {k} x 2^-23 x sum |a b|"
    bad = np.argwhere(~good)
    return Comparison(
        rule=rule,
        elements=d64.size,
        wrong=len(bad),
        max_abs_error=float(error.max(initial=0.0)),
        relative_error=_ratio(np.linalg.norm(d64 - reference), np.linalg.norm(reference)),
        bound_used=float(_share(error, bound).max(initial=0.0)),
        first_bad=_describe(bad[0], d64, reference) if len(bad) else "",
    )


def _bound(a: Any, b: Any, reference: Any, name: str) -> Any:
    sums = np.abs(a) @ np.abs(b).T
    rounding = np.abs(reference) * 2.0 ** -SIGNIFICAND_BITS[name]
    subnormal = np.where(reference == 0, 0.0, SMALLEST[name])
    return rounding + a.shape[1] * SUM_ULP * sums + subnormal


def _share(error: Any, bound: Any) -> Any:
    """error / bound, with 0 / 0 = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = error / bound
    return np.where((error == 0) & (bound == 0), 0.0, share)


def _ratio(error: Any, size: Any) -> float:
    if error == 0:
        return 0.0
    return float(error / size) if size else float("inf")


def _describe(at: Any, d: Any, reference: Any) -> str:
    row, column = (int(i) for i in at)
    return f"D[{row}, {column}] is {d[row, column]:g}, should be {reference[row, column]:g}"
