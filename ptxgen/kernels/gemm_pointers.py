"""Parameters of a GEMM for matrices that it reads or writes by address, not by tensor map."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ptxgen.configs.gemm_shape import Gemm, Operand
from ptxgen.spec import Access, ArrayMeta, Param, PointerParam, Scalar, ScalarParam

COPY_BYTES = 4  # of one cp.async: addresses and pitches are multiples of it, or of an element


def load_pointers(g: Gemm) -> tuple[Param, ...]:
    """A and B where threads copy them."""
    found: list[Param] = []
    for operand in (g.a, g.b):
        element = operand.storage
        unit = element.bytes if g.by_elements else COPY_BYTES
        found += _matrix(g, operand.arg, element.name, align=unit)
        found.append(ScalarParam(name=f"{operand.arg}_rows", ptx_type="u32"))
    return *found, ScalarParam(name="k_elements", ptx_type="u32")


def store_pointers(g: Gemm) -> tuple[Param, ...]:
    """D where its elements are stored one by one."""
    element = g.problem.output
    return tuple(_matrix(g, "d", element.name, align=element.bytes, access="write"))


def _matrix(
    g: Gemm, name: str, dtype: str, *, align: int, access: Access = "read"
) -> Iterator[Param]:
    yield PointerParam(name=name, arg=name, dtype=dtype, access=access, align=align)
    yield ScalarParam(name=f"{name}_pitch", ptx_type="u64")
    if g.problem.batched:
        yield ScalarParam(name=f"{name}_batch", ptx_type="u64")


def load_lines(g: Gemm, operand: Operand) -> tuple[str, ...]:
    """The entry's lines for an operand that threads copy."""
    name, upper = operand.arg, operand.arg.upper()
    step = "element by element" if g.by_elements else f"{COPY_BYTES} bytes at once"
    found = [
        _line("u64", name, f"{upper}, copied {step}"),
        _line("u64", f"{name}_pitch", f"bytes from one row of {upper} to the next"),
        _line("u32", f"{name}_rows", "its rows: what lies beyond is zero"),
    ]
    if g.problem.batched:
        found.insert(2, _line("u64", f"{name}_batch", f"bytes from one {upper} of the batch on"))
    if operand == g.b:
        found.append(_line("u32", "k_elements", "of both along K"))
    return tuple(found)


def store_lines(g: Gemm) -> tuple[str, ...]:
    """The entry's lines for D where its elements are stored one by one."""
    found = [
        _line("u64", "d", "D, whose elements are stored one by one"),
        _line("u64", "d_pitch", "bytes from one row of D to the next"),
    ]
    if g.problem.batched:
        found.append(_line("u64", "d_batch", "bytes from one D of the batch to the next"))
    return tuple(found)


def _line(kind: str, name: str, text: str) -> str:
    return f"{f'.param .{kind} {name},':<34} // {text}"


def pointer_scalars(args: Mapping[str, ArrayMeta]) -> dict[str, Scalar]:
    """How matrices lie in memory: rows, and bytes from row to row and from batch to batch."""
    values: dict[str, Scalar] = {"k_elements": args["a"].shape[-1]}
    for name in ("a", "b", "c", "d"):
        if name in args:
            meta = args[name]
            rows, batches = meta.shape[-2], meta.shape[0]
            values[f"{name}_rows"] = rows
            values[f"{name}_pitch"] = meta.strides[-2] if rows > 1 else 0
            values[f"{name}_batch"] = meta.strides[0] if batches > 1 else 0
    return values
