"""What a GEMM does to its sums before it rounds them: the numbers of the blocks, the contract.

D = activation(alpha sum + beta C + bias), or of two products activation(alpha sum0) (alpha sum1);
scales of A and B multiply alpha, and `out_scale` the result.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.configs.gemm import GemmProblem
from ptxgen.configs.gemm_shape import Gemm
from ptxgen.isa.dtypes import DType, dtype
from ptxgen.spec import Access, Param, PointerParam, ScalarParam

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

    alpha: bool  # an argument
    scales: str  # "" or "tensor": %alpha has them; "row": `scale_rows` and `scale_columns`
    factor: bool  # %alpha multiplies all sums
    affine: bool  # that, or a bias
    beta: bool
    placed: bool  # lanes know where in D they are: for C, bias, vectors of scales, amax, direct D
    bias: str  # "" or the axis of the tile along which it runs: "rows" or "columns"
    bias_memory: Memory
    c_memory: Memory
    swapped: bool
    direct: bool  # C is read element by element, as D is stored
    activation: str
    gated: bool
    amax: bool
    out_scale: bool
    scale_rows: str  # parameters with the scales along rows and columns of the tile
    scale_columns: str
    scale_memory: Memory
    rows: str  # parameters with the extents of D along rows and columns of the tile
    columns: str
    params: tuple[str, ...]  # lines of the entry
    lines: tuple[str, ...]  # of the contract


def entry_parts(p: GemmProblem) -> tuple[str, ...]:
    """What the name of the entry says of the epilogue."""
    bias = f"bias_{p.bias}" + ("_out" if p.bias_dtype == "out" else "")
    return (
        f"scaled_{p.scales}" if p.scales != "none" else "",
        "alpha" if p.alpha else "",
        "beta" if p.beta else "",
        bias if p.bias != "none" else "",
        "gated" if p.gated else "",
        p.activation if p.activation != "none" else "",
        "amax" if p.amax else "",
        "out_scale" if p.out_scale else "",
    )


def params(g: Gemm) -> tuple[Param, ...]:
    """Parameters behind those of the plain kernel."""
    p = g.problem
    found: list[Param] = []
    if p.alpha:
        found.append(ScalarParam(name="alpha", ptx_type="f32"))
    if p.beta:
        found += (
            ScalarParam(name="beta", ptx_type="f32"),
            _c(g),
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
    if p.scales != "none":
        pair = 8 if p.scales == "row" else 4  # vectors are read in pairs along columns of the tile
        found += (_f32(name, align=pair) for name in ("scale_a", "scale_b"))
    if p.amax:
        found.append(_f32("amax", access="read_write"))
    if p.out_scale:
        found.append(_f32("out_scale"))
    if placed(g):
        found += (ScalarParam(name=name, ptx_type="u32") for name in ("d_rows", "d_columns"))
    return tuple(found)


def _c(g: Gemm) -> PointerParam:
    """Read in pairs, or where D is stored by elements, so."""
    name = g.problem.output.name
    align = dtype(name).bytes if g.direct else 16
    return PointerParam(name="c", arg="c", dtype=name, align=align, in_place="d")


def _f32(name: str, *, align: int = 4, access: Access = "read") -> PointerParam:
    return PointerParam(name=name, arg=name, dtype="f32", align=align, access=access)


_MEANINGS = {
    "alpha": "factor of the sums",
    "beta": "factor of C, which is not read where this is 0",
    "c": "C, of the type and shape of D",
    "c_pitch": "bytes from one row of C to the next",
    "c_batch": "bytes from one C of the batch to the next",
    "bias": "vector that is added to every row or column",
    "scale_a": "f32 factors of A: one, or one a row",
    "scale_b": "and of B: one, or one a column of D",
    "amax": "f32: becomes the largest |result|",
    "out_scale": "f32 factor of the result",
    "d_rows": "rows of D: nothing beyond is read, or counts in amax",
    "d_columns": "its columns",
}


def finish(g: Gemm) -> Finish:
    """The numbers of the blocks `finish`, `finish_lanes`, `finish_slabs`, `scales` and `add_c`."""
    p = g.problem
    along = {"none": "", "row": "columns", "column": "rows"}[p.bias]
    if g.swapped and along:
        along = "rows" if along == "columns" else "columns"
    extents, vectors = ("d_rows", "d_columns"), ("scale_a", "scale_b")
    if g.swapped:
        extents, vectors = extents[::-1], vectors[::-1]
    factor = p.scales == "tensor" or (bool(p.alpha) and p.scales == "none")
    return Finish(
        alpha=bool(p.alpha),
        scales="" if p.scales == "none" else p.scales,
        factor=factor,
        affine=factor or bool(along),
        beta=bool(p.beta),
        placed=placed(g),
        bias=along,
        bias_memory=memory(p.bias_type),
        c_memory=memory(p.output),
        swapped=g.swapped,
        direct=g.direct,
        activation=p.activation,
        gated=bool(p.gated),
        amax=bool(p.amax),
        out_scale=bool(p.out_scale),
        scale_rows=vectors[0],
        scale_columns=vectors[1],
        scale_memory=memory(dtype("f32")),
        rows=extents[0],
        columns=extents[1],
        params=_param_lines(params(g)),
        lines=_lines(g) if p.finishes or p.promoted else (),
    )


def placed(g: Gemm) -> bool:
    """Whether lanes know where in D their elements lie, and where D ends."""
    p = g.problem
    return g.direct or bool(p.beta or p.amax) or p.bias != "none" or p.scales == "row"


def memory(element: DType) -> Memory:
    """How elements of that type are read from global memory."""
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


def _lines(g: Gemm) -> tuple[str, ...]:
    """What the contract says, from the column in which titles start."""
    p = g.problem
    notes = [f"D = {_formula(p)}; in f32, rounded once"]
    if p.scales != "none":
        a, b = ("scale_a", "scale_b") if p.scales == "tensor" else ("scale_a[m]", "scale_b[n]")
        notes.append(f"scale = {'alpha ' if p.alpha else ''}{a} {b}, multiplied in f32")
    if p.beta:
        notes.append("The bias is added first, then beta C. Where beta is 0, C is not read.")
        stored = "it stores them" if g.direct else "their slab is stored"
        notes.append(f"C may be D itself: a lane reads its elements before {stored}.")
    if p.bias != "none":
        notes.append(
            f"bias: {p.bias_type.name}" + (", the same in every batch" if p.batched else "")
        )
    if p.amax:
        notes += (
            f"amax becomes max(amax, |y|) over all of D{', y = D / out_scale' * p.out_scale}; NaN",
            "if a y is NaN. It is 0 or more before.",
        )
    if p.gated:
        part = "halves of B alternate in a stage as its boxes do"
        notes.append(f"sum0 and sum1 lie in one lane: {part}")
    if p.promoted:
        notes += (
            "Sums of a stage leave the tensor core, which keeps 13 bits of them behind the",
            "point, and are added in f32: %part to %acc, which are of one size.",
        )
    notes += _FORMULAS[p.activation]
    return tuple(f"{'Epilogue' if i == 0 else '':<12} {text}" for i, text in enumerate(notes))


def _formula(p: GemmProblem) -> str:
    factor = "scale " if p.scales != "none" else "alpha " if p.alpha else ""
    scale = "out_scale " if p.out_scale else ""
    if p.gated:
        first = f"{factor}sum0" if p.activation == "none" else f"{p.activation}({factor}sum0)"
        return f"{scale}{first} {factor}sum1, sum_i with B[i]"
    bias = {"none": "", "row": "bias[n]", "column": "bias[m]"}[p.bias]
    x = " + ".join(filter(None, (f"{factor}sum", "beta C[m,n]" if p.beta else "", bias)))
    if p.activation == "none":
        return f"{scale}({x})" if scale else x
    return f"{scale}{p.activation}(x), x = {x}"
