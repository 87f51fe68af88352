"""What may be typed after `ptxgen layout`. The work is done in `layout_cmd` and `tensormaps`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

layout_app = typer.Typer(
    help="Draw layouts: swizzles, register fragments, descriptors, tensor maps, accesses.",
    no_args_is_help=True,
)

Json = Annotated[bool, typer.Option("--json", help="print one JSON object instead of text")]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="also write .html, .txt, or .svg (one drawing)"),
]


@layout_app.command()
def swizzle(
    span: Annotated[int, typer.Argument(metavar="SPAN", help="bytes: 0, 32, 64 or 128")] = 128,
    dtype: Annotated[str, typer.Option(help="element type, for the labels")] = "bf16",
    output: Output = None,
    json: Json = False,
) -> None:
    """One atom of a swizzle as it lies in shared memory, and the conflicts that it avoids."""
    from ptxgen.app import layout_cmd
    from ptxgen.app.output import deliver

    raise typer.Exit(deliver(lambda: layout_cmd.swizzle(span, dtype, output), as_json=json))


@layout_app.command()
def fragment(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="wgmma_d, wgmma_a, mma_a, mma_b, mma_c, ldmatrix or stmatrix"
        ),
    ] = "wgmma_d",
    n: Annotated[int, typer.Option(help="columns of a wgmma D")] = 64,
    dtype: Annotated[str, typer.Option(help="type of A or B (f32: tf32), or of D")] = "bf16",
    warp: Annotated[int, typer.Option(help="warp of the warpgroup; -1: all four")] = 0,
    thread: Annotated[int, typer.Option(help="mark what this thread holds; -1: none")] = -1,
    trans: Annotated[bool, typer.Option("--trans", help="ldmatrix.trans")] = False,
    output: Output = None,
    json: Json = False,
) -> None:
    """Which thread holds which element of a register fragment, and in which register."""
    from ptxgen.app import layout_cmd
    from ptxgen.app.output import deliver

    work = lambda: layout_cmd.fragments(  # noqa: E731
        name,
        n=n,
        dtype=dtype,
        warp=None if warp == -1 else warp,
        thread=None if thread == -1 else thread,
        trans=trans,
        output=output,
    )
    raise typer.Exit(deliver(work, as_json=json))


@layout_app.command()
def desc(
    bits: Annotated[str, typer.Argument(metavar="BITS", help="64 bits, like 0x4000004000010000")],
    output: Output = None,
    json: Json = False,
) -> None:
    """A wgmma matrix descriptor: each field, what it means, and what looks wrong."""
    from ptxgen.app import layout_cmd
    from ptxgen.app.output import deliver

    raise typer.Exit(deliver(lambda: layout_cmd.descriptor(bits, output), as_json=json))


@layout_app.command()
def tensormap(
    hex_: Annotated[
        str | None,
        typer.Argument(metavar="[HEX]", help="the 128 bytes in hex, @FILE, or - for stdin"),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="recorded answers of a driver (JSON lines)"),
    ] = None,
    output: Output = None,
    json: Json = False,
) -> None:
    """Decode a tensor map, or hold our rules and encoder against a driver's recorded answers."""
    if (hex_ is None) == (against is None):
        raise typer.BadParameter("give either the 128 bytes (HEX) or --against FILE")
    from ptxgen.app.output import deliver

    if against is not None:
        from ptxgen.app import tensormaps

        raise typer.Exit(deliver(lambda: tensormaps.compare(against), as_json=json))
    from ptxgen.app import layout_cmd

    raise typer.Exit(deliver(lambda: layout_cmd.tensor_map(hex_ or "", output), as_json=json))


@layout_app.command()
def banks(
    expression: Annotated[
        str,
        typer.Argument(
            metavar="INDEX", help="element index from tid, lane, warp, tx, ty, tz, like tid*33"
        ),
    ],
    width: Annotated[int, typer.Option(help="bytes a thread reads: 1, 2, 4, 8 or 16")] = 4,
    block: Annotated[str, typer.Option(help="threads: X, XxY or XxYxZ")] = "32",
    let: Annotated[
        list[str] | None, typer.Option(metavar="NAME=INTEGER", help="a constant of the expression")
    ] = None,
    swizzle: Annotated[int, typer.Option(help="of the addresses: 0, 32, 64 or 128")] = 0,
    base: Annotated[int, typer.Option(help="address of element 0, in bytes")] = 0,
    output: Output = None,
    json: Json = False,
) -> None:
    """Sectors and bank conflicts of an index expression: both ask how 32 addresses are laid out."""
    from ptxgen.app import layout_cmd
    from ptxgen.app.output import deliver

    work = lambda: layout_cmd.banks(  # noqa: E731
        expression,
        width=width,
        block=block,
        constants=let or (),
        swizzle_span=swizzle,
        base=base,
        output=output,
    )
    raise typer.Exit(deliver(work, as_json=json))
