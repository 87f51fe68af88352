"""Rounding to fp8 with scales: template, spec, plan and promises of one member."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil

from ptxgen.configs.quantize import LARGEST, LEAST_SCALE, Quantize, QuantizeProblem
from ptxgen.errors import ArgumentError, Violation
from ptxgen.isa.arch import WARP_THREADS
from ptxgen.isa.dtypes import dtype
from ptxgen.kernels.base import KernelSource, Planner, Role
from ptxgen.kernels.gemm_finish import Memory, memory
from ptxgen.layout.smem_plan import SmemPlan
from ptxgen.spec import (
    ArrayMeta,
    DeviceLimits,
    Dim3,
    KernelSpec,
    LaunchPlan,
    Param,
    PointerParam,
    Scalar,
    ScalarParam,
    Step,
)
from ptxgen.templating.render import render_own
from ptxgen.toolchain.verify import ALWAYS, Count, Expectation, Promise

TEMPLATE = "kernels/quantize.ptx.j2"
PTX_VERSION = (8, 1)  # cvt to fp8
PITCH_BYTES = 16  # rows begin where vectors may be read, and where TMA may read Q
LIMIT = 2**31  # of extents, and of items: sums of two still fit in 32 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class X:
    """How a lane reads X."""

    memory: Memory
    vector: int  # elements
    pairs: int  # of them, as cvt takes them
    columns: int  # that a warp reads at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What makes a scale of the largest |x|."""

    reciprocal: float  # of the largest fp8 value
    least: float


def entry(q: Quantize) -> str:
    """The entry's name."""
    p = q.problem
    if not p.quantizes:
        return f"amax_{p.dtype}"
    return f"quantize_{p.dtype}_{p.out_dtype}_{p.scales}"


def spec(q: Quantize) -> KernelSpec:
    """What the PTX of this member fixes."""
    return KernelSpec(
        entry=entry(q),
        ptx_version=PTX_VERSION if q.problem.quantizes else (8, 0),
        params=tuple(_params(q.problem)),
        block=Dim3(q.threads),
    )


def _params(p: QuantizeProblem) -> Iterator[Param]:
    yield PointerParam(name="x", arg="x", dtype=p.x.name)
    yield ScalarParam(name="x_pitch", ptx_type="u64")
    if p.quantizes:
        given = p.scales.endswith("given")
        yield PointerParam(name="q", arg="q", dtype=p.out_dtype, access="write")
        yield ScalarParam(name="q_pitch", ptx_type="u64")
        yield PointerParam(
            name="scale", arg="scale", dtype="f32", align=4, access="read" if given else "write"
        )
    if p.scales == "tensor":
        yield PointerParam(name="amax", arg="amax", dtype="f32", align=4)
    if p.scales == "none":
        yield PointerParam(name="amax", arg="amax", dtype="f32", align=4, access="read_write")
    for name in ("rows", "columns", "parts", "part_columns"):
        yield ScalarParam(name=name, ptx_type="u32")


_MEANINGS = {
    "x": "X [rows, columns]",
    "x_pitch": "bytes from one of its rows to the next",
    "q": "Q, of the same shape",
    "q_pitch": "bytes from one of its rows to the next",
    "scale": "f32 factors: one, or one a row",
    "amax": "f32, 0 or more: the largest |x|",
    "rows": "of X",
    "columns": "of X",
    "parts": "items that share a row",
    "part_columns": "columns of one",
}


def _param_lines(params: tuple[Param, ...]) -> tuple[str, ...]:
    lines = []
    for i, param in enumerate(params, 1):
        kind = param.ptx_type if isinstance(param, ScalarParam) else "u64"
        text = f".param .{kind} {param.name}" + ("," if i < len(params) else "")
        lines.append(f"{text:<26} // {_MEANINGS[param.name]}")
    return tuple(lines)


