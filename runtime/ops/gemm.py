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
from ptxgen.errors import ArgumentError, Violation
from ptxgen.isa.dtypes import dtype as dtype_row
from ptxgen.kernels.gemm_pitches import CURES
from ptxgen.spec import ArrayMeta
from runtime.allocate import empty_like, fresh
from runtime.backend import Backend, choose
from runtime.buffers import borrow, device_of, framework_of, padded
from runtime.launcher import launch
from runtime.ops.gemm_epilogue import Epilogue, Finish, finished
from runtime.ops.gemm_rules import HEADLINE, Product, padded_columns, product
from runtime.stream import LEGACY

CHOICES_KEPT = 1024  # all are dropped when there are more


def gemm(
    a: object,
    b: object,
    *,
    alpha: float | None = None,
    beta: float | None = None,
    c: object = None,
    bias: object = None,
    activation: str | None = None,
    scale_a: object = None,
    scale_b: object = None,
    out_scale: object = None,
    amax: object = None,
    gated: bool = False,
    accumulate: str | None = None,
    out: object = None,
    config: GemmConfig | None = None,
    out_dtype: str | None = None,
    precision: str | None = None,
    transpose: str | None = None,
    stream: object = None,
    backend: str | Backend | None = None,
) -> object:
    """`a @ b`: a [M, K] times b [K, N], or a batch [B, M, K] times [B, K, N].

    Types: bf16, f16, fp8 (e4m3, e5m2, mixed or not) with f32 sums; int8 (s8, u8, mixed or not) with
    s32 sums; f32 with `precision="tf32"` only, which drops the low 13 bits of each mantissa. Sums
    run with K ascending (in a few parts that are added in order, where the choice splits K): the
    result is the same bit by bit in every run and for every grid size (of a `config` with stream_k,
    for one grid size). README has the order of each schedule, and the rules on NaN and infinities.

    Operands of 16 bits may be contiguous along either axis of their matrices (`w`, `w.T`), which is
    read off the strides. The others must be contiguous along K: `a` row-major, `b` the transpose
    `w.T` of a row-major [N, K] array; with `transpose="copy"` an operand that is not is copied
    first. Rows may be padded, to a multiple of 16 bytes.

    Returns `out`, or a new array of `out_dtype` in the framework and on the device of `a`. The type
    is by default that of the inputs, f32 of tf32, bf16 of fp8, s32 of int8; f32 sums can also give
    bf16, f16, f32, e4m3 and e5m2 (which saturate). Where N elements are no multiple of 16 bytes,
    the rows of a new array are padded, so it is a view. `config` overrides the choice of tile,
    stages and cluster; with cluster=(1, 1) and load="cp_async" rows of operands may lie any
    multiple of 4 bytes apart, with load="ld" anywhere; with store="direct" those of `out` and `c`.
    All are slower. `stream` and `backend` are as in `runtime.launch`.

    f32 sums may be finished before they are rounded, all in f32:

        D = out_scale activation(alpha scale_a scale_b sum + beta C + bias)

    `c` is an array like D (beta is 1 if not told; where it is 0, C is not read), and may be
    `out` itself; `bias` [N] or
    [M, 1] in f32 or the type of D, `activation` one of relu, gelu, gelu_tanh, silu. `scale_a` and
    `scale_b` are f32 arrays of one element each, or [M] and [N]: operands in fp8 stand for
    `a * scale_a[:, None]` and `b * scale_b`. `out_scale` is an f32 array of one element. `amax`,
    too, becomes the maximum of itself (0 or more) and of every |D| before `out_scale`; NaN if one
    is. With `gated` b is [K, 2 N], and D [M, N] = activation(x0) x1 with x0 = a @ b[:, :N] and
    x1 = a @ b[:, N:], each times alpha and its scales: SwiGLU with activation="silu".
    `accumulate="promoted"` adds fp8 sums in f32 every 128 of K; the tensor core alone ("fast")
    keeps 13 bits of them behind the point.

    torch.compile traces through a call, as the operator `ptxgen::gemm`, and autograd goes back
    through it: dA = dD B^T and dB = A^T dD, in the types and memory orders of the operands. fp8 and
    int8 operands have no gradient; f32 ones need `transpose="copy"`.

    ArgumentError lists everything that is wrong with the arguments.
    """
    torch = sys.modules.get("torch")
    given: Epilogue | None = None
    if not (
        alpha is None and beta is None and c is None and bias is None and activation is None
        and scale_a is None and scale_b is None and out_scale is None and amax is None
        and accumulate is None and not gated
    ):  # fmt: skip
        given = Epilogue(
            alpha, beta, c, bias, activation, scale_a, scale_b, out_scale, amax, gated, accumulate
        )
        pairs = ((a, b), (c, bias), (scale_a, scale_b))
        if torch is not None and any(_as_operator(torch, x, y) for x, y in pairs):
            raise _only_now()
    elif torch is not None and _as_operator(torch, a, b):
        # An import, since Dynamo runs those while it traces; by then torch is there.
        from runtime.ops import gemm_torch

        return gemm_torch.call(
            a, b, out=out, config=config, out_dtype=out_dtype, precision=precision,
            transpose=transpose, stream=stream, backend=backend,
        )  # fmt: skip
    return compute(
        a, b, out=out, config=config, out_dtype=out_dtype, precision=precision,
        transpose=transpose, stream=stream, backend=backend, given=given,
    )  # fmt: skip


