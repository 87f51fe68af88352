"""Many cases through one ptxas process, and which of their lines it refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ptxgen.errors import AssembleError
from ptxgen.isa.forms import Case
from ptxgen.toolchain.assemble import assemble

_ERROR = re.compile(r"line (\d+); (error|fatal)\s*:\s*(.*)")
PARAMS = ".param .u64 case_in, .param .u64 case_out, .param .align 128 .b8 case_map[128]"
# What the kernel of every case offers to the lines around its instruction.
HELPERS = (
    ".reg .b32 %thread, %smem;",
    ".reg .b64 %in, %gmem, %tmap;",
    ".reg .pred %lane0;",
)
LABEL = "$PAST:"  # where a branch under test goes
_PARSE_ONLY = "compute_90a"


def refusals(
    cases: Iterable[Case], ptx: tuple[int, int], target: str, *, parse_only: bool = False
) -> dict[str, list[str]]:
    """Case id -> ptxas's messages, for the cases that it refuses under this header.

    Raises AssembleError where ptxas failed for a reason that is no case's own.
    """
    remaining, refused = list(cases), {}
    while remaining:
        found, fatal = _once(remaining, ptx, target, parse_only)
        for owner, messages in found.items():
            refused.setdefault(owner, []).extend(messages)
        if not fatal:
            break
        # A fatal error ends ptxas before it has read the rest: ask again without that case.
        remaining = [case for case in remaining if case.id not in found]
    return refused


def _once(
    cases: list[Case], ptx: tuple[int, int], target: str, parse_only: bool
) -> tuple[dict[str, list[str]], bool]:
    """One ptxas process: the refused cases, and whether it stopped at one of them."""
    text, owners = module(cases, ptx, target)
    try:
        assemble(text, target=_PARSE_ONLY if parse_only else "sm_90a")
    except AssembleError as error:
        refused: dict[str, list[str]] = {}
        fatal = False
        for line, kind, message in _ERROR.findall(error.log):
            owner = owners.get(int(line))
            if owner is None:
                raise
            refused.setdefault(owner, []).append(message)
            fatal |= kind == "fatal"
        if not refused and not parse_only:
            raise
        return refused, fatal
    return {}, False


def module(
    cases: Iterable[Case], ptx: tuple[int, int], target: str
) -> tuple[str, Mapping[int, str]]:
    """A module with one entry a form, one line a case; and the case of each line."""
    lines = [f".version {ptx[0]}.{ptx[1]}", f".target {target}", ".address_size 64"]
    owners: dict[int, str] = {}
    by_form: dict[str, list[Case]] = {}
    for case in cases:
        by_form.setdefault(case.form.id, []).append(case)
    for index, members in enumerate(by_form.values()):
        run = members[0].run
        lines += [line.format_map(members[0].names) for line in run.globals]
        lines += [f".entry form{index}({PARAMS}) {' '.join(run.directives)}", "{", *HELPERS]
        for case in members:
            label = [LABEL] if "bra" in case.text or "brx" in case.text else []
            labels = [line.format_map(case.names) for line in case.run.before if line[0] == "$"]
            block = ["{", *declarations(case), *labels, *case.text.split("\n"), *label, "}"]
            owners |= {len(lines) + i: case.id for i in range(1, len(block) + 1)}
            lines += block
        lines += ["ret;", "}"]
    return "\n".join([*lines, ""]), owners


def declarations(case: Case) -> list[str]:
    """The registers of a case. Untyped: ptxas takes them for any type of their width."""
    groups: dict[str, list[str]] = {}
    for operand in case.operands:
        kind = "pred" if operand.bits == 1 else f"b{operand.bits}"
        groups.setdefault(kind, []).extend(operand.registers)
    lines = [f".reg .{kind} {', '.join(names)};" for kind, names in groups.items()]
    return lines + [f".reg .{text};" for text in case.run.scratch]