def _lines(p: QuantizeProblem) -> tuple[str, ...]:
    """What the contract says."""
    if not p.quantizes:
        text: tuple[str, ...] = (
            f"amax = max(amax, |x|) over all of X, {p.dtype}; NaN if one is NaN",
        )
    else:
        where = "[m]" if p.per_row else ""
        largest = LARGEST[p.out_dtype]
        text = (
            f"Q[m,k] = X[m,k] (1 / scale{where}), each in f32, then to nearest even;",
            f"X {p.dtype}, Q {p.out_dtype}",
            f"Beyond {largest:g} it is {largest:g}, of infinities too; NaN stays NaN.",
        )
        if not p.scales.endswith("given"):
            found = "the largest |x| of row m" if p.per_row else "amax"
            text = (
                *text,
                f"scale{where} = max({found} x (1 / {largest:g}), 2^-126), whose reciprocal is",
                "finite.",
            )
    return tuple(f"{'Computes' if i == 0 else '':<12} {line}" for i, line in enumerate(text))


def numbers(q: Quantize, kernel_spec: KernelSpec) -> dict[str, object]:
    """Everything that the template takes, by the names it uses."""
    p = q.problem
    whole = p.per_row
    return {
        "entry": kernel_spec.entry,
        "ptx_version": "{}.{}".format(*kernel_spec.ptx_version),
        "lines": _lines(p),
        "params": _param_lines(kernel_spec.params),
        "threads": q.threads,
        "warps": q.config.warps,
        "item": "a row" if whole else f"a row, or {q.config.part:,} columns of it",
        "x": X(
            memory=memory(p.x), vector=p.vector, pairs=p.vector // 2,
            columns=p.vector * WARP_THREADS,
        ),
        "out": p.out_dtype,
        "scales": p.scales,
        "quantizes": p.quantizes,
        "finds": p.scales in ("row", "none"),
        "limit": Limit(reciprocal=1 / LARGEST.get(p.out_dtype, 1.0), least=LEAST_SCALE),
    }  # fmt: skip


def build(q: Quantize) -> KernelSource:
    """Render the kernel. Raises ConfigError with every broken rule."""
    q.require()
    kernel_spec = spec(q)
    return KernelSource(
        family="quantize",
        problem=q.problem,
        config=q.config,
        resolved=q.config,
        rendered=render_own(TEMPLATE, numbers(q, kernel_spec)),
        spec=kernel_spec,
        plan=planner(q, kernel_spec),
        expectation=Expectation(entry=kernel_spec.entry, promises=tuple(_promises(q))),
        smem=SmemPlan.of(),
        registers=None,
        roles=(
            Role(
                name="warps", warps=f"0-{q.config.warps - 1}",
                does="each reads rows, or parts of them, and writes what it read",
            ),
        ),
        barriers=(),
    )  # fmt: skip


def _promises(q: Quantize) -> Iterator[Promise]:
    p = q.problem
    yield from ALWAYS
    passes = (p.scales in ("row", "none")) + p.quantizes
    yield Count(pattern="LDG.E.128", exactly=passes, why="a lane reads 16 bytes of X at once")
    if p.quantizes:
        yield Count(
            pattern="F2FP", at_least=p.vector // 2 + p.vector,
            why="pairs are rounded at once, at the edge one by one",
        )  # fmt: skip
        wide = "STG.E.64" if p.vector == 8 else "STG.E"
        yield Count(pattern=wide, at_least=1, why="a lane writes all it has read at once")
    if p.scales in ("row", "none"):
        yield Count(pattern="REDUX", at_least=1, why="the largest of a warp")
    if p.scales == "none":
        yield Count(pattern="REDG", exactly=1, why="the largest of all, by one atomic a warp")
    yield Count(pattern="ACQBULK", exactly=1, why="the grid before this one is waited for")


# ---------------------------------------------------------------------------- plan


