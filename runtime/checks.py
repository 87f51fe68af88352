"""Rules that hold for every launch, whatever the kernel computes. All violations are reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ptxgen.errors import ArgumentError, Violation
from ptxgen.isa import arch
from ptxgen.isa.dtypes import dtype
from ptxgen.spec import (
    ArrayMeta,
    Dim3,
    KernelSpec,
    PointerParam,
    ScalarParam,
    TensorMapParam,
)
from runtime.buffers import overlap
from runtime.packing import scalar_bytes

PARAM_BYTES_MAX = 32_764  # from PTX 8.1
PARAM_BYTES_MAX_BEFORE_8_1 = 4_096
BLOCK_Z_MAX = 64


def array_violations(
    spec: KernelSpec, metas: Mapping[str, ArrayMeta], *, foreign: bool = False
) -> Iterator[Violation]:
    """Element type, alignment and writability of every argument, and overlap between them.

    A `foreign` kernel may mean to share addresses, between arrays or elements: that is its affair.
    """
    for param in spec.params:
        if isinstance(param, (TensorMapParam, PointerParam)) and param.arg in metas:
            yield from _element_type(param, metas[param.arg])
        if isinstance(param, PointerParam) and param.arg in metas:
            yield from _alignment(param, metas[param.arg])
    outputs = [n for n in spec.arguments() if n in metas and spec.access(n) != "read"]
    by_pointer = {p.arg for p in spec.params if isinstance(p, PointerParam)}
    for name in outputs:
        yield from _writable(name, metas[name])
        if name in by_pointer and not foreign:  # the rules of tensor maps refuse stride 0 anyway
            yield from _distinct(name, metas[name])
    if not foreign:
        yield from _overlaps(spec, outputs, metas)


def _element_type(param: TensorMapParam | PointerParam, meta: ArrayMeta) -> Iterator[Violation]:
    try:
        declared = dtype(param.dtype)
    except KeyError:
        return  # "any", or a type of the tensor-map hardware's own, e.g. TFLOAT32
    if meta.dtype == declared.name:
        return
    same_width = dtype(meta.dtype).bits == declared.bits
    view = f", or if it does hold {declared.name}, view it as that" if same_width else ""
    yield Violation(
        field=param.arg,
        got=meta.dtype,
        rule=f"must be {declared.name}",
        fix=f"convert it to {declared.name}{view}, or make the kernel for {meta.dtype}",
    )


def _alignment(param: PointerParam, meta: ArrayMeta) -> Iterator[Violation]:
    off = meta.address % param.align
    if off and meta.size:
        yield Violation(
            field=param.arg,
            got=f"address 0x{meta.address:x} (mod {param.align} = {off})",
            rule=f"must be aligned to {param.align} B",
            why="the kernel loads vectors; usually a view that starts inside its storage",
            fix="pass a copy, or a view that starts on a multiple",
        )


def _writable(name: str, meta: ArrayMeta) -> Iterator[Violation]:
    if not meta.writable:
        yield Violation(
            field=name,
            got="a read-only array",
            rule="must be writable: the kernel stores to it",
            fix="pass a writable copy (JAX arrays are immutable: let the operation allocate it)",
        )


def _distinct(name: str, meta: ArrayMeta) -> Iterator[Violation]:
    for axis, (extent, stride) in enumerate(zip(meta.shape, meta.strides, strict=True)):
        if stride == 0 and extent > 1 and meta.size:
            yield Violation(
                field=name,
                got=f"stride 0 on axis {axis} of extent {extent}",
                rule="must give every element its own address",
                why="a broadcast array repeats one address, and stores to it would race",
                fix="pass a contiguous array",
            )


def _overlaps(
    spec: KernelSpec, outputs: list[str], metas: Mapping[str, ArrayMeta]
) -> Iterator[Violation]:
    in_place = {
        (p.in_place, p.arg)
        for p in spec.params
        if isinstance(p, PointerParam) and p.in_place in metas and p.arg in metas
        and _same(metas[p.arg], metas[p.in_place])
    }  # fmt: skip
    for index, name in enumerate(outputs):
        others = [n for n in metas if n != name and n not in outputs[: index + 1]]
        for other in others:
            if (name, other) not in in_place and overlap(metas[name], metas[other]):
                yield Violation(
                    field=name,
                    got=_where(metas[name]),
                    rule=f"must not overlap {other}, {_where(metas[other])}",
                    why="CTAs write one while others still read or write the other",
                    fix=f"pass a separate array for {name}",
                )


def _same(a: ArrayMeta, b: ArrayMeta) -> bool:
    return (a.address, a.shape, a.strides, a.dtype) == (b.address, b.shape, b.strides, b.dtype)


def _where(meta: ArrayMeta) -> str:
    return f"{meta.dtype} {list(meta.shape)} at 0x{meta.address:x}"


def grid_violations(grid: Dim3, cluster: Dim3) -> Iterator[Violation]:
    """Sign, limit and cluster divisibility of a grid, axis by axis. A zero axis is no violation."""
    limits = (arch.GRID_X_MAX, arch.GRID_YZ_MAX, arch.GRID_YZ_MAX)
    for axis, count, limit, group in zip("xyz", grid, limits, cluster, strict=True):
        if not 0 <= count <= limit:
            yield Violation(
                field=f"grid.{axis}",
                got=f"{count:,}",
                rule=f"must be 0..{limit:,}",
                why="only x reaches 2^31 - 1",
                fix="move the large count to x, or use a persistent grid",
            )
        elif count % group:
            yield Violation(
                field=f"grid.{axis}",
                got=f"{count:,} CTAs",
                rule=f"must be a multiple of cluster.{axis}={group}",
                why="grids are counted in CTAs here, and clusters are launched whole",
                fix=f"use {-(-count // group) * group:,}",
            )


def spec_violations(spec: KernelSpec) -> Iterator[Violation]:
    """What no launch of this kernel could satisfy: block, cluster, parameter bytes, target."""
    if not 1 <= spec.block.size <= arch.THREADS_PER_CTA or spec.block.z > BLOCK_Z_MAX:
        yield Violation(
            field="block",
            got=str(spec.block),
            rule=f"must have 1..{arch.THREADS_PER_CTA:,} threads and z <= {BLOCK_Z_MAX}",
        )
    if not 1 <= spec.cluster.size <= arch.CLUSTER_MAX:
        yield Violation(
            field="cluster",
            got=f"{spec.cluster} = {spec.cluster.size} CTAs",
            rule=f"must have 1..{arch.CLUSTER_MAX} CTAs",
            why="more than that does not share one part of the chip",
        )
    limit = PARAM_BYTES_MAX if spec.ptx_version >= (8, 1) else PARAM_BYTES_MAX_BEFORE_8_1
    total = param_bytes(spec)
    if total > limit:
        major, minor = spec.ptx_version
        yield Violation(
            field="params",
            got=f"{total:,} B in {len(spec.params)} parameters",
            rule=f"must be at most {limit:,} B with .version {major}.{minor}",
            fix="pass an array of tensor maps in memory, or raise .version to 8.1",
        )


def require_parameters(spec: KernelSpec, declared: Iterable[tuple[str, int]]) -> None:
    """ArgumentError unless `spec` lists the parameters that the entry declares: (name, bytes) each.

    A GPU takes values by their place: another order would hand each to a neighbour, unnoticed.
    """
    wanted = list(declared)
    listed = [(param.name, _param_layout(param)[0]) for param in spec.params]
    if listed == wanted:
        return
    places = enumerate(zip(listed, wanted, strict=False))
    at = next((i for i, (a, b) in places if a != b), min(len(listed), len(wanted)))
    raise ArgumentError(
        f"{spec.entry}: cannot be launched",
        [
            Violation(
                field=f"spec.params[{at}]",
                got=_declared(listed, at),
                rule=f"must be {_declared(wanted, at)}, as the PTX declares it",
                why="a launch passes values by their place in the entry's list of .param",
                fix="list the parameters in spec.params in the order of the entry",
            )
        ],
    )


def _declared(params: list[tuple[str, int]], at: int) -> str:
    return f"{params[at][0]} of {params[at][1]} B" if at < len(params) else "no parameter"


def param_bytes(spec: KernelSpec) -> int:
    """Bytes of the `.param` space: each parameter at a multiple of its alignment."""
    offset = 0
    for param in spec.params:
        size, align = _param_layout(param)
        offset = -(-offset // align) * align + size
    return offset


def _param_layout(param: TensorMapParam | PointerParam | ScalarParam) -> tuple[int, int]:
    if isinstance(param, TensorMapParam):
        return arch.TENSOR_MAP_BYTES, 64
    if isinstance(param, PointerParam):
        return 8, 8
    size = scalar_bytes(param.ptx_type)
    return size, min(size, 16) if size & (size - 1) == 0 else 1
