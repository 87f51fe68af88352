"""What may be typed after `ptxgen tune`. The work is done in `tune_cmd`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def tune(
    kernel: Annotated[str, typer.Argument(metavar="gemm", help="the family that is tuned")],
    m: Annotated[int | None, typer.Option(min=1, help="rows of A and D")] = None,
    n: Annotated[int | None, typer.Option(min=1, help="columns of B and D")] = None,
    k: Annotated[int | None, typer.Option(min=1, help="what is summed over")] = None,
    dtype: Annotated[str, typer.Option(help="of A and B: bf16, f16, tf32, e4m3, s8")] = "bf16",
    order: Annotated[
        str, typer.Option(help="TN: A and B have K contiguous; NN, NT, TT: as in BLAS")
    ] = "TN",
    shapes: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="a line a product: MxNxK, then perhaps type and order"),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(metavar="FILE.json", help="where winners go; default: the cache folder"),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="measure what the table has, too")] = False,
    backend: Annotated[str | None, typer.Option(help="cuda: the emulator has no clock")] = None,
    commit: Annotated[str | None, typer.Option(help="what to record as the commit")] = None,
    json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Measure all promising configs of a product on this GPU, and remember the fastest.

    Kernels are assembled in parallel, then each is checked and timed, beside torch. The picker uses
    what is found for all products of the same class (`ptxgen inspect gemm --m .. --n .. --k ..`
    says so). A run that was stopped goes on where it was.
    """
    from ptxgen.app import output, tune_cmd

    request = tune_cmd.Request(
        kernel=kernel, m=m, n=n, k=k, dtype=dtype, order=order, shapes=shapes, table=table,
        again=again, backend=backend, commit=commit,
    )  # fmt: skip
    raise typer.Exit(output.deliver(lambda: tune_cmd.tune(request), as_json=json))
