"""Matrix product on arrays of any framework."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from ptxgen import api, debug
from ptxgen.configs.gemm import GemmConfig, GemmProblem
from ptxgen.configs.gemm_pick import ranking
from ptxgen.isa.dtypes import dtype as dtype_row
from ptxgen.spec import ArrayMeta
from runtime.allocate import empty_like, fresh
from runtime.backend import Backend, choose
from runtime.buffers import borrow, device_of, framework_of
from runtime.launcher import launch
from runtime.ops.gemm_rules import padded_columns, require
from runtime.stream import LEGACY

CHOICES_KEPT = 1024  # all are dropped when there are more


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

    torch.compile traces through a call, as the operator `ptxgen::gemm`. There is no backward yet:
    one that reaches a call raises ArgumentError.

    ArgumentError lists everything that is wrong with the arguments.
    """
    torch = sys.modules.get("torch")
    if torch is not None and _as_operator(torch, a, b):
        # An import, since Dynamo runs those while it traces; by then torch is there.
        from runtime.ops import gemm_torch

        return gemm_torch.call(
            a, b, out=out, config=config, out_dtype=out_dtype, stream=stream, backend=backend
        )
    return compute(
        a, b, out=out, config=config, out_dtype=out_dtype, stream=stream, backend=backend
    )


def _as_operator(torch: Any, a: object, b: object) -> bool:
    """Whether torch must see an operator: its compiler is tracing, or a gradient is asked for."""
    if torch.compiler.is_compiling():
        return True
    return torch.is_grad_enabled() and (
        getattr(a, "requires_grad", False) is True or getattr(b, "requires_grad", False) is True
    )


def compute(
    a: object,
    b: object,
    *,
    out: object = None,
    config: GemmConfig | None = None,
    out_dtype: str | None = None,
    stream: object = None,
    backend: str | Backend | None = None,
) -> object:
    """`gemm`, now, whoever is looking."""
    choice = _choice(a, b, out, out_dtype, config)
    if type(a) not in CHOICES.layout_of or type(b) not in CHOICES.layout_of:
        return _without_views(choice, a, b, out, stream, backend)
    if out is None:
        on = None
        if stream is not None:
            device = device_of("a", a)
            on = choose(backend, (device,)).stream(stream, device, (a, b)).handle
        array: Any = empty_like((choice.m, choice.padded_n), choice.d_type, a, stream=on)
        out = array if choice.padded_n == choice.n else array[:, : choice.n]
    launch(choice.kernel, a=a, b=_transposed(b), d=out, stream=stream, backend=backend)
    return out


def _without_views(
    choice: _Choice,
    a: object,
    b: object,
    out: object,
    stream: object,
    backend: str | Backend | None,
) -> object:
    """The same for frameworks whose arrays are immutable, or that we know only by protocol."""
    device = device_of("a", a)
    runner = choose(backend, (device, device_of("b", b)))
    on = runner.stream(stream, device, (a, b))
    if out is not None:
        launch(choice.kernel, a=a, b=_transposed(b, on.handle), d=out, stream=on, backend=runner)
        return out
    out = empty_like((choice.m, choice.n), choice.d_type, a, stream=on.handle)
    d = fresh("d", out, stream=on.handle)
    launch(choice.kernel, a=a, b=_transposed(b, on.handle), d=d, stream=on, backend=runner)
    runner.wait(on)  # the framework knows nothing of this launch, so it must have run
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """What follows from the shapes, strides and types of a call, whatever its addresses."""

    kernel: api.Kernel
    m: int
    n: int
    padded_n: int  # columns of a new result, so that its rows are a legal pitch
    d_type: str


# What a choice depends on, by framework. Those listed here have views: `.T` moves nothing.
_LAYOUTS: Mapping[str, Callable[[Any], tuple[object, ...]]] = {
    "numpy": lambda x: (x.shape, x.strides, x.dtype),
    "torch": lambda x: (x.shape, x.stride(), x.dtype),
    "cupy": lambda x: (x.shape, x.strides, x.dtype),
}


class _Choices:
    """Choices by layout, so that a repeated shape is checked once. Nothing here names a device."""

    def __init__(self) -> None:
        self.layout_of: dict[type, Callable[[Any], tuple[object, ...]]] = {}  # by type, as met
        self._made: dict[tuple[object, ...], _Choice] = {}
        self._lock = threading.Lock()

    def find(self, a: object, b: object, *rest: object) -> _Choice | None:
        try:
            return self._made[(self.layout_of[type(a)](a), self.layout_of[type(b)](b), *rest)]
        except KeyError:
            return None

    def remember(self, choice: _Choice, a: object, b: object, *rest: object) -> None:
        """Keep a choice, if both operands have a layout that is cheap to read."""
        frameworks = {type(x): framework_of("operand", x) for x in (a, b)}
        if not all(framework in _LAYOUTS for framework in frameworks.values()):
            return
        with self._lock:
            self.layout_of.update({kind: _LAYOUTS[name] for kind, name in frameworks.items()})
            if len(self._made) >= CHOICES_KEPT:
                self._made.clear()
            key = (self.layout_of[type(a)](a), self.layout_of[type(b)](b), *rest)
            self._made[key] = choice


CHOICES = _Choices()


def _choice(
    a: object, b: object, out: object, out_dtype: str | None, config: GemmConfig | None
) -> _Choice:
    """The checked choice for a call."""
    rest = (out_dtype if out is None else getattr(out, "dtype", None), config)
    known = CHOICES.find(a, b, *rest)
    if known is not None:
        return known
    a_meta, b_meta = _meta("a", a), _meta("b", b)
    d_type = _meta("out", out).dtype if out is not None else _name(out_dtype or a_meta.dtype)
    require(a_meta, b_meta, d_type)
    (m, k), n = a_meta.shape, b_meta.shape[1]
    choice = _Choice(
        kernel=_kernel(m, n, k, a_meta.dtype, d_type, config),
        m=m,
        n=n,
        padded_n=padded_columns(n, d_type),
        d_type=d_type,
    )
    CHOICES.remember(choice, a, b, *rest)
    return choice


@lru_cache(maxsize=512)
def _kernel(
    m: int, n: int, k: int, dtype: str, out_dtype: str, config: GemmConfig | None
) -> api.Kernel:
    """The kernel for a shape. Shapes that lead to one config share one kernel."""
    problem = GemmProblem(dtype=dtype, out_dtype=out_dtype)
    if config is None:
        best = ranking(problem, m, n, k)[0]
        debug.chosen(f"for D [{m}, {n}] with K = {k}: {best.explain()}")
        config = best.config
    return _kernel_of(problem, config)


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


def _transposed(b: Any, stream: int | None = None) -> object:
    """[K, N] seen as [N, K]: a view of the framework's own, or the same memory described anew."""
    if type(b) in CHOICES.layout_of:
        return b.T
    ref = borrow("b", b, stream=stream)
    meta = replace(ref.meta, shape=ref.meta.shape[::-1], strides=ref.meta.strides[::-1])
    return replace(ref, meta=meta)
