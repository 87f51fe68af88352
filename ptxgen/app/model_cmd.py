"""`ptxgen model`: the calculators on the command line, each with the options of its signature.

Numbers may be lists (`8,16,32`) or ranges (`8..256:8`): then the answer has one row a value.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.table import Table as RichTable
from rich.text import Text

from ptxgen.app.output import Answer, deliver
from ptxgen.app.views import rich_text, save, unwritable
from ptxgen.models.calculators import CALCULATORS, Calculator, Parameter, values_of
from ptxgen.models.record import Record
from ptxgen.models.registers import RegisterPool

PLOT_SUFFIXES = (".png", ".pdf", ".svg")
_EPILOG = (
    "Numbers may be lists (8,16,32) or ranges (8..256:8); then every combination is one row. "
    "Chips: h200, h100_sxm, h800_pcie, a100_sxm, v100_sxm, rtx_4090, rtx_3090_ti."
)


def main(arguments: Sequence[str]) -> None:
    """Run `ptxgen model` with these arguments. Ends the program."""
    application()(list(arguments), prog_name="ptxgen model")


def application() -> typer.Typer:
    """The command group: one command a calculator; alone it lists them."""
    app = typer.Typer(
        help="Calculators: occupancy, wgmma feed, registers, shared memory, rooflines, waves, ...",
        epilog=_EPILOG,
        add_completion=False,
        pretty_exceptions_enable=False,
    )

    @app.callback(invoke_without_command=True)
    def root(
        context: typer.Context,
        json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
    ) -> None:
        if context.invoked_subcommand is None:
            raise typer.Exit(deliver(listing, as_json=json))

    for item in CALCULATORS.values():
        app.command(item.name, help=item.help, epilog=_EPILOG)(_command(item))
    return app


def listing() -> Answer:
    """The calculators with their inputs."""
    table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for item in CALCULATORS.values():
        table.add_row(Text(item.name, style="bold cyan"), item.summary)
    foot = "\nptxgen model NAME --help shows the inputs; numbers may be lists or ranges."
    return Answer(
        data={
            "calculators": [
                {
                    "name": item.name,
                    "summary": item.summary,
                    "inputs": [
                        {
                            "name": p.name,
                            "type": p.type.__name__,
                            "default": p.default,
                            "choices": p.choices,
                            "help": p.help,
                        }
                        for p in item.parameters
                    ],
                }
                for item in CALCULATORS.values()
            ]
        },
        view=Group(table, Text(foot)),
    )


def answer(item: Calculator, values: dict[str, Any], output: Path | None = None) -> Answer:
    """The record of these inputs, printed and perhaps written to a file as well."""
    record = item.run(values)
    if output is not None:
        _write(record, output, item.name)
    legal = not (isinstance(record, RegisterPool) and record.violations())
    return Answer(data={"model": item.name, **record.to_dict()}, view=rich_text(record), ok=legal)


def _write(record: Record, path: Path, name: str) -> None:
    if path.suffix in PLOT_SUFFIXES:
        figure = record.plot().get_figure(root=True)
        assert figure is not None
        figure.savefig(path, bbox_inches="tight", dpi=150)
    elif path.suffix in (".html", ".txt"):
        save(record.view(), path, f"ptxgen model {name}")
    else:
        raise unwritable(path, f".html, .txt, {', '.join(PLOT_SUFFIXES)}")


def _command(item: Calculator) -> Callable[..., None]:
    """A function whose signature has an option for every input, as typer reads it."""
    parameters = item.parameters

    def command(**options: Any) -> None:
        as_json, output = options.pop("json"), options.pop("output")

        def work() -> Answer:
            values = {p.name: _value(p, options[p.name]) for p in parameters}
            return answer(item, values, output)

        raise typer.Exit(deliver(work, as_json=as_json))

    fields = [_option(p) for p in parameters]
    fields.append(
        inspect.Parameter(
            "output",
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                Path | None,
                typer.Option(
                    "-o", "--output", help="also write .html, .txt, or a plot (.png .pdf .svg)"
                ),
            ],
        )
    )
    fields.append(
        inspect.Parameter(
            "json",
            inspect.Parameter.KEYWORD_ONLY,
            default=False,
            annotation=Annotated[bool, typer.Option("--json", help="print one JSON object")],
        )
    )
    command.__signature__ = inspect.Signature(fields)  # type: ignore[attr-defined]
    command.__annotations__ = {field.name: field.annotation for field in fields}
    return command


def _option(parameter: Parameter) -> inspect.Parameter:
    """One input as an option. Numbers come in as text, because they may be lists."""
    flag = f"--{parameter.name.replace('_', '-')}"
    kind: Any = bool if parameter.type is bool else str
    numeric = parameter.type in (int, float)
    words = "|".join(parameter.choices) if parameter.choices else None
    spelled = kind(parameter.default)
    if isinstance(parameter.default, float) and parameter.default.is_integer():
        spelled = f"{parameter.default:.0f}"
    return inspect.Parameter(
        parameter.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=spelled,
        annotation=Annotated[
            kind,
            typer.Option(
                flag,
                help=parameter.help,
                metavar=None if kind is bool else words or ("NUMBERS" if numeric else "TEXT"),
            ),
        ],
    )


def _value(parameter: Parameter, given: Any) -> Any:
    """What was typed, as the calculator takes it; a comma-separated list of words is a list."""
    if parameter.type in (int, float):
        return values_of(given, parameter.type)
    words = parameter.choices or parameter.name in ("chip", "dtype")
    if words and "," in given:
        return [word.strip() for word in given.split(",")]
    return given
