"""GEMM with TMA, mbarriers and wgmma: template, spec, plan and promises of one member."""

from __future__ import annotations

from ptxgen.configs.gemm import SWIZZLE, WGMMA_M, Gemm
from ptxgen.isa.arch import WARPGROUP_THREADS
from ptxgen.kernels.base import BarrierRow, KernelSource, Role
from ptxgen.kernels.gemm_expect import expectation
from ptxgen.kernels.gemm_numbers import PTX_VERSION, entry, numbers
from ptxgen.kernels.gemm_plan import planner
from ptxgen.models.stage_time import StageTime, stage_time
from ptxgen.spec import Dim3, KernelSpec, ScalarParam, TensorMapParam
from ptxgen.templating.render import render_own

TEMPLATE = "kernels/gemm.ptx.j2"
SCALARS = ("m_tiles", "n_tiles", "k_tiles", "raster_group")


def spec(g: Gemm) -> KernelSpec:
    """What the PTX of this member fixes."""

    def load(name: str, arg: str, box: tuple[int, int]) -> TensorMapParam:
        return TensorMapParam(
            name=name, arg=arg, dtype=g.problem.input.name, axes=(0, 1), box=box,
            swizzle=SWIZZLE.span,
        )  # fmt: skip

    return KernelSpec(
        entry=entry(g),
        ptx_version=PTX_VERSION,
        params=(
            load("tmap_a", "a", g.a_box),
            load("tmap_b", "b", g.b_box),
            TensorMapParam(
                name="tmap_d", arg="d", dtype=g.problem.output.name, axes=(0, 1),
                box=(WGMMA_M, g.store_box_n), swizzle=g.store_swizzle.span, use="store",
            ),
            *(ScalarParam(name=name, ptx_type="u32") for name in SCALARS),
        ),
        block=Dim3(g.threads),
        cluster=Dim3(g.cluster_size),
        smem_bytes=g.smem.total,
    )  # fmt: skip


def build(g: Gemm) -> KernelSource:
    """Render the kernel. Raises ConfigError with every broken rule."""
    g.require()
    kernel_spec = spec(g)
    return KernelSource(
        family="gemm",
        problem=g.problem,
        config=g.config,
        resolved=g.resolved(),
        rendered=render_own(TEMPLATE, numbers(g)),
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
        dtype=g.problem.input.name,
    )


def _roles(g: Gemm) -> tuple[Role, ...]:
    return (
        Role(
            name="producer", warps="0-3",
            does="one lane of warp 0 waits for empty stages and issues TMA loads",
        ),
        Role(
            name="consumers", warps=f"4-{3 + 4 * g.consumers}",
            does=f"each warpgroup multiplies {g.rows} x {g.tile_n} with wgmma and stores it by TMA",
        ),
    )  # fmt: skip


def _barriers(g: Gemm) -> tuple[BarrierRow, ...]:
    everywhere = " of every CTA of the cluster" if g.cluster_size > 1 else ""
    return (
        BarrierRow(
            name="full", count=g.stages, arrivals=g.barriers.full_arrivals,
            arrivers="producer lane (expect_tx)", tx_bytes=g.barriers.tx_bytes,
            waiters="consumers",
        ),
        BarrierRow(
            name="empty", count=g.stages, arrivals=g.barriers.empty_arrivals,
            arrivers=f"one thread a consumer{everywhere}", tx_bytes=0,
            waiters="producer lane",
        ),
        BarrierRow(
            name="bar 1+c", count=g.consumers, arrivals=WARPGROUP_THREADS,
            arrivers="consumer c", tx_bytes=0, waiters="consumer c, around its D slabs",
        ),
    )  # fmt: skip
