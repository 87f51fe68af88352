"""What can be seen to be wrong with a PTX entry by reading it (codes `lint-...` of `isa.rules`).

These are mistakes that ptxas accepts, or explains badly. Order of execution is not followed: a
program that is silent here still has to be run on the emulator.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod

from ptxgen.errors import Finding
from ptxgen.isa.arch import REGISTERS_PER_SM, REGISTERS_PER_THREAD
from ptxgen.isa.forms import TARGETS, cases
from ptxgen.isa.rules import RULES

from . import ast
from .parser import parse

WARPGROUP = 128
SPECIAL = frozenset(
    f"%{name}"
    for name in (
        "tid", "ntid", "laneid", "warpid", "nwarpid", "ctaid", "nctaid", "smid", "nsmid", "gridid",
        "is_explicit_cluster", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid",
        "cluster_ctarank", "cluster_nctarank", "lanemask_eq", "lanemask_le", "lanemask_lt",
        "lanemask_ge", "lanemask_gt", "clock", "clock_hi", "clock64", "globaltimer",
        "globaltimer_lo", "globaltimer_hi", "total_smem_size", "aggr_smem_size",
        "dynamic_smem_size", "current_graph_exec",
    )
)  # fmt: skip


def lint(module: ast.Module | str, entry: str | None = None) -> tuple[Finding, ...]:
    """All findings about one entry, in the order of their lines."""
    if isinstance(module, str):
        module = parse(module)
    function = module.entry(entry)
    instructions = tuple(function.instructions())
    found = [
        *_param_addresses(function, instructions),
        *_special_names(function),
        *_register_pool(function, instructions),
        *_versions(module, instructions),
        *_uncommitted(instructions),
        *_leaders(instructions),
    ]
    return tuple(sorted(found, key=lambda f: f.lines))


def _finding(code: str, message: str, line: int, *, cure: str = "", what: str = "") -> Finding:
    rule = RULES[code]
    return Finding(
        code=code, severity=rule.severity, message=message, lines=(line,), bytes_=what,
        reason=rule.reason, cure=cure or rule.cure, isa=rule.isa,
    )  # fmt: skip


Instructions = tuple[ast.Instruction, ...]


def _param_addresses(function: ast.Function, instructions: Instructions) -> Iterator[Finding]:
    """`mov.u64 %a, parameter` whose result is an address without going through cvta.param."""
    params = {p.name for p in function.params}
    converted = {str(i.operands[1]) for i in instructions if i.mnemonic.startswith("cvta.param")}
    bases = {
        str(o.base) for i in instructions if "param" not in i.qualifiers
        for o in i.operands if isinstance(o, ast.Address)
    }  # fmt: skip
    for i in instructions:
        if i.opcode != "mov" or len(i.operands) != 2 or str(i.operands[1]) not in params:
            continue
        register, param = map(str, i.operands)
        if register in bases and register not in converted:
            yield _finding(
                "lint-cvta",
                f"{register} holds the offset of parameter {param}, and is used as an address",
                i.line,
                cure=f"cvta.param.u64 {register}, {register}; right after it",
                what=register,
            )


def _special_names(function: ast.Function) -> Iterator[Finding]:
    for registers in _registers(function.body):
        for name in registers.names:
            if name.name in SPECIAL:
                yield _finding(
                    "lint-special-name", f"register {name.name} hides the special register",
                    registers.line, what=name.name,
                )  # fmt: skip


def _registers(block: ast.Block | None) -> Iterator[ast.Registers]:
    for statement in block.body if block is not None else ():
        if isinstance(statement, ast.Registers):
            yield statement
        elif isinstance(statement, ast.Block):
            yield from _registers(statement)


def _register_pool(function: ast.Function, instructions: Instructions) -> Iterator[Finding]:
    uses = [i for i in instructions if i.opcode == "setmaxnreg"]
    if not uses:
        return
    directives = function.directives
    threads = directives.get("reqntid") or directives.get("maxntid")
    entry = directives.get("maxnreg")
    if entry is None and not (threads and "minnctapersm" in directives):
        yield _finding(
            "lint-entry-registers", "setmaxnreg, but nothing says how many registers a thread "
            "starts with", uses[0].line,
        )  # fmt: skip
        return
    if not threads:
        return
    groups = -(-prod(threads) // WARPGROUP)
    fits = REGISTERS_PER_SM // (groups * WARPGROUP * directives.get("minnctapersm", (1,))[0])
    increases = (_count(i) for i in uses if "inc" in i.qualifiers)
    start = min(entry[0] if entry else fits // 8 * 8, REGISTERS_PER_THREAD, *increases)
    lowest = min((_count(i) for i in uses if "dec" in i.qualifiers), default=start)
    for i in uses:
        wanted = _count(i)
        if "inc" in i.qualifiers and (groups - 1) * lowest + wanted > groups * start:
            yield _finding(
                "lint-register-pool",
                f"{wanted} registers for one warpgroup: even with {lowest} in each of the other "
                f"{groups - 1} that is more than {groups} x {start}",
                i.line,
            )


def _count(instruction: ast.Instruction) -> int:
    operand = instruction.operands[0]
    return operand.value if isinstance(operand, ast.Immediate) else 0


@lru_cache(maxsize=1)
def _least() -> dict[str, tuple[tuple[int, int], str]]:
    """The least version and target of every mnemonic of the ISA table."""
    chips = tuple(TARGETS)
    least: dict[str, tuple[tuple[int, int], str]] = {}
    for case in cases():
        mnemonic = case.text.split()[0].rstrip(";")
        old = least.get(mnemonic)
        new = (case.ptx, case.target)
        if old is None or (new[0], chips.index(new[1])) < (old[0], chips.index(old[1])):
            least[mnemonic] = new
    return least


def _versions(module: ast.Module, instructions: Instructions) -> Iterator[Finding]:
    chips = tuple(TARGETS)
    target = module.target[0]
    seen: set[str] = set()
    for i in instructions:
        version, chip = _least().get(i.mnemonic, ((0, 0), ""))
        if i.mnemonic in seen or not chip:
            continue
        seen.add(i.mnemonic)
        too_old = target in chips and chips.index(target) < chips.index(chip)
        if version > module.version or too_old:
            major, minor = version
            yield _finding(
                "lint-version",
                f"{i.mnemonic} takes PTX {major}.{minor} and {chip}; the module says "
                f"{module.version[0]}.{module.version[1]} and {target}",
                i.line,
                cure=f".version {major}.{minor} and .target {chip}, or newer",
            )


# What starts asynchronous work of each kind, and what closes its groups.
_KINDS = (
    ("wgmma.mma_async", "", ("wgmma.commit_group",)),
    ("cp.async.bulk", "bulk_group", ("cp.async.bulk.commit_group",)),
    ("cp.reduce.async.bulk", "bulk_group", ("cp.async.bulk.commit_group",)),
    ("cp.async.ca", "", ("cp.async.commit_group", "cp.async.wait_all", "cp.async.mbarrier")),
    ("cp.async.cg", "", ("cp.async.commit_group", "cp.async.wait_all", "cp.async.mbarrier")),
)


def _uncommitted(instructions: Instructions) -> Iterator[Finding]:
    for start, qualifier, closers in _KINDS:
        work = [
            i for i in instructions
            if i.mnemonic.startswith(start + ".") and (not qualifier or qualifier in i.qualifiers)
        ]  # fmt: skip
        if work and not any(i.mnemonic.startswith(closers) for i in instructions):
            yield _finding(
                "lint-commit", f"{work[-1].mnemonic}: nothing in this entry commits it to a group",
                work[-1].line, cure=f"{closers[0]} after the last one",
            )  # fmt: skip


def _leaders(instructions: Instructions) -> Iterator[Finding]:
    if not any(i.mnemonic.startswith("elect.sync") for i in instructions):
        return
    lanes = {
        str(i.operands[0]) for i in instructions
        if i.opcode == "mov" and str(i.operands[-1]) == "%laneid"
    }  # fmt: skip
    for i in instructions:
        if i.opcode == "setp" and "eq" in i.qualifiers and len(i.operands) == 3:
            _, register, value = i.operands
            zero = isinstance(value, ast.Immediate) and value.value == 0
            if zero and (str(register) in lanes or str(register) == "%laneid"):
                yield _finding(
                    "lint-elect", "lane 0 is taken for the leader where elect.sync chooses one",
                    i.line,
                )  # fmt: skip
