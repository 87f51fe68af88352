"""HAZARDS.md, made from the table of rules and from the twins.

python -m ptxgen.isa.hazards [HAZARDS.md]
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from ptxgen.isa import twins
from ptxgen.isa.rules import CHAPTERS, Rule

ROOT = Path(__file__).resolve().parents[2]
_WHEN = {
    "always": "every run on the emulator",
    "checked": "runs with hazard checks (`ptxgen check`, `EmulatorBackend(hazards=True)`)",
    "lint": "reading the PTX, before it runs (`ptxgen check --static` does only that)",
}
_HEAD = """\
# Hazards

Made by `python -m ptxgen.isa.hazards` from `ptxgen/isa/rules.py` and `tests/hazards/twins`; a test
keeps it so. A rule has a code, which findings carry. An *error* fails a check; *advice* is for what
is disputed, or formally wrong and mostly harmless, and fails nothing.

Every rule has twins: two programs that differ by the lines shown here, `-` only in the bad one, `+`
only in the good one; the arrows say what the finding points at. Tests hold that the bad one is
caught with this code, the right lines, bytes and cure, and that the good one is silent however
copies and warps are scheduled. The file is the good one, as it stands; its comments make the bad
one ([`ptxgen/isa/twins.py`](ptxgen/isa/twins.py)).
"""


def document(chapters: Mapping[str, tuple[Rule, ...]]) -> str:
    """The text of HAZARDS.md."""
    rules = tuple(rule for chapter in chapters.values() for rule in chapter)
    counts = Counter[str](rule.when for rule in rules)
    parts = [_HEAD, f"{len(rules)} rules. Who finds them:\n"]
    parts += [f"* **{when}** ({counts[when]}): {text}" for when, text in _WHEN.items()]
    parts.append("")
    parts += _contents(rules)
    for name, chapter in chapters.items():
        parts.append(f"## {name}\n")
        parts += [part for rule in chapter for part in _rule(rule)]
    return "\n".join(parts).rstrip("\n") + "\n"


def _contents(rules: Iterable[Rule]) -> list[str]:
    rows = ["| rule | severity | found by | what is wrong |", "|---|---|---|---|"]
    rows += [
        f"| [`{rule.code}`](#{rule.code}) | {rule.severity} | {rule.when} | {rule.title} |"
        for rule in rules
    ]
    return [*rows, ""]


def _rule(rule: Rule) -> list[str]:
    pair = twins.read(rule.code)
    return [
        f"### {rule.code}\n",
        f"{_sentence(rule.title)} ({rule.severity}, {rule.when}).\n",
        f"* why: {rule.reason}",
        f"* cure: {rule.cure}",
        f"* PTX ISA: {rule.isa}",
        f"* twins: [`{rule.code}.ptx`](tests/hazards/twins/{rule.code}.ptx)\n",
        "```diff",
        *pair.difference,
        "```\n",
    ]


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def main() -> int:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "HAZARDS.md"
    path.write_text(document(CHAPTERS), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
