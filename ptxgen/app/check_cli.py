"""What may be typed after `ptxgen check`. The work is done in `check_cmd`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def check(
    what: Annotated[
        str,
        typer.Argument(
            metavar="KERNEL|FILE.ptx", help="a kernel of the catalogue, or PTX of any origin"
        ),
    ],
    static: Annotated[bool, typer.Option("--static", help="only read the PTX")] = False,
    seeds: Annotated[int, typer.Option(min=1, help="schedules a mode")] = 1,
    mode: Annotated[
        str | None,
        typer.Option(help="when asynchronous work happens: eager, latest, random; default: all"),
    ] = None,
    replay: Annotated[
        str | None, typer.Option(metavar="MODE:TURNS:SEED", help="the schedule of a finding")
    ] = None,
    mutate: Annotated[
        bool, typer.Option("--mutate", help="break every synchronisation; is each one noticed?")
    ] = False,
    sample: Annotated[int, typer.Option(min=0, help="mutants to try; 0: all")] = 0,
    entry: Annotated[
        str | None, typer.Option(help="the kernel, as PTX or C++ spells it; default: the only one")
    ] = None,
    grid: Annotated[str, typer.Option(metavar="X[xYxZ]", help="CTAs")] = "1",
    block: Annotated[
        str | None, typer.Option(metavar="X[xYxZ]", help="threads; default: .reqntid, else 256")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="X[xYxZ]", help="CTAs; default: .reqnctapercluster, else 1"),
    ] = None,
    smem: Annotated[int, typer.Option(help="dynamic shared memory in bytes")] = 0,
    pdl: Annotated[
        bool, typer.Option("--pdl", help="a launch beside the grid before it; is it waited for?")
    ] = False,
    arg: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="x=f32[1000]:random, n=1000, x=in.npy, p=bytes:HEX or "
            "b='tmap(bf16[512,256],box=64x128,swizzle=128):random'. Contents: random, ints, zeros, "
            "ones, nan, arange, FILE.npy. Names that the PTX does not have count in order.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="of random contents")] = 0,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE.npz", help="write all arrays after a clean run")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Read PTX, then run it on the emulator, which reports what a GPU would get wrong: races,
    missing fences and waits, wrong counts, deadlocks, ...

    A kernel of the catalogue runs on the smallest problem that wraps its rings.

    Exit code 0: pass; 1: a finding or an error; 2: it uses what the emulator does not execute.
    """
    from ptxgen.app import check_cmd, output

    options = check_cmd.Options(
        entry=entry,
        grid=grid,
        block=block,
        cluster=cluster,
        smem=smem,
        pdl=pdl,
        args=arg or (),
        seed=seed,
        save=save,
        static=static,
        seeds=seeds,
        mode=mode,
        replay=replay,
        mutate=mutate,
        sample=sample,
    )
    raise typer.Exit(output.deliver(lambda: check_cmd.check(what, options), as_json=json))
