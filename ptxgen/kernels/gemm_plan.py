"""From arrays to a launch: which shapes a GEMM takes, its grid, and its scalars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil

from ptxgen.configs.gemm import Gemm
from ptxgen.errors import ArgumentError, Violation
from ptxgen.isa.dtypes import dtype
from ptxgen.kernels.base import Planner
from ptxgen.layout import tensor_map
from ptxgen.models.waves import Waves
from ptxgen.spec import (
    ArrayMeta,
    DeviceLimits,
    Dim3,
    KernelSpec,
    LaunchPlan,
    Scalar,
    Step,
    TensorMapParam,
)

AXES = {"a": ("M", "K"), "b": ("N", "K"), "d": ("M", "N")}
COORDINATE_LIMIT = 2**31  # TMA coordinates are s32
TILE_LIMIT = 2**31  # a u32 tile index plus the number of clusters must not wrap


def planner(g: Gemm, spec: KernelSpec) -> Planner:
    """The plan function of one kernel: pure, and free of everything but numbers."""

    def plan(
        args: Mapping[str, ArrayMeta], scalars: Mapping[str, Scalar], device: DeviceLimits
    ) -> LaunchPlan:
        """Arguments a [M,K], b [N,K], d [M,N]. Raises ArgumentError with every violation."""
        broken = tuple(_violations(args, scalars, spec))
        if broken:
            raise ArgumentError(f"{spec.entry}: arguments cannot be used", broken)
        (m, k), n = args["a"].shape, args["b"].shape[0]
        if m == 0 or n == 0:
            return LaunchPlan(steps=(), notes=(f"D is [{m}, {n}]: empty",))
        waves = Waves(
            m_tiles=ceil(m / (g.tile_m * g.cluster_m)),
            n_tiles=ceil(n / (g.tile_n * g.cluster_n)),
            cluster_size=g.cluster_size,
            resident_ctas=device.ctas,
        )
        if waves.tiles >= TILE_LIMIT:
            raise ArgumentError(
                f"{spec.entry}: D is too large",
                [
                    Violation(
                        field="d", got=f"[{m:,}, {n:,}], {waves.tiles:,} cluster tiles",
                        rule=f"must have fewer than {TILE_LIMIT:,}",
                        why="the kernel counts tiles in 32 bits",
                        fix="use a larger tile, or multiply it in parts",
                    )
                ],
            )  # fmt: skip
        group = waves.raster_group(g.tile_m * g.cluster_m, g.tile_n * g.cluster_n)
        step = Step(
            entry=spec.entry,
            grid=Dim3(waves.grid_ctas),
            scalars={
                "m_tiles": waves.m_tiles,
                "n_tiles": waves.n_tiles,
                "k_tiles": ceil(k / g.tile_k),
                "raster_group": group,
            },
        )
        note = (
            f"{waves.tiles} cluster tiles on {waves.clusters} clusters: {waves.waves} waves, "
            f"{waves.efficiency:.0%} of the slots busy"
        )
        return LaunchPlan(steps=(step,), notes=(note,))

    return plan


def _violations(
    args: Mapping[str, ArrayMeta], scalars: Mapping[str, Scalar], spec: KernelSpec
) -> Iterator[Violation]:
    for name in scalars:
        yield Violation(
            field=name, got=str(scalars[name]), rule="is computed by the plan, not an argument",
            fix="leave it out",
        )  # fmt: skip
    missing = [name for name in AXES if name not in args]
    for name in missing:
        yield Violation(field=name, got="nothing", rule=f"is required, [{', '.join(AXES[name])}]")
    rank_ok = not missing
    for name, axes in AXES.items():
        if name in args and len(args[name].shape) != 2:
            rank_ok = False
            yield Violation(
                field=name,
                got=f"shape {args[name].shape}",
                rule=f"must have rank 2: [{', '.join(axes)}]",
            )
    if not rank_ok:
        return
    yield from _extents(args)
    for param in spec.params:
        if isinstance(param, TensorMapParam):
            yield from _operand(param, args[param.arg])


def _extents(args: Mapping[str, ArrayMeta]) -> Iterator[Violation]:
    """Every letter names one extent; the first array that has it decides."""
    extents: dict[str, tuple[str, int]] = {}
    for name, axes in AXES.items():
        for axis, size in zip(axes, args[name].shape, strict=True):
            owner, want = extents.setdefault(axis, (name, size))
            if size != want:
                shapes = ", ".join(f"{n} {args[n].shape}" for n in AXES)
                yield Violation(
                    field=f"{axis} of {name}", got=str(size), rule=f"must be {want}, as in {owner}",
                    why=f"a is [M, K], b is [N, K], d is [M, N]; got {shapes}",
                )  # fmt: skip
            if size >= COORDINATE_LIMIT:
                yield Violation(
                    field=f"{axis} of {name}", got=f"{size:,}",
                    rule=f"must be below {COORDINATE_LIMIT:,}",
                    why="TMA coordinates are signed 32-bit",
                )  # fmt: skip


def _operand(param: TensorMapParam, meta: ArrayMeta) -> Iterator[Violation]:
    """Type, order and pitch of one array."""
    want = dtype(param.dtype)
    if meta.dtype != want.name:
        field = "out_dtype" if param.use == "store" else "dtype"
        yield Violation(
            field=param.arg, got=meta.dtype, rule=f"must be {want.name}",
            why=f"the kernel was generated for {field}={want.name}",
            fix=f"convert it, or make the kernel with {field}={meta.dtype}",
        )  # fmt: skip
        return
    if meta.size == 0:
        return  # nothing is loaded from it, so it needs no tensor map
    axes = rows, columns = AXES[param.arg]
    row_stride, column_stride = meta.strides
    if meta.shape[1] > 1 and column_stride not in (0, want.bytes):
        yield Violation(
            field=param.arg,
            got=f"strides {meta.strides} bytes for shape {meta.shape}",
            rule=f"must be row-major [{rows}, {columns}]: "
            f"{want.bytes} bytes from one {columns} to the next",
            why="it is MN-major (transposed), which this kernel does not read yet"
            if row_stride == want.bytes
            else "TMA needs a contiguous inner axis",
            fix=f"pass a copy with contiguous {columns}",
        )
        return
    yield from tensor_map.array_violations(meta, param, axis_names=axes)
