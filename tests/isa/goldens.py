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
    inputs: str
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


def write(answers: Iterable[Golden], about: Mapping[str, object]) -> list[Path]:
    """Write the files of all families that have answers; cases that were not run keep theirs."""
    fresh = {golden.case: golden for golden in answers}
    paths: dict[Path, list[str]] = {}
    for form in FORMS:
        path = path_of(form)
        for case in form.cases():
            golden = fresh.get(case.id) or recorded(path).get(case.id)
            if golden is not None:
                fields = {k: v for k, v in asdict(golden).items() if v}
                paths.setdefault(path, [json.dumps(dict(about))]).append(json.dumps(fields))
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, lines in paths.items():
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return list(paths)
