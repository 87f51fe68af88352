"""Emitter of st.async and red.async (PTX ISA 9.7.9.12, 9.7.13.7): writes to the shared memory of a
CTA of the cluster, which signal an mbarrier there with their bytes."""

from __future__ import annotations

from collections.abc import Callable

from .emit import Emitter, flatten
from .operands import Mem, Op, Reg, Value
from .values import BITS_CODE, type_bits

COMPLETE = "mbarrier::complete_tx::bytes"
_FIXED = frozenset({"async", "weak", "relaxed", "cluster", "shared::cluster", COMPLETE})
_OPERATIONS = frozenset({"add", "min", "max", "inc", "dec", "and", "or", "xor"})


def emit_async(e: Emitter, op: Op, typed: Callable[[Value, str], Value]) -> None:
    """Either instruction; the operation of a plain store is ""."""
    type_ = op.quals[-1]
    rest = [q for q in op.quals[:-1] if q not in _FIXED and q not in ("v2", "v4")]
    operation = rest.pop(0) if rest and rest[0] in _OPERATIONS else ""
    if rest or not op.has("shared::cluster") or not op.has(COMPLETE):
        raise op.unsupported("only .shared::cluster with mbarrier::complete_tx::bytes exists here")
    mem, source, mbar = op.operands
    assert isinstance(mem, Mem)
    assert isinstance(mbar, Mem)
    bits = type_bits(type_)
    values = [typed(v, type_) for v in flatten(source)]
    rows = [e.bits_row(v, v.bits if isinstance(v, Reg) else bits) for v in values]
    addresses = [_row(e, m) for m in (mem, mbar)]
    e.line(
        f"async_store(p, '{operation}', '{type_}', {addresses[0]}, [{', '.join(rows)}], "
        f"{addresses[1]}, {e.mask_argument()}, {op.line})"
    )


def _row(e: Emitter, mem: Mem) -> str:
    bits = 64 if getattr(mem.base, "bits", 32) == 64 else 32
    text, one = e.address(mem, bits)
    return f"full_{BITS_CODE[bits]}({text})" if one else text
