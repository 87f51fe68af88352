"""What is known on every path: a forward analysis over the flow graph.

A state is any immutable value. It enters at the first block, is changed by each block, and where
paths meet, `meet` keeps what holds on all of them. Loops are walked until nothing changes; `meet`
must only ever take knowledge away, so that this ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from ptxgen.toolchain.flow import Block, predecessors_of, reverse_postorder

State = TypeVar("State")


def forward(
    blocks: tuple[Block, ...],
    *,
    entry: State,
    through: Callable[[Block, State], State],
    meet: Callable[[State, State], State],
) -> Mapping[int, State]:
    """The state at the start of every block that can be reached."""
    order = reverse_postorder(blocks)
    predecessors = predecessors_of(blocks)
    starts: dict[int, State] = {}
    ends: dict[int, State] = {}
    changed = True
    while changed:
        changed = False
        for index in order:
            states = [ends[p] for p in sorted(predecessors[index]) if p in ends]
            if index == order[0]:
                states.append(entry)
            state = states[0]
            for other in states[1:]:
                state = meet(state, other)
            if index in starts and starts[index] == state:
                continue
            starts[index] = state
            ends[index] = through(blocks[index], state)
            changed = True
    return starts
