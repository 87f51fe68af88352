"""What the warps of a warpgroup have issued, and the accumulators while wgmma owns them.

Each warp issues on its own; an instruction runs when all four warps have issued it, with the same
descriptors. Accumulators then live in a tile `[64, n]`, keyed by their registers; the tile goes
back to the registers when something other than wgmma touches them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .descriptor import Descriptor, footprint
from .faults import fault
from .memory import Fault, SharedWindow
from .report import hazard
from .sparse import expand
from .state import Path, Warpgroup
from .values import E4M3, E5M2, POISON, Array

ISA = "9.7.16 wgmma"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One wgmma form and its registers. Rows are indices into class U."""

    n: int
    accumulator: str  # f32 | f16 | s32
    a_type: str
    b_type: str
    d_rows: tuple[int, ...]
    a_rows: tuple[int, ...]  # empty when A is in shared memory
    negate_a: bool
    negate_b: bool
    a_mn_major: bool
    b_mn_major: bool
    saturates: bool
    selector: int  # of the metadata of a sparse A; -1 where A is dense
    metadata_row: int
    line: int
    touches: int  # bit set of d_rows, a_rows and metadata_row
    index: int  # of the instruction

    @property
    def key(self) -> tuple[int, int, str]:
        return self.d_rows[0], self.n, self.accumulator


@dataclass(slots=True)
class Call:
    """One wgmma of a warpgroup: what the first warp issued, and how many have."""

    shape: Shape
    a: int
    b: int
    scale_d: bool
    path: Path
    warps: int = 1


@dataclass(slots=True)
class Tile:
    shape: Shape
    values: Array  # [64, n] f32 (f16 accumulators are kept rounded) or i64
    mask: int  # rows of class U that it stands for


@dataclass(slots=True)
class Group:
    """One commit group of a warp: where it ends in the warpgroup's sequence, and its registers."""

    end: int
    touches: int


