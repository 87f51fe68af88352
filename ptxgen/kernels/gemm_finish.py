"""What a GEMM does to its sums before it rounds them: D = activation(alpha sum + beta C + bias)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ptxgen.configs.gemm import GemmProblem
from ptxgen.configs.gemm_shape import Gemm
from ptxgen.errors import Violation
from ptxgen.isa.dtypes import DType, dtype
from ptxgen.layout import tensor_map
from ptxgen.spec import (
    ArrayMeta,
    KernelSpec,
    Param,
    PointerParam,
    Scalar,
    ScalarParam,
    TensorMapParam,
)

GIVEN = ("alpha", "beta")  # scalars that the caller gives; a plan computes the others
EXPONENTIAL = ("gelu", "gelu_tanh", "silu")  # activations by ex2 and rcp

# Each activation as the contract states it, with the most that f32 arithmetic adds to its error.
_FORMULAS = {
    "none": (),
    "relu": ("relu(x) = max(x, 0); NaN stays NaN",),
    "gelu": (
        "gelu(x) = max(x, 0) - |x|/2 erfc(|x|/sqrt 2), erfc(z) = exp(-z^2) times a",
        "polynomial of 1 / (1 + 0.3275911 z): Abramowitz and Stegun 7.1.26, within 2^-21",
    ),
    "gelu_tanh": (
        "gelu_tanh(x) = x / (1 + 2^-y), y = 2 log2(e) sqrt(2/pi) (x + 0.044715 x^3), by",
        "ex2.approx and rcp.approx: within (1 + |y|) 2^-21 of itself",
    ),
    "silu": (
        "silu(x) = x / (1 + 2^-y), y = log2(e) x, by ex2.approx and rcp.approx: within",
        "(1 + |y|) 2^-21 of itself",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """How elements of an array are read: one by `one`, two side by side by `two`."""

    type: str
    bytes: int
    bits: int
    one: str  # unsigned types of a load
    two: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The numbers of the block: what is added and multiplied, and along which axis of the tile."""

    scales: bool  # alpha or a bias
    alpha: bool
    beta: bool
    reads: bool  # C or a bias, by the element's place in D
    bias: str  # "" or the axis of the tile along which it runs: "rows" or "columns"
    bias_memory: Memory
    c_memory: Memory
    swapped: bool
    activation: str
    rows: str  # parameters with the extents of D along rows and columns of the tile
    columns: str
    params: tuple[str, ...]  # lines of the entry
    lines: tuple[str, ...]  # of the contract


def entry_parts(p: GemmProblem) -> tuple[str, ...]:
    """What the name of the entry says of the epilogue."""
    bias = f"bias_{p.bias}" + ("_out" if p.bias_dtype == "out" else "")
    return (
        "alpha" if p.alpha else "",
        "beta" if p.beta else "",
        bias if p.bias != "none" else "",
        p.activation if p.activation != "none" else "",
    )


def params(p: GemmProblem) -> tuple[Param, ...]:
    """Parameters behind those of the plain kernel."""
    found: list[Param] = []
    if p.alpha:
        found.append(ScalarParam(name="alpha", ptx_type="f32"))
    if p.beta:
        found += (
            ScalarParam(name="beta", ptx_type="f32"),
            PointerParam(name="c", arg="c", dtype=p.output.name),
            ScalarParam(name="c_pitch", ptx_type="u64"),
        )
        if p.batched:
            found.append(ScalarParam(name="c_batch", ptx_type="u64"))
    if p.bias != "none":
        found.append(
            PointerParam(
                name="bias", arg="bias", dtype=p.bias_type.name, align=2 * p.bias_type.bytes
            )
        )
    if _reads(p):
        found += (ScalarParam(name=name, ptx_type="u32") for name in ("d_rows", "d_columns"))
    return tuple(found)


_MEANINGS = {
    "alpha": "factor of the sums",
    "beta": "factor of C, which is not read where this is 0",
    "c": "C, of the type and shape of D",
    "c_pitch": "bytes from one row of C to the next",
    "c_batch": "bytes from one C of the batch to the next",
    "bias": "vector that is added to every row or column",
    "d_rows": "rows of D: what lies beyond is not read of C and bias",
    "d_columns": "its columns",
}


