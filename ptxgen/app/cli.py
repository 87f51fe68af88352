"""The `ptxgen` command: what may be typed. Each command's work is done by a module beside this one.

Nothing heavy is imported until a command runs, so that `ptxgen --help` answers at once.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ptxgen.app.check_cli import check
from ptxgen.app.layout_cli import layout_app
from ptxgen.app.prove_cli import prove
from ptxgen.app.tune_cli import tune

app = typer.Typer(
    name="ptxgen",
    help="PTX for NVIDIA Hopper: generated from templates, checked, and run on a GPU or a CPU.",
    epilog="A kernel reference is NAME[:key=value,...], for example gemm:tile=128x256x64,stages=4. "
    "`ptxgen list` shows the names, keys and legal values.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
KERNELS, CODE, MODELS, MACHINE = (
    "Kernels of the catalogue",
    "Code: a kernel, or anybody's PTX, cubin or listing",
    "Layouts and models",
    "This machine",
)
app.add_typer(layout_app, name="layout", rich_help_panel=MODELS)


class BackendName(StrEnum):
    emulator = "emulator"
    cuda = "cuda"


class InputKind(StrEnum):
    random = "random"
    integers = "integers"


Reference = Annotated[
    str, typer.Argument(metavar="KERNEL", help="a kernel reference: NAME[:key=value,...]")
]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object instead of text")]


def _version(wanted: bool) -> None:
    if wanted:
        from ptxgen import __version__

        print(f"ptxgen {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """Options before the command."""


@app.command("list", rich_help_panel=KERNELS)
def list_(json: Json = False) -> None:
    """List the kernels, each with its fields: default, legal values, meaning."""
    from ptxgen.app import catalogue, output

    raise typer.Exit(output.deliver(catalogue.listing, as_json=json))


@app.command(rich_help_panel=KERNELS, epilog="ptxgen emit gemm:tile=128x256x64,stages=4 -o k.ptx")
def emit(
    kernel: Reference,
    file: Annotated[
        Path | None, typer.Option("-o", "--output", help="write the PTX to this file")
    ] = None,
    json: Json = False,
) -> None:
    """Print a kernel's PTX."""
    from ptxgen.app import output, show

    raise typer.Exit(output.deliver(lambda: show.emit(kernel, file), as_json=json))


@app.command(
    rich_help_panel=KERNELS,
    epilog="ptxgen inspect gemm:stages=max, or ptxgen inspect gemm --m 4096 --n 7168 --k 2048",
)
def inspect(
    kernel: Reference,
    m: Annotated[int | None, typer.Option(min=1, help="rows of A and D")] = None,
    n: Annotated[int | None, typer.Option(min=1, help="columns of B and D")] = None,
    k: Annotated[int | None, typer.Option(min=1, help="what is summed over")] = None,
    batches: Annotated[int, typer.Option(min=1, help="products of that size")] = 1,
    top: Annotated[int, typer.Option(min=1, help="candidates to show")] = 8,
    json: Json = False,
) -> None:
    """Show a kernel on one page; with --m, --n and --k, how its config is chosen for that product.

    The page: config, shared memory, roles, registers, barriers, SASS mix. The choice: the best
    candidates with the time that the model gives each, what that time is made of, and what was
    measured.
    """
    from ptxgen.app import choice, output, show

    def work() -> output.Answer:
        if (m, n, k) == (None, None, None):
            return show.inspect(kernel)
        return choice.explain(kernel, m, n, k, batches=batches, top=top)

    raise typer.Exit(output.deliver(work, as_json=json))


@app.command(rich_help_panel=CODE, epilog="ptxgen verify gemm:cluster=1x1")
def verify(
    what: Annotated[
        str, typer.Argument(metavar="WHAT", help="a kernel reference, a .ptx or a .cubin file")
    ],
    json: Json = False,
) -> None:
    """Hold SASS against what its kernel promises, and show the hardware paths it takes.

    Of a file no promises are known: a fallback, TMA issued lane by lane, a spill or a remark of
    ptxas about lost performance count as failures. Exit code 1 for a failure.
    """
    from ptxgen.app import output, show

    raise typer.Exit(output.deliver(lambda: show.verify(what), as_json=json))


