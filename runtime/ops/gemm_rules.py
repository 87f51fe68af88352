"""Which operands ops.gemm takes: rank, type, depth, and order in memory."""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.configs.gemm import INPUTS, OUTPUTS
from ptxgen.errors import ArgumentError, Violation
from ptxgen.isa.dtypes import dtype as dtype_row
from ptxgen.layout.tensor_map.spec import PITCH_BYTES
from ptxgen.spec import ArrayMeta


@dataclass(frozen=True, slots=True)
class _Order:
    """The two orders that a matrix may have in memory, by which stride is the element's size."""

    k_major: bool
    mn_major: bool


def _order(meta: ArrayMeta, k_axis: int) -> _Order:
    """An axis of at most one element fits any stride."""
    itemsize = dtype_row(meta.dtype).bytes
    unit = [meta.strides[x] == itemsize or meta.shape[x] <= 1 or not meta.size for x in (0, 1)]
    return _Order(k_major=unit[k_axis], mn_major=unit[1 - k_axis])


def padded_columns(n: int, d_type: str) -> int:
    """Columns of a new result [M, n]: as many as make its rows a legal pitch."""
    step = PITCH_BYTES // dtype_row(d_type).bytes
    return (n + step - 1) // step * step


def require(a: ArrayMeta, b: ArrayMeta, d_type: str) -> None:
    """ArgumentError with everything that keeps `a @ b` from a result of type `d_type`."""
    broken: list[Violation] = []
    for name, meta in (("a", a), ("b", b)):
        if len(meta.shape) != 2:
            broken.append(
                Violation(field=name, got=f"shape {list(meta.shape)}", rule="must have two axes")
            )
    if not broken:
        broken += _shape_and_order(a, b)
    if a.dtype not in INPUTS:
        broken.append(
            Violation(
                field="a",
                got=a.dtype,
                rule=f"must be one of {', '.join(INPUTS)}",
                why="this kernel multiplies 16-bit floats",
                fix="convert both operands",
            )
        )
    if b.dtype != a.dtype:
        broken.append(
            Violation(field="b", got=b.dtype, rule=f"must be {a.dtype}, as a", fix="convert one")
        )
    outputs = [name for name in OUTPUTS if name != "same"]
    if d_type not in outputs:
        rule = f"must be one of {', '.join(outputs)}"
        broken.append(Violation(field="out", got=d_type, rule=rule))
    if broken:
        raise ArgumentError("gemm(a, b): cannot multiply", broken)


def _shape_and_order(a: ArrayMeta, b: ArrayMeta) -> list[Violation]:
    broken = []
    if a.shape[1] != b.shape[0]:
        broken.append(
            Violation(
                field="K",
                got=f"{a.shape[1]} in a {list(a.shape)}, {b.shape[0]} in b {list(b.shape)}",
                rule="must be equal: a is [M, K], b is [K, N]",
                fix="pass w.T if b was given as a row-major [N, K] array w"
                if b.shape[1] == a.shape[1]
                else "",
            )
        )
    cures = {
        "a": "pass a row-major copy of a",
        "b": "pass w.T of a row-major [N, K] array w (a copy: w = ascontiguousarray(b.T))",
    }
    for name, meta, k_axis in (("a", a, 1), ("b", b, 0)):
        order = _order(meta, k_axis)
        if not order.k_major:
            major = "MN-major, which is not supported yet" if order.mn_major else "strided"
            broken.append(
                Violation(
                    field=name,
                    got=f"{list(meta.shape)} with strides {list(meta.strides)} B: {major}",
                    rule=f"must be contiguous along K (axis {k_axis}): "
                    f"{dtype_row(meta.dtype).bytes} B from one element to the next",
                    why="operands are read K-major",
                    fix=cures[name],
                )
            )
    return broken
