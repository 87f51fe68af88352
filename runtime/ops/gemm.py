"""Matrix product on arrays of any framework."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from ptxgen import api
from ptxgen.configs.gemm import GemmConfig, GemmProblem
from ptxgen.configs.gemm_pick import pick
from ptxgen.configs.gemm_rules import INPUTS, OUTPUTS
from ptxgen.errors import ArgumentError, Violation
from ptxgen.isa.dtypes import dtype as dtype_row
from ptxgen.layout.tensor_map.spec import PITCH_BYTES
from ptxgen.spec import ArrayMeta
from runtime.allocate import empty_like, fresh
from runtime.backend import ArrayRef, Backend, choose
from runtime.buffers import borrow, device_of, framework_of
from runtime.launcher import launch
from runtime.stream import LEGACY

_VIEWS = ("numpy", "torch", "cupy")  # frameworks whose .T is a view, and has a cheap key


def gemm(
    a: object,
    b: object,
    *,
    out: object = None,
    config: GemmConfig | None = None,
    out_dtype: str | None = None,
    stream: object = None,
    backend: str | Backend | None = None,
) -> object:
    """`a @ b`: a [M, K] times b [K, N], of bf16 or f16, accumulated in f32 with K ascending.

    The memory of both must be contiguous along K: `a` is a row-major array, `b` is the transpose
    `w.T` of a row-major [N, K] array (the usual layout of weights). Rows may be padded, to a
    multiple of 16 bytes. Which it is, is read off the strides; nothing is copied.

    Returns `out`, or a new array [M, N] of `out_dtype` (default: that of the inputs; also "f32") in
    the framework and on the device of `a`. Where N elements are no multiple of 16 bytes, the rows
    of a new array are padded, so it is a view. `config` overrides the choice of tile, stages and
    cluster. `stream` and `backend` are as in `runtime.launch`. The result is the same bit by bit in
    every run and for every grid size.

    ArgumentError lists everything that is wrong with the arguments.
    """
    a_meta, b_meta = _meta("a", a), _meta("b", b)
    d_type = _meta("out", out).dtype if out is not None else _name(out_dtype or a_meta.dtype)
    _require(a_meta, b_meta, d_type)
    (m, k), n = a_meta.shape, b_meta.shape[1]
    kernel = _kernel(m, n, k, a_meta.dtype, d_type, config)
    runner = choose(backend, (a_meta.device, b_meta.device))
    on = runner.stream(stream, a_meta.device, (a, b))
    d: Any = out
    if out is None:
        d = out = _allocate(m, n, d_type, a, on.handle)
        if framework_of("a", a) == "jax":
            d = fresh("d", out, stream=on.handle)
    launch(kernel, a=a, b=_transposed(b, on.handle), d=d, stream=stream, backend=backend)
    if isinstance(d, ArrayRef):
        runner.wait(on)  # XLA knows nothing of this launch, so it must have run
    return out


def _allocate(m: int, n: int, dtype: str, like: object, stream: int) -> object:
    """A new [M, N]; rows padded to what a tensor map can describe, where arrays have views."""
    if framework_of("a", like) not in _VIEWS:
        return empty_like((m, n), dtype, like, stream=stream)
    step = PITCH_BYTES // dtype_row(dtype).bytes
    padded = -(-n // step) * step
    array: Any = empty_like((m, padded), dtype, like, stream=stream)
    return array if padded == n else array[:, :n]


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


def _require(a: ArrayMeta, b: ArrayMeta, d_type: str) -> None:
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


@lru_cache(maxsize=512)
def _kernel(
    m: int, n: int, k: int, dtype: str, out_dtype: str, config: GemmConfig | None
) -> api.Kernel:
    """The kernel for a shape. Shapes that lead to one config share one kernel."""
    problem = GemmProblem(dtype=dtype, out_dtype=out_dtype)
    return _kernel_of(problem, config or pick(problem, m, n, k))


@lru_cache(maxsize=128)
def _kernel_of(problem: GemmProblem, config: GemmConfig) -> api.Kernel:
    return api.kernel("gemm", **asdict(problem), **asdict(config))


def _name(spelling: str) -> str:
    """The canonical name of a dtype; one that is unknown is left for `_require` to refuse."""
    try:
        return dtype_row(spelling).name
    except KeyError:
        return spelling


def _meta(name: str, x: object) -> ArrayMeta:
    return borrow(name, x, stream=None if device_of(name, x) == "cpu" else LEGACY).meta


def _transposed(b: Any, stream: int) -> object:
    """[K, N] seen as [N, K]: a view of the framework's own, or the same memory described anew."""
    if framework_of("b", b) in _VIEWS:
        return b.T
    ref = borrow("b", b, stream=stream)
    meta = replace(ref.meta, shape=ref.meta.shape[::-1], strides=ref.meta.strides[::-1])
    return replace(ref, meta=meta)