@app.command(rich_help_panel=CODE, epilog="ptxgen sass k.cubin --map")
def sass(
    what: Annotated[
        str,
        typer.Argument(metavar="WHAT", help="a kernel reference, a .ptx, .cubin or .sass file"),
    ],
    beside: Annotated[
        bool,
        typer.Option("--map", help="beside it: PTX and template line, live registers, scheduling"),
    ] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write what --map shows as a page")
    ] = None,
    json: Json = False,
) -> None:
    """Print SASS, with the PTX line of each instruction."""
    from ptxgen.app import output, show

    work = lambda: show.sass(what, beside=beside, html=html)  # noqa: E731
    raise typer.Exit(output.deliver(work, as_json=json))


@app.command(
    rich_help_panel=CODE, epilog="ptxgen diff gemm:stages=3 gemm:stages=4 --html diff.html"
)
def diff(
    a: Annotated[
        str, typer.Argument(metavar="A", help="a kernel reference, a .ptx, .cubin or .sass file")
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="the same, of what it is compared with")],
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write a page that opens alone")
    ] = None,
    ptxas: Annotated[
        Path | None, typer.Option(metavar="PATH", help="the ptxas that assembles B")
    ] = None,
    ptxas_a: Annotated[
        Path | None, typer.Option(metavar="PATH", help="the ptxas that assembles A")
    ] = None,
    json: Json = False,
) -> None:
    """Compare SASS, beyond addresses, labels and register names.

    Blocks and loops are matched by what they do. Exit code 0 when the code is the same, 1 when not.
    """
    from ptxgen.app import diff_cmd, output

    work = lambda: diff_cmd.compare(a, b, ptxas_a=ptxas_a, ptxas_b=ptxas, html=html)  # noqa: E731
    raise typer.Exit(output.deliver(work, as_json=json))


app.command(rich_help_panel=KERNELS, epilog="ptxgen tune gemm --m 4096 --n 7168 --k 2048")(tune)
app.command(rich_help_panel=CODE, epilog="ptxgen check k.ptx --grid 4 --arg x=f32[1000]")(check)


app.command(rich_help_panel=KERNELS, epilog="ptxgen prove --only split_k --seeds 5")(prove)


@app.command(rich_help_panel=KERNELS, epilog="ptxgen run gemm --m 300 --n 520 --k 200")
def run(
    kernel: Reference,
    m: Annotated[int, typer.Option(min=0, help="rows of A and D")] = 300,
    n: Annotated[int, typer.Option(min=0, help="rows of B, columns of D")] = 520,
    k: Annotated[int, typer.Option(min=0, help="columns of A and B, summed over")] = 200,
    backend: Annotated[
        BackendName | None,
        typer.Option(help="default: PTXGEN_BACKEND, else cuda where there is a Hopper GPU"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="of the inputs")] = 0,
    inputs: Annotated[
        InputKind,
        typer.Option(help="random: normal, within a bound; integers: small, must be exact"),
    ] = InputKind.random,
    json: Json = False,
) -> None:
    """Run a kernel on made-up arrays and compare it with NumPy in float64.

    Exit code 1 if the result is wrong.
    """
    from ptxgen.app import output, trial

    name = backend.value if backend else None

    def work() -> output.Answer:
        return trial.run(kernel, m, n, k, backend=name, seed=seed, inputs=inputs.value)

    raise typer.Exit(output.deliver(work, as_json=json))


@app.command(
    rich_help_panel=MODELS,
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "help_option_names": [],  # so that the calculators answer --help
    },
)
def model(context: typer.Context) -> None:
    """Calculate occupancy, wgmma feed, registers, shared memory, rooflines, waves, and more."""
    from ptxgen.app import model_cmd

    model_cmd.main(context.args)


@app.command(rich_help_panel=MACHINE)
def doctor(json: Json = False) -> None:
    """Say what works here, what is missing, and how to get it: tools, driver, GPUs."""
    from ptxgen.app import diagnosis, output

    raise typer.Exit(output.deliver(diagnosis.examine, as_json=json))


@app.command(rich_help_panel=MACHINE)
def demo(json: Json = False) -> None:
    """Show one kernel all the way: config, PTX, cubin, checked SASS, a run, a comparison."""
    from ptxgen.app import output
    from ptxgen.app.demo import tour

    raise typer.Exit(output.deliver(lambda: tour(quiet=json), as_json=json))


def main() -> None:
    """The entry point of the `ptxgen` script."""
    from ptxgen.app.output import show_warnings_plainly

    show_warnings_plainly()
    app()
