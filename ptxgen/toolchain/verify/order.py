"""Promises about order: what must have happened before an instruction, on every path to it.

    Guarded(pattern="UTMASTG", by="FENCE.VIEW.ASYNC", since="STS|STSM")
        no shared-memory write reaches a TMA store without a proxy fence in between

    Guarded(pattern="SYNCS.ARRIVE", by="WARPGROUP.DEPBAR", since="HGMMA", entry=True)
        no MMA is followed by an arrive without a wait for it in between

    Elected(pattern="UTMALDG")      one lane, chosen by elect.sync, gets there
    NotPerLane(pattern="UTMALDG")   and ptxas believed it

Paths are those of the flow graph (flow.py): unrolled, peeled and moved code is all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptxgen.toolchain.dataflow import forward
from ptxgen.toolchain.flow import Block, Flow, dominators_of, predecessors_of
from ptxgen.toolchain.registers import read, written
from ptxgen.toolchain.sass import GMMA, Instruction
from ptxgen.toolchain.verify.facts import TMA_ISSUE, Facts, Row, Where, shown

_NAMES = {GMMA: "wgmma", TMA_ISSUE: "TMA"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """On every path to a match of `pattern`, a match of `by` came after the latest `since`.

    `since` is what makes a new `by` necessary; with `since_operand` only its instructions that have
    this text among their operands do. `entry` says whether the start of the kernel counts as
    guarded: False where `by` must always come first, True where only a `since` asks for one.
    `where="mma_loop"` looks at matches in the innermost loops that hold a warpgroup MMA. `name` is
    what the report calls the promise.

    A `by` under a predicate guards only instructions under the same predicate. No match of
    `pattern` at all breaks the promise: it would hold nothing.
    """

    pattern: str
    by: str
    since: str
    since_operand: str = ""
    entry: bool = False
    where: Where = "kernel"
    name: str = ""
    why: str = ""

    def row(self, facts: Facts) -> Row:
        places = {i.address for _, code in facts.places(self.where) for i in code}
        found = [(i, ok) for i, ok in self._checked(facts.flow) if i.address in places]
        open_ = [i for i, ok in found if not ok]
        got = f"{len(found) - len(open_)} of {len(found)}"
        return Row(
            name=self.name or f"{self.by} between {_name(self.since)} and {_name(self.pattern)}",
            want="on every path",
            got=(got + (f", not at{shown(open_)}" if open_ else "")) if found else "no such place",
            ok=bool(found) and not open_,
            why=self.why,
        )

    def _checked(self, flow: Flow) -> Iterator[tuple[Instruction, bool]]:
        """Every match of `pattern`, and whether it is guarded. A state is None (not guarded) or
        the predicate under which the guard ran, empty for always."""
        starts = forward(
            flow.blocks,
            entry="" if self.entry else None,
            through=lambda block, state: self._through(flow.code[block.start : block.end], state),
            meet=_both,
        )
        for index, state in starts.items():
            block = flow.blocks[index]
            for instruction in flow.code[block.start : block.end]:
                if instruction.matches(self.pattern):
                    yield instruction, state in ("", instruction.predicate)
                state = self._through((instruction,), state)

    def _through(self, code: tuple[Instruction, ...], state: str | None) -> str | None:
        for instruction in code:
            if self._renews(instruction):
                state = None
            if instruction.matches(self.by) and state != "":
                state = instruction.predicate
            if state and state.lstrip("@!") in written(instruction):
                state = None  # the guard's predicate means something else from here on
        return state

    def _renews(self, instruction: Instruction) -> bool:
        return instruction.matches(self.since) and (
            not self.since_operand or self.since_operand in instruction.operand_list
        )


def _both(a: str | None, b: str | None) -> str | None:
    """What holds on two paths that meet."""
    if a == b or b == "":
        return a
    return b if a == "" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Elected:
    """Every match of the pattern runs under a predicate or branch that comes from elect.sync.

    A predicate comes from ELECT when it is ELECT's result, or was computed from one that is.
    """

    pattern: str = TMA_ISSUE
    why: str = "one lane must issue it; guard it (or branch) by elect.sync"

    def row(self, facts: Facts) -> Row:
        guarded = _elected_blocks(facts.flow)
        found: list[tuple[Instruction, bool]] = []
        for index, block in enumerate(facts.flow.blocks):
            elected, branch = guarded.get(index, (frozenset(), False))
            for instruction in facts.flow.code[block.start : block.end]:
                if instruction.matches(self.pattern):
                    own = instruction.predicate.lstrip("@!") in elected
                    found.append((instruction, branch or own))
                elected = _derive(elected, instruction)
        bare = [i for i, ok in found if not ok]
        got = f"{len(found) - len(bare)} of {len(found)}"
        return Row(
            name=f"{_name(self.pattern)} behind ELECT",
            want="all",
            got=(got + (f", not{shown(bare)}" if bare else "")) if found else "no such place",
            ok=bool(found) and not bare,
            why=self.why,
        )


def _elected_blocks(flow: Flow) -> dict[int, tuple[frozenset[str], bool]]:
    """For every block: registers that come from ELECT at its start, and whether a branch on such
    a register leads to it on every path."""

    def through(block: Block, state: frozenset[str]) -> frozenset[str]:
        for instruction in flow.code[block.start : block.end]:
            state = _derive(state, instruction)
        return state

    starts = forward(flow.blocks, entry=frozenset[str](), through=through, meet=lambda a, b: a & b)
    splits = {
        index
        for index, state in starts.items()
        if read(last := flow.code[flow.blocks[index].end - 1]) & through(flow.blocks[index], state)
        and last.base in ("BRA", "EXIT", "JMP")
    }
    dominators, predecessors = dominators_of(flow.blocks), predecessors_of(flow.blocks)

    def decides(split: int, block: int) -> bool:
        """Is the block reached through only one of the ways out of the block `split`?"""
        ways = [s for s in flow.blocks[split].successors if s in dominators[block]]
        return len(ways) == 1 and all(
            before == split or ways[0] in dominators[before] for before in predecessors[ways[0]]
        )

    return {
        index: (state, any(decides(split, index) for split in splits))
        for index, state in starts.items()
    }


def _derive(elected: frozenset[str], instruction: Instruction) -> frozenset[str]:
    """Registers that come from ELECT behind an instruction."""
    results = written(instruction)
    if instruction.base == "ELECT" or read(instruction) & elected:
        return elected | results
    # Under a predicate the old value may stay, and it came from ELECT.
    return elected if instruction.predicate else elected - results


@dataclass(frozen=True, slots=True, kw_only=True)
class NotPerLane:
    """No match of the pattern stands in a loop over lanes.

    Where ptxas cannot prove that a single lane is active it wraps the instruction in a loop that
    elects one lane after the other and ends in BRA.U.ANY.
    """

    pattern: str = TMA_ISSUE
    why: str = "ptxas cannot prove that one lane issues it; guard it (or branch) by elect.sync"

    def row(self, facts: Facts) -> Row:
        looped = [
            i
            for loop in facts.flow.loops
            if any(b.matches("BRA.U.ANY") for b in facts.flow.latch_instructions(loop))
            for i in facts.flow.instructions(loop)
            if i.matches(self.pattern)
        ]
        return Row(
            name=f"{'TMA' if self.pattern == TMA_ISSUE else self.pattern} issued lane by lane",
            want="none",
            got=(str(len(looped)) + shown(looped)) if looped else "none",
            ok=not looped,
            why=self.why,
        )


def _name(pattern: str) -> str:
    return _NAMES.get(pattern, pattern)


# --- the order facts of kernels with wgmma and TMA, ready to be promised --------------------------

ARRIVE_BEFORE_MMA = Guarded(
    pattern=GMMA, by="WARPGROUP.ARRIVE", since=GMMA, since_operand="gsb0",
    name="WARPGROUP.ARRIVE before the first wgmma of a group",
    why="without wgmma.fence a group may read registers and shared memory before they are written",
)  # fmt: skip
WAIT_BEFORE_RELEASE = Guarded(
    pattern="SYNCS.ARRIVE", by="WARPGROUP.DEPBAR", since=GMMA, entry=True, where="mma_loop",
    name="WARPGROUP.DEPBAR before a release arrive in the MMA loop",
    why="a stage that is released while a wgmma reads it may be overwritten under it",
)  # fmt: skip
FENCE_BEFORE_TMA_STORE = Guarded(
    pattern="UTMASTG|UTMAREDG", by="FENCE.VIEW.ASYNC", since="STS|STSM",
    name="FENCE.VIEW.ASYNC after STS/STSM and before a TMA store",
    why="the TMA unit does not see shared memory that was written through the generic proxy "
    "until fence.proxy.async",
)  # fmt: skip
BARRIER_BEFORE_TMA_STORE = Guarded(
    pattern="UTMASTG|UTMAREDG", by="BAR.SYNC", since="FENCE.VIEW.ASYNC",
    name="BAR.SYNC after FENCE.VIEW.ASYNC and before a TMA store",
    why="the lane that issues the store knows of the other threads' writes only behind a barrier",
)  # fmt: skip
