"""Which operands ops.gemm takes, and which problem of the GEMM family they are.

The orders of memory are read off the strides. 16-bit operands may be contiguous along either axis
of their matrices, the others along K only: wgmma transposes nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptxgen.configs.gemm import ROUNDINGS, GemmProblem
from ptxgen.errors import ArgumentError, Violation
from ptxgen.isa.dtypes import DTYPES
from ptxgen.isa.dtypes import dtype as dtype_row
from ptxgen.isa.wgmma import WGMMA_INPUTS
from ptxgen.layout.tensor_map.spec import PITCH_BYTES
from ptxgen.spec import ArrayMeta

PRECISIONS = ("tf32",)
TRANSPOSES = ("copy",)
HEADLINE = "gemm(a, b): cannot multiply"


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """What a call asks for: the problem, its extents, and which operands must be copied first."""

    problem: GemmProblem
    m: int
    n: int
    k: int
    batches: int
    copies: tuple[str, ...] = ()

    @property
    def d_type(self) -> str:
        return self.problem.output.name

    @property
    def halves(self) -> tuple[int, ...] | None:
        """The shape of b's transpose as two matrices, if it is that."""
        if not self.problem.gated:
            return None
        lead = (self.batches,) if self.problem.batched else ()
        return (*lead, 2, self.n, self.k)

    @property
    def padded_n(self) -> int:
        """Columns of a new result, so that its rows are a legal pitch."""
        return padded_columns(self.n, self.d_type)

    @property
    def padded_shape(self) -> tuple[int, ...]:
        """Shape of a new result with its padding."""
        lead = (self.batches,) if self.problem.batched else ()
        return (*lead, self.m, self.padded_n)


def padded_columns(n: int, d_type: str) -> int:
    """Columns of a new array [M, n]: as many as make its rows a legal pitch."""
    step = PITCH_BYTES // dtype_row(d_type).bytes
    return (n + step - 1) // step * step


def product(
    a: ArrayMeta,
    b: ArrayMeta,
    d_type: str | None,
    *,
    precision: str | None = None,
    transpose: str | None = None,
) -> Product:
    """The product `a @ b` with a result of type `d_type` (None: the usual one).

    ArgumentError with everything that keeps it from being computed.
    """
    broken = [*_words(precision, transpose), *_ranks(a, b)]
    ranks_hold = not broken
    kind = _input(a.dtype, precision)
    broken += _types(a, b, kind, d_type, precision)
    if ranks_hold:
        broken += _extents(a, b)
    orders = {"a": "k", "b": "k"}
    copies: list[str] = []
    if ranks_hold and {a.dtype, b.dtype} <= set(DTYPES):
        for name, meta, k_axis in (("a", a, -1), ("b", b, -2)):
            order = _order(meta, k_axis)
            if order is None or (order == "mn" and dtype_row(meta.dtype).bits != 16):
                if transpose == "copy":
                    copies.append(name)
                else:
                    broken.append(_disorder(name, meta, k_axis, order))
            else:
                orders[name] = order
    if broken:
        raise ArgumentError(HEADLINE, broken)
    problem = GemmProblem(
        dtype=kind, b_dtype="same" if b.dtype == a.dtype else b.dtype, out_dtype=d_type or "auto",
        a_major=orders["a"], b_major=orders["b"], batched=int(len(a.shape) == 3),
    )  # fmt: skip
    return Product(
        problem=problem, m=a.shape[-2], n=b.shape[-1], k=a.shape[-1],
        batches=a.shape[0] if len(a.shape) == 3 else 1, copies=tuple(copies),
    )  # fmt: skip


def _input(name: str, precision: str | None) -> str:
    return precision if name == "f32" and precision in PRECISIONS else name


def _words(precision: str | None, transpose: str | None) -> Iterator[Violation]:
    for field, value, legal in (
        ("precision", precision, PRECISIONS), ("transpose", transpose, TRANSPOSES),
    ):  # fmt: skip
        if value is not None and value not in legal:
            yield Violation(
                field=field,
                got=repr(value),
                rule=f"must be None or {' or '.join(map(repr, legal))}",
            )


def _ranks(a: ArrayMeta, b: ArrayMeta) -> Iterator[Violation]:
    for name, meta in (("a", a), ("b", b)):
        if len(meta.shape) not in (2, 3):
            yield Violation(
                field=name,
                got=f"shape {list(meta.shape)}",
                rule="must have two axes, or three of which the first counts the products",
            )
    if len(a.shape) != len(b.shape) and {len(a.shape), len(b.shape)} == {2, 3}:
        yield Violation(
            field="b", got=f"{len(b.shape)} axes", rule=f"must have {len(a.shape)}, as a",
            why="products of a batch have operands of their own", fix="expand and copy the other",
        )  # fmt: skip