# What makes a kernel take what TMA refuses, as this function takes it.
_HERE = {
    CURES["cp_async"]: "pass config=GemmConfig(load='cp_async', cluster=(1, 1))",
    CURES["ld"]: "pass config=GemmConfig(load='ld', cluster=(1, 1))",
    CURES["direct"]: "pass config=GemmConfig(store='direct')",
}


def _launched(kernel: api.Kernel, **arguments: Any) -> None:
    """Launch; a refusal whose cure is another kernel says how to ask for it here."""
    try:
        launch(kernel, **arguments)
    except ArgumentError as error:
        found = [replace(v, fix=_here(v.fix)) for v in error.violations]
        if found == list(error.violations):
            raise
        raise ArgumentError(f"{HEADLINE} by {kernel.spec.entry}", found) from None


def _here(fix: str) -> str:
    for elsewhere, here in _HERE.items():
        fix = fix.replace(elsewhere, here)
    return fix


def _as_operator(torch: Any, a: object, b: object) -> bool:
    """Whether torch must see an operator: its compiler is tracing, or a gradient is asked for."""
    if torch.compiler.is_compiling():
        return True
    return torch.is_grad_enabled() and (
        getattr(a, "requires_grad", False) is True or getattr(b, "requires_grad", False) is True
    )


def _only_now() -> ArgumentError:
    """An epilogue is computed at once: torch has no operator for it."""
    return _refused(
        "epilogue", "an argument",
        "must be left out under torch.compile, and where a gradient is asked for",
        why="only the plain product is an operator of torch",
        fix="finish the result in torch, or call gemm under torch.no_grad() and outside of the "
        "compiled function",
    )  # fmt: skip


def compute(
    a: object,
    b: object,
    *,
    out: object = None,
    config: GemmConfig | None = None,
    out_dtype: str | None = None,
    precision: str | None = None,
    transpose: str | None = None,
    stream: object = None,
    backend: str | Backend | None = None,
    given: Epilogue | None = None,
) -> object:
    """`gemm`, now, whoever is looking."""
    choice = _choice(a, b, out, out_dtype, config, precision, transpose, given)
    finish: Mapping[str, Any] = {}
    if given is not None and choice.finish is not None:
        finish = choice.finish.arguments(given)
    if type(a) not in CHOICES.layout_of or type(b) not in CHOICES.layout_of:
        return _without_views(choice, a, b, out, stream, backend, finish)
    if choice.copies:
        a, b = _copied(choice, a, b, stream)
    new = out is None
    if new:
        on = None
        if stream is not None:
            device = device_of("a", a)
            on = choose(backend, (device,)).stream(stream, device, (a, b)).handle
        array: Any = empty_like(choice.shape, choice.d_type, a, stream=on)
        out = array if choice.n is None else array[..., : choice.n]
    w = _transposed(b)
    if choice.halves is not None:
        w = w.reshape(choice.halves)
    d = out if choice.n is None or not new else padded(out)
    _launched(choice.kernel, a=a, b=w, d=d, stream=stream, backend=backend, **finish)
    return out


