"""Arrays to fp8 with scales, as `ops.gemm` takes them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ptxgen import api
from ptxgen.configs.quantize import OUTPUTS
from ptxgen.errors import ArgumentError, Violation
from ptxgen.isa.dtypes import dtype as dtype_row
from runtime.allocate import empty_like
from runtime.backend import Backend
from runtime.buffers import borrow, device_of, framework_of
from runtime.launcher import launch
from runtime.ops.gemm_rules import padded_columns
from runtime.stream import LEGACY

FRAMEWORKS = ("numpy", "torch", "cupy")  # whose arrays have views and can be filled in place
HEADLINE = "quantize_fp8(x): cannot be rounded"


def quantize_fp8(
    x: object,
    dtype: str = "e4m3",
    *,
    scale: object = None,
    axis: int | None = None,
    backend: str | Backend | None = None,
) -> tuple[object, object]:
    """(q, scale): `x` [M, K] in fp8, so that x is about q times scale.

    With `axis` None one f32 scale [1] holds for all of x; with `axis` -1 each row, along K, has its
    own: scale [M]. A `scale` that is given is used (and returned); else it is found:

        scale = max(max |x| * (1 / L), 2^-126),   L = 448 of e4m3, 57344 of e5m2
        q = x * (1 / scale),                      in f32, then to nearest even in fp8

    What is beyond L in magnitude becomes L, infinities too; NaN stays NaN, and makes a scale that
    is found NaN, and with it all that it divides. All of x is 0: scale is 2^-126. Results are the
    same bit by bit in every run.

    `x` is bf16, f16 or f32, contiguous along K with rows at 16 bytes; of NumPy, torch or CuPy. The
    rows of q are padded to 16 bytes, so q is a view where K is no multiple of 16. It runs on the
    framework's current stream. For weights w [N, K] of `gemm(a, w.T)`, quantize w itself.

    ArgumentError lists everything that is wrong with the arguments.
    """
    array: Any = x
    name = _checked(array, dtype, axis)
    m, k = array.shape
    kinds = {"dtype": name, "out_dtype": dtype_row(dtype).name}
    whole: Any = empty_like((m, padded_columns(k, kinds["out_dtype"])), kinds["out_dtype"], x)
    q = whole[:, :k]
    rows = "tensor" if axis is None else "row"
    if scale is not None:
        given = _kernel(**kinds, scales=f"{rows}_given")
        launch(given, x=x, q=q, scale=scale, backend=backend)
        return q, scale
    found: Any = empty_like((1,) if axis is None else (m,), "f32", x)
    if axis is not None:
        launch(_kernel(**kinds, scales="row"), x=x, q=q, scale=found, backend=backend)
        return q, found
    amax: Any = empty_like((1,), "f32", x)
    amax[...] = 0
    launch(_kernel(dtype=name, out_dtype="e4m3", scales="none"), x=x, amax=amax, backend=backend)
    launch(_kernel(**kinds, scales="tensor"), x=x, q=q, scale=found, amax=amax, backend=backend)
    return q, found


@lru_cache(maxsize=32)
def _kernel(dtype: str, out_dtype: str, scales: str) -> api.Kernel:
    return api.kernel("quantize", dtype=dtype, out_dtype=out_dtype, scales=scales)


def _checked(x: Any, dtype: str, axis: int | None) -> str:
    """The type of x, once nothing is wrong that a launch would not see."""
    framework = framework_of("x", x)
    broken: list[Violation] = []
    if framework not in FRAMEWORKS:
        broken.append(
            Violation(
                field="x",
                got=f"an array of {framework}",
                rule=f"must be one of {', '.join(FRAMEWORKS)}",
                why="the rows of q are padded, so q is a view",
                fix="launch the kernel `quantize` into arrays of your own",
            )
        )
        raise ArgumentError(HEADLINE, broken)
    meta = borrow("x", x, stream=None if device_of("x", x) == "cpu" else LEGACY).meta
    if len(meta.shape) != 2:
        broken.append(
            Violation(
                field="x",
                got=f"shape {list(meta.shape)}",
                rule="must have two axes, [M, K]",
                fix="reshape it to rows",
            )
        )
    elif axis is None and not meta.size:
        broken.append(
            Violation(
                field="x",
                got=f"shape {list(meta.shape)}",
                rule="must have elements with axis=None",
                why="the scale follows from them",
            )
        )
    if axis not in (None, -1, 1):
        broken.append(
            Violation(
                field="axis",
                got=str(axis),
                rule="must be None or -1",
                why="tensor cores sum along K: a scale may belong to all, or to a row along K",
                fix="quantize the transpose, with K last" if axis in (0, -2) else "use axis=-1",
            )
        )
    if not isinstance(dtype, str) or _name(dtype) not in OUTPUTS:
        broken.append(
            Violation(field="dtype", got=repr(dtype), rule=f"must be {' or '.join(OUTPUTS)}")
        )
    if meta.dtype not in ("bf16", "f16", "f32"):
        broken.append(
            Violation(field="x", got=meta.dtype, rule="must be bf16, f16 or f32", fix="convert it")
        )
    if broken:
        raise ArgumentError(HEADLINE, broken)
    return meta.dtype


def _name(spelling: str) -> str:
    try:
        return dtype_row(spelling).name
    except KeyError:
        return spelling
