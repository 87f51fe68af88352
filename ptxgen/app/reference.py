"""What a GEMM should give, in float64, and how far a correct kernel may be from it.

The bound is per element and follows from the arithmetic, not from experience:

    |D - ref|  <=  u |ref|  +  K s sum |a b|

Products are exact where they are formed. Each of K additions may lose up to one unit in the last
place of a partial sum, which is at most sum |a b|: s = 2^-23 for f32 sums (tensor cores truncate),
2^-13 for fp8 inputs, whose sums keep 13 bits behind the point whatever their type, 2^-10 for f16
sums, 0 for integers. Promoted sums of fp8 are s = 2^-13 for 128 additions, and 2^-23 for those of
their parts. Rounding the result to the type of D adds u |ref|, with u = 2^-8 for bf16,
2^-11 for f16, 2^-24 for f32, 2^-4 for e4m3 and 2^-3 for e5m2, which saturate. Where both terms
vanish (K = 0, or all zeros) only equality passes. What an epilogue adds to the bound stands in
`reference_epilogue`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from ptxgen.app import reference_epilogue as finishing
from ptxgen.app.reference_epilogue import PLAIN, Epilogue
from ptxgen.configs.gemm import GemmProblem
from ptxgen.configs.gemm_finish_rules import PROMOTED_K
from ptxgen.isa.dtypes import dtype

SIGNIFICAND_BITS = {"bf16": 8, "f16": 11, "f32": 24, "e4m3": 4, "e5m2": 3}  # with the hidden one
# Subnormals round to these.
SMALLEST = {"bf16": 2.0**-133, "f16": 2.0**-24, "f32": 2.0**-149, "e4m3": 2.0**-9, "e5m2": 2.0**-16}
SUM_BITS = {"f32": 23, "f16": 10}  # behind the point, of a partial sum
FP8_SUM_BITS = 13
TF32_MASK = 0xFFFFE000  # what wgmma reads of an f32
INTEGER_LIMIT = 3  # integers -3..3: sums stay exact in f32 for K up to 1.8 million
BATCH = 2  # products of a batched kernel


def inputs(kind: str, problem: GemmProblem, m: int, n: int, k: int, seed: int) -> tuple[Any, Any]:
    """A [m, k] and B [n, k] of the problem: standard normal numbers, or small integers.

    Integer types get small integers anyway, none of them negative where there is no sign. Batched
    problems get one more axis, B of gated ones is [2, n, k]. The memory order is the problem's.
    """
    rng = np.random.default_rng(seed)
    lead = (BATCH,) if problem.batched else ()

    def make(name: str, major: str, *rows: int) -> Any:
        to, shape = dtype(name), (*lead, *rows, k)
        if kind == "integers" or not to.is_float:
            low = 0 if to.kind == "uint" else -INTEGER_LIMIT
            x = rng.integers(low, INTEGER_LIMIT + 1, shape).astype(to.np_dtype)
        else:
            x = rng.standard_normal(shape, dtype=np.float32).astype(to.np_dtype)
        if problem.dtype == "tf32":
            x = (x.view(np.uint32) & np.uint32(TF32_MASK)).view(np.float32)
        return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2) if major == "mn" else x

    a = make(problem.a.storage, problem.a_major, m)
    halves = (2,) if problem.gated else ()
    return a, make(problem.b.storage, problem.b_major, *halves, n)


def poisoned(problem: GemmProblem, m: int, n: int) -> Any:
    """D [m, n] full of NaN (or the lowest integer), so that an element nobody writes is seen."""
    to = problem.output.np_dtype
    shape = (BATCH, m, n) if problem.batched else (m, n)
    if not problem.output.is_float:
        return np.full(shape, np.iinfo(to).min, to)
    return np.full(shape, np.nan, np.float32).astype(to)


def rounded(reference: Any, name: str) -> Any:
    """The float64 reference in the type of D, as float64. fp8 saturates."""
    to = dtype(name)
    if to.bits == 8:
        largest = {"e4m3": 448.0, "e5m2": 57344.0}[name]
        reference = np.clip(reference, -largest, largest)
    return reference.astype(to.np_dtype).astype(np.float64)


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


def epilogue(kind: str, problem: GemmProblem, m: int, n: int, seed: int) -> Epilogue:
    """What the problem has beside A and B: normal numbers, or small integers and powers of two."""
    shape = (BATCH, m, n) if problem.batched else (m, n)
    return finishing.epilogue(kind, problem, shape, seed, INTEGER_LIMIT)


def compare(
    a: Any, b: Any, d: Any, problem: GemmProblem, *, exact: bool, given: Epilogue = PLAIN
) -> Comparison:
    """D [m, n] against A [m, k] B [n, k]^T and the epilogue: within the bound, or `exact`ly equal.

    `exact` is for inputs whose sums are exact: then D is the reference, rounded once. Activations
    that are approximated are held to the bound anyway.
    """
    exact = exact and problem.activation in finishing.EXACT
    a64, b64, d64 = (np.asarray(x).astype(np.float64) for x in (a, b, d))
    name = problem.output.name
    if problem.gated:  # A by both halves of B
        a64 = a64[..., None, :, :]
    sums = a64 @ b64.swapaxes(-1, -2)
    magnitude = np.abs(a64) @ np.abs(b64).swapaxes(-1, -2)
    slack = _lost(problem, a64.shape[-1]) * magnitude
    result = finishing.apply(problem, given, sums, magnitude, slack)
    reference, slack = result.value, result.error
    right = rounded(reference, name)
    error = np.abs(d64 - right) if dtype(name).bits == 8 else np.abs(d64 - reference)
    bound = _bound(right, slack, problem)
    if exact or not problem.output.is_float:
        good = d64 == right
        rule = f"D equals the exact sum, rounded once to {name}"
    else:
        good = error <= bound
        rule = f"|D - ref| <= 2^-{SIGNIFICAND_BITS[name]} |ref| + {_loss(problem, a64.shape[-1])}"
        if problem.finishes:
            rule += ", through the epilogue, plus its own roundings"
    bad = np.argwhere(~good)
    largest = "" if len(bad) else finishing.wrong_amax(given, result, exact=exact)
    return Comparison(
        rule=rule,
        elements=d64.size,
        wrong=len(bad) + bool(largest),
        max_abs_error=float(error.max(initial=0.0)),
        relative_error=_ratio(
            np.linalg.norm((d64 - reference).ravel()), np.linalg.norm(reference.ravel())
        ),
        bound_used=float(_share(error, bound).max(initial=0.0)),
        first_bad=_describe(bad[0], d64, reference) if len(bad) else largest,
    )


def _sum_bits(problem: GemmProblem) -> int:
    bits = SUM_BITS.get(problem.accumulator, 0)  # integers are exact: nothing asks for their bits
    return min(bits, FP8_SUM_BITS) if problem.a.bits == 8 else bits


def _lost(problem: GemmProblem, k: int) -> float:
    """What k additions may lose, as a part of sum |a b|."""
    bits = _sum_bits(problem)
    if not problem.promoted:
        return k * 2.0**-bits
    return float(min(k, PROMOTED_K) * 2.0**-bits + ceil(k / PROMOTED_K) * 2.0 ** -SUM_BITS["f32"])


def _loss(problem: GemmProblem, k: int) -> str:
    """The same in words."""
    text = f"{min(k, PROMOTED_K) if problem.promoted else k} x 2^-{_sum_bits(problem)} x sum |a b|"
    if problem.promoted:
        text += f" + {ceil(k / PROMOTED_K)} x 2^-{SUM_BITS['f32']} x sum |a b|"
    return text


def _bound(reference: Any, slack: Any, problem: GemmProblem) -> Any:
    """How far D may be off: `slack` before it is rounded, and the rounding."""
    name = problem.output.name
    if not problem.output.is_float:
        return np.zeros_like(reference)
    rounding = np.abs(reference) * 2.0 ** -SIGNIFICAND_BITS[name]
    subnormal = np.where(reference == 0, 0.0, SMALLEST[name])
    return rounding + slack + subnormal


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
    where = tuple(int(i) for i in at)
    return f"D{list(where)} is {d[where]:g}, should be {reference[where]:g}"