def planner(q: Quantize, kernel_spec: KernelSpec) -> Planner:
    """The plan function: x [M,K], q [M,K], scale [M] or [1], amax [1]."""

    def plan(
        args: Mapping[str, ArrayMeta], scalars: Mapping[str, Scalar], device: DeviceLimits
    ) -> LaunchPlan:
        """Raises ArgumentError with every violation."""
        broken = [
            Violation(
                field=name, got=str(value), rule="is computed by the plan", fix="leave it out"
            )
            for name, value in scalars.items()
        ]
        broken += _violations(q, kernel_spec, args)
        if broken:
            raise ArgumentError(f"{kernel_spec.entry}: arguments cannot be used", broken)
        rows, columns = args["x"].shape
        if 0 in (rows, columns) and not (q.problem.scales == "row" and rows):
            return LaunchPlan(steps=(), notes=("X is empty",))
        part = max(columns, 1) if q.problem.per_row else q.config.part
        parts = ceil(columns / part) or 1
        items = rows * parts
        if items >= LIMIT:
            raise ArgumentError(f"{kernel_spec.entry}: X is too large", [_too_large(items)])
        values: dict[str, Scalar] = {
            "x_pitch": _pitch(args["x"]), "rows": rows, "columns": columns, "parts": parts,
            "part_columns": part,
        }  # fmt: skip
        if "q" in args:
            values["q_pitch"] = _pitch(args["q"])
        names = [p.name for p in kernel_spec.params if isinstance(p, ScalarParam)]
        grid = min(ceil(items / q.config.warps), device.ctas)
        step = Step(
            entry=kernel_spec.entry, grid=Dim3(grid), scalars={n: values[n] for n in names},
            pdl=True,  # the kernel itself waits for the grid before it
        )  # fmt: skip
        note = f"{items:,} items on {grid * q.config.warps:,} warps"
        return LaunchPlan(steps=(step,), notes=(note,))

    return plan


def _pitch(meta: ArrayMeta) -> int:
    """Bytes from a row to the next; a single row's stride means nothing."""
    return meta.strides[0] if meta.shape[0] > 1 else 0


def _too_large(items: int) -> Violation:
    return Violation(
        field="x", got=f"{items:,} items", rule=f"must be fewer than {LIMIT:,}",
        why="the kernel counts them in 32 bits", fix="use a larger part, or pass it in pieces",
    )  # fmt: skip


def _violations(
    q: Quantize, kernel_spec: KernelSpec, args: Mapping[str, ArrayMeta]
) -> Iterator[Violation]:
    for param in kernel_spec.params:
        if not isinstance(param, PointerParam):
            continue
        if param.arg not in args:
            yield Violation(field=param.arg, got="nothing", rule="is required")
            continue
        meta = args[param.arg]
        if meta.dtype != param.dtype:
            yield Violation(
                field=param.arg, got=meta.dtype, rule=f"must be {param.dtype}",
                why=f"the kernel was generated for {param.dtype} {param.arg}", fix="convert it",
            )  # fmt: skip
        elif param.arg in ("x", "q"):
            yield from _matrix(param.arg, meta)
    x = args.get("x")
    if x is None or len(x.shape) != 2:
        return
    if "q" in args and args["q"].shape != x.shape:
        yield _shape("q", args["q"], f"{x.shape}", "Q is X, rounded")
    if "scale" in args:
        scale = args["scale"]
        if q.problem.per_row and (
            scale.shape != x.shape[:1] or (scale.size > 1 and scale.strides[0] != 4)
        ):
            yield _shape("scale", scale, f"[{x.shape[0]}], contiguous", "every row has a scale")
        if not q.problem.per_row and scale.size != 1:
            yield _shape("scale", scale, "one element", "all rows share a scale")
    if "amax" in args and args["amax"].size != 1:
        yield _shape("amax", args["amax"], "one element", "it is one number")


def _shape(name: str, meta: ArrayMeta, rule: str, why: str) -> Violation:
    return Violation(field=name, got=f"shape {meta.shape}", rule=f"must be {rule}", why=why)


def _matrix(name: str, meta: ArrayMeta) -> Iterator[Violation]:
    if len(meta.shape) != 2:
        yield _shape(name, meta, "[M, K]", "rows are counted along one axis")
        return
    size = dtype(meta.dtype).bytes
    rows, columns = meta.shape
    if max(rows, columns) >= LIMIT:
        yield _shape(name, meta, f"shorter than {LIMIT:,} along each axis", "indices have 32 bits")
    if columns > 1 and meta.strides[1] != size:
        yield Violation(
            field=name, got=f"strides {meta.strides} bytes", rule="must be contiguous along K",
            why="rows are read in vectors", fix="pass a contiguous copy",
        )  # fmt: skip
    elif rows > 1 and (meta.strides[0] % PITCH_BYTES or meta.strides[0] < 0):
        yield Violation(
            field=name, got=f"a row pitch of {meta.strides[0]} B",
            rule=f"must be a multiple of {PITCH_BYTES} B",
            why="rows are read in vectors, and TMA reads fp8 so",
            fix=f"pad rows to {-(-columns * size // PITCH_BYTES) * PITCH_BYTES // size} elements",
        )  # fmt: skip
