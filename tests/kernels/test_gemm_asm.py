"""The SASS of GEMMs: every promise holds, for every shape of kernel and on every ptxas."""

from __future__ import annotations

import pytest
from batches import verify_all
from gemm_cases import random_references
from gemm_epilogues import EXACT, LARGE, ROUNDED
from gemm_family import MEMBERS, WIDE, cover
from gemm_pitches import COPIED, DIRECT, LOADED

import ptxgen
from ptxgen.kernels import registry
from ptxgen.toolchain.assemble import assemble
from ptxgen.toolchain.disassemble import disassemble
from ptxgen.toolchain.discover import Tool, all_ptxas

pytestmark = pytest.mark.asm

each_ptxas = pytest.mark.parametrize("ptxas", all_ptxas(), ids=lambda tool: tool.version_text)

# One and two row blocks a consumer; one, two and three consumers; N of 64, 128 and 256.
TILES = ("64x64x64", "64x256x64", "128x128x64", "128x256x64", "256x128x64", "192x128x64")
STAGES = ("2", "3", "max")
CLUSTERS = ("1x1", "2x1", "1x2")


@each_ptxas
@pytest.mark.parametrize("tile", TILES)
def test_every_promise_holds(ptxas: Tool, tile: str) -> None:
    sources = {
        f"{stages} {cluster}": registry.build(
            "gemm", {"tile": tile, "stages": stages, "cluster": cluster}
        )
        for stages in STAGES
        for cluster in CLUSTERS
    }
    reports = verify_all({n: (s.rendered, s.expectation) for n, s in sources.items()}, ptxas)
    assert len(reports) == 9
    for report in reports.values():
        report.require()


@each_ptxas
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_types_and_unusual_shapes(ptxas: Tool, dtype: str) -> None:
    """What the grid above leaves out: f32 D, narrow store boxes, deep K, no overlap, many slabs."""
    references = [
        f"gemm:dtype={dtype},{rest}"
        for rest in (
            "out_dtype=f32", "out_dtype=f16,tile=64x16x64",
            "out_dtype=f32,tile=64x8x64,cluster=1x1",
            "tile=128x96x128,stages=2", "tile=128x72x64,cluster=1x2,wait_depth=0",
            "tile=256x200x64,cluster=1x1,stages=2", "tile=384x128x64,cluster=1x2,stages=2",
            "tile=128x208x64,consumers=1,stages=3,cluster=1x1", "store_n=256,stages=3",
            "store_slabs=4,stages=3", "tile=64x64x64,stages=1,wait_depth=0,cluster=1x1",
        )
    ]  # fmt: skip
    sources = {text: registry.build(*registry.parse_reference(text)) for text in references}
    for report in verify_all(
        {name: (s.rendered, s.expectation) for name, s in sources.items()}, ptxas
    ).values():
        report.require()


@each_ptxas
def test_the_family(ptxas: Tool) -> None:
    """Types, orders, batches, clusters, split K, swapped: each by itself, and every pair."""
    texts = (*MEMBERS, *WIDE[::2], *DIRECT, *COPIED, *LOADED, *cover())
    sources = {text: registry.build(*registry.parse_reference(text)) for text in texts}
    by_version = sorted(sources.items(), key=lambda x: x[1].spec.ptx_version, reverse=True)
    for text, report in verify_all(
        {name: (s.rendered, s.expectation) for name, s in by_version}, ptxas
    ).items():
        assert report.ok, f"{text}\n{report}"


@each_ptxas
def test_whatever_the_rules_allow_keeps_every_promise(ptxas: Tool) -> None:
    """A rule that is missing shows here: registers that spill, a wgmma that is serialised."""
    sources = {
        text: registry.build(*registry.parse_reference(text)) for text in random_references(16)
    }
    for name, report in verify_all(
        {name: (s.rendered, s.expectation) for name, s in sources.items()}, ptxas
    ).items():
        assert report.ok, f"{name}\n{report}"


@each_ptxas
def test_epilogues(ptxas: Tool) -> None:
    """Every kind, and the widest accumulators with the most beside them: nothing spills."""
    sources = {
        text: registry.build(*registry.parse_reference(text)) for text in (*EXACT, *ROUNDED, *LARGE)
    }
    by_version = sorted(sources.items(), key=lambda x: x[1].spec.ptx_version, reverse=True)
    for text, report in verify_all(
        {name: (s.rendered, s.expectation) for name, s in by_version}, ptxas
    ).items():
        assert report.ok, f"{text}\n{report}"


def test_a_kernel_verifies_by_itself() -> None:
    """The same rows for one kernel alone as in a batch: what is verified is what would run."""
    kernel = ptxgen.kernel("gemm", tile=(64, 64, 64), stages=2)
    batch = verify_all({"k": (kernel.ptx, kernel.source.expectation)})["k"]
    assert kernel.verify().rows == batch.rows


@each_ptxas
@pytest.mark.parametrize(
    "text",
    [
        "gemm",
        "gemm:tile=256x200,stages=3,cluster=1x1,store_n=200,store_slabs=1",
        "gemm:tile=128x192,stages=max,cluster=1x1,schedule=pingpong",
        "gemm:tile=64x64,stages=3,cluster=1x1,schedule=stream_k,beta=1,bias=row,activation=gelu",
        "gemm:load=cp_async,store=direct,tile=64x64,cluster=1x1",
    ],
)
def test_expensive_optimizations_change_nothing(ptxas: Tool, text: str) -> None:
    """The kernels of the catalogue are assembled without them: registers, waits, schedule alike."""
    kernel = ptxgen.kernel_from(text, ptxas=ptxas)
    (all_of_them,) = disassemble(assemble(kernel.ptx, ptxas=ptxas)).functions
    (ours,) = kernel.sass.functions
    assert str(ours) == str(all_of_them)
    assert "--allow-expensive-optimizations=false" in kernel.assembly.options
