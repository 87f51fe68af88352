"""atom and red (PTX ISA 9.7.13.11 and 12): one lane after the other, in lane order.

Scopes and orderings are accepted and change nothing: lanes and warps are interleaved at whole
instructions, so every atomic is sequentially consistent here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from .access import bank_of, resolve
from .alu_float import typed
from .async_forms import emit_async
from .clocks import SCOPES as SCOPE_NUMBERS
from .emit import Emitter, flatten
from .faults import fault
from .functions import lanes_of
from .isa import opcode
from .memory import Bank, Fault
from .operands import Mem, Op, Reg, Value
from .state import Path
from .values import BF16, BITS_CODE, Array, signed, type_bits

SCOPES = frozenset({"relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys",
                    "noftz", "L2::cache_hint"})  # fmt: skip
OPERATIONS = frozenset({"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"})


def _parse(op: Op) -> tuple[str, str, str, int]:
    """(space, operation, type, vector length)."""
    space = operation = ""
    count = 1
    for q in op.quals[:-1]:
        base = q.partition("::")[0]
        if base in ("shared", "global"):
            space = "cluster" if q == "shared::cluster" else base
        elif q in OPERATIONS:
            operation = q
        elif q in ("v2", "v4", "v8"):
            count = int(q[1:])
        elif q not in SCOPES:
            raise op.unsupported(f"qualifier .{q} is not known here")
    if op.quals[-1] == "b128":  # its registers are pairs
        return space, operation, "b64", 2
    return space, operation, op.quals[-1], count


@opcode("atom")
def emit_atomic(e: Emitter, op: Op) -> None:
    dst, mem, *sources = op.operands
    _emit(e, op, dst, mem, sources)


@opcode("red", dests=0)
def emit_reduction(e: Emitter, op: Op) -> None:
    if op.has("async"):
        emit_async(e, op, typed)
        return
    mem, *sources = op.operands
    _emit(e, op, None, mem, sources)


def _emit(e: Emitter, op: Op, dst: Value | None, mem: Value, sources: Sequence[Value]) -> None:
    space, operation, type_, count = _parse(op)
    assert isinstance(mem, Mem)
    if op.has("L2::cache_hint"):
        sources = sources[:-1]
    bits = type_bits(type_)
    if bits > 64 or not operation:
        raise op.unsupported("there is no such atomic here")
    wide = 32 if space in ("shared", "cluster") else 64
    address, one = e.address(mem, wide)
    if one:
        address = f"full_{BITS_CODE[wide]}({address})"
    rows = [
        "[" + ", ".join(e.bits_row(typed(v, type_), max(bits, 16)) for v in flatten(s)) + "]"
        for s in sources
    ]
    semantics = next((q for q in op.quals if q in ("acquire", "release", "acq_rel")), "relaxed")
    reach = next((SCOPE_NUMBERS[q] for q in op.quals if q in SCOPE_NUMBERS), SCOPE_NUMBERS["gpu"])
    e.line(f"if C.watch: C.watch.order = ('{semantics}', {reach})")
    call = (
        f"atomic(p, '{space}', '{operation}', '{type_}', {address}, [{', '.join(rows)}], "
        f"{e.mask_argument()}, {op.line})"
    )
    if dst is None:
        e.line(call)
        return
    name = e.temporary(call)
    for i, d in enumerate(flatten(dst)):
        register = d.bits if isinstance(d, Reg) else max(bits, 16)
        e.assign(d, f"{name}[{i}].astype(DT_{BITS_CODE[register]})", BITS_CODE[register])
    assert count == len(flatten(sources[0]))


INTEGER: Mapping[str, Callable[[int, int], int]] = MappingProxyType(
    {
        "add": lambda old, b: old + b,
        "min": min,
        "max": max,
        "inc": lambda old, b: 0 if old >= b else old + 1,
        "dec": lambda old, b: b if old == 0 or old > b else old - 1,
        "and": lambda old, b: old & b,
        "or": lambda old, b: old | b,
        "xor": lambda old, b: old ^ b,
        "exch": lambda old, b: b,
    }
)


def combine(operation: str, type_: str, old: int, b: int) -> int:
    """The new bits of one location. Floats are added, or compared, in their own type."""
    bits = type_bits(type_)
    if operation == "exch":
        return b
    if (type_[0] in "us" and type_[1:].isdigit()) or (
        type_[0] == "b" and type_ not in ("bf16", "bf16x2")
    ):
        if type_[0] == "s":
            old, b = signed(old, bits), signed(b, bits)
        return INTEGER[operation](old, b) & ((1 << bits) - 1)
    dtype = {"f16": np.dtype(np.float16), "bf16": BF16, "f32": np.dtype(np.float32),
             "f64": np.dtype(np.float64)}[type_.removesuffix("x2")]  # fmt: skip
    width = bits // 8
    x, y = (np.frombuffer(v.to_bytes(width, "little"), dtype) for v in (old, b))
    ufunc = {"add": np.add, "min": np.fmin, "max": np.fmax}[operation]
    wide = np.float64 if dtype.itemsize <= 2 else dtype
    result = ufunc(x.astype(wide), y.astype(wide)).astype(dtype)
    return int.from_bytes(result.tobytes(), "little")


def atomic(
    p: Path,
    space: str,
    operation: str,
    type_: str,
    address: Array,
    sources: Sequence[Sequence[Array]],
    mask: Array | None,
    line: int,
) -> list[Array]:
    """Run an atomic in the active lanes; the old values, a row an element."""
    width = type_bits(type_) // 8
    lanes = np.flatnonzero(lanes_of(p.active(mask)))
    old_rows = [np.zeros(32, np.uint64) for _ in sources[0]]
    touched: list[tuple[Bank, Array]] = []
    for lane in lanes.tolist():
        at = int(address[lane])
        bank, offset = resolve(p, space, at, line) if not space else bank_of(p, space, at, line)
        try:
            old = bank.load_one(offset, width, len(sources[0]))
            given = [[int(row[lane]) for row in source] for source in sources]
            if operation == "cas":
                new = given[1] if old == given[0] else old
            else:
                pairs = zip(old, given[0], strict=True)
                new = [combine(operation, type_, value, b) for value, b in pairs]
            for i, value in enumerate(old):
                old_rows[i][lane] = value
            if new != old:
                p.C.machine_epoch.bump()
            bank.store_one(offset, width, new)
        except Fault as error:
            raise fault(p, error, line, lane, "atomic") from None
        touched.append((bank, np.array([offset])))
    if p.C.watch is not None and touched:
        p.C.watch.access(p, touched, width * len(sources[0]), line, writes=True, modifies=True)
    return old_rows
