"""What `ops.gemm` does with its sums: which arguments say so, and the fields of the problem.

Vectors may come as NumPy broadcasts them: bias [N] or [1, N] is added to every row of D, [M, 1] to
every column; scale_a is [M] or [M, 1], scale_b [N] or [1, N], as torch._scaled_mm has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

from ptxgen.configs.gemm import ACCUMULATIONS, ACTIVATIONS
from ptxgen.errors import ArgumentError, Violation
from ptxgen.spec import ArrayMeta
from runtime.ops.gemm_rules import HEADLINE, Product

Layouts = Mapping[type, Callable[[Any], tuple[object, ...]]]
Shape = tuple[int, ...]
ARRAYS = ("c", "bias", "scale_a", "scale_b", "out_scale", "amax")
NAMES = ("alpha", "beta", "activation", "gated", "accumulate", *ARRAYS)


class Epilogue(NamedTuple):
    """The arguments of one call. A tuple, since one is made in every call."""

    alpha: object = None
    beta: object = None
    c: object = None
    bias: object = None
    activation: str | None = None
    scale_a: object = None
    scale_b: object = None
    out_scale: object = None
    amax: object = None
    gated: bool = False
    accumulate: str | None = None

    def key(self, of: Layouts) -> tuple[object, ...]:
        """All that a choice depends on. KeyError where an array is of a type not met before."""
        alpha, beta, c, bias, activation, scale_a, scale_b, out_scale, amax, gated, promoted = self
        return (
            type(alpha),
            type(beta),
            c if c is None else of[type(c)](c),
            bias if bias is None else of[type(bias)](bias),
            activation,
            scale_a if scale_a is None else of[type(scale_a)](scale_a),
            scale_b if scale_b is None else of[type(scale_b)](scale_b),
            out_scale if out_scale is None else of[type(out_scale)](out_scale),
            amax if amax is None else of[type(amax)](amax),
            gated,
            promoted,
        )

    def arrays(self) -> dict[str, object]:
        """Those that were given, by name."""
        return {name: x for name in ARRAYS if (x := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """What follows from the arguments and their shapes: how the kernel takes them."""

    scalars: tuple[str, ...] = ()
    # Arrays, each with the shape in which the kernel sees it, if that is another.
    arrays: tuple[tuple[str, Shape | None], ...] = ()

    def arguments(self, given: Epilogue) -> dict[str, Any]:
        """Arguments of the launch. Arrays in another shape are views."""
        found: dict[str, Any] = {}
        for name in self.scalars:
            value: Any = getattr(given, name)
            found[name] = 1.0 if value is None else float(value)  # beta beside c is 1
        for name, shape in self.arrays:
            x: Any = getattr(given, name)
            found[name] = x if shape is None else x.reshape(shape)
        return found


def finished(
    asked: Product, given: Epilogue, metas: Mapping[str, ArrayMeta], transpose: str | None
) -> tuple[Product, Finish]:
    """The product with its epilogue, and how the kernel takes the arguments.

    ArgumentError with everything that is wrong with them, but for what the launch checks anyway:
    extents of C, types of C and scales, one element of `out_scale` and `amax`.
    """
    broken = [*_words(asked, given), *_numbers(given), *_sums(asked, given)]
    if given.gated:
        broken += _gated(asked, given, transpose)
        copies = asked.copies
        if asked.problem.b_major == "mn" and "b" not in copies:
            copies = (*copies, "b")
        asked = replace(
            asked, n=asked.n // 2, copies=copies, problem=replace(asked.problem, b_major="k")
        )
    bias, shapes = "none", dict[str, Shape]()
    if "bias" in metas:
        bias = _bias_kind(asked, metas["bias"])
        broken += _bias(asked, metas["bias"], bias)
        shapes["bias"] = (asked.n if bias == "row" else asked.m,)
    scales = "none"
    if given.scale_a is not None and given.scale_b is not None:
        scales = "tensor" if metas["scale_a"].size == metas["scale_b"].size == 1 else "row"
        if scales == "row":
            broken += _vectors(asked, given, metas)
            shapes["scale_a"] = (asked.m,)
            shapes["scale_b"] = (2, asked.n) if given.gated else (asked.n,)
    if broken:
        raise ArgumentError(HEADLINE, broken)
    problem = replace(
        asked.problem,
        alpha=int(given.alpha is not None), beta=int(given.c is not None), bias=bias,
        bias_dtype="f32" if bias == "none" or metas["bias"].dtype == "f32" else "out",
        activation=given.activation or "none", scales=scales, gated=int(given.gated),
        out_scale=int(given.out_scale is not None), amax=int(given.amax is not None),
        accumulate=given.accumulate or "fast",
    )  # fmt: skip
    scalars = [name for name in ("alpha", "beta") if getattr(problem, name)]
    moved = {name: shape for name, shape in shapes.items() if metas[name].shape != shape}
    arrays = tuple((name, moved.get(name)) for name in given.arrays())
    return replace(asked, problem=problem), Finish(scalars=tuple(scalars), arrays=arrays)


def _words(asked: Product, given: Epilogue) -> Iterator[Violation]:
    if given.activation is not None and given.activation not in ACTIVATIONS:
        yield Violation(
            field="activation", got=repr(given.activation),
            rule=f"must be None or {', '.join(map(repr, ACTIVATIONS[1:]))}",
        )  # fmt: skip
    if given.accumulate is not None and given.accumulate not in ACCUMULATIONS:
        yield Violation(
            field="accumulate", got=repr(given.accumulate), rule="must be 'fast' or 'promoted'"
        )
    elif given.accumulate == "promoted" and asked.problem.a.bits != 8:
        yield Violation(
            field="accumulate", got="'promoted'",
            rule=f"must be left out for {asked.problem.dtype}",
            why="only sums of fp8 keep fewer bits in the tensor core than f32 has",
        )  # fmt: skip


def _numbers(given: Epilogue) -> Iterator[Violation]:
    for name in ("alpha", "beta"):
        value = getattr(given, name)
        if value is not None and not isinstance(value, Real):
            yield Violation(
                field=name, got=type(value).__name__, rule="must be a number",
                why="it is passed with the launch", fix="pass float(...)"
                + (", or a factor in device memory as scale_a" if name == "alpha" else ""),
            )  # fmt: skip
    if given.beta is not None and given.c is None:
        yield Violation(
            field="beta", got=str(given.beta), rule="must be left out without c",
            why="it multiplies C", fix="pass c=",
        )  # fmt: skip
    for name, other in (("scale_a", "scale_b"), ("scale_b", "scale_a")):
        if getattr(given, name) is None and getattr(given, other) is not None:
            yield Violation(
                field=name, got="nothing", rule=f"is required beside {other}",
                why="both operands have scales, or none",
                fix="pass an f32 array of one 1, or of as many as there are rows",
            )  # fmt: skip


def _sums(asked: Product, given: Epilogue) -> Iterator[Violation]:
    sums = asked.problem.accumulator
    if sums == "f32":
        return
    for name in NAMES:
        value = getattr(given, name)
        if value is not None and value is not False:
            yield Violation(
                field=name, got="an argument", rule=f"must be left out for {asked.problem.dtype}",
                why=f"epilogues compute in f32, and these sums are {sums}",
                fix="finish the result by itself",
            )  # fmt: skip


def _gated(asked: Product, given: Epilogue, transpose: str | None) -> Iterator[Violation]:
    for name in ("c", "bias"):
        if getattr(given, name) is not None:
            yield Violation(
                field=name, got="an array", rule="must be left out with gated=True",
                why="it would be added to one of the two products",
            )  # fmt: skip
    if asked.n % 2:
        yield Violation(
            field="b", got=f"{asked.n} columns", rule="must have an even number with gated=True",
            why="its first half gives what the activation is taken of, its second half the factor",
        )  # fmt: skip
    if asked.problem.b_major == "mn" and transpose != "copy":
        yield Violation(
            field="b", got="MN-major", rule="must be contiguous along K with gated=True",
            why="one TMA box takes rows of both halves",
            fix="pass w.T of a row-major [2 N, K] array w, or transpose='copy'",
        )  # fmt: skip


def _bias_kind(asked: Product, meta: ArrayMeta) -> str:
    return "column" if meta.shape == (asked.m, 1) and asked.n != 1 else "row"


def _bias(asked: Product, meta: ArrayMeta, kind: str) -> Iterator[Violation]:
    n, m = asked.n, asked.m
    if kind == "row" and meta.shape not in ((n,), (1, n)):
        yield Violation(
            field="bias", got=f"shape {list(meta.shape)}",
            rule=f"must be [{n}] or [1, {n}], added to every row, or [{m}, 1], to every column",
            why=f"D is [{m}, {n}]",
        )  # fmt: skip
    if meta.dtype not in ("f32", asked.d_type):
        yield Violation(
            field="bias", got=meta.dtype,
            rule=f"must be f32{'' if asked.d_type == 'f32' else f' or {asked.d_type}'}",
            why="a bias is as exact as the sums, or as D", fix="convert it",
        )  # fmt: skip


def _vectors(
    asked: Product, given: Epilogue, metas: Mapping[str, ArrayMeta]
) -> Iterator[Violation]:
    n = 2 * asked.n if given.gated else asked.n
    for name, legal, of in (
        ("scale_a", ((asked.m,), (asked.m, 1)), "row of a"),
        ("scale_b", ((n,), (1, n)), "column of b"),
    ):
        shape = metas[name].shape
        if shape not in legal:
            yield Violation(
                field=name, got=f"shape {list(shape)}",
                rule=f"must be {' or '.join(str(list(x)) for x in legal)}: one a {of}",
                why="both operands have one scale, or both a vector of them",
                fix="expand and copy it" if metas[name].size == 1 else "",
            )  # fmt: skip
