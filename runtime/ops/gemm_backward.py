"""The gradient of `ops.gemm` in torch: two more products of the same family.

    D = A B    dA = dD B^T [M, K]    dB = A^T dD [K, N]

16-bit operands are read as they lie, whichever axis is contiguous, so nothing is transposed in
memory: `B^T` is a view. Each gradient gets the memory order of its operand, so that for `w.T` of a
row-major w it is `(dD^T A)^T`, and w's own gradient is row-major again. Sums are f32 and rounded
once to the type of the operand; a dD of another type is rounded to it first. Only a dD that TMA
cannot read (rows of another pitch than 16 bytes, or broadcast) is copied.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ptxgen.errors import ArgumentError, Violation
from ptxgen.isa.dtypes import dtype as dtype_row
from ptxgen.layout.tensor_map.spec import PITCH_BYTES
from runtime.ops.gemm_rules import padded_columns

DIFFERENTIABLE = ("bf16", "f16", "f32")


def require_gradient(a: Any, b: Any, precision: str | None, transpose: str | None) -> None:
    """ArgumentError where a gradient is asked for that could not be computed later."""
    broken = []
    for name, x in (("a", a), ("b", b)):
        kind = _name(x)
        if x.requires_grad and kind not in DIFFERENTIABLE:
            broken.append(
                Violation(
                    field=name, got=f"{kind}, and its gradient is asked for",
                    rule=f"must be one of {', '.join(DIFFERENTIABLE)}",
                    why="a gradient has the type of its operand, and sums do not fit fp8",
                    fix="keep weights in bf16, or call gemm under torch.no_grad()",
                )
            )  # fmt: skip
    if precision == "tf32" and transpose != "copy" and not broken:
        broken.append(
            Violation(
                field="transpose", got=repr(transpose),
                rule="must be 'copy' where a gradient of f32 operands is asked for",
                why="dA = dD B^T and dB = A^T dD have an operand that is not contiguous along what "
                "is summed over, and tensor cores transpose 16-bit types only",
                fix="pass transpose='copy', or use bf16",
            )
        )  # fmt: skip
    if broken:
        raise ArgumentError("gemm(a, b): has no gradient", broken)


def remember(ctx: Any, inputs: Sequence[Any], output: Any) -> None:
    """torch's `setup_context`: what the gradients will read."""
    a, b, _out_dtype, _config, *rest = inputs
    wants_a, wants_b = ctx.needs_input_grad[:2]
    ctx.save_for_backward(a if wants_b else None, b if wants_a else None)
    ctx.kinds = a.dtype, b.dtype
    ctx.row_major = _is_row_major(a), _is_row_major(b)
    ctx.rest = tuple(rest)  # backend, precision, transpose


def gradients(context: Any, gradient: Any) -> tuple[Any, ...]:
    """torch's `backward`: dA and dB, and None for the options."""
    a, b = context.saved_tensors
    dtype = context.kinds[0]
    d = readable(gradient.to(dtype))
    results = [
        None if b is None else _product(context, 0, d, b.mT),
        None if a is None else _product(context, 1, a.mT, d),
    ]
    return (*results, *([None] * (len(context.needs_input_grad) - 2)))


def _product(context: Any, which: int, left: Any, right: Any) -> Any:
    """left @ right in the memory order of operand `which`; the forward's config does not apply."""
    gemm = sys.modules["torch"].ops.ptxgen.gemm
    kind = str(context.kinds[which]).removeprefix("torch.")
    if context.row_major[which]:
        return gemm(left, right, kind, "", *context.rest)
    return gemm(right.mT, left.mT, kind, "", *context.rest).mT


def _is_row_major(x: Any) -> bool:
    return bool(x.stride(-1) == 1 or x.shape[-1] <= 1 or x.stride(-2) != 1)


def readable(d: Any) -> Any:
    """dD as it is where TMA can read it, else a copy with rows of a legal pitch."""
    inner, pitch = (-1, -2) if d.stride(-1) == 1 else (-2, -1)
    if d.stride(inner) == 1 and d.stride(pitch) * d.element_size() % PITCH_BYTES == 0:
        if d.stride(pitch) >= d.shape[inner] and (d.ndim == 2 or d.stride(0) > 0):
            return d
    columns = d.shape[-1]
    padding = padded_columns(columns, _name(d)) - columns
    pad = sys.modules["torch"].nn.functional.pad
    return pad(d, (0, padding))[..., :columns] if padding else d.contiguous()


def _name(x: Any) -> str:
    """The canonical name of a tensor's dtype; one that is unknown is left for the rules."""
    spelling = str(x.dtype).removeprefix("torch.")
    try:
        return dtype_row(spelling).name
    except KeyError:
        return spelling
