"""wgmma: asynchronous matrix multiply of a warpgroup (PTX ISA 9.7.16).

The emitters, and what generated code calls; the queue itself is in `wgmma_queue`. Basic blocks know
which registers they touch, so ordinary instructions pay one test a block.
"""

from __future__ import annotations

from typing import Any

from . import order
from .emit import Emitter
from .isa import opcode
from .operands import Imm, Negated, Op, Reg, Vec
from .report import hazard
from .state import PARK, Path, Warp
from .wgmma_queue import Shape
from .whole_warp import require_whole_warp

K_ELEMENTS = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32}


# -- what generated code calls ---------------------------------------------------------------------


def wgmma_issue(p: Path, shape: Shape, a: int, b: int, scale_d: int) -> None:
    if not p.full or p.w.group.index * 4 + 4 > p.C.nwarps:
        raise hazard(
            "wgmma-partial",
            "wgmma by an incomplete warpgroup",
            path=p,
            line=shape.line,
        )
    if p.C.watch is not None:
        _check_registers(p, shape)
        p.C.watch.wgmma(p, shape, a, b)
        p.w.group.wgmma.last_line = shape.line
    p.w.group.wgmma.issue(p, shape, a, b, bool(scale_d))


def _check_registers(p: Path, shape: Shape) -> None:
    """Registers that were touched, or used in another shape, need a wgmma.fence."""
    w = p.w
    touched, fenced = w.kernel.touched_before[shape.index]
    unfenced = shape.touches & (touched if fenced else touched | w.dirty)
    if unfenced:
        name = w.kernel.register_at("U", (unfenced & -unfenced).bit_length() - 1)
        first = "no wgmma.fence has been executed yet" if w.dirty == -1 else f"{name} was accessed"
        raise hazard(
            "wgmma-fence", f"wgmma uses {name}, and since the last wgmma.fence {first}"
            if w.dirty != -1 or fenced else f"wgmma uses {name}, and {first}",
            path=p, line=shape.line, bytes_=name,
        )  # fmt: skip
    kind = (shape.n, shape.accumulator)
    owned = 0
    for row in shape.d_rows:
        owned |= 1 << row
    for rows, other in w.shapes:
        if rows & owned and other != kind:
            raise hazard(
                "wgmma-shape",
                f"m64n{kind[0]} with {kind[1]} sums after m64n{other[0]} with {other[1]} sums on "
                f"the same accumulators",
                path=p,
                line=shape.line,
            )
    if (owned, kind) not in w.shapes:
        w.shapes.append((owned, kind))


def wgmma_commit(p: Path, line: int) -> None:
    require_whole_warp(p, line, "wgmma.commit_group")
    if p.C.watch is not None:
        p.w.view.wgmma_commits += 1
    p.w.group.wgmma.commit(p)


def wgmma_wait(p: Path, pending: int, line: int) -> bool:
    require_whole_warp(p, line, "wgmma.wait_group")
    waits: bool = p.w.group.wgmma.wait(p, pending)
    if not waits and p.C.watch is not None:
        order.wgmma_waited(p, pending)
    return waits


def wgmma_fence(p: Path, line: int) -> None:
    require_whole_warp(p, line, "wgmma.fence")
    p.w.shapes.clear()


def touch_registers(w: Warp, p: Path, touched: int, line: int) -> None:
    """A block that touches accumulators (or A registers) is about to run."""
    clash = touched & w.inflight
    if clash:
        row = (clash & -clash).bit_length() - 1
        name = w.kernel.register_at("U", row)
        raise hazard(
            "wgmma-in-flight",
            f"{name} is touched while a wgmma that uses it is in flight",
            path=p,
            line=w.kernel.line_touching(p.pc, row) or line,
            bytes_=name,
            cure="wgmma.commit_group after the wgmma, so that the wait covers it"
            if (w.group.wgmma.open_touches[w.index % 4] >> row) & 1
            else "wgmma.wait_group before the registers are read or written",
        )
    w.group.wgmma.write_back(touched)


# -- emitters --------------------------------------------------------------------------------------


def _dests(op: Op) -> int:
    return int(op.quals[0] == "mma_async")


