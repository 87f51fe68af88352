"""What may be typed after `ptxgen prove`. The work is done in `prove`, the page in `prove_page`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ptxgen.app.output import Answer
    from ptxgen.app.prove import Options


def prove(
    seeds: Annotated[int, typer.Option(min=1, help="schedules a mode, of three modes")] = 50,
    mutant_seeds: Annotated[int, typer.Option(min=1, help="the same, for each mutant")] = 5,
    sample: Annotated[int, typer.Option(min=0, help="mutants a kernel; 0: all")] = 0,
    only: Annotated[str, typer.Option(help="programs whose name holds this text")] = "",
    programs: Annotated[
        Path | None,
        typer.Option(metavar="FILE.py", help="more programs: it defines subjects()"),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="processes")] = 2,
    folder: Annotated[Path, typer.Option(help="where finished parts are kept")] = Path(
        "build/proofs"
    ),
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="write the page to this file")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Check the proof kernels of the catalogue under many schedules, and break each in every way.

    What was finished before is not done again; what came of it is kept in --folder. Exit code 1
    where a program fails or a mutant survives.
    """
    from ptxgen.app import output as answers
    from ptxgen.app.prove import Options

    options = Options(seeds=seeds, mutant_seeds=mutant_seeds, sample=sample, only=only)
    work = lambda: _work(options, programs, folder, jobs, output)  # noqa: E731
    raise typer.Exit(answers.deliver(work, as_json=json))


def _work(
    options: Options, programs: Path | None, folder: Path, jobs: int, output: Path | None
) -> Answer:
    from ptxgen.app.lines import Lines
    from ptxgen.app.output import Answer, note
    from ptxgen.app.progress import track
    from ptxgen.app.prove import prove_all, tasks
    from ptxgen.app.prove_page import line, page, totals

    todo = tasks(programs, options)
    order = {task.name: place for place, task in enumerate(todo)}
    proofs = []
    for proof, kept in track(prove_all(todo, options, folder, jobs), "proving", total=len(todo)):
        proofs.append(proof)
        note(line(proof, kept, f"{len(proofs)}/{len(todo)}"))
    proofs.sort(key=lambda proof: order[proof.name])
    text = page(proofs, options)
    if output is not None:
        output.write_text(text, encoding="utf-8")
    data = {"options": options, "proofs": proofs}
    view = Lines(text if output is None else totals(proofs))
    return Answer(data=data, view=view, ok=all(proof.ok for proof in proofs))
