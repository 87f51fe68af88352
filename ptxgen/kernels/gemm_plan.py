"""From arrays to a launch: which shapes a GEMM takes, its grid, and its scalars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil

from ptxgen.configs.gemm_shape import Gemm
from ptxgen.errors import ArgumentError, Violation
from ptxgen.isa.dtypes import dtype
from ptxgen.kernels.base import Planner
from ptxgen.kernels.gemm_finish_plan import (
    GIVEN,
    HALVES,
    finish_axes,
    finish_violations,
)
from ptxgen.kernels.gemm_pitches import (
    copied_violations,
    element_violations,
    load_cure,
    store_cure,
    with_cure,
)
from ptxgen.kernels.gemm_pointers import pointer_scalars
from ptxgen.kernels.gemm_schedule import stream_clusters, stream_scalars, stream_workspaces
from ptxgen.layout import tensor_map
from ptxgen.models.waves import Waves
from ptxgen.spec import (
    ArrayMeta,
    DeviceLimits,
    Dim3,
    KernelSpec,
    LaunchPlan,
    PointerParam,
    Scalar,
    ScalarParam,
    Step,
    TensorMapParam,
)

AXES = {"a": ("M", "K"), "b": ("N", "K"), "d": ("M", "N")}
BATCH = "batch"
COORDINATE_LIMIT = 2**31  # TMA coordinates are s32
TILE_LIMIT = 2**31  # a u32 tile index plus the number of clusters must not wrap

Axes = Mapping[str, tuple[str, ...]]


def planner(g: Gemm, spec: KernelSpec) -> Planner:
    """The plan function of one kernel: pure, and free of everything but numbers."""
    lead = (BATCH,) if g.problem.batched else ()
    axes = {name: (*lead, *letters) for name, letters in AXES.items()}
    axes |= finish_axes(g.problem, axes)

    def plan(
        args: Mapping[str, ArrayMeta], scalars: Mapping[str, Scalar], device: DeviceLimits
    ) -> LaunchPlan:
        """Arguments a [M,K], b [N,K], d [M,N]; batched ones have one more axis in front.

        Epilogues may take c, like d, a bias [N] or [M], scales, and the scalars alpha and beta; b
        of a gated problem is [2,N,K].
        Raises ArgumentError with every violation.
        """
        broken = tuple(_violations(args, scalars, spec, axes))
        if broken:
            raise ArgumentError(f"{spec.entry}: arguments cannot be used", broken)
        size = {x: n for name in axes for x, n in zip(axes[name], args[name].shape, strict=True)}
        m, n, batches = size["M"], size["N"], size.get(BATCH, 1)
        if 0 in (m, n, batches):
            return LaunchPlan(steps=(), notes=(f"D is {list(args['d'].shape)}: empty",))
        waves = waves_of(g, m, n, batches, device.ctas)
        if waves.tiles >= TILE_LIMIT:
            raise ArgumentError(f"{spec.entry}: D is too large", [_too_large(args["d"], waves)])
        clusters = stream_clusters(g, waves, ceil(size["K"] / g.tile_k))
        step = Step(
            entry=spec.entry,
            grid=Dim3(clusters * g.cluster_size),
            scalars=_scalars(g, spec, waves, args, size["K"]),
            pdl=True,  # the kernel itself waits for the grid before it
        )
        workspaces = stream_workspaces(g, clusters)
        note = (
            f"{waves.tiles} cluster tiles on {waves.clusters} clusters: {waves.waves} waves, "
            f"{waves.efficiency:.0%} of the slots busy"
        )
        return LaunchPlan(steps=(step,), workspaces=workspaces, notes=(note,))

    return plan


def waves_of(g: Gemm, m: int, n: int, batches: int, resident_ctas: int) -> Waves:
    """The cluster tiles of `batches` products D [m, n]; swapped tiles have their rows along N."""
    rows, columns = (n, m) if g.swapped else (m, n)
    return Waves(
        m_tiles=ceil(rows / (g.tile_m * g.cluster_m)),
        n_tiles=ceil(columns / (g.d_columns * g.cluster_n)),
        batches=batches,
        cluster_size=g.cluster_size,
        resident_ctas=resident_ctas,
    )


def _scalars(
    g: Gemm, spec: KernelSpec, waves: Waves, args: Mapping[str, ArrayMeta], k: int
) -> dict[str, Scalar]:
    """The values of the kernel's scalar parameters, but for those that the caller gives."""
    k_tiles = ceil(k / g.tile_k)
    values: dict[str, Scalar] = {
        "m_tiles": waves.m_tiles,
        "n_tiles": waves.n_tiles,
        "batches": waves.batches,
        "k_tiles": k_tiles,
        "k_tiles_per_cta": ceil(k_tiles / g.split_k),
        "raster_group": waves.raster_group(g.tile_m * g.cluster_m, g.tile_n * g.cluster_n),
    }
    *_, rows, columns = args["d"].shape
    values |= {"d_rows": rows, "d_columns": columns}
    values |= {name: value for name, value in pointer_scalars(args).items() if name not in values}
    values |= stream_scalars(waves.tiles, stream_clusters(g, waves, k_tiles), k_tiles)
    names = [p.name for p in spec.params if isinstance(p, ScalarParam) and p.name not in GIVEN]
    return {name: values[name] for name in names}


def _too_large(d: ArrayMeta, waves: Waves) -> Violation:
    extents = ", ".join(f"{n:,}" for n in d.shape)
    return Violation(
        field="d", got=f"[{extents}], {waves.tiles:,} cluster tiles",
        rule=f"must have fewer than {TILE_LIMIT:,}",
        why="the kernel counts tiles in 32 bits",
        fix="use a larger tile, or multiply it in parts",
    )  # fmt: skip


