"""GEMM with TMA, mbarriers and wgmma: template, spec, plan and promises of one member."""

from __future__ import annotations

from dataclasses import replace

from ptxgen.configs.gemm_shape import Gemm, Operand
from ptxgen.isa.arch import WARPGROUP_THREADS
from ptxgen.kernels.base import BarrierRow, KernelSource, Role
from ptxgen.kernels.gemm_contract import meets
from ptxgen.kernels.gemm_expect import expectation
from ptxgen.kernels.gemm_finish import entry_parts, params
from ptxgen.kernels.gemm_numbers import numbers
from ptxgen.kernels.gemm_plan import planner
from ptxgen.kernels.gemm_pointers import load_pointers, store_pointers
from ptxgen.kernels.gemm_schedule import stream_params, turn_rows
from ptxgen.models.stage_time import StageTime, stage_time
from ptxgen.spec import Dim3, KernelSpec, ScalarParam, TensorMapParam
from ptxgen.templating.render import render_own

TEMPLATE = "kernels/gemm.ptx.j2"
# The least that has what a kernel needs, so that old drivers take it too.
PTX_VERSION = (8, 0)  # wgmma, TMA, setmaxnreg
PTX_VERSION_FP8_OUT = (8, 1)  # cvt to fp8
PTX_VERSION_MIXED_INT8 = (8, 4)  # wgmma of s8 with u8


def entry(g: Gemm) -> str:
    """The entry's name: what a profiler shows. Fields that most kernels share are left out."""
    p = g.problem
    orders = {("k", "k"): "", ("k", "mn"): "bt", ("mn", "k"): "at", ("mn", "mn"): "at_bt"}
    parts = [
        "gemm",
        p.a.name,
        p.b.name if p.b is not p.a else "",
        p.output.name,
        f"acc_{p.accumulator}" if p.accumulator != p.a.accumulators[0] else "",
        orders[p.a_major, p.b_major],
        "batched" if p.batched else "",
        f"{g.tile_m}x{g.tile_n}x{g.tile_k}",
        f"{g.stages}s",
        f"{g.cluster_m}x{g.cluster_n}",
        f"splitk{g.split_k}" if g.split_k > 1 else "",
        "swap" if g.swapped else "",
        g.config.load if g.copies else "",
        "direct" if g.direct else "",
        "promoted" if p.promoted else "",
        "" if g.config.schedule == "cooperative" else g.config.schedule,
        "rs" if g.fragments else "",
        *entry_parts(p),
    ]
    return "_".join(filter(None, parts))


