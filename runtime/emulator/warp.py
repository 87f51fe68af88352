"""Warp-wide instructions: shuffles, votes, matches, reductions, elect (PTX ISA 9.7.9.6, 9.7.13).

All lanes named by the member mask must execute the instruction together. A lane that is elsewhere
would hang the hardware or give an undefined value; here it is a finding.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .emit import Emitter
from .functions import lane_bits, lanes_of
from .isa import always, opcode
from .operands import Imm, Op, Two, Value
from .report import hazard
from .state import Path
from .values import Array

LANES = np.arange(32, dtype=np.uint32)


def check_members(p: Path, members: int, mask: Array | None, line: int, name: str) -> int:
    """The lanes that take part. A hazard when a member that lives is not here."""
    here = p.active(mask)
    absent = members & p.w.live & ~here
    if absent:
        raise hazard(
            "absent-lanes",
            f"{name} with member mask {members:#010x}: lanes {absent:#010x} are not here",
            path=p,
            line=line,
        )
    if here & ~members:
        raise hazard(
            "absent-lanes",
            f"{name}: lanes {here & ~members:#010x} execute it but are not in the member mask",
            path=p,
            line=line,
            reason="the executing lane must be in the member mask",
            cure="name every executing lane in the mask",
        )
    return members & here


def _members(e: Emitter, op: Op, value: Value) -> str:
    if e.uniform(value):
        return e.scalar(value)
    return f"one_of(p, {e.vector(value, 'U')}, {e.mask_argument()}, {op.line})"


# -- shfl ------------------------------------------------------------------------------------------


def _shuffle_uniform(op: Op, uniform: Callable[[Value], bool]) -> bool:
    """Broadcast from one fixed lane to the whole warp, as canonical warp indices are computed."""
    _, _, lane, clamp, *_ = op.operands
    return (
        op.has("idx")
        and isinstance(lane, Imm)
        and isinstance(clamp, Imm)
        and clamp.value == 31
        and not isinstance(op.operands[0], Two)
    )


@opcode("shfl", uniform=_shuffle_uniform)
def shuffle(e: Emitter, op: Op) -> None:
    if op.quals[0] != "sync":
        raise op.unsupported("shfl without .sync is gone since sm_70")
    dst, a, lane, clamp, members = op.operands
    mode = op.quals[1]
    first, second = (dst.first, dst.second) if isinstance(dst, Two) else (dst, None)
    arguments = f"{_members(e, op, members)}, {e.mask_argument()}, {op.line}"
    if e.uniform(dst):
        row = e.bits_row(a, 32)
        e.set_scalar(dst, f"broadcast(p, {row}, {e.scalar(lane)} & 31, {arguments})")
        return
    rows = ", ".join(e.bits_row(v, 32) for v in (a, lane, clamp))
    name = e.temporary(f"shuffle(p, '{mode}', {rows}, {arguments})")
    e.assign(first, f"{name}[0]", "U")
    if second is not None:
        e.assign(second, f"{name}[1]", "P")


def broadcast(p: Path, row: Array, lane: int, members: int, mask: Array | None, line: int) -> int:
    here = check_members(p, members, mask, line, "shfl.sync")
    if not (here >> lane) & 1:
        raise _inactive_source(p, line, lane)
    return int(row[lane])


def _inactive_source(p: Path, line: int, lane: int) -> Exception:
    return hazard(
        "inactive-source",
        f"shfl.sync reads lane {lane}, which does not take part",
        path=p,
        line=line,
        cure="read from a lane of the member mask",
    )


def shuffle_rows(
    p: Path, mode: str, a: Array, b: Array, c: Array, members: int, mask: Array | None, line: int
) -> tuple[Array, Array]:
    """(values, "the source lane was in range")."""
    here = check_members(p, members, mask, line, "shfl.sync")
    segment = ((c >> np.uint32(8)) & 31).astype(np.int64)
    clamp = (c & 31).astype(np.int64)
    lane = LANES.astype(np.int64)
    offset = (b & 31).astype(np.int64)
    low = lane & segment
    limit = low | (clamp & ~segment)
    if mode == "up":
        source = lane - offset
        valid = source >= limit
    elif mode == "down":
        source = lane + offset
        valid = source <= limit
    elif mode == "bfly":
        source = lane ^ offset
        valid = source <= limit
    else:
        source = low | (offset & ~segment)
        valid = source <= limit
    source = np.where(valid, source, lane)
    needed = lane_bits(_touched(source, here))
    if needed & ~here:
        raise _inactive_source(p, line, (needed & ~here).bit_length() - 1)
    return a[source], valid


def _touched(source: Array, here: int) -> Array:
    touched = np.zeros(32, np.bool_)
    touched[source[lanes_of(here)]] = True
    return touched


# -- vote, match, redux, elect, activemask ---------------------------------------------------------


@opcode("vote", uniform=always)
def vote(e: Emitter, op: Op) -> None:
    if op.quals[0] != "sync":
        raise op.unsupported("vote without .sync is gone since sm_70")
    d, a, members = op.operands
    row = e.vector(a, "P", array=True)
    e.set_scalar(
        d,
        f"vote(p, '{op.quals[1]}', {row}, {_members(e, op, members)}, {e.mask_argument()}, "
        f"{op.line})",
    )


def vote_row(p: Path, mode: str, row: Array, members: int, mask: Array | None, line: int) -> int:
    here = check_members(p, members, mask, line, f"vote.sync.{mode}")
    ballot = lane_bits(row) & here
    if mode == "ballot":
        return ballot
    return {"all": ballot == here, "any": ballot != 0, "uni": ballot in (0, here)}[mode]


@opcode("activemask", uniform=always)
def active_mask(e: Emitter, op: Op) -> None:
    e.set_scalar(op.operands[0], f"p.active({e.mask_argument()})")


@opcode("match")
def match(e: Emitter, op: Op) -> None:
    dst, a, members = op.operands
    first, second = (dst.first, dst.second) if isinstance(dst, Two) else (dst, None)
    row = e.bits_row(a, 64 if op.quals[-1] == "b64" else 32)
    name = e.temporary(
        f"match(p, {int(op.has('all'))}, {row}, {_members(e, op, members)}, "
        f"{e.mask_argument()}, {op.line})"
    )
    e.assign(first, f"{name}[0]", "U")
    if second is not None:
        e.assign(second, f"{name}[1]", "P")


def match_rows(
    p: Path, every: int, row: Array, members: int, mask: Array | None, line: int
) -> tuple[Array, Array]:
    here = check_members(p, members, mask, line, "match.sync")
    lanes = lanes_of(here)
    equal = (row[:, None] == row[None, :]) & lanes[None, :]
    if every:
        same = bool((row[lanes] == row[lanes][0]).all())
        return np.full(32, here if same else 0, np.uint32), np.full(32, same)
    weights = np.uint32(1) << LANES
    return np.where(equal, weights, np.uint32(0)).sum(axis=1, dtype=np.uint32), lanes


@opcode("redux", uniform=always)
def reduce(e: Emitter, op: Op) -> None:
    d, a, members = op.operands
    operation, type_ = op.quals[1], op.quals[-1]
    if type_ not in ("u32", "s32", "b32") or operation not in _REDUCTIONS:
        raise op.unsupported("there is no such reduction on sm_90a")
    row = e.vector(a, "I" if type_ == "s32" else "U", array=True)
    e.set_scalar(
        d,
        f"redux(p, '{operation}', {row}, {_members(e, op, members)}, {e.mask_argument()}, "
        f"{op.line})",
    )


_REDUCTIONS = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def redux_row(
    p: Path, operation: str, row: Array, members: int, mask: Array | None, line: int
) -> int:
    here = check_members(p, members, mask, line, "redux.sync")
    active = row[lanes_of(here)].astype(np.int64)
    return int(_REDUCTIONS[operation].reduce(active)) & 0xFFFFFFFF


@opcode("elect")
def elect(e: Emitter, op: Op) -> None:
    """The leader is the lowest lane of the mask (any fixed choice is legal)."""
    dst, members = op.operands
    first, second = (dst.first, dst.second) if isinstance(dst, Two) else (dst, None)
    name = e.temporary(f"elect(p, {_members(e, op, members)}, {e.mask_argument()}, {op.line})")
    e.set_scalar(first, name)
    if second is not None:
        e.assign(second, f"equal(LANES, {name})", "P")


def elect_lane(p: Path, members: int, mask: Array | None, line: int) -> int:
    here = check_members(p, members, mask, line, "elect.sync")
    return (here & -here).bit_length() - 1
