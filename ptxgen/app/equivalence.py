"""Mutants that no schedule notices: does a rule of PTX make them harmless?

There are two such rules, and they are shown for each mutant by itself, with its numbers.

setmaxnreg (9.7.19.5) moves registers between the warps of a CTA, and PTX registers are virtual: the
counts change what a program computes only if an increase waits for ever, or if the code of a role
does not fit its count. Neither happens where

1.  every count is legal. The emulator refuses others: they are multiples of 8 from 24 to 256, inc
    never lowers and dec never raises;
2.  what all warps hold in the end is no more than they had at the start, and each of them changes
    its count at most once. Decreases never wait, so in any order of warps the pool ends up with
    what the increases ask for;
3.  ptxas assembles it as it does the program: without spilling a register, without dropping
    setmaxnreg "to maintain minimum register requirements" and without any other remark.

A mutant that breaks 3 is killed, by ptxas. One that breaks 1 or 2 does not get here, as it fails
on the emulator; should it do so, it counts as survived.

The leading offset of a descriptor (9.7.16.5.1) is the step from one swizzle pattern to the next. An
operand that is one pattern wide has no next one: where a run of the mutant reads, in every wgmma,
each unit of each operand from the place where the program reads it, the offset does nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxgen.errors import AssembleError, ToolMissing
from ptxgen.ptx.mutate import Mutant
from ptxgen.toolchain.assemble import Cubin, assemble

if TYPE_CHECKING:
    from runtime.emulator.report import RegisterUse, Report

WARP = 32  # threads


@dataclass(frozen=True, slots=True)
class Judgement:
    """The fate of a mutant that passed under every schedule, and by what."""

    fate: str
    by: str = ""


def judge(ptx: str, mutant: Mutant, clean: Report | None, found: Report | None) -> Judgement:
    """`clean` and `found` are the reports of a run of the program and of one of the mutant."""
    if clean is None or found is None:
        return Judgement("survived")
    if "setmaxnreg" in mutant.operator:
        return _registers(ptx, mutant, found.registers)
    if mutant.operator == "descriptor leading stride":
        return _leading(clean, found)
    return Judgement("survived")


def _leading(clean: Report, found: Report) -> Judgement:
    if not clean.operands or clean.operands != found.operands:
        return Judgement("survived")
    return Judgement(
        "equivalent",
        "9.7.16.5.1 leading dimension byte offset: the operand is one swizzle pattern wide, so "
        f"all {clean.operands.total():,} reads of operands in a run are of the same places",
    )


def _registers(ptx: str, mutant: Mutant, registers: Sequence[RegisterUse]) -> Judgement:
    sums = [pool_sum(use) for use in registers]
    if not sums or "" in sums:
        return Judgement("survived")
    try:
        before = assemble(ptx)
        after = assemble(mutant.source)
    except ToolMissing as error:
        return Judgement("survived", f"no ptxas to ask whether roles fit: {error}")
    except AssembleError:
        return Judgement("killed", "ptxas refuses it")
    given_up = _remarks(after) - _remarks(before)
    if given_up:
        return Judgement("killed", f"ptxas: {', '.join(sorted(given_up))}")
    return Judgement(
        "equivalent",
        f"9.7.19.5 setmaxnreg: the total stays within the pool, {'; '.join(sums)}; so no inc "
        f"waits, and ptxas {after.ptxas} fits every role into its count without a spill or remark",
    )


def pool_sum(use: RegisterUse) -> str:
    """The registers that the warps of a CTA end up with, as a sum beside what they started with;
    "" where that sum is too large, or a warp changed its count more than once."""
    held = Counter(use.held)
    total, pool = WARP * sum(use.held), WARP * use.entry * len(use.held)
    if total > pool or max(use.changes) > 1:
        return ""
    terms = " + ".join(f"{WARP * n} x {count}" for count, n in sorted(held.items()))
    return (
        f"{terms} = {total:,} registers of the {pool:,} that {WARP * len(use.held)} threads have "
        f"at entry, {use.entry} each"
    )


def _remarks(cubin: Cubin) -> frozenset[str]:
    """What ptxas gave up, in words."""
    report = cubin.report
    remarks = {d.code or d.text for d in report.diagnostics}
    spills = any(f.spill_store_bytes or f.spill_load_bytes for f in report.functions)
    return frozenset(remarks | ({"spills"} if spills else set()))
