"""From an array and a kernel parameter to a tensor map."""

from __future__ import annotations

from collections.abc import Iterator

from ptxgen.errors import TensorMapError, Violation
from ptxgen.isa.dtypes import dtype as dtype_row
from ptxgen.layout.tensor_map.rules import check, violations
from ptxgen.layout.tensor_map.spec import (
    MAP_TYPES,
    PITCH_BYTES,
    TensorMapSpec,
    find_map_type,
    map_type,
)
from ptxgen.spec import ArrayMeta, TensorMapParam


def from_array(
    array: ArrayMeta, param: TensorMapParam, *, axis_names: tuple[str, ...] = ()
) -> TensorMapSpec:
    """The checked map of an array for one kernel parameter.

    Map axis i walks array axis `param.axes[i]`; array axes that the map leaves out must have extent
    1. The stride of an axis of extent 1 is never used, so any value will do there and a legal one
    is put in. `axis_names` (one for each array axis, e.g. ("M", "N")) only make messages readable.
    Raises TensorMapError with every broken rule; `param.arg` names the array.
    """
    broken = tuple(_binding_violations(array, param))
    if broken:
        raise TensorMapError(f"{param.name} cannot map {param.arg}", broken)
    names = _walked(axis_names, param)
    spec = check(_unchecked(array, param), name=param.arg, axis_names=names)
    if ragged := tuple(_ragged_rows(array, param)):
        raise TensorMapError(f"{param.name} cannot map {param.arg}", ragged)
    return spec


def array_violations(
    array: ArrayMeta, param: TensorMapParam, *, axis_names: tuple[str, ...] = ()
) -> tuple[Violation, ...]:
    """Every rule that keeps `from_array` from mapping the array; empty means that it will.

    For a planner that reports what is wrong with all its arrays at once.
    """
    broken = tuple(_binding_violations(array, param))
    names = _walked(axis_names, param)
    broken = broken or violations(_unchecked(array, param), name=param.arg, axis_names=names)
    return broken or tuple(_ragged_rows(array, param))


def _walked(axis_names: tuple[str, ...], param: TensorMapParam) -> tuple[str, ...]:
    return tuple(axis_names[axis] for axis in param.axes) if axis_names else ()


def _unchecked(array: ArrayMeta, param: TensorMapParam) -> TensorMapSpec:
    shape = tuple(array.shape[axis] for axis in param.axes)
    strides = tuple(array.strides[axis] for axis in param.axes)
    return TensorMapSpec(
        dtype=param.dtype,
        address=array.address,
        shape=shape,
        strides=_legal_strides(shape, strides, map_type(param.dtype).bytes),
        box=param.box,
        swizzle=param.swizzle,
        l2=param.l2,
        fill=param.fill,
    )


def _legal_strides(shape: tuple[int, ...], strides: tuple[int, ...], es: int) -> tuple[int, ...]:
    """The strides with those of extent-1 axes, which nothing walks, replaced by legal ones."""
    legal = [PITCH_BYTES if n == 1 else s for n, s in zip(shape, strides, strict=True)]
    if shape[-1] == 1:
        legal[-1] = es
    return tuple(legal)


def _binding_violations(array: ArrayMeta, param: TensorMapParam) -> Iterator[Violation]:
    """What is wrong between the array and the parameter, before any rule of the map itself."""
    rank = len(array.shape)
    if any(axis >= rank for axis in param.axes):
        yield Violation(
            field=f"{param.arg}.ndim",
            got=str(rank),
            rule=f"the map walks array axes {list(param.axes)}",
            why=f"{param.name} was generated for arrays of at least {max(param.axes) + 1} axes",
            fix="pass an array of the rank that the kernel was generated for",
        )
        return
    if not _same_type(array.dtype, param.dtype):
        yield Violation(
            field=f"{param.arg}.dtype",
            got=array.dtype,
            rule=f"must be {param.dtype}",
            why=f"{param.name} was generated for {param.dtype} elements",
            fix=f"convert the array, or generate the kernel for {array.dtype}",
        )
    for axis, (extent, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        if axis not in param.axes and extent != 1:
            yield Violation(
                field=f"{param.arg}.shape[{axis}]",
                got=str(extent),
                rule="must be 1",
                why=f"{param.name} does not walk axis {axis} (it walks {list(param.axes)})",
                fix="index that axis away, or use a kernel that walks it",
            )
        elif stride == 0 and extent > 1 and array.size:
            yield Violation(
                field=f"{param.arg}.strides[{axis}]",
                got="0 B",
                rule="must not be 0 on an axis of more than one element",
                why="a broadcast axis repeats one address; a store to it would race with itself",
                fix="pass a contiguous copy",
            )


def _ragged_rows(array: ArrayMeta, param: TensorMapParam) -> Iterator[Violation]:
    """A store writes whole 16-byte units: what lies behind a row that ends inside of one, too."""
    columns = array.shape[param.axes[-1]]
    row = columns * map_type(param.dtype).bytes
    if param.use == "load" or array.padded or not array.size or row % PITCH_BYTES == 0:
        return
    whole = -(-row // PITCH_BYTES) * PITCH_BYTES
    yield Violation(
        field=f"{param.arg}.shape[{param.axes[-1]}]",
        got=f"{columns} elements, {row} B",
        rule=f"rows of a result must be a multiple of {PITCH_BYTES} B",
        why=f"TMA stores units of {PITCH_BYTES} B: it would write {whole - row} B behind each row",
        fix=f"pass rows of {whole // map_type(param.dtype).bytes} elements; or, if what lies "
        "behind them may be overwritten, runtime.padded(x)",
    )


def _same_type(given: str, wanted: str) -> bool:
    """Whether an array's dtype suits: the same dtype, or for a map type, any of its width."""
    element = find_map_type(given)
    if wanted in MAP_TYPES:
        return element is not None and element.bytes == MAP_TYPES[wanted].bytes
    return element is not None and dtype_row(given) == dtype_row(wanted)