def _copied(choice: _Choice, a: Any, b: Any, stream: object) -> tuple[Any, Any]:
    """Operands with K contiguous, copied by their framework where they are not."""
    if stream is not None:
        raise _refused(
            "stream", type(stream).__name__, "must be left out with transpose='copy'",
            why="the framework copies on its current stream", fix="make the stream current",
        )  # fmt: skip
    if "a" in choice.copies:
        a = _k_contiguous(a)
    if "b" in choice.copies:
        b = _k_contiguous(b.swapaxes(-1, -2)).swapaxes(-1, -2)
    return a, b


def _k_contiguous(x: Any) -> Any:
    """A copy whose last axis is contiguous, with rows of a legal pitch."""
    name = _meta("operand", x).dtype
    *lead, k = x.shape
    copy: Any = empty_like((*lead, padded_columns(k, name)), name, x)
    copy = copy[..., :k]
    copy[...] = x
    return copy


def _without_views(
    choice: _Choice,
    a: object,
    b: object,
    out: object,
    stream: object,
    backend: str | Backend | None,
    finish: Mapping[str, Any],
) -> object:
    """The same for frameworks whose arrays are immutable, or that we know only by protocol."""
    if choice.copies:
        raise _refused(
            "transpose", "'copy'", f"cannot be done for {type(a).__name__} arrays",
            why="how to copy in that framework is unknown", fix="pass operands with contiguous K",
        )  # fmt: skip
    device = device_of("a", a)
    runner = choose(backend, (device, device_of("b", b)))
    on = runner.stream(stream, device, (a, b))
    w = _transposed(b, on.handle)
    if choice.halves is not None:
        w = _halved(w, choice.halves)
    if out is not None:
        _launched(choice.kernel, a=a, b=w, d=out, stream=on, backend=runner, **finish)
        return out
    whole = choice.shape if choice.n is None else (*choice.shape[:-1], choice.n)
    out = empty_like(whole, choice.d_type, a, stream=on.handle)
    d = fresh("d", out, stream=on.handle)
    _launched(choice.kernel, a=a, b=w, d=d, stream=on, backend=runner, **finish)
    runner.wait(on)  # the framework knows nothing of this launch, so it must have run
    return out


def _refused(field: str, got: str, rule: str, *, why: str, fix: str) -> ArgumentError:
    return ArgumentError(HEADLINE, [Violation(field=field, got=got, rule=rule, why=why, fix=fix)])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """What follows from the shapes, strides and types of a call, whatever its addresses."""

    kernel: api.Kernel
    shape: tuple[int, ...]  # of a new result with the padding of its rows
    n: int | None  # columns of the result, where its rows are padded
    d_type: str
    copies: tuple[str, ...]  # operands to copy so that K is contiguous
    finish: Finish | None = None
    halves: tuple[int, ...] | None = None  # shape of a transposed b with two matrices


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

    def find(self, a: object, b: object, given: Epilogue | None, *rest: object) -> _Choice | None:
        try:
            return self._made[self._key(a, b, given, rest)]
        except KeyError:
            return None

    def _key(
        self, a: object, b: object, given: Epilogue | None, rest: tuple[object, ...]
    ) -> tuple[object, ...]:
        """KeyError where an array is of a type not met before."""
        of = self.layout_of
        if given is None:
            return of[type(a)](a), of[type(b)](b), *rest
        return of[type(a)](a), of[type(b)](b), *rest, *given.key(of)

    def remember(
        self, choice: _Choice, a: object, b: object, given: Epilogue | None, *rest: object
    ) -> None:
        """Keep a choice, if all arrays have a layout that is cheap to read."""
        arrays = [a, b, *(given.arrays().values() if given is not None else ())]
        frameworks = {type(x): framework_of("operand", x) for x in arrays}
        if not all(framework in _LAYOUTS for framework in frameworks.values()):
            return
        with self._lock:
            self.layout_of.update({kind: _LAYOUTS[name] for kind, name in frameworks.items()})
            if len(self._made) >= CHOICES_KEPT:
                self._made.clear()
            self._made[self._key(a, b, given, rest)] = choice


