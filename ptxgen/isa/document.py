"""ISA.md, made from the table of forms and from what the H200 has answered.

python -m ptxgen.isa.document [ISA.md]
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path

from ptxgen.isa.forms import FORMS, Case, Form

ROOT = Path(__file__).resolve().parents[2]
GOLDENS = ROOT / "tests" / "golden" / "isa"

_HEAD = """\
# The instruction set

Made by `python -m ptxgen.isa.document` from `ptxgen/isa/forms/`; a test keeps it so. A row is a
form: an instruction with its axes in braces. A case is a form with every axis fixed; the four
columns count cases. Tests hold each column:

* **macro**: a macro of `ptx_templates/lib` emits the case as the table spells it.
* **ptxas**: it assembles with the least `.version` and target and with the newest; with less it
  does not, and what the table calls illegal does not either.
* **emulator**: the emulator executes a kernel of that one instruction; what it refuses raises
  `UnsupportedPtx` with the line.
* **H200**: the hardware has run the same kernel on the same inputs, and the emulator's result
  agrees: the same bits; for `approx` functions 2 ulp, or the error that the PTX ISA states.
  `tests/gpu/record_isa.py` records.

A case that the H200 column lacks is refused by the emulator, or the H200 has not been asked.
"""


def answered(folder: Path = GOLDENS) -> set[str]:
    """The ids of the cases that the H200 has run."""
    found = set()
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines()[1:]:
            record: Mapping[str, str] = json.loads(line)
            if not record.get("fault"):
                found.add(record["case"])
    return found


def document(forms: Iterable[Form], hardware: set[str]) -> str:
    """The text of ISA.md. `hardware` holds the case ids of `answered`."""
    forms = sorted(forms, key=lambda form: form.family)
    parts = [_HEAD, _total(forms, hardware)]
    for family, members in groupby(forms, key=lambda form: form.family):
        parts.append(f"## {family}\n")
        parts.append("| form | instruction | least | macro | ptxas | emulator | H200 |")
        parts.append("|---|---|---|---|---|---|---|")
        listed = list(members)
        parts += [_row(form, hardware) for form in listed]
        parts += ["", *_reasons(listed)]
    return "\n".join(parts)


def _total(forms: Iterable[Form], hardware: set[str]) -> str:
    forms = list(forms)
    cases = [case for form in forms for case in form.cases()]
    executed = sum(not case.refused for case in cases)
    agreed = sum(case.id in hardware and not case.refused for case in cases)
    return (
        f"{len(forms)} forms, {len(cases):,} cases: all emitted and assembled, {executed:,} "
        f"executed by the emulator, {agreed:,} held to the H200.\n"
    )


def _row(form: Form, hardware: set[str]) -> str:
    cases = form.cases()
    total = len(cases)
    executed = [case for case in cases if not case.refused]
    agreed = sum(case.id in hardware for case in executed)
    ptx, target = min((case.ptx, case.target) for case in cases)
    columns = [
        f"`{form.id}`",
        f"`{_shown(form)}`",
        f"{ptx[0]}.{ptx[1]} {target}",
        *(f"{n}/{total}" for n in (total, total, len(executed), agreed)),
    ]
    return "| " + " | ".join(columns) + " |"


def _shown(form: Form) -> str:
    """The instruction, operands without braces, on one line."""
    text = re.sub(r"\{(\w+)\}", lambda m: m[0] if m[1] in form.axes else m[1], form.text)
    text = text.replace("{{", "{").replace("}}", "}")
    return " ".join(text.split()).replace("|", "\\|")


def _reasons(forms: Iterable[Form]) -> list[str]:
    """Why cases of a family are refused, each reason once."""
    refused: dict[str, list[Case]] = {}
    for form in forms:
        for case in form.cases():
            if case.refused:
                refused.setdefault(case.refused, []).append(case)
    lines = []
    for why, cases in refused.items():
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(case.form.id for case in cases))
        lines.append(f"* Refused: {names} ({len(cases)} cases), because: {why}.")
    return [*lines, ""] if lines else []


def main() -> int:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "ISA.md"
    path.write_text(document(FORMS, answered()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
