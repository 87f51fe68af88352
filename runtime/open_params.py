"""What foreign PTX leaves open, closed by what a launch passes.

    64 bits without .ptr    an array's address, or a number: PTX declares both alike
    128 aligned bytes       a tensor map of an array, or any 128 bytes

A spec of ours has no such parameters and passes through unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ptxgen.errors import ArgumentError, Violation
from ptxgen.isa.arch import TENSOR_MAP_BYTES
from ptxgen.spec import KernelSpec, Param, PointerParam, ScalarParam, TensorMapParam
from runtime.tensor_maps import TensorMap


def close(
    spec: KernelSpec, values: Mapping[str, object]
) -> tuple[KernelSpec, Mapping[str, object]]:
    """The spec of one call, and its values with the array in place of every tensor map.

    Raises ArgumentError for tensor-map parameters that were given something else.
    """
    if not any(isinstance(p, (PointerParam, TensorMapParam)) and p.is_open for p in spec.params):
        return spec, values
    params: list[Param] = []
    plain = dict(values)
    broken: list[Violation] = []
    for param in spec.params:
        value = values.get(param.name)
        if isinstance(param, PointerParam) and param.is_open:
            params.append(_word(param, value))
        elif isinstance(param, TensorMapParam) and param.is_open:
            if isinstance(value, TensorMap):
                params.append(value.param(param.name, param.use))
                plain[param.name] = value.array
            elif isinstance(value, (bytes, bytearray)):
                params.append(ScalarParam(name=param.name, ptx_type=f"b8[{TENSOR_MAP_BYTES}]"))
            else:
                broken.append(_no_map(param, value))
        else:
            params.append(param)
    if broken:
        raise ArgumentError(f"{spec.entry}: wrong arguments", broken)
    return replace(spec, params=tuple(params)), plain


def _word(param: PointerParam, value: object) -> PointerParam | ScalarParam:
    """A 64-bit parameter: a number is passed as such, anything else must be an array."""
    if isinstance(value, (int, float, np.generic)):
        return ScalarParam(name=param.name, ptx_type="b64")
    return param


def _no_map(param: TensorMapParam, value: object) -> Violation:
    return Violation(
        field=param.name,
        got=f"{type(value).__module__}.{type(value).__qualname__}",
        rule=f"must be a tensor map: the PTX declares {TENSOR_MAP_BYTES} aligned bytes",
        why="an array alone does not say which box a copy takes from it",
        fix=f"pass {param.name}=runtime.tensor_map(x, box=..., swizzle=...)",
    )
