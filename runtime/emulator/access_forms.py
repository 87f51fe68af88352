"""Emitters of ld, st and their relatives, and of hints about memory; they call `access`."""

from __future__ import annotations

from collections.abc import Callable

from .alu_float import typed
from .async_forms import emit_async
from .clocks import SCOPES
from .emit import Emitter, flatten
from .isa import opcode
from .operands import Mem, Op, Reg, Symbol, Value
from .space import RANK_SHIFT, WINDOW_BYTES, WINDOWS
from .values import BITS_CODE, type_bits

# Cache and ordering qualifiers that do not change what a single access does here.
HINTS = frozenset(
    {
        "weak", "volatile", "relaxed", "acquire", "release", "mmio", "cta", "cluster", "gpu", "sys",
        "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "L1::evict_normal", "L1::evict_unchanged",
        "L1::evict_first", "L1::evict_last", "L1::no_allocate", "L2::cache_hint", "L2::64B",
        "L2::128B", "L2::256B", "unified",
    }
)  # fmt: skip
SPACES = frozenset({"shared", "global", "local", "param", "const"})


def _form(op: Op) -> tuple[str, int, str]:
    """(space, vector length, type) of a load or store. Generic space is ""."""
    space, count = "", 1
    for q in op.quals[:-1]:
        base = q.partition("::")[0]
        if base in SPACES:
            space = "cluster" if q == "shared::cluster" else base
        elif q in ("v2", "v4"):
            count = int(q[1:])
        elif q not in HINTS:
            raise op.unsupported(f"qualifier .{q} is not known here")
    mem = next((o for o in op.operands if isinstance(o, Mem)), None)
    if space == "param" and mem is not None and isinstance(mem.base, Symbol):
        space = mem.base.space  # arguments of an inlined call live in the frame
    return space, count, op.quals[-1]


_STRONG = frozenset({"relaxed", "acquire", "release", "volatile", "mmio"})


def emit_order(e: Emitter, op: Op) -> None:
    """Tell the checks that the next access is strong: its semantics and scope."""
    words = [q for q in op.quals if q in _STRONG]
    semantics = next((w for w in words if w in ("acquire", "release")), "relaxed")
    scopes = [q for q in op.quals if q in SCOPES]
    if words:
        e.line(f"if C.watch: C.watch.order = ('{semantics}', {SCOPES[(*scopes, 'sys')[0]]})")


def _load_uniform(op: Op, uniform: Callable[[Value], bool]) -> bool:
    """One value a warp: uniform address in a space where all lanes see the same bytes."""
    space, _, _ = _form(op)
    return space in ("shared", "cluster", "global", "param", "const") and uniform(op.operands[1])


@opcode("ld", "ldu", uniform=_load_uniform)
def load(e: Emitter, op: Op) -> None:
    space, count, type_ = _form(op)
    dests, mem = flatten(op.operands[0]), op.operands[1]
    assert isinstance(mem, Mem)
    width = type_bits(type_) // 8
    if width > 8:
        raise op.unsupported("there is no 128-bit register")
    emit_order(e, op)
    address, one = e.address(mem, 32 if space in ("shared", "cluster") else 64)
    scalar = one and space not in ("local", "")
    if scalar and all(e.uniform(d) for d in dests):
        names = e.temporary(f"load_one(p, '{space}', {address}, {width}, {count}, {op.line})")
        for i, d in enumerate(dests):
            bits = d.bits if isinstance(d, Reg) else 32
            e.set_scalar(d, f"widen({names}[{i}], {width * 8}, {int(type_[0] == 's')}, {bits})")
        return
    if one:
        address = f"full_{'U' if space in ('shared', 'cluster') else 'W'}({address})"
    rows = e.temporary(
        f"load_rows(p, '{space}', {address}, {width}, {count}, {e.mask_argument()}, {op.line})"
    )
    for i, d in enumerate(dests):
        bits = d.bits if isinstance(d, Reg) else max(width * 8, 16)
        row = f"{rows}[{i}]"
        if bits != width * 8:
            row = f"extend({row}, '{type_}', {bits})"
        e.assign(d, row, BITS_CODE[bits])


@opcode("st", dests=0)
def store(e: Emitter, op: Op) -> None:
    if op.has("async"):
        emit_async(e, op, typed)
        return
    space, count, type_ = _form(op)
    mem, values = op.operands[0], flatten(op.operands[1])
    assert isinstance(mem, Mem)
    if len(values) != count:
        raise op.unsupported(f"{len(values)} values where the vector has {count}")
    width = type_bits(type_) // 8
    emit_order(e, op)
    address, one = e.address(mem, 32 if space in ("shared", "cluster") else 64)
    if one and space not in ("local", "") and all(e.uniform(v) for v in values):
        numbers = [e.scalar(typed(v, type_), width * 8) for v in values]
        e.line(f"store_one(p, '{space}', {address}, {width}, [{', '.join(numbers)}], {op.line})")
        return
    if one:
        address = f"full_{'U' if space in ('shared', 'cluster') else 'W'}({address})"
    rows = [_stored_row(e, v, type_, width) for v in values]
    e.line(
        f"store_rows(p, '{space}', {address}, {width}, [{', '.join(rows)}], "
        f"{e.mask_argument()}, {op.line})"
    )


def _stored_row(e: Emitter, value: Value, type_: str, width: int) -> str:
    value = typed(value, type_)
    bits = value.bits if isinstance(value, Reg) else max(width * 8, 16)
    row = e.bits_row(value, bits)
    return row if bits == width * 8 else f"{row}.astype(u{width})"


@opcode("prefetch", "prefetchu", "applypriority", "discard", dests=0)
def prefetch(e: Emitter, op: Op) -> None:
    """Hints without effect, except that a tensor map must be there to be prefetched.

    What `discard` leaves behind is undefined, so the old data are as good as any.
    """
    mem = op.operands[0]
    if op.has("tensormap") and isinstance(mem, Mem):
        address, one = e.address(mem, 64)
        window = next((WINDOWS[q] for q in op.quals if q in ("param", "const")), 0)
        address = f"({address} + {window})"
        if one:
            e.line(f"prefetch_tensor_map(p, {address}, {op.line})")
        else:
            lanes = e.mask_argument()
            e.line(f"prefetch_tensor_map(p, one_of(p, {address}, {lanes}, {op.line}), {op.line})")


@opcode("isspacep", pure=True)
def is_space(e: Emitter, op: Op) -> None:
    d, a = op.operands
    space = op.quals[-1].partition("::")[0]
    row = e.bits_row(a, 64)
    if space == "global":
        form = f"({row} < {min(WINDOWS.values())})"
    else:
        form = f"(({row} - {WINDOWS[space]}) < {WINDOW_BYTES})"
        if op.quals[-1] in ("shared", "shared::cta"):
            form += f" & ((({row} >> {RANK_SHIFT}) & 255) == C.rank)"
    e.assign(d, form, "P")
