"""Rules on the types and orders of a GEMM: what wgmma multiplies, what the epilogue makes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxgen.configs.base import Rule
from ptxgen.configs.gemm import (
    ACCUMULATIONS,
    ACTIVATIONS,
    BIAS_TYPES,
    BIASES,
    INPUTS,
    MAJORS,
    ROUNDINGS,
    SCALES,
    SWITCH,
)
from ptxgen.errors import Violation
from ptxgen.isa.dtypes import DTYPES

if TYPE_CHECKING:
    from ptxgen.configs.gemm_shape import Gemm


def _dtype(g: Gemm) -> Iterator[Violation]:
    value = g.problem.dtype
    if value not in INPUTS:
        known = "" if value in DTYPES else " (unknown type)"
        cure = "use dtype=tf32 for f32 arrays" if value == "f32" else "convert A and B"
        yield Violation(
            field="dtype", got=f"{value}{known}", rule=f"must be one of {', '.join(INPUTS)}",
            why="wgmma multiplies nothing else", fix=cure,
        )  # fmt: skip


def _b_dtype(g: Gemm) -> Iterator[Violation]:
    partners = g.problem.a.partners
    if g.problem.b_dtype not in ("same", *partners):
        yield Violation(
            field="b_dtype", got=g.problem.b_dtype,
            rule=f"must be same, or one of {', '.join(partners)} beside dtype={g.problem.dtype}",
            why="wgmma mixes fp8 with fp8 and 8-bit integers with 8-bit integers only",
            fix="use b_dtype=same",
        )  # fmt: skip


def _acc_dtype(g: Gemm) -> Iterator[Violation]:
    legal = g.problem.a.accumulators
    if g.problem.accumulator not in legal:
        yield Violation(
            field="acc_dtype", got=g.problem.acc_dtype,
            rule=f"must be auto, or one of {', '.join(legal)} for dtype={g.problem.dtype}",
            why="wgmma has no other sums of these inputs", fix=f"use acc_dtype={legal[0]}",
        )  # fmt: skip


def _out_dtype(g: Gemm) -> Iterator[Violation]:
    legal = ROUNDINGS[g.problem.accumulator]
    if g.problem.out_dtype not in ("auto", *legal):
        yield Violation(
            field="out_dtype", got=g.problem.out_dtype,
            rule=f"must be auto, or one of {', '.join(legal)} with {g.problem.accumulator} sums",
            why="the epilogue rounds sums once and does not change their kind",
            fix="use out_dtype=auto",
        )  # fmt: skip


def _majors(g: Gemm) -> Iterator[Violation]:
    p = g.problem
    for name, major, math in (("a_major", p.a_major, p.a), ("b_major", p.b_major, p.b)):
        if major not in MAJORS:
            yield Violation(
                field=name, got=major, rule=f"must be {' or '.join(MAJORS)}",
                why="one of the two axes is contiguous in memory", fix=f"use {name}=k",
            )  # fmt: skip
        elif major == "mn" and not math.transposes:
            yield Violation(
                field=name, got="mn", rule=f"must be k for {math.name}",
                why="wgmma transposes 16-bit types only",
                fix=f"use {name}=k, with a copy of {name[0].upper()} that has K contiguous",
            )  # fmt: skip


def _batched(g: Gemm) -> Iterator[Violation]:
    if g.problem.batched not in SWITCH:
        yield Violation(
            field="batched", got=str(g.problem.batched), rule="must be 0 or 1",
            why="arrays have one axis in front of their matrices, or none", fix="use batched=1",
        )  # fmt: skip


_EPILOGUE: dict[str, tuple[tuple[object, ...], str]] = {
    "alpha": (SWITCH, "a scalar multiplies the sums, or none"),
    "beta": (SWITCH, "beta C is added, or nothing"),
    "bias": (BIASES, "a vector is added to every row or to every column of D, or none"),
    "bias_dtype": (BIAS_TYPES, "a bias is as exact as the sums, or as D"),
    "activation": (ACTIVATIONS, "the epilogue has no other functions"),
    "scales": (SCALES, "operands have one scale, one a row of A and a column of D, or none"),
    "gated": (SWITCH, "D is made of two products, or of one"),
    "out_scale": (SWITCH, "a scalar multiplies the result, or none"),
    "amax": (SWITCH, "the largest result is reported, or not"),
    "accumulate": (ACCUMULATIONS, "sums stay in the tensor core, or leave it every 128 of K"),
}


def _epilogue(g: Gemm) -> Iterator[Violation]:
    for name, (legal, why) in _EPILOGUE.items():
        value = getattr(g.problem, name)
        if value not in legal:
            yield Violation(
                field=name, got=str(value), rule=f"must be one of {', '.join(map(str, legal))}",
                why=why, fix=f"use {name}={legal[0]}",
            )  # fmt: skip


def _epilogue_sums(g: Gemm) -> Iterator[Violation]:
    sums = g.problem.accumulator
    if sums == "f32":
        return
    cure = ", or acc_dtype=f32" if "f32" in g.problem.a.accumulators else ""
    for name, (legal, _) in _EPILOGUE.items():
        value = getattr(g.problem, name)
        if value != legal[0]:
            yield Violation(
                field=name, got=str(value), rule=f"must be {legal[0]} with {sums} sums",
                why="the epilogue computes in f32, on sums that are f32",
                fix=f"use {name}={legal[0]}{cure}",
            )  # fmt: skip


TYPE_RULES: tuple[Rule[Gemm], ...] = (
    Rule(name="dtype", text=f"A and B are {', '.join(INPUTS)}", check=_dtype),
    Rule(
        name="b_dtype", text="B has the type of A, or the other fp8 or int8 type",
        check=_b_dtype, needs=("dtype",),
    ),
    Rule(
        name="acc_dtype", text="sums are f32, f16 of f16 and fp8, s32 of int8",
        check=_acc_dtype, needs=("dtype",),
    ),
    Rule(
        name="out_dtype", text="f32 sums give any float, f16 sums f16, s32 sums s32",
        check=_out_dtype, needs=("acc_dtype",),
    ),
    Rule(
        name="majors", text="A and B are K-major; 16-bit types also MN-major",
        check=_majors, needs=("b_dtype",),
    ),
    Rule(name="batched", text="one batch axis, or none", check=_batched),
    Rule(
        name="epilogue", text="every field of an epilogue is one that exists",
        check=_epilogue,
    ),
    Rule(
        name="epilogue sums", text="an epilogue needs f32 sums",
        check=_epilogue_sums, needs=("acc_dtype", "epilogue"),
    ),
)  # fmt: skip
