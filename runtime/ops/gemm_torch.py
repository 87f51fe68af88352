"""`ops.gemm` as operators of torch, so that its compiler and its autograd know them.

    ptxgen::gemm(a, b, out_dtype=None, config="", backend=None, precision=None, transpose=None)
        -> Tensor                        a @ b
    ptxgen::gemm_out(a, b, out, config="", backend=None, precision=None, transpose=None)
        -> ()                            the same into `out`

`ops.gemm` calls them inside torch.compile and where a gradient is asked for; nobody else needs to.
Their fake kernels say what comes out (shape, strides, type) and refuse what the real ones would, so
that torch.compile traces through a call without running it. Dynamo imports this module when it
first traces a call; it registers the operators once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ptxgen.configs.base import from_text, options, spell
from ptxgen.configs.gemm import GemmConfig
from ptxgen.errors import ArgumentError, Violation
from ptxgen.isa.dtypes import dtype as dtype_row
from ptxgen.kernels.registry import parse_reference
from ptxgen.spec import ArrayMeta
from runtime.ops import gemm_backward
from runtime.ops.gemm import compute
from runtime.ops.gemm_rules import padded_columns, product

_FIELDS = tuple((name, field.default) for name, field in options(GemmConfig).items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Operators:
    """The two operators, callable like functions of torch."""

    gemm: Callable[..., Any]
    gemm_out: Callable[..., Any]


def call(
    a: Any,
    b: Any,
    *,
    out: Any,
    config: GemmConfig | None,
    out_dtype: str | None,
    precision: str | None,
    transpose: str | None,
    stream: object,
    backend: object,
) -> Any:
    """`ops.gemm` through the operators."""
    if stream is not None or not (backend is None or isinstance(backend, str)):
        field, got = ("stream", stream) if stream is not None else ("backend", backend)
        raise _refused(
            field,
            type(got).__name__,
            "must be left out under torch.compile and where a gradient is asked for",
            why="an operator of torch takes tensors and text, and runs on torch's current stream",
            fix="make the stream current: `with torch.cuda.stream(...)`",
        )
    text = "" if config is None else _spelled(config)
    wants = a.requires_grad or b.requires_grad
    if out is None:
        if wants and torch().is_grad_enabled():
            gemm_backward.require_gradient(a, b, precision, transpose)
        return OPERATORS.gemm(a, b, out_dtype, text, backend, precision, transpose)
    if wants:
        raise _refused(
            "out",
            "a tensor, while an input asks for a gradient",
            "must be left out",
            why="what is written into out= has no gradient, in torch too",
            fix="leave out= away, or compute under torch.no_grad()",
        )
    OPERATORS.gemm_out(a, b, out, text, backend, precision, transpose)
    return out


def _spelled(config: GemmConfig) -> str:
    """A config as text, which is all that an operator can be given."""
    values = [(name, getattr(config, name), default) for name, default in _FIELDS]
    return ",".join([f"{name}={spell(x)}" for name, x, default in values if x != default])


@lru_cache(maxsize=128)
def _config(text: str) -> GemmConfig | None:
    return from_text(GemmConfig, parse_reference(f"gemm:{text}")[1]) if text else None


def torch() -> Any:
    """torch: whoever imports this module has tensors already."""
    return sys.modules["torch"]


def _name(spelling: str) -> str:
    """The canonical name of a dtype; one that is unknown is left for the rules to refuse."""
    try:
        return dtype_row(spelling).name
    except KeyError:
        return spelling


def _meta(x: Any) -> ArrayMeta:
    """What the rules ask of a tensor; its sizes may be symbols."""
    return ArrayMeta(
        shape=tuple(x.shape),
        strides=tuple(stride * x.element_size() for stride in x.stride()),
        dtype=_name(str(x.dtype).removeprefix("torch.")),
    )


def _refused(field: str, got: str, rule: str, *, why: str, fix: str) -> ArgumentError:
    violation = Violation(field=field, got=got, rule=rule, why=why, fix=fix)
    return ArgumentError("gemm(a, b): cannot become an operator of torch", [violation])


def _gemm(
    a: Any,
    b: Any,
    out_dtype: str | None = None,
    config: str = "",
    backend: str | None = None,
    precision: str | None = None,
    transpose: str | None = None,
) -> Any:
    return compute(
        a, b, out_dtype=out_dtype, config=_config(config), backend=backend, precision=precision,
        transpose=transpose,
    )  # fmt: skip


def _gemm_out(
    a: Any,
    b: Any,
    out: Any,
    config: str = "",
    backend: str | None = None,
    precision: str | None = None,
    transpose: str | None = None,
) -> None:
    compute(
        a, b, out=out, config=_config(config), backend=backend, precision=precision,
        transpose=transpose,
    )  # fmt: skip


def _fake_gemm(
    a: Any,
    b: Any,
    out_dtype: str | None = None,
    config: str = "",
    backend: str | None = None,
    precision: str | None = None,
    transpose: str | None = None,
) -> Any:
    d_type = out_dtype and _name(out_dtype)
    asked = product(_meta(a), _meta(b), d_type, precision=precision, transpose=transpose)
    pitch = padded_columns(b.shape[-1], asked.d_type) or 1
    shape = (*a.shape[:-1], b.shape[-1])
    strides = (shape[-2] * pitch, pitch, 1)[-len(shape) :]
    dtype = getattr(torch(), dtype_row(asked.d_type).numpy)
    return a.new_empty_strided(shape, strides, dtype=dtype)


def _fake_gemm_out(
    a: Any,
    b: Any,
    out: Any,
    config: str = "",
    backend: str | None = None,
    precision: str | None = None,
    transpose: str | None = None,
) -> None:
    product(_meta(a), _meta(b), _meta(out).dtype, precision=precision, transpose=transpose)


def _register() -> Operators:
    library, exact = torch().library, torch().Tag.needs_exact_strides  # they tell operand order
    library.custom_op(
        "ptxgen::gemm",
        _gemm,
        mutates_args=(),
        schema='(Tensor a, Tensor b, str? out_dtype=None, str config="", str? backend=None, '
        "str? precision=None, str? transpose=None) -> Tensor",
        tags=(exact,),
    )
    library.custom_op(
        "ptxgen::gemm_out",
        _gemm_out,
        mutates_args=("out",),
        schema='(Tensor a, Tensor b, Tensor(c!) out, str config="", str? backend=None, '
        "str? precision=None, str? transpose=None) -> ()",
        tags=(exact,),
    )
    library.register_fake("ptxgen::gemm", _fake_gemm)
    library.register_fake("ptxgen::gemm_out", _fake_gemm_out)
    library.register_autograd(
        "ptxgen::gemm", gemm_backward.gradients, setup_context=gemm_backward.remember
    )
    namespace = torch().ops.ptxgen
    return Operators(gemm=namespace.gemm, gemm_out=namespace.gemm_out)


OPERATORS = _register()
