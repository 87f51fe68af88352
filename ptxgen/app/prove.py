"""`ptxgen prove`: every proof kernel under many schedules, and all of its mutants.

A task is one program: a kernel of the catalogue on its proof problem, or a program of a Python file
that the caller names. Tasks run in processes of their own, in any order, and say the same in any
order. What is done is kept in a folder by a digest of all that it depends on (the PTX, the options,
the sources of this package and of the emulator), so that a run that was cut short goes on.
"""

from __future__ import annotations

import json
import os
import runpy
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from ptxgen.app.mutation import Verdict, sampled, score
from ptxgen.app.subjects import CatalogueSubject
from ptxgen.app.sweep import Subject, schedules, sweep
from ptxgen.errors import ArgumentError, Violation
from ptxgen.kernels.gemm_proof import PROOFS
from ptxgen.ptx.lint import lint
from ptxgen.ptx.mutate import mutants

SOURCES = ("ptxgen", "runtime")  # whose text decides what a task says
MAKER = "subjects"  # what a file of programs defines: () -> {name: () -> Subject}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is proved. `seeds` schedules a mode for the programs, `mutant_seeds` for a mutant;
    `sample` mutants of each kernel, 0 for all; `only` names whose text holds it."""

    seeds: int = 50
    mutant_seeds: int = 5
    sample: int = 0
    only: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One program. `file` defines it; "" for the catalogue, whose mutants are tried too."""

    name: str
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A mutant that was not killed: "survived", or "equivalent" with the rule."""

    fate: str
    operator: str
    line: int
    was: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What came of a task. `verdict` is "pass", "fail" or "unsupported"."""

    name: str
    program: bool
    verdict: str
    runs: int
    findings: tuple[str, ...]  # with the schedule that replays them
    advice: tuple[str, ...]  # codes
    killed: int = 0
    by_advice: int = 0  # of those
    killers: Mapping[str, int]  # code -> mutants that it killed first
    left: tuple[Left, ...] = ()
    seconds: float = 0.0

    def count(self, fate: str) -> int:
        return self.killed if fate == "killed" else sum(x.fate == fate for x in self.left)

    @property
    def mutants(self) -> int:
        return self.killed + len(self.left)

    @property
    def percent(self) -> float:
        """Killed, of those that are not equivalent."""
        real = self.killed + self.count("survived")
        return 100 * self.killed / real if real else 100.0

    @property
    def raw_percent(self) -> float:
        """Killed, of all."""
        return 100 * self.killed / self.mutants if self.mutants else 100.0

    @property
    def ok(self) -> bool:
        return self.verdict == "pass" and not self.count("survived")


def tasks(programs: Path | None, options: Options) -> tuple[Task, ...]:
    """The catalogue's proof kernels, then the programs of a file."""
    found = [Task(name=reference) for reference in PROOFS]
    if programs is not None:
        found += [Task(name=name, file=str(programs)) for name in _makers(str(programs))]
    return tuple(task for task in found if options.only in task.name)


def _makers(file: str) -> Mapping[str, Callable[[], Subject]]:
    defined = runpy.run_path(file)
    if MAKER not in defined:
        broken = Violation(field="--programs", got=file, rule=f"must define {MAKER}()")
        raise ArgumentError("no programs in this file", [broken])
    makers: Mapping[str, Callable[[], Subject]] = defined[MAKER]()
    return makers


def subject_of(task: Task) -> Subject:
    return _makers(task.file)[task.name]() if task.file else CatalogueSubject(task.name)


# -- one task --------------------------------------------------------------------------------------


def prove(task: Task, options: Options) -> Proof:
    """Read a program, run it under every schedule and, if it is the catalogue's, break it."""
    start = time.perf_counter()
    subject = subject_of(task)
    found = lint(subject.ptx, subject.entry)
    result = sweep(subject, subject.ptx, schedules(options.seeds))
    findings = [str(f).splitlines()[0] for f in found if f.severity == "error"]
    findings += [f"{str(f).splitlines()[0]} [{result.schedule}]" for f in result.findings]
    verdicts: tuple[Verdict, ...] = ()
    if not task.file and not findings:
        chosen = sampled(tuple(mutants(subject.ptx, subject.entry)), options.sample)
        verdicts = score(subject, chosen, schedules(options.mutant_seeds)).verdicts
    killed = [v for v in verdicts if v.fate == "killed"]
    return Proof(
        name=task.name, program=bool(task.file),
        verdict="fail" if findings and result.verdict == "pass" else result.verdict,
        runs=result.runs, findings=tuple(findings),
        advice=tuple(sorted({f.code for f in (*found, *result.advice) if f.severity == "advice"})),
        killed=len(killed), by_advice=sum(v.advice for v in killed),
        killers=dict(sorted(Counter(v.by for v in killed).items())),
        left=tuple(
            Left(fate=v.fate, operator=v.mutant.operator, line=v.mutant.line, was=v.mutant.was,
                 by=v.by)
            for v in verdicts if v.fate != "killed"
        ),
        seconds=time.perf_counter() - start,
    )  # fmt: skip


# -- all of them -----------------------------------------------------------------------------------


def sources_digest() -> str:
    """Of every Python file and template that a result depends on."""
    root = Path(__file__).parents[2]
    digest = sha256()
    for folder in (*SOURCES, "ptx_templates"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".py", ".j2"):
                digest.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def prove_all(
    todo: Sequence[Task], options: Options, folder: Path, jobs: int
) -> Iterator[tuple[Proof, bool]]:
    """Proofs as they are done, each with whether it was kept from an earlier run."""
    folder.mkdir(parents=True, exist_ok=True)
    base = sources_digest()
    places = {task: folder / f"{_key(task, options, base)}.json" for task in todo}
    for place in places.values():
        if place.exists():
            yield _load(place), True
    missing = [task for task, place in places.items() if not place.exists()]
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # processes share the cores, not threads
    with ProcessPoolExecutor(min(jobs, len(missing)) or 1, get_context("spawn")) as pool:
        running = {pool.submit(prove, task, options): task for task in missing}
        for future in as_completed(running):
            proof = future.result()
            place = places[running[future]]
            place.with_suffix(".part").write_text(json.dumps(asdict(proof)), encoding="utf-8")
            place.with_suffix(".part").replace(place)
            yield proof, False


def _key(task: Task, options: Options, base: str) -> str:
    texts = [base, json.dumps([asdict(task), asdict(options)])]
    if task.file:
        texts += [subject_of(task).ptx, Path(task.file).read_text(encoding="utf-8")]
    return sha256("\n".join(texts).encode()).hexdigest()[:24]


def _load(place: Path) -> Proof:
    fields: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    left = tuple(Left(**row) for row in fields.pop("left"))
    fields["findings"], fields["advice"] = tuple(fields["findings"]), tuple(fields["advice"])
    return Proof(**fields, left=left)
