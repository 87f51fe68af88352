"""ptxas's output as data.

    ptxas k.ptx, line 14; error   : Unknown modifier '.u33'
    ptxas info    : (C7511) Potential Performance Loss: ... in the function 'k' in line 270
    ptxas info    : Compiling entry function 'k' for 'sm_90a'
    ptxas info    : Function properties for k
        0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
    ptxas info    : Used 168 registers, used 2 barriers, 1024 bytes smem, 600 bytes cmem[0]

Resources of every function become `Resources`, everything else that has something to say becomes a
`Diagnostic`. Nothing is dropped: a line that is neither stays in `AssemblyReport.other`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal, TypeAlias

from ptxgen.toolchain.advice import Advice, advice_for

Severity: TypeAlias = Literal["info", "warning", "error", "fatal"]

_MESSAGE = re.compile(
    r"^ptxas\s+(?:(?P<file>.*?), line (?P<line>\d+); )?"
    r"(?P<severity>info|warning|error|fatal)\s*: (?:\((?P<code>C\d+)\) )?(?P<text>.*)$"
)
_LINE_IN_TEXT = re.compile(r"\b(?:in|at|around) line (\d+)")
_FUNCTION_IN_TEXT = re.compile(r"(?:in (?:the )?function|Entry function) '?([\w$.]+)'?")
_COMPILING = re.compile(r"Compiling entry function '(.+?)' for '(.+?)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"^Used (\d+) registers(?P<rest>.*)$")
_COUNTS: dict[str, re.Pattern[str]] = {
    "barriers": re.compile(r"used (\d+) barriers"),
    "smem_bytes": re.compile(r"(\d+) bytes smem"),
    "cumulative_stack_bytes": re.compile(r"(\d+) bytes cumulative stack size"),
}
_CMEM = re.compile(r"(\d+) bytes cmem\[\d+\]")
# A wgmma with 128 accumulators, 16 names a line, takes 10 lines.
_STATEMENT_LINES = 16
# Lines that only say what the command did.
_CHATTER = re.compile(r"^(\d+ bytes gmem|Compile time = |Ptx assembly aborted due to errors)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What one function takes. `entry` is False for a `.func`. Sizes are in bytes."""

    function: str
    entry: bool
    target: str = ""
    registers: int = 0  # a thread at kernel entry
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0
    stack_bytes: int = 0
    cumulative_stack_bytes: int = 0
    smem_bytes: int = 0  # static
    cmem_bytes: int = 0
    barriers: int = 0  # named barriers

    @property
    def spills(self) -> bool:
        return self.spill_store_bytes > 0 or self.spill_load_bytes > 0

    def __str__(self) -> str:
        return (
            f"{self.function}: {self.registers} registers, {self.barriers} barriers, "
            f"{self.smem_bytes:,} B static shared memory, {self.stack_bytes} B stack, "
            f"{self.spill_store_bytes} B spill stores, {self.spill_load_bytes} B spill loads"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One remark of ptxas. `line` is the PTX line (from 1), None when ptxas names none.

    `source` is the text of the statement there and `origin` the template line behind it, where
    they are known.
    """

    severity: Severity
    text: str
    code: str = ""
    line: int | None = None
    function: str = ""
    source: str = ""
    origin: str = ""

    @property
    def advice(self) -> Advice | None:
        return advice_for(self.text)

    @property
    def is_error(self) -> bool:
        return self.severity in ("error", "fatal")

    @property
    def is_advisory(self) -> bool:
        """ptxas went on, but something was lost: a numbered remark, or one that says so itself."""
        says_so = self.text.startswith(("Potential Performance Loss", "Advisory"))
        return not self.is_error and (bool(self.code) or says_so or self.severity == "warning")

    def __str__(self) -> str:
        return self.render()

    def render(self, *, advise: bool = True) -> str:
        """The remark, its lines and, if asked for, what it means and what to do."""
        where = f"PTX line {self.line}: " if self.line is not None else ""
        code = f"({self.code}) " if self.code else ""
        advice = self.advice if advise else None
        rows = [
            ("ptx", shorten(self.source)),
            ("from", self.origin),
            ("means", advice.meaning if advice else ""),
            ("cause", advice.cause if advice else ""),
            ("cure", advice.cure if advice else ""),
        ]
        body = [f"    {name:<6}{text}" for name, text in rows if text]
        return "\n".join([f"{where}{self.severity}: {code}{self.text}", *body])


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyReport:
    """All of ptxas's output. `other` holds, word for word, what the parser has no place for."""

    functions: tuple[Resources, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    other: tuple[str, ...] = ()

    @property
    def entries(self) -> tuple[Resources, ...]:
        return tuple(f for f in self.functions if f.entry)

    def entry(self, name: str | None = None) -> Resources:
        """The named entry, or the only one. Raises KeyError with the names that there are."""
        found = [e for e in self.entries if name is None or e.function == name]
        if len(found) != 1:
            names = ", ".join(e.function for e in self.entries) or "none"
            raise KeyError(f"entry {name or '(the only one)'}: the module has: {names}")
        return found[0]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.is_error)

    @property
    def advisories(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.is_advisory)

    @property
    def losses(self) -> tuple[str, ...]:
        """Everything that costs speed, in words: advisories, spills and stack frames."""
        frames = [
            f"{f.function}: {f.spill_store_bytes} B of spill stores, {f.spill_load_bytes} B of "
            f"spill loads, {f.stack_bytes} B of stack\n"
            f"    means registers or an array live in local memory, which is slow\n"
            f"    cure  use a smaller tile, more registers for the role, or constant array indices"
            for f in self.functions
            if f.spills or f.stack_bytes
        ]
        return (*map(str, self.advisories), *frames)

    def to_dict(self) -> dict[str, object]:
        return {
            "functions": [asdict(f) for f in self.functions],
            "diagnostics": [_diagnostic_dict(d) for d in self.diagnostics],
            "other": list(self.other),
        }

    def __str__(self) -> str:
        return "\n".join([*map(str, self.functions), *map(str, self.diagnostics), *self.other])


def render_all(diagnostics: Iterable[Diagnostic]) -> str:
    """Remarks by line, as text; a repeated remark once with all its lines, each advice once.

    A kernel with the wrong target has the same refusal at every wgmma.
    """
    by_text: dict[str, list[Diagnostic]] = {}
    for diagnostic in sorted(diagnostics, key=lambda d: d.line or 0):
        by_text.setdefault(diagnostic.text, []).append(diagnostic)
    lines: list[str] = []
    advised: set[str] = set()
    for first, *others in by_text.values():
        name = first.advice.name if first.advice is not None else ""
        lines.append(first.render(advise=name not in advised))
        advised.add(name)
        if others:
            lines.append(f"    also  PTX line {', '.join(str(d.line) for d in others)}")
    return "\n".join(lines)


def _diagnostic_dict(diagnostic: Diagnostic) -> dict[str, object]:
    advice = diagnostic.advice
    row: dict[str, object] = asdict(diagnostic)
    if advice is not None:
        row |= {"kind": advice.name, "meaning": advice.meaning, "cure": advice.cure}
    return row


def shorten(line: str) -> str:
    """A PTX line in at most 120 characters; a wgmma names up to 128 registers."""
    text = " ".join(line.split())
    return text if len(text) <= 120 else f"{text[:80]} ... {text[-35:]}"


def parse_log(log: str) -> AssemblyReport:
    """Read ptxas's stdout and stderr (any order of the two)."""
    return _LogReader().read(log)


class _LogReader:
    """Walks the lines once. Resource lines refer to the function that was named last."""

    def __init__(self) -> None:
        self._functions: dict[str, Resources] = {}
        self._diagnostics: list[Diagnostic] = []
        self._other: list[str] = []
        self._entry = ""  # "Used ..." belongs to the entry that is being compiled
        self._function = ""  # a stack frame belongs to the function of the latest properties line

    def read(self, log: str) -> AssemblyReport:
        for line in log.splitlines():
            if line.strip():
                self._line(line)
        return AssemblyReport(
            functions=tuple(self._functions.values()),
            diagnostics=tuple(self._diagnostics),
            other=tuple(self._other),
        )

    def _line(self, line: str) -> None:
        message = _MESSAGE.match(line)
        if message is None:
            if not self._frame(line):
                self._other.append(line)
            return
        text = message["text"].strip()
        if message["severity"] == "info" and self._resource(text):
            return
        if _CHATTER.match(text):
            return
        self._diagnostics.append(_diagnostic(message, text))

    def _resource(self, text: str) -> bool:
        if found := _COMPILING.search(text):
            self._entry = self._function = found[1]
            self._update(found[1], entry=True, target=found[2])
        elif found := _PROPERTIES.search(text):
            self._function = found[1]
            self._update(found[1])
        elif found := _USED.match(text):
            counts = {name: _first_int(p, found["rest"]) for name, p in _COUNTS.items()}
            cmem = sum(int(n) for n in _CMEM.findall(found["rest"]))
            self._update(self._entry, registers=int(found[1]), cmem_bytes=cmem, **counts)
        else:
            return False
        return True

    def _frame(self, line: str) -> bool:
        found = _FRAME.search(line)
        if found is None:
            return False
        stack, stores, loads = map(int, found.groups())
        self._update(
            self._function, stack_bytes=stack, spill_store_bytes=stores, spill_load_bytes=loads
        )
        return True

    def _update(self, function: str, **fields: object) -> None:
        known = self._functions.get(function, Resources(function=function, entry=False))
        self._functions[function] = replace(known, **fields)  # type: ignore[arg-type]


def _diagnostic(message: re.Match[str], text: str) -> Diagnostic:
    in_text = _LINE_IN_TEXT.search(text)
    line = int(message["line"] or (in_text[1] if in_text else 0))
    function = _FUNCTION_IN_TEXT.search(text)
    severity: Severity = message["severity"]  # type: ignore[assignment]
    return Diagnostic(
        severity=severity,
        text=text,
        code=message["code"] or "",
        line=line or None,  # ptxas 13.5 says "in line 0" where it knows none
        function=function[1] if function else "",
    )


def _first_int(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return int(found[1]) if found else 0


def annotate(
    report: AssemblyReport, ptx: str, locate: Callable[[int], str | None] | None = None
) -> AssemblyReport:
    """The same report, its remarks with the PTX line's text and, by `locate`, its template line."""
    lines = ptx.splitlines()

    def annotated(diagnostic: Diagnostic) -> Diagnostic:
        line = diagnostic.line
        if line is None or not 1 <= line <= len(lines):
            return diagnostic
        origin = (locate(line) or "") if locate is not None else ""
        return replace(diagnostic, source=statement_at(lines, line), origin=origin)

    return replace(report, diagnostics=tuple(map(annotated, report.diagnostics)))


def statement_at(lines: Sequence[str], line: int) -> str:
    """The text of the statement that ends on a line (from 1).

    ptxas names the last line of an instruction that is spread over several, which for a wgmma holds
    only its descriptors; the opcode stands above.
    """
    parts = [_code(lines[line - 1])]
    for above in reversed(lines[max(0, line - 1 - _STATEMENT_LINES) : line - 1]):
        text = _code(above)
        if not text or text.endswith((";", "{", "}", ":", ")")) or text.startswith("."):
            break
        parts.append(text)
    return " ".join(reversed(parts))


def _code(line: str) -> str:
    return line.partition("//")[0].strip()
