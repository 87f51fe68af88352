"""What renders every line of every template: kernels, and the ISA table for the macros."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ptxgen.isa.forms import FORMS
from ptxgen.kernels import registry
from ptxgen.kernels.base import KernelSource
from ptxgen.templating import Rendered, render_text
from ptxgen.templating.source_map import Place

TEMPLATES = Path(__file__).parents[2] / "ptx_templates"

# Each row says which branches it is there for. All other fields are at their defaults.
REFERENCES = (
    "gemm",  # cluster that shares B, two wgmma groups, 16-bit D
    "gemm:cluster=1x2,stages=3",  # shares A
    "gemm:cluster=1x1,stages=3",  # no cluster: local arrivals, bar.sync
    "gemm:tile=128x64x128,cluster=2x1,stages=2",  # two boxes along K
    "gemm:tile=128x64x128,cluster=1x1,wait_depth=0,stages=1",  # release behind its own wgmma
    "gemm:tile=64x64x64,wait_depth=0,stages=2",  # the same in a cluster
    "gemm:tile=256x128x64,out_dtype=f32,stages=2",  # f32 D, two row blocks
    "gemm:tile=64x24x64,cluster=1x1,dtype=f16",  # boxes of 8 columns: stmatrix.x2
    "gemm:cluster=2x2,batched=1,a_major=mn",  # shares both, in a batch
    "gemm:split_k=2,cluster=1x1,tile=64x64,b_major=mn",  # partial sums
    "gemm:swap_ab=1,tile=64x16",  # transposed by stmatrix
    "gemm:swap_ab=1,tile=64x16,out_dtype=f32,cluster=1x1",  # transposed one by one
    "gemm:dtype=e4m3,out_dtype=e5m2",  # fp8 D
    "gemm:dtype=f16,acc_dtype=f16",  # packed sums
    "gemm:schedule=pingpong,tile=64x64",  # consumers in turns
    "gemm:a_source=registers,wait_depth=0,tile=64x64",  # rows through registers
    "gemm:schedule=stream_k,tile=64x64,stages=3",  # clusters share out tiles
    "gemm:schedule=stream_k,tile=64x64,stages=3,cluster=1x1",  # or single CTAs
    "gemm:dtype=u8,b_dtype=s8",  # integer sums, a later PTX version
    "gemm:alpha=1,activation=gelu,tile=64x64",  # only a factor and a function
    "gemm:bias=column,activation=relu,tile=64x64",  # bias along rows
    "gemm:alpha=1,beta=1,bias=row,activation=silu,batched=1,tile=64x64",  # all, in pairs
    "gemm:beta=1,bias=row,out_dtype=f32,activation=gelu_tanh,tile=64x64",  # f32 C
    "gemm:beta=1,dtype=e4m3,out_dtype=e5m2,tile=64x64",  # fp8 C
    "gemm:beta=1,bias=row,bias_dtype=out,swap_ab=1,tile=64x16,cluster=1x1",  # one by one
    "gemm:dtype=e4m3,scales=tensor,alpha=1,out_scale=1,amax=1,tile=64x64",  # one scale an operand
    "gemm:dtype=e4m3,scales=tensor,accumulate=promoted,wait_depth=0,tile=64x64",  # early sums
    "gemm:dtype=e4m3,scales=row,alpha=1,gated=1,activation=silu,tile=64x64",  # two products
    "gemm:store=direct,tile=64x64,batched=1,beta=1",  # D and C element by element
    "gemm:store=direct,tile=64x16,swap_ab=1,split_k=2,cluster=1x1",  # along the columns of a tile
    "gemm:store=direct,tile=64x64,dtype=f16,acc_dtype=f16",  # packed sums
    "gemm:store=direct,tile=64x64,dtype=e4m3,out_dtype=e4m3",  # bytes
    "gemm:load=cp_async,store=direct,tile=64x64,cluster=1x1,batched=1",  # copied by threads
    "gemm:load=cp_async,tile=64x64,cluster=1x1,stages=1,wait_depth=0",  # none on its way
    "gemm:load=ld,tile=64x64,cluster=1x1",  # element by element: pairs
    "gemm:load=ld,tile=64x64,cluster=1x1,dtype=e4m3",  # fours
    "gemm:load=ld,tile=64x32,cluster=1x1,dtype=tf32",  # whole words
    "quantize",  # scales of rows, found
    "quantize:dtype=f32,scales=row_given",  # vectors of four
    "quantize:scales=tensor",  # from amax
    "quantize:scales=tensor_given,out_dtype=e5m2",
    "quantize:scales=none",  # only amax
)


@cache
def sources() -> tuple[KernelSource, ...]:
    return tuple(registry.build(*registry.parse_reference(text)) for text in REFERENCES)


def module() -> str:
    """All kernels in one PTX text: one process of ptxas assembles them.

    The first gives the version of all, so it is the one with the latest.
    """
    by_version = sorted(sources(), key=lambda source: source.spec.ptx_version, reverse=True)
    first, *others = (str(source.rendered) for source in by_version)
    return "\n".join([first, *(text[text.index(".visible .entry") :] for text in others)])


def table() -> Rendered:
    """The first case of every form of the ISA table, through the form's macro of lib/."""
    lines = [f'# import "lib/{f}.ptx.j2" as {f}' for f in sorted({x.family for x in FORMS})]
    numbers: dict[str, object] = {}
    for i, form in enumerate(FORMS):
        names = form.cases()[0].names
        numbers[f"cases{i}"] = [("", *names.values())]
        lines += [
            f"# for {', '.join(['_', *names])} in cases{i}",
            f"${{ {form.macro} }}",
            "# endfor",
        ]
    return render_text("\n".join([*lines, ""]), "table", numbers)


def table_calls() -> frozenset[tuple[str, str]]:
    """(file, macro) of every macro that the ISA table names."""
    return frozenset(
        (f"lib/{form.family}.ptx.j2", form.macro.partition("(")[0].partition(".")[2])
        for form in FORMS
    )


def rendered_places() -> frozenset[Place]:
    """Every template line that wrote something."""
    texts = [*(source.rendered for source in sources()), table()]
    return frozenset(place for text in texts for chain in text.chains for place in chain)


def template_files() -> Iterator[tuple[str, str]]:
    """(name under ptx_templates/, text) of every template."""
    for path in sorted(TEMPLATES.rglob("*.ptx.j2")):
        yield path.relative_to(TEMPLATES).as_posix(), path.read_text(encoding="utf-8")
