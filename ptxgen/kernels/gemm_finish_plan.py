"""What an epilogue of a GEMM asks of its arrays, and the scalars that its plan computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ptxgen.configs.gemm import GemmProblem
from ptxgen.errors import Violation
from ptxgen.isa.dtypes import dtype
from ptxgen.kernels.gemm_pitches import element_violations, store_cure, with_cure
from ptxgen.layout import tensor_map
from ptxgen.spec import ArrayMeta, KernelSpec, PointerParam, TensorMapParam

GIVEN = ("alpha", "beta")  # scalars that the caller gives; a plan computes the others
MATRICES = ("a", "b", "d")  # of every GEMM
HALVES = "2"  # the axis of B whose two matrices give the two products of a gated problem

Axes = Mapping[str, tuple[str, ...]]


def finish_axes(p: GemmProblem, axes: Axes) -> dict[str, tuple[str, ...]]:
    """Axes of what an epilogue adds, by argument, and of B where it has two matrices.

    Arrays of one element may have any rank, so they have none.
    """
    found: dict[str, tuple[str, ...]] = {}
    halves = (HALVES,) if p.gated else ()
    if p.gated:
        *lead, n, k = axes["b"]
        found["b"] = (*lead, HALVES, n, k)
    if p.beta:
        found["c"] = axes["d"]
    if p.bias != "none":
        found["bias"] = ("N",) if p.bias == "row" else ("M",)
    if p.scales == "row":
        found |= {"scale_a": ("M",), "scale_b": (*halves, "N")}
    return found


def finish_violations(
    spec: KernelSpec, args: Mapping[str, ArrayMeta], axes: Axes
) -> Iterator[Violation]:
    """Types and order in memory of what an epilogue reads; extents are checked with all others."""
    if HALVES in axes["b"] and args["b"].shape[-3] != 2:
        yield Violation(
            field="b", got=f"shape {args['b'].shape}", rule=f"must be [{', '.join(axes['b'])}]",
            why="a gated kernel multiplies A by two matrices",
            fix="pass w.reshape(2, N, K) of a [2 N, K] array w",
        )  # fmt: skip
    store = next((p for p in spec.params if isinstance(p, TensorMapParam) and p.arg == "d"), None)
    for param in spec.params:
        if isinstance(param, PointerParam) and not (param.workspace or param.arg in MATRICES):
            if param.arg not in args:
                yield Violation(field=param.arg, got="nothing", rule="is required, [1]")
                continue
            meta = args[param.arg]
            if meta.dtype != param.dtype:
                yield Violation(
                    field=param.arg, got=meta.dtype, rule=f"must be {param.dtype}",
                    why=f"the kernel was generated for {param.dtype} {param.arg}",
                    fix="convert it" + _bias_type(param, meta, args["d"]),
                )  # fmt: skip
            elif param.arg not in axes:
                yield from _single(param, meta)
            elif store is None and param.arg == "c":
                yield from element_violations(param.arg, meta, axes[param.arg])
            elif meta.size:
                yield from _order(param, meta, store)


def _single(param: PointerParam, meta: ArrayMeta) -> Iterator[Violation]:
    if meta.size != 1:
        yield Violation(
            field=param.arg, got=f"shape {meta.shape}", rule="must have one element",
            why="the kernel reads one number there"
            if param.access == "read"
            else "the kernel leaves one number there",
            fix="pass an f32 array of shape [1]"
            + (
                ", or make the kernel with scales=row"
                if param.arg in ("scale_a", "scale_b")
                else ""
            ),
        )  # fmt: skip


def _bias_type(param: PointerParam, meta: ArrayMeta, d: ArrayMeta) -> str:
    if param.arg == "bias" and meta.dtype in ("f32", d.dtype):
        return f", or make the kernel with bias_dtype={'f32' if meta.dtype == 'f32' else 'out'}"
    return ""


def _order(
    param: PointerParam, meta: ArrayMeta, store: TensorMapParam | None
) -> Iterator[Violation]:
    size = dtype(param.dtype).bytes
    dense = len(meta.shape) < 2 or param.arg == "c" or meta.strides[-2] == meta.shape[-1] * size
    if (meta.shape[-1] > 1 and meta.strides[-1] != size) or not dense:
        yield Violation(
            field=param.arg, got=f"strides {meta.strides} bytes for shape {meta.shape}",
            rule=f"must be contiguous along its last axis: {size} bytes from one to the next",
            why="the kernel reads it in pairs", fix="pass a contiguous copy",
        )  # fmt: skip
    elif (
        store is not None and param.arg == "c"
    ):  # its rows must start where vectors may be read, like those of D
        names = ("batch", "M", "N")[-len(meta.shape) :]
        broken = tensor_map.array_violations(meta, _as_c(store), axis_names=names)
        yield from with_cure(broken, lambda: store_cure(meta, names))


def _as_c(store: TensorMapParam) -> TensorMapParam:
    return TensorMapParam(
        name="c", arg="c", dtype=store.dtype, axes=store.axes, box=store.box, swizzle=store.swizzle
    )