def finish(g: Gemm) -> Finish:
    """The numbers of `blocks/finish.ptx.j2`, `finish_lanes` and `add_c`."""
    p = g.problem
    along = {"none": "", "row": "columns", "column": "rows"}[p.bias]
    if g.swapped and along:
        along = "rows" if along == "columns" else "columns"
    extents = ("d_columns", "d_rows") if g.swapped else ("d_rows", "d_columns")
    return Finish(
        scales=bool(p.alpha) or bool(along),
        alpha=bool(p.alpha),
        beta=bool(p.beta),
        reads=_reads(p),
        bias=along,
        bias_memory=_memory(p.bias_type),
        c_memory=_memory(p.output),
        swapped=g.swapped,
        activation=p.activation,
        rows=extents[0],
        columns=extents[1],
        params=_param_lines(params(p)),
        lines=_lines(p) if p.finishes else (),
    )


def _reads(p: GemmProblem) -> bool:
    return bool(p.beta) or p.bias != "none"


def _memory(element: DType) -> Memory:
    return Memory(
        type=element.name,
        bytes=element.bytes,
        bits=element.bits,
        one=f"u{element.bits}",
        two=f"u{2 * element.bits}",
    )


def _param_lines(found: tuple[Param, ...]) -> tuple[str, ...]:
    lines = []
    for i, param in enumerate(found, 1):
        kind = param.ptx_type if isinstance(param, ScalarParam) else "u64"
        text = f".param .{kind} {param.name}" + ("," if i < len(found) else "")
        lines.append(f"{text:<34} // {_MEANINGS[param.name]}")
    return tuple(lines)


def _lines(p: GemmProblem) -> tuple[str, ...]:
    """What the contract says, from the column in which titles start."""
    terms = [
        "alpha sum" if p.alpha else "sum",
        "beta C[m,n]" if p.beta else "",
        {"none": "", "row": "bias[n]", "column": "bias[m]"}[p.bias],
    ]
    x = " + ".join(filter(None, terms))
    result = x if p.activation == "none" else f"{p.activation}(x), x = {x}"
    notes = [f"D = {result}; in f32, rounded once"]
    if p.beta:
        notes.append("The bias is added first, then beta C. Where beta is 0, C is not read.")
    if p.bias != "none":
        notes.append(
            f"bias: {p.bias_type.name}" + (", the same in every batch" if p.batched else "")
        )
    notes += _FORMULAS[p.activation]
    return tuple(f"{'Epilogue' if i == 0 else '':<12} {text}" for i, text in enumerate(notes))


# ---------------------------------------------------------------------------- plan


def finish_scalars(args: Mapping[str, ArrayMeta]) -> dict[str, Scalar]:
    """What the plan computes for an epilogue: extents of D, and how C lies in memory."""
    *_, rows, columns = args["d"].shape
    values: dict[str, Scalar] = {"d_rows": rows, "d_columns": columns}
    if "c" in args:
        strides = args["c"].strides
        values |= {"c_pitch": strides[-2] if rows > 1 else 0, "c_batch": strides[0]}
    return values


def finish_violations(spec: KernelSpec, args: Mapping[str, ArrayMeta]) -> Iterator[Violation]:
    """Types and order in memory of C and the bias; their extents are checked with all others."""
    store = next(p for p in spec.params if isinstance(p, TensorMapParam) and p.arg == "d")
    for param in spec.params:
        if isinstance(param, PointerParam) and not param.workspace:
            meta = args[param.arg]
            if meta.dtype != param.dtype:
                yield Violation(
                    field=param.arg, got=meta.dtype, rule=f"must be {param.dtype}",
                    why=f"the kernel was generated for {param.dtype} {param.arg}",
                    fix="convert it" + _bias_type(param, meta, args["d"]),
                )  # fmt: skip
            elif meta.size:
                yield from _order(param, meta, store)


def _bias_type(param: PointerParam, meta: ArrayMeta, d: ArrayMeta) -> str:
    if param.arg == "bias" and meta.dtype in ("f32", d.dtype):
        return f", or make the kernel with bias_dtype={'f32' if meta.dtype == 'f32' else 'out'}"
    return ""


def _order(param: PointerParam, meta: ArrayMeta, store: TensorMapParam) -> Iterator[Violation]:
    size = dtype(param.dtype).bytes
    if meta.shape[-1] > 1 and meta.strides[-1] != size:
        yield Violation(
            field=param.arg, got=f"strides {meta.strides} bytes for shape {meta.shape}",
            rule=f"must be contiguous along its last axis: {size} bytes from one to the next",
            why="the kernel reads it in pairs", fix="pass a contiguous copy",
        )  # fmt: skip
    elif param.arg == "c":  # its rows must start where vectors may be read, like those of D
        names = ("batch", "M", "N")[-len(meta.shape) :]
        yield from tensor_map.array_violations(meta, _as_c(store), axis_names=names)


def _as_c(store: TensorMapParam) -> TensorMapParam:
    return TensorMapParam(
        name="c", arg="c", dtype=store.dtype, axes=store.axes, box=store.box, swizzle=store.swizzle
    )