@dataclass(slots=True)
class WgmmaQueue:
    """The wgmmas of one warpgroup in issue order. `base` is the number of the first in `calls`."""

    group: Warpgroup
    calls: list[Call] = field(default_factory=list)
    base: int = 0
    done: int = 0
    issued: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    open_touches: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    groups: list[list[Group]] = field(default_factory=lambda: [[], [], [], []])
    tiles: dict[tuple[int, int, str], Tile] = field(default_factory=dict)
    eager: bool = True
    agent: int = 0  # when hazards are checked: who reads the operands in shared memory
    last_line: int = 0

    # -- issue and wait ------------------------------------------------------------------------

    def issue(self, p: Path, shape: Shape, a: int, b: int, scale_d: bool) -> None:
        warp = p.w.index % 4
        at = self.issued[warp] - self.base
        self.issued[warp] += 1
        self.open_touches[warp] |= shape.touches
        p.w.inflight |= shape.touches
        if at == len(self.calls):
            self.calls.append(Call(shape, a, b, scale_d, p))
            return
        call = self.calls[at]
        if call.shape is not shape or (call.a, call.b, call.scale_d) != (a, b, scale_d):
            raise _mismatch(p, call, shape, a, b, scale_d)
        call.warps += 1
        if call.warps == 4 and self.eager:
            self.run()

    def run(self) -> None:
        """Run what all four warps have issued."""
        while self.calls and self.calls[0].warps == 4:
            call = self.calls.pop(0)
            self.base += 1
            self.execute(call)
            self.done += 1

    def commit(self, p: Path) -> None:
        warp = p.w.index % 4
        self.groups[warp].append(Group(self.issued[warp], self.open_touches[warp]))
        self.open_touches[warp] = 0

    def wait(self, p: Path, pending: int) -> bool:
        """True while a group that must be complete still misses a warp."""
        warp = p.w.index % 4
        groups = self.groups[warp]
        if len(groups) > pending:
            end = groups[len(groups) - pending - 1].end
            if self.done < end:
                self.run()
            if self.done < end:
                p.wait = WgmmaWait(self, end)
                return True
            del groups[: len(groups) - pending]
        p.w.inflight = self.open_touches[warp]
        for group in groups:
            p.w.inflight |= group.touches
        return False

    # -- execution -----------------------------------------------------------------------------

    def execute(self, call: Call) -> None:
        shape = call.shape
        window = self.group.cta.window
        tile = self.tile(call)
        a = self.registers_a(shape) if shape.a_rows else self.operand(call, window, call.a, True)
        if shape.selector >= 0:
            a = self.expanded(a, shape)
        b = self.operand(call, window, call.b, False)
        product = a @ b.T
        if shape.negate_a != shape.negate_b:
            product = 0 - product  # a zero stays +0
        if shape.accumulator == "s32":
            product = product.astype(np.int64)
        if call.scale_d:
            tile.values += product
        else:
            tile.values = product
        if shape.accumulator == "f16":
            tile.values = tile.values.astype(np.float16).astype(np.float32)
        if shape.saturates:
            tile.values = np.clip(tile.values, -(1 << 31), (1 << 31) - 1)
        self.group.cta.events["wgmma"] += 1

    def operand(self, call: Call, window: SharedWindow, bits: int, is_a: bool) -> Array:
        """An operand from shared memory as `[rows, k]` f32, decoded at most once a content."""
        shape = call.shape
        type_ = shape.a_type if is_a else shape.b_type
        mn_major = shape.a_mn_major if is_a else shape.b_mn_major
        rows = 64 if is_a else shape.n
        k_units = 4 if shape.selector >= 0 and not is_a else 2
        key = (bits, rows, type_, mn_major, k_units)
        found = self.group.cta.decoded.get(key)
        d = Descriptor.decode(bits)
        if found is not None:
            stamp, low, high, values = found
            if window.stamp(low, high) == stamp:
                return values
        name = "A" if is_a else "B"
        _check_descriptor(call, d, name)
        foot = footprint(d.start & 0x3FF, d.leading, d.stride, d.swizzle, rows, mn_major, k_units)
        low, high = d.start + foot.low, d.start + foot.high
        try:
            _check_read(window, d.start >> 4, foot.units, low, high)
        except Fault as error:
            raise fault(call.path, error, shape.line, None, f"wgmma operand {name}") from None
        values = _numbers(window.units[foot.units + (d.start >> 4)], type_, rows, mn_major)
        self.group.cta.decoded[key] = (window.stamp(low, high), low, high, values)
        return values

    def registers_a(self, shape: Shape) -> Array:
        """The A fragment of 16-bit types (and wider by element size) as `[64, k]` f32."""
        raw = self.group.registers.arrays["U"][list(shape.a_rows)]  # [4, 128]
        per = {"tf32": 1, "f16": 2, "bf16": 2}.get(shape.a_type, 4)
        # register j: rows g + 8 * (j & 1), K chunk j >> 1; lane = 4 g + t holds k = per * t + ...
        parts = raw.reshape(2, 2, 4, 8, 4)  # [chunk, half, warp, g, t]
        ordered = np.ascontiguousarray(parts.transpose(2, 1, 3, 0, 4))  # [warp, half, g, chunk, t]
        return _convert(ordered.reshape(64, 8), shape.a_type).reshape(64, 8 * per)

    def expanded(self, kept: Array, shape: Shape) -> Array:
        """A sparse A `[64, k / 2]` as `[64, k]`: each warp has the metadata of its own 16 rows."""
        words = self.group.registers.arrays["U"][shape.metadata_row].reshape(4, 32)
        parts = kept.reshape(4, 16, -1)
        whole = [expand(parts[w], words[w], shape.a_type, shape.selector) for w in range(4)]
        return np.concatenate(whole)

    # -- accumulators --------------------------------------------------------------------------

    def tile(self, call: Call) -> Tile:
        shape = call.shape
        tile = self.tiles.get(shape.key)
        if tile is not None and tile.shape.d_rows == shape.d_rows:
            return tile
        mask = 0
        for row in shape.d_rows:
            mask |= 1 << row
        self.write_back(mask)
        dtype = np.int64 if shape.accumulator == "s32" else np.float32
        values = np.zeros((64, shape.n), dtype)
        if call.scale_d:
            values = self.load_tile(call)
        tile = self.tiles[shape.key] = Tile(shape, values, mask)
        self.group.resident |= mask
        return tile

    def load_tile(self, call: Call) -> Array:
        """Accumulator registers to a tile: rows 16 w + 8 h + g, columns 8 c + 2 t + b."""
        shape = call.shape
        raw = self.group.registers.arrays["U"][list(shape.d_rows)]
        if np.count_nonzero(raw == POISON):
            at = int(np.flatnonzero((raw == POISON).any(axis=1))[0])
            name = self.group.cta.kernel.register_at("U", shape.d_rows[at])
            raise hazard(
                "uninitialised-register",
                f"wgmma adds to accumulator {name}, which nothing has written",
                path=call.path,
                line=shape.line,
                bytes_=name,
                cure="clear the accumulators first, or pass scale-d = false to the first wgmma",
                isa=ISA,
            )
        columns = shape.n // 8
        if shape.accumulator == "f16":
            half = raw.view(np.float16).reshape(columns, 2, 4, 8, 4, 2)  # [c, h, w, g, t, b]
            ordered = half.transpose(2, 1, 3, 0, 4, 5)
            return np.ascontiguousarray(ordered).reshape(64, shape.n).astype(np.float32)
        fragment = raw.reshape(columns, 2, 2, 4, 8, 4)  # [c, h, b, w, g, t]
        ordered = np.ascontiguousarray(fragment.transpose(3, 1, 4, 0, 5, 2)).reshape(64, shape.n)
        if shape.accumulator == "s32":
            return ordered.view(np.int32).astype(np.int64)
        return ordered.view(np.float32)

    def write_back(self, touched: int) -> None:
        """Put tiles that overlap these registers back into them."""
        for key, tile in list(self.tiles.items()):
            if tile.mask & touched:
                del self.tiles[key]
                self.group.resident &= ~tile.mask
                self._store_tile(tile)

    def _store_tile(self, tile: Tile) -> None:
        shape, n = tile.shape, tile.shape.n
        values = tile.values
        if shape.accumulator == "f16":
            half = values.astype(np.float16).reshape(4, 2, 8, n // 8, 4, 2)  # [w, h, g, c, t, b]
            packed = np.ascontiguousarray(half.transpose(3, 1, 0, 2, 4, 5)).view(np.uint32)
            fragment = packed.reshape(n // 4, 128)
        else:
            if shape.accumulator == "s32":
                values = values.astype(np.int32)
            bits = values.view(np.uint32).reshape(4, 2, 8, n // 8, 4, 2)
            fragment = bits.transpose(3, 1, 5, 0, 2, 4).reshape(n // 2, 128)
        rows = shape.d_rows
        target = self.group.registers.arrays["U"]
        if rows == tuple(range(rows[0], rows[0] + len(rows))):
            target[rows[0] : rows[0] + len(rows)] = fragment
        else:
            target[list(rows)] = fragment

    def missing(self, end: int) -> str:
        """Which warps have not issued up to number `end`."""
        base = self.group.index * 4
        late = [str(base + w) for w in range(4) if self.issued[w] < end]
        return f"wgmma of warpgroup {self.group.index}: warps {', '.join(late)} have not issued it"


@dataclass(slots=True)
class WgmmaWait:
    queue: WgmmaQueue
    end: int

    def ready(self) -> bool:
        return self.queue.done >= self.end or not any(
            issued < self.end for issued in self.queue.issued
        )

    def describe(self) -> str:
        return self.queue.missing(self.end)


# -- decoding --------------------------------------------------------------------------------------


def _check_read(window: SharedWindow, start: int, units: Array, low: int, high: int) -> None:
    """Bounds and "written" of the bytes that are read; exact only where the quick test fails."""
    try:
        window.check_written(low, high)
    except Fault as error:
        if error.kind == "range" and (low < 0 or high > window.size):
            raise
        for unit in (units + start).ravel().tolist():
            window.check_written(unit * 16, unit * 16 + 16)


def _convert(words: Array, type_: str) -> Array:
    """32-bit words `[rows, w]` to the f32 values that they hold, in order."""
    rows = len(words)
    if type_ == "bf16":
        return (words.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    if type_ == "f16":
        return words.view(np.float16).astype(np.float32)
    if type_ == "tf32":
        return (words & np.uint32(0xFFFFE000)).view(np.float32)
    dtype = {"e4m3": E4M3, "e5m2": E5M2, "s8": np.dtype(np.int8), "u8": np.dtype(np.uint8)}[type_]
    return np.asarray(words.view(np.uint8).view(dtype).reshape(rows, -1).astype(np.float32))


def _numbers(units: Array, type_: str, rows: int, mn_major: bool) -> Array:
    """Gathered 16-byte units to `[rows, k]` f32."""
    if not mn_major:
        return _convert(units.view(np.uint32).reshape(rows, -1), type_)
    values = _convert(units.view(np.uint32).reshape(len(units), -1), type_)  # [k, rows]
    return np.ascontiguousarray(values.T)


def _check_descriptor(call: Call, d: Descriptor, name: str) -> None:
    atom = 8 * d.swizzle
    span = max(d.swizzle, 16)
    problem = ""
    if d.base_offset:
        problem = f"base offset {d.base_offset}: not executed; align tiles to {atom} bytes instead"
    elif d.swizzle and d.stride % atom and call.shape.n > 8:
        problem = f"stride {d.stride} is not a multiple of the {atom}-byte swizzle atom"
    elif atom and d.start % atom >= span and not _mn_major(call, name):
        problem = f"the tile is not on a {atom}-byte boundary (start {d.start:#x})"
    if problem:
        raise hazard(
            "descriptor",
            f"wgmma operand {name} ({d}): {problem}",
            path=call.path,
            line=call.shape.line,
        )


def _mn_major(call: Call, name: str) -> bool:
    return call.shape.a_mn_major if name == "A" else call.shape.b_mn_major


def _mismatch(p: Path, call: Call, shape: Shape, a: int, b: int, scale_d: bool) -> Exception:
    if call.shape is not shape:
        what = f"this warp issues PTX line {shape.line}, another issued line {call.shape.line}"
    else:
        what = (
            f"descriptors {a:#x}, {b:#x}, scale-d {scale_d} here; {call.a:#x}, {call.b:#x}, "
            f"{call.scale_d} in another warp"
        )
    return hazard(
        "wgmma-mismatch",
        f"the warps of a warpgroup issue different wgmmas: {what}",
        path=p,
        line=shape.line,
        lines=(call.shape.line,) if call.shape is not shape else (),
    )