CHOICES = _Choices()


def _choice(
    a: object,
    b: object,
    out: object,
    out_dtype: str | None,
    config: GemmConfig | None,
    precision: str | None,
    transpose: str | None,
    given: Epilogue | None,
) -> _Choice:
    """The checked choice for a call."""
    rest = (
        out_dtype if out is None else getattr(out, "dtype", None), config, precision, transpose,
    )  # fmt: skip
    known = CHOICES.find(a, b, given, *rest)
    if known is not None:
        return known
    a_meta, b_meta = _meta("a", a), _meta("b", b)
    d_type = _meta("out", out).dtype if out is not None else out_dtype and _name(out_dtype)
    asked = product(a_meta, b_meta, d_type, precision=precision, transpose=transpose)
    finish = None
    if given is not None:
        metas = {name: _meta(name, x) for name, x in given.arrays().items()}
        asked, finish = finished(asked, given, metas, transpose)
    choice = _Choice(
        kernel=_kernel(asked, config),
        shape=asked.padded_shape,
        n=asked.n if asked.n != asked.padded_n else None,
        d_type=asked.d_type,
        copies=asked.copies,
        finish=finish,
        halves=asked.halves,
    )
    CHOICES.remember(choice, a, b, given, *rest)
    return choice


@lru_cache(maxsize=512)
def _kernel(asked: Product, config: GemmConfig | None) -> api.Kernel:
    """The kernel for a shape. Shapes that lead to one config share one kernel."""
    if config is None:
        shape = (asked.m, asked.n, asked.k)
        best = ranking(asked.problem, *shape, batches=asked.batches)[0]
        debug.chosen(f"for D [{asked.m}, {asked.n}] with K = {asked.k}: {best.explain()}")
        config = best.config
    return _kernel_of(asked.problem, config)


@lru_cache(maxsize=128)
def _kernel_of(problem: GemmProblem, config: GemmConfig) -> api.Kernel:
    return api.kernel("gemm", **asdict(problem), **asdict(config))


def _name(spelling: str) -> str:
    """The canonical name of a dtype; one that is unknown is left for `_require` to refuse."""
    try:
        return dtype_row(spelling).name
    except KeyError:
        return spelling


def _halved(b: object, shape: tuple[int, ...]) -> object:
    """[2 N, K] described as [2, N, K]."""
    ref = borrow("b", b)
    *lead, rows, k = ref.meta.strides
    strides = (*lead, rows * shape[-2], rows, k)
    return replace(ref, meta=replace(ref.meta, shape=shape, strides=strides))


def _meta(name: str, x: object) -> ArrayMeta:
    return borrow(name, x, stream=None if device_of(name, x) == "cpu" else LEGACY).meta


def _transposed(b: Any, stream: int | None = None) -> Any:
    """[K, N] seen as [N, K]: a view of the framework's own, or the same memory described anew."""
    if type(b) in CHOICES.layout_of:
        return b.T if b.ndim == 2 else b.swapaxes(-1, -2)
    ref = borrow("b", b, stream=stream)
    *lead, k, n = range(len(ref.meta.shape))
    order = (*lead, n, k)
    shape, strides = ([values[i] for i in order] for values in (ref.meta.shape, ref.meta.strides))
    return replace(ref, meta=replace(ref.meta, shape=tuple(shape), strides=tuple(strides)))