def spec(g: Gemm) -> KernelSpec:
    """What the PTX of this member fixes."""

    def load(name: str, operand: Operand) -> TensorMapParam:
        axes: tuple[int, ...] = (0, 1) if operand.major == "k" else (1, 0)
        box: tuple[int, ...] = operand.box
        if g.problem.gated and operand.arg == "b":  # rows of both halves in one box
            axes, box = (0, 1, 2), (2, box[0] // 2, box[1])
        loaded = TensorMapParam(
            name=name, arg=operand.arg, dtype=operand.storage.name, axes=axes, box=box,
            swizzle=operand.swizzle.span, l2=g.config.l2_promotion,
        )  # fmt: skip
        return _with_batch(loaded) if g.problem.batched else loaded

    def store() -> TensorMapParam:
        stored = TensorMapParam(
            name="tmap_d", arg="d", dtype=g.problem.output.name, axes=(0, 1), box=g.store_box,
            swizzle=g.store_swizzle.span, use="store",
        )  # fmt: skip
        return _with_batch(stored) if g.problem.batched else stored

    return KernelSpec(
        entry=entry(g),
        ptx_version=_ptx_version(g),
        params=(
            *(load_pointers(g) if g.copies else (load("tmap_a", g.a), load("tmap_b", g.b))),
            *(store_pointers(g) if g.direct else (store(),)),
            *(ScalarParam(name=name, ptx_type="u32") for name in _scalars(g)),
            *stream_params(g),
            ScalarParam(name="raster_group", ptx_type="u32"),
            *params(g),
        ),
        block=Dim3(g.threads),
        cluster=Dim3(g.cluster_size),
        smem_bytes=g.smem.total,
    )


def _ptx_version(g: Gemm) -> tuple[int, int]:
    p = g.problem
    if p.accumulator == "s32" and p.a is not p.b:
        return PTX_VERSION_MIXED_INT8
    return PTX_VERSION_FP8_OUT if p.output.bytes == 1 else PTX_VERSION


def _with_batch(param: TensorMapParam) -> TensorMapParam:
    """The same map with a batch axis in front, one matrix a box."""
    return replace(param, axes=(0, *(axis + 1 for axis in param.axes)), box=(1, *param.box))


def _scalars(g: Gemm) -> tuple[str, ...]:
    batches = ("batches",) if g.problem.batched else ()
    share = ("k_tiles_per_cta",) if g.split_k > 1 else ()
    return ("m_tiles", "n_tiles", *batches, "k_tiles", *share)


def build(g: Gemm) -> KernelSource:
    """Render the kernel. Raises ConfigError with every broken rule."""
    g.require()
    kernel_spec = spec(g)
    return KernelSource(
        family="gemm",
        problem=g.problem,
        config=g.config,
        resolved=g.resolved(),
        rendered=render_own(TEMPLATE, numbers(g, kernel_spec)),
        spec=kernel_spec,
        plan=planner(g, kernel_spec),
        expectation=expectation(g, kernel_spec.entry),
        smem=g.smem,
        registers=g.registers,
        roles=_roles(g),
        barriers=_barriers(g),
        models=(("time of a stage", _stage(g)),),
    )


def _stage(g: Gemm) -> StageTime:
    """What L2, the tensor cores and nothing else take for one stage of the ring."""
    return stage_time(
        tile_m=g.tile_m,
        tile_n=g.tile_n,
        tile_k=g.tile_k,
        cluster_m=g.cluster_m,
        cluster_n=g.cluster_n,
        dtype=g.problem.a.storage,
    )


def _roles(g: Gemm) -> tuple[Role, ...]:
    return (
        Role(
            name="producer", warps="0-3",
            does="all threads wait for empty stages and copy A and B by "
            + ("ld and st" if g.by_elements else "cp.async")
            if g.copies
            else "one lane of warp 0 waits for empty stages and issues TMA loads",
        ),
        Role(
            name="consumers", warps=f"4-{3 + 4 * g.consumers}",
            does=f"each warpgroup multiplies {g.rows} x {g.tile_n} with wgmma and stores it "
            + ("element by element" if g.direct else "by TMA")
            + (", in turns" if g.turns else ""),
        ),
    )  # fmt: skip


def _barriers(g: Gemm) -> tuple[BarrierRow, ...]:
    receivers = " of every CTA that receives its loads" if g.destinations > 1 else ""
    split = (
        ("shown", "consumers, before they add up"),
        ("seen", "consumers, before they show the next partials"),
    )
    around = "" if g.direct else ", around its D slabs"
    own = BarrierRow(
        name="bar 1+c", count=g.consumers, arrivals=WARPGROUP_THREADS,
        arrivers="consumer c", tx_bytes=0, waiters=f"consumer c{around}",
    )  # fmt: skip
    return (
        BarrierRow(
            name="full", count=g.stages, arrivals=g.barriers.full_arrivals,
            arrivers="producer threads, behind their copies"
            if g.copies
            else "producer lane (expect_tx)",
            tx_bytes=g.barriers.tx_bytes,
            waiters="consumers",
        ),
        BarrierRow(
            name="empty", count=g.stages, arrivals=g.barriers.empty_arrivals,
            arrivers=f"one thread {'of' if g.turns else 'a'} consumer{receivers}", tx_bytes=0,
            waiters="producer threads" if g.copies else "producer lane",
        ),
        *(
            BarrierRow(
                name=name, count=1, arrivals=g.split_k * g.consumers,
                arrivers="one thread a consumer of every CTA", tx_bytes=0, waiters=waiters,
            )
            for name, waiters in (split if g.split_k > 1 else ())
        ),
        *((own,) if meets(g) else ()),
        *turn_rows(g),
    )  # fmt: skip