def _violations(
    args: Mapping[str, ArrayMeta], scalars: Mapping[str, Scalar], spec: KernelSpec, axes: Axes
) -> Iterator[Violation]:
    given = {p.name for p in spec.params if isinstance(p, ScalarParam)}.intersection(GIVEN)
    for name in scalars:
        if name in given:
            continue
        yield Violation(
            field=name, got=str(scalars[name]), rule="is computed by the plan, not an argument",
            fix="leave it out",
        )  # fmt: skip
    ranks_hold = True
    for name, letters in axes.items():
        if name not in args:
            ranks_hold = False
            yield Violation(field=name, got="nothing", rule=f"is required, [{', '.join(letters)}]")
        elif len(args[name].shape) != len(letters):
            ranks_hold = False
            yield Violation(
                field=name,
                got=f"shape {args[name].shape}",
                rule=f"must have rank {len(letters)}: [{', '.join(letters)}]",
            )
    if not ranks_hold:
        return
    yield from _extents(args, axes)
    for param in spec.params:
        if isinstance(param, TensorMapParam):
            yield from _operand(param, args, axes)
        elif isinstance(param, PointerParam) and param.arg in AXES:
            yield from _matrix(param, args, axes)
    yield from finish_violations(spec, args, axes)


def _extents(args: Mapping[str, ArrayMeta], axes: Axes) -> Iterator[Violation]:
    """Every letter names one extent; the first array that has it decides."""
    extents: dict[str, tuple[str, int]] = {}
    for name, letters in axes.items():
        for axis, size in zip(letters, args[name].shape, strict=True):
            owner, want = extents.setdefault(axis, (name, size))
            if size != want:
                shapes = ", ".join(f"{n} {args[n].shape}" for n in axes)
                meaning = ", ".join(f"{n} is [{', '.join(x)}]" for n, x in axes.items())
                yield Violation(
                    field=f"{axis} of {name}", got=str(size), rule=f"must be {want}, as in {owner}",
                    why=f"{meaning}; got {shapes}",
                )  # fmt: skip
            if size >= COORDINATE_LIMIT:
                yield Violation(
                    field=f"{axis} of {name}", got=f"{size:,}",
                    rule=f"must be below {COORDINATE_LIMIT:,}",
                    why="TMA coordinates are signed 32-bit",
                )  # fmt: skip


def _operand(
    param: TensorMapParam, args: Mapping[str, ArrayMeta], axes: Axes
) -> Iterator[Violation]:
    """Type, order and pitches of one array that a tensor map describes."""
    meta, letters, want = args[param.arg], axes[param.arg], dtype(param.dtype)
    if meta.dtype != want.name:
        yield _type(param, meta)
        return
    if meta.size == 0:
        return  # nothing is loaded from it, so it needs no tensor map
    inner, outer = param.axes[-1], param.axes[-2]
    if meta.shape[inner] > 1 and meta.strides[inner] not in (0, want.bytes):
        transposed = meta.strides[outer] == want.bytes or meta.shape[outer] == 1
        yield Violation(
            field=param.arg,
            got=f"strides {meta.strides} bytes for shape {meta.shape}",
            rule=f"must have contiguous {letters[inner]}: "
            f"{want.bytes} bytes from one {letters[inner]} to the next",
            why=f"contiguous {letters[outer]} needs another kernel: the order is part of the "
            "problem, and decides boxes, descriptors and transpose bits"
            if transposed
            else "TMA needs a contiguous inner axis",
            fix=_cure(param, letters[inner], transposed),
        )
        return
    broken = tensor_map.array_violations(meta, param, axis_names=letters)
    if param.use == "load":
        yield from with_cure(broken, lambda: _load_cure(args, axes))
    else:
        yield from with_cure(broken, lambda: store_cure(meta, letters))


def _load_cure(args: Mapping[str, ArrayMeta], axes: Axes) -> str:
    """Another load, which both operands must suit. A gated product has none."""
    if HALVES in axes["b"]:
        return ""
    return load_cure((args[name], axes[name]) for name in ("a", "b"))


def _type(param: TensorMapParam | PointerParam, meta: ArrayMeta) -> Violation:
    stored = param.access == "write"
    field = "out_dtype" if stored else "dtype"
    other = "tf32" if meta.dtype == "f32" and not stored else meta.dtype
    return Violation(
        field=param.arg, got=meta.dtype, rule=f"must be {param.dtype}",
        why=f"the kernel was generated for {param.dtype} {param.arg.upper()}",
        fix=f"convert it, or make the kernel with {field}={other}",
    )  # fmt: skip


def _matrix(param: PointerParam, args: Mapping[str, ArrayMeta], axes: Axes) -> Iterator[Violation]:
    """The same of one that is read or written by address."""
    meta, letters = args[param.arg], axes[param.arg]
    if meta.dtype != param.dtype:
        yield _type(param, meta)
    elif param.access == "write":
        yield from element_violations(param.arg, meta, letters)
    else:
        broken = copied_violations(param.arg, meta, letters, param.align)
        yield from with_cure(broken, lambda: _load_cure(args, axes))


def _cure(param: TensorMapParam, contiguous: str, transposed: bool) -> str:
    copy = f"pass a copy with contiguous {contiguous}"
    if param.use == "store":
        return f"pass an output with contiguous {contiguous}"
    if transposed and dtype(param.dtype).bits == 16:
        other = "mn" if contiguous == "K" else "k"
        return f"make the kernel with {param.arg}_major={other}, or {copy}"
    return copy
