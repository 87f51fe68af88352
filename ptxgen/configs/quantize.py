"""Rounding an array to fp8: what is fixed by the problem, what we choose, and the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ptxgen.configs.base import Rule, integer, one_of, option, require, violations
from ptxgen.errors import Violation
from ptxgen.isa.arch import THREADS_PER_CTA, WARP_THREADS
from ptxgen.isa.dtypes import DType, dtype

INPUTS = ("bf16", "f16", "f32")
OUTPUTS = ("e4m3", "e5m2")
LARGEST = {"e4m3": 448.0, "e5m2": 57_344.0}  # the largest finite value
LEAST_SCALE = 2.0**-126  # the least normal f32: its reciprocal is finite
SCALES = ("row", "row_given", "tensor", "tensor_given", "none")
VECTOR_BYTES = 16  # that a lane reads at once
PART_STEP = 256  # columns: what a warp reads at once of a 16-bit type


def _type(text: str) -> str:
    try:
        return dtype(text).name
    except KeyError as error:
        raise ValueError(error.args[0]) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizeProblem:
    """Q[m,k] = X[m,k] / scale, rounded to nearest even in fp8; X is about Q times scale.

    What is larger than the largest fp8 value becomes that, infinities too; NaN stays NaN.
    """

    dtype: str = option("bf16", parse=_type, legal=", ".join(INPUTS), help="type of X")
    out_dtype: str = option("e4m3", parse=_type, legal=", ".join(OUTPUTS), help="type of Q")
    scales: str = option(
        "row", parse=one_of(*SCALES), legal=", ".join(SCALES),
        help="row: one a row, from the largest |x| in it, and left in scale [M]; tensor: one, from "
        "amax [1], and left in scale [1]; _given: scale is read; none: no Q, only amax [1] becomes "
        "the maximum of itself and every |x|",
    )  # fmt: skip

    @property
    def x(self) -> DType:
        return dtype(self.dtype)

    @property
    def per_row(self) -> bool:
        """Whether every row has a scale of its own."""
        return self.scales.startswith("row")

    @property
    def quantizes(self) -> bool:
        """Whether there is a Q."""
        return self.scales != "none"

    @property
    def vector(self) -> int:
        """Elements of X that a lane reads at once."""
        return VECTOR_BYTES // self.x.bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizeConfig:
    """Our choice."""

    warps: int = option(
        8, parse=integer(), legal="1..32", help="warps of a CTA; each takes rows, or parts of them"
    )
    part: int = option(
        2048, parse=integer(), legal="256.. in steps of 256",
        help="columns that a warp takes at once, where rows share a scale",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantize:
    """A problem with a config."""

    problem: QuantizeProblem
    config: QuantizeConfig

    @property
    def threads(self) -> int:
        return self.config.warps * WARP_THREADS

    def check(self) -> tuple[Violation, ...]:
        """Every broken rule, with a legal choice."""
        return violations(RULES, self)

    def require(self) -> Quantize:
        """This object, or a ConfigError that lists every broken rule."""
        require("quantize config", RULES, self)
        return self


def _type_rule(name: str, legal: tuple[str, ...], why: str) -> Callable[..., Iterator[Violation]]:
    def check(q: Quantize) -> Iterator[Violation]:
        value = getattr(q.problem, name)
        if value not in legal:
            yield Violation(
                field=name, got=str(value), rule=f"must be one of {', '.join(legal)}", why=why,
                fix=f"use {name}={legal[0]}",
            )  # fmt: skip

    return check


def _warps(q: Quantize) -> Iterator[Violation]:
    most = THREADS_PER_CTA // WARP_THREADS
    if not 1 <= q.config.warps <= most:
        yield Violation(
            field="warps", got=str(q.config.warps), rule=f"must be 1..{most}",
            why=f"a CTA has at most {THREADS_PER_CTA:,} threads", fix="use warps=8",
        )  # fmt: skip


def _part(q: Quantize) -> Iterator[Violation]:
    part = q.config.part
    if part < PART_STEP or part % PART_STEP:
        yield Violation(
            field="part", got=str(part), rule=f"must be a multiple of {PART_STEP}",
            why=f"a warp reads so many columns at once, and parts must begin at {VECTOR_BYTES} B",
            fix=f"use part={max(-(-part // PART_STEP), 1) * PART_STEP}",
        )  # fmt: skip


RULES: tuple[Rule[Quantize], ...] = (
    Rule(
        name="dtype", text="X is bf16, f16 or f32",
        check=_type_rule("dtype", INPUTS, "the kernel reads no other type"),
    ),
    Rule(
        name="out_dtype", text="Q is e4m3 or e5m2",
        check=_type_rule("out_dtype", OUTPUTS, "these are the fp8 types of the tensor cores"),
    ),
    Rule(
        name="scales", text="scales are found or given, one a row or one in all",
        check=_type_rule("scales", SCALES, "there is no other rule for a scale"),
    ),
    Rule(name="warps", text="a CTA has 1 to 32 warps", check=_warps),
    Rule(name="part", text="a warp takes whole vectors of all its lanes", check=_part),
)  # fmt: skip