@opcode("wgmma", dests=_dests, waits=lambda op: op.quals[0] == "wait_group")
def wgmma(e: Emitter, op: Op) -> None:
    kind = op.quals[0]
    if kind == "fence":
        e.line(f"wgmma_fence(p, {op.line})")
    elif kind == "commit_group":
        e.line(f"wgmma_commit(p, {op.line})")
    elif kind == "wait_group":
        e.line(f"if wgmma_wait(p, {e.scalar(op.operands[0])}, {op.line}): return {PARK}")
    elif kind == "mma_async":
        _mma(e, op)
    else:
        raise op.unsupported("there is no such wgmma instruction")


def _mma(e: Emitter, op: Op) -> None:
    sparse, saturates = op.has("sp"), op.has("satfinite")
    quals = tuple(q for q in op.quals[1:] if q not in ("sp", "satfinite"))
    if quals[:2] != ("sync", "aligned"):
        raise op.unsupported("wgmma needs .sync.aligned")
    if len(quals) != 6:
        raise op.unsupported("one-bit forms are not executed")
    shape_text, accumulator, a_type, b_type = quals[2:]
    m_n, _, k = shape_text[1:].partition("k")
    n = int(m_n.partition("n")[2])
    known = a_type in K_ELEMENTS and b_type in K_ELEMENTS
    if not known or K_ELEMENTS[a_type] * (2 if sparse else 1) != int(k):
        raise op.unsupported(f"operands {a_type} and {b_type} of k{k}")
    d, a, b, *rest = op.operands
    metadata, selector = (rest.pop(0), rest.pop(0)) if sparse else (None, Imm(-1, "int"))
    scale, *flags = rest
    if not isinstance(selector, Imm):
        raise op.unsupported("the sparsity selector must be an immediate")
    if not isinstance(d, Vec):
        raise op.unsupported("the accumulators must be a vector")
    numbers = [f.value if isinstance(f, Imm) else 0 for f in flags]
    negate = [v == -1 for v in numbers[:2]] + [False, False]
    transposes = numbers[2:]
    from_registers = isinstance(a, Vec)
    trans_a = 0 if from_registers or not transposes else transposes[0]
    trans_b = transposes[-1] if transposes else 0
    d_rows = tuple(_row(e, r) for r in d.items)
    a_rows = tuple(_row(e, r) for r in a.items) if isinstance(a, Vec) else ()
    expected = n // 4 if accumulator == "f16" else n // 2
    if len(d_rows) != expected or (from_registers and len(a_rows) != 4):
        raise op.unsupported(f"{len(d_rows)} accumulators where m64n{n} has {expected}")
    e_rows = (_row(e, metadata),) if sparse else ()
    touches = 0
    for row in (*d_rows, *a_rows, *e_rows):
        touches |= 1 << row
    shape = Shape(
        n=n, accumulator=accumulator, a_type=a_type, b_type=b_type, d_rows=d_rows, a_rows=a_rows,
        negate_a=negate[0], negate_b=negate[1], a_mn_major=bool(trans_a), b_mn_major=bool(trans_b),
        saturates=saturates, selector=selector.value, metadata_row=e_rows[0] if e_rows else -1,
        line=op.line, touches=touches, index=op.index,
    )  # fmt: skip
    name = e.constant(shape, ("wgmma", op.index))
    texts = ["0" if from_registers else _descriptor(e, op, a), _descriptor(e, op, b)]
    e.line(f"wgmma_issue(p, {name}, {texts[0]}, {texts[1]}, {_scale(e, op, scale)})")


def _row(e: Emitter, value: object) -> int:
    assert isinstance(value, Reg)
    return e.slots[value.id]


def _descriptor(e: Emitter, op: Op, value: Any) -> str:
    if e.uniform(value):
        return e.scalar(value, 64)
    return f"one_of(p, {e.vector(value, 'W')}, {e.mask_argument()}, {op.line})"


def _scale(e: Emitter, op: Op, value: Any) -> str:
    if isinstance(value, Reg | Negated) and not e.uniform(value):
        return f"one_of(p, {e.vector(value, 'P')}, {e.mask_argument()}, {op.line})"
    return e.scalar(value, 1)
