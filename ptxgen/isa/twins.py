"""Twins: for every rule a program that keeps it, and the same program without what it needs.

`tests/hazards/twins/CODE.ptx` is the good one, as it stands. Its comments make the bad one:

    bar.sync 0;               // good        only the good twin has this line
    // bad: bar.sync 1;                      only the bad twin has this one
    ld.shared.b32 %x, [%a];   // <- CODE     the finding is about this line
    st.shared.b32 [%a], %x;   // <- earlier  and about this one, which came first
    st.shared.b32 [%a], 1;    // <- CODE, earlier    both at once

Lines keep their numbers. On top stand the title of the rule, the command that checks the program,
and what the finding says where that is not in the table of rules (`bytes:`, `cure:`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "hazards" / "twins"
CONTEXT = 2  # lines shown around a difference
_BAD = re.compile(r"^(\s*)// bad: (.*)$")
_GOOD = re.compile(r"\s// good$")
_MARK = re.compile(r"\s+// <- ([\w-]+)(?:, (earlier))?$")
_HEADER = re.compile(r"^// (bytes|cure): (.*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Twins:
    """One rule's programs. `options` are the words of the command after the file name."""

    code: str
    title: str
    options: tuple[str, ...]
    good: str
    bad: str
    lines: tuple[int, ...]  # of the finding, then of what came earlier
    says: dict[str, str]  # bytes, cure: where they are not those of the rule

    @property
    def difference(self) -> tuple[str, ...]:
        """From bad to good as a diff: what changes, where it is found, and lines around that."""
        bad, good = self.bad.splitlines(), self.good.splitlines()
        marks = dict(zip(self.lines, (f"// <- {self.code}", "// <- earlier"), strict=False))
        if len(set(self.lines)) < len(self.lines):
            marks = {self.lines[0]: f"// <- {self.code}, earlier"}
        rows = [i for i, (b, g) in enumerate(zip(bad, good, strict=True)) if b != g]
        near = {j for i in rows for j in range(i - CONTEXT, i + CONTEXT + 1)}
        shown = sorted((near | {n - 1 for n in marks}) & set(range(len(bad))))
        return tuple(_diff(bad, good, shown, marks))


def read(code: str, folder: Path = FOLDER) -> Twins:
    """The twins of a rule. Raises FileNotFoundError where there are none."""
    return parse(code, (folder / f"{code}.ptx").read_text(encoding="utf-8"))


def parse(code: str, text: str) -> Twins:
    """Twins from the text of a file. Raises ValueError where it is not laid out as above."""
    rows = text.splitlines()
    title = rows[0].removeprefix(f"// {code}: ")
    command = shlex.split(rows[1].removeprefix("// "))
    if title == rows[0] or command[:3] != ["ptxgen", "check", f"{code}.ptx"]:
        raise ValueError(f"{code}: the first two lines must be the title and the command")
    marks = {
        name: number
        for number, row in enumerate(rows, 1)
        if (match := _MARK.search(row))
        for name in match.groups()
        if name
    }
    if set(marks) - {code, "earlier"}:
        raise ValueError(f"{code}: it marks {sorted(marks)}")
    says = {m[1]: m[2] for row in rows if (m := _HEADER.match(row))}
    return Twins(
        code=code, title=title, options=tuple(command[3:]), says=says,
        good=_text(rows, _good_line), bad=_text(rows, _bad_line),
        lines=tuple(marks[name] for name in (code, "earlier") if name in marks),
    )  # fmt: skip


def _text(rows: Sequence[str], line: Callable[[str], str]) -> str:
    return "".join(f"{line(row)}\n" for row in rows)


def _good_line(row: str) -> str:
    return "" if _BAD.match(row) else _bare(row)


def _bad_line(row: str) -> str:
    if match := _BAD.match(row):
        return _bare(match[1] + match[2])
    return "" if _GOOD.search(row) else _bare(row)


def _bare(row: str) -> str:
    """A line without its mark."""
    return _GOOD.sub("", _MARK.sub("", row)).rstrip()


def _diff(
    bad: Sequence[str], good: Sequence[str], shown: Sequence[int], marks: Mapping[int, str]
) -> Iterator[str]:
    last = shown[0] - 1
    for i in shown:
        if i != last + 1:
            yield "     ..."
        last = i
        mark = f"  {marks[i + 1]}" if i + 1 in marks else ""
        if bad[i] == good[i]:
            yield f" {bad[i]}{mark}".rstrip()
            continue
        if bad[i]:
            yield f"-{bad[i]}{mark}"
        if good[i]:
            yield f"+{good[i]}"
