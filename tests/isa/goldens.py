"""What the H200 answered: tests/golden/isa/FAMILY.jsonl, a line a case.

The first line of a file says where the rest comes from (GPU, driver, ptxas, date, seed). `inputs`
is the digest of what went in: where it differs, the generator has changed and the record is void.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np

from ptxgen.isa.forms import FORMS, Form

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "isa"
SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """One answer. `fault` is the driver's error where the case did not run; `values` are the result
    registers, where agreement is not equality."""

    case: str
    inputs: str = ""
    digest: str = ""
    values: str = ""
    fault: str = ""


def inputs_digest(arrays: Mapping[str, np.ndarray]) -> str:
    """Of everything that a launch is given."""
    whole = hashlib.sha256()
    for name in sorted(arrays):
        whole.update(np.ascontiguousarray(arrays[name]).tobytes())
    return whole.hexdigest()[:8]


def path_of(form: Form) -> Path:
    return FOLDER / f"{form.family}.jsonl"


@cache
def recorded(path: Path) -> dict[str, Golden]:
    """Case id -> answer, of one file; empty where nothing has been recorded."""
    if not path.is_file():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    found = (Golden(**json.loads(line)) for line in lines)
    return {golden.case: golden for golden in found}


def provenance(path: Path) -> dict[str, str]:
    """The first line of a file."""
    first = path.read_text(encoding="utf-8").split("\n", 1)[0]
    return dict(json.loads(first))


def write_answers(path: Path, answers: Iterable[Golden], about: Mapping[str, object]) -> None:
    """All answers of one run in one file: what it was, then a line a case."""
    lines = [json.dumps(dict(about)), *(_line(golden) for golden in answers)]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def read_answers(path: Path) -> tuple[list[Golden], dict[str, object]]:
    """What `write_answers` has written."""
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    return [Golden(**json.loads(line)) for line in rest], json.loads(first)


def _line(golden: Golden) -> str:
    return json.dumps({k: v for k, v in asdict(golden).items() if v})


def write(answers: Iterable[Golden], about: Mapping[str, object]) -> list[Path]:
    """Write the files of the families that have answers; cases that were not run keep theirs."""
    fresh = {golden.case: golden for golden in answers}
    paths = {path_of(form) for form in FORMS if any(c.id in fresh for c in form.cases())}
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in paths:
        held = {**recorded(path), **fresh}
        cases = [case.id for form in FORMS if path_of(form) == path for case in form.cases()]
        lines = [json.dumps(dict(about)), *(_line(held[id]) for id in cases if id in held)]
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return sorted(paths)
