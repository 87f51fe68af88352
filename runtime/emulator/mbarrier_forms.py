"""Emitters of mbarrier instructions, and of addresses in other CTAs (mapa, getctarank)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .clocks import SCOPES
from .emit import Emitter
from .functions import lanes_of
from .isa import opcode
from .operands import Imm, Mem, Op, Sink, Value
from .report import hazard
from .space import RANK_SHIFT
from .state import PARK, Path
from .values import Array

KNOWN = frozenset(
    {
        "init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx", "test_wait",
        "try_wait", "parity", "pending_count", "noComplete", "shared", "shared::cta",
        "shared::cluster", "b64",
        "release", "acquire", "relaxed", "cta", "cluster",
    }
)  # fmt: skip


def _is_wait(op: Op) -> bool:
    return op.quals[0] in ("test_wait", "try_wait")


def _dests(op: Op) -> int:
    return int(op.quals[0] in ("arrive", "arrive_drop", "test_wait", "try_wait", "pending_count"))


def _uniform(op: Op, uniform: Callable[[Value], bool]) -> bool:
    return _is_wait(op) and all(uniform(o) for o in op.operands[1:3])


@opcode("mbarrier", dests=_dests, uniform=_uniform, waits=lambda op: op.quals[0] == "try_wait")
def mbarrier(e: Emitter, op: Op) -> None:
    unknown = set(op.quals) - KNOWN
    if unknown:
        raise op.unsupported(f"qualifier .{unknown.pop()} is not known here")
    kind, operands = op.quals[0], op.operands
    tail = f"{e.mask_argument()}, {op.line}"
    remote = int(op.has("shared::cluster"))
    if kind == "pending_count":
        row = e.bits_row(operands[1], 64)
        e.assign(operands[0], f"({row} & 0xFFFFFFFF).astype(DT_U)", "U")
    elif kind == "init":
        e.line(f"mbarrier_init(p, {_address(e, operands[0])}, {_number(e, operands[1])}, {tail})")
    elif kind == "inval":
        e.line(f"mbarrier_inval(p, {_address(e, operands[0])}, {tail})")
    elif kind in ("expect_tx", "complete_tx"):
        arguments = f"'{kind}', {_address(e, operands[0])}, {_number(e, operands[1])}, {remote}"
        e.line(f"mbarrier_tx(p, {arguments}, {tail})")
    elif kind in ("arrive", "arrive_drop"):
        _arrive(e, op, remote, tail)
    else:
        _wait(e, op, tail)


def _address(e: Emitter, value: Value) -> str:
    assert isinstance(value, Mem)
    wide = not e.uniform(value.base) and getattr(value.base, "bits", 32) == 64
    return e.address(value, 64 if wide or getattr(value.base, "bits", 32) == 64 else 32)[0]


def _number(e: Emitter, value: Value, bits: int = 32) -> str:
    """An integer expression, or a row where lanes may differ."""
    if e.uniform(value):
        return e.scalar(value, bits)
    return e.vector(value, "U" if bits == 32 else "W")


def _scope(op: Op) -> int:
    """The scope of the release or acquire; -1 for .relaxed."""
    words = [q for q in op.quals if q in SCOPES]
    return -1 if op.has("relaxed") else SCOPES[words[0]] if words else SCOPES["cta"]


def _arrive(e: Emitter, op: Op, remote: int, tail: str) -> None:
    dst, mem, *rest = op.operands
    if remote and not isinstance(dst, Sink):
        raise op.unsupported("an arrive on another CTA's barrier returns no state: use _")
    tx = _number(e, rest[0]) if op.has("expect_tx") else "None"
    count = _number(e, rest[0]) if rest and not op.has("expect_tx") else "1"
    drop = int(op.quals[0] == "arrive_drop")
    if op.has("noComplete"):
        e.line(f"mbarrier_no_complete(p, {_address(e, mem)}, {count}, {tail})")
    how = f"{drop}, {remote}, {_scope(op)}"
    call = f"mbarrier_arrive(p, {_address(e, mem)}, {count}, {tx}, {how}, {tail})"
    if isinstance(dst, Sink):
        e.line(call)
    else:
        e.assign(dst, call, "W")


def _wait(e: Emitter, op: Op, tail: str) -> None:
    dst, mem, value = op.operands[:3]
    parity, blocking = int(op.has("parity")), int(op.quals[0] == "try_wait")
    number = _number(e, value, 32 if parity else 64)
    how = f"{parity}, {blocking}, {_scope(op)}"
    name = e.temporary(f"mbarrier_wait(p, {_address(e, mem)}, {number}, {how}, {tail})")
    if blocking:
        e.line(f"if {name} is None: return {PARK}")
    if e.uniform(dst):
        e.set_scalar(dst, name)
    else:
        e.assign(dst, name, "P")


@opcode("mapa")
def map_address(e: Emitter, op: Op) -> None:
    """The address of the same variable in another CTA of the cluster."""
    d, a, rank = op.operands
    bits = 64 if op.quals[-1] == "u64" else 32
    if e.uniform(a) and isinstance(rank, Imm):
        e.line(f"check_rank(p, {rank.value}, None, {op.line})")
    code = "W" if bits == 64 else "U"
    row, ranks = e.bits_row(a, bits), e.bits_row(rank, 32)
    name = e.temporary(f"check_rank(p, {ranks}, {e.mask_argument()}, {op.line})")
    e.assign(
        d,
        f"({row} & {((1 << bits) - 1) & ~(255 << RANK_SHIFT)}) | "
        f"({name}.astype(DT_{code}) << {RANK_SHIFT})",
        code,
    )


def check_rank(p: Path, rank: Any, mask: Array | None, line: int) -> Any:
    """CTA ranks must lie in the cluster, in the active lanes."""
    active = [rank] if isinstance(rank, int) else rank[lanes_of(p.active(mask))].tolist()
    bad = [r for r in active if r >= p.C.cluster_size]
    if bad:
        raise hazard(
            "cluster-rank",
            f"mapa to CTA rank {bad[0]} of a cluster of {p.C.cluster_size}",
            path=p,
            line=line,
            cure="ranks are 0 .. %cluster_nctarank - 1",
        )
    return rank


@opcode("getctarank")
def get_rank(e: Emitter, op: Op) -> None:
    d, a = op.operands
    bits = getattr(a, "bits", 32)
    row = e.bits_row(a, bits)
    e.assign(d, f"(({row} >> {RANK_SHIFT}) & 255).astype(DT_U)", "U")