def _types(
    a: ArrayMeta, b: ArrayMeta, kind: str, d_type: str | None, precision: str | None
) -> Iterator[Violation]:
    if kind not in WGMMA_INPUTS:
        legal = ", ".join(name for name in WGMMA_INPUTS if name != "tf32")
        f32 = a.dtype == "f32"
        yield Violation(
            field="a",
            got=a.dtype,
            rule=f"must be one of {legal}" + ("; f32 only in tf32" if f32 else ""),
            why="tensor cores multiply f32 as tf32, which has 10 bits of mantissa: nobody should "
            "get that unasked"
            if f32
            else "tensor cores multiply nothing else",
            fix="pass precision='tf32', or convert both operands"
            if f32
            else "convert both operands",
        )
        return
    row = WGMMA_INPUTS[kind]
    partners = tuple(WGMMA_INPUTS[name].storage for name in row.partners)
    if b.dtype not in partners:
        yield Violation(
            field="b", got=b.dtype, rule=f"must be {' or '.join(partners)} beside {a.dtype} a",
            why="tensor cores mix fp8 with fp8 and 8-bit integers with 8-bit integers only",
            fix="convert one",
        )  # fmt: skip
    if precision == "tf32" and kind != "tf32":
        yield Violation(
            field="precision", got="'tf32'", rule="must be left out", why=f"a is {a.dtype}, not f32"
        )
    outputs = ROUNDINGS[row.accumulators[0]]
    if d_type is not None and d_type not in outputs:
        yield Violation(
            field="out", got=d_type,
            rule=f"must be one of {', '.join(outputs)}",
            why=f"{a.dtype} is summed in {row.accumulators[0]}",
        )  # fmt: skip


def _extents(a: ArrayMeta, b: ArrayMeta) -> Iterator[Violation]:
    if a.shape[-1] != b.shape[-2]:
        yield Violation(
            field="K",
            got=f"{a.shape[-1]} in a {list(a.shape)}, {b.shape[-2]} in b {list(b.shape)}",
            rule="must be equal: a is [M, K], b is [K, N]",
            fix="pass w.T if b was given as a row-major [N, K] array w"
            if b.shape[-1] == a.shape[-1]
            else "",
        )
    if len(a.shape) == 3 and a.shape[0] != b.shape[0]:
        yield Violation(
            field="batch", got=f"{a.shape[0]} in a, {b.shape[0]} in b", rule="must be equal"
        )


def _order(meta: ArrayMeta, k_axis: int) -> str | None:
    """ "k" or "mn", whichever axis is contiguous; None if neither is.

    An axis of at most one element fits any stride: then the other axis's pitch decides.
    """
    itemsize = dtype_row(meta.dtype).bytes
    axes = {"k": k_axis, "mn": -3 - k_axis}
    fits = [
        name
        for name, axis in axes.items()
        if meta.strides[axis] == itemsize or meta.shape[axis] <= 1 or not meta.size
    ]

    def pitch_is_legal(name: str) -> bool:
        axis = axes["mn" if name == "k" else "k"]
        return meta.shape[axis] <= 1 or meta.strides[axis] % PITCH_BYTES == 0

    return next((name for name in fits if pitch_is_legal(name)), fits[0] if fits else None)


def _disorder(name: str, meta: ArrayMeta, k_axis: int, order: str | None) -> Violation:
    """An operand that no kernel reads as it lies."""
    letters = {"a": "[M, K]", "b": "[K, N]"}[name]
    size = dtype_row(meta.dtype).bytes
    copy = {"a": "a row-major copy of a", "b": "w.T of a row-major [N, K] array w"}[name]
    either = dtype_row(meta.dtype).bits == 16
    return Violation(
        field=name,
        got=f"{meta.dtype} {letters} = {list(meta.shape)} with strides {list(meta.strides)} B: "
        + ("strided" if order is None else "MN-major"),
        rule=("must be contiguous along one axis" if either else "must be contiguous along K")
        + f" (axis {len(meta.shape) + k_axis} is K): {size} B from one element to the next",
        why="TMA needs a contiguous inner axis"
        if order is None
        else "tensor cores transpose 16-bit types only",
        fix=f"pass {copy}, or transpose='copy'",
    )
