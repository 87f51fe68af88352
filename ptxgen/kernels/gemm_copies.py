"""Numbers of `blocks/copies.ptx.j2`: which words warps copy between two branches, and how."""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.configs.gemm import SPAN
from ptxgen.configs.gemm_shape import Gemm, Operand
from ptxgen.isa.arch import WARP_THREADS, WARPGROUP_THREADS

WORD_BYTES = 4  # what a lane moves at once
WARPS = WARPGROUP_THREADS // WARP_THREADS  # rows that the producer copies side by side
ATOM_ROWS = 8  # rows after which the XOR of the swizzle repeats: two of each warp
# Of a thread that copies, beside those of elements that are on their way; more where it knows its
# place in tiles that are shared out. With fewer, ptxas spills some.
STATE_REGISTERS, STREAM_REGISTERS = 24, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """4 bytes that a lane copies of a row."""

    box: int
    bytes: int  # from the lane's first of the row
    to: str  # where they go
    element: int  # first of its registers


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Words of a row, or of a part of it."""

    first: int  # which row, from the warp's first
    words: tuple[Word, ...]
    ends: bool  # with the last of these words


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Words that are all on their way before the first of them is waited for."""

    rows: tuple[Row, ...]
    elements: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What all warps copy between two branches."""

    rows: int
    bytes: int  # from one turn to the next in a stage
    batches: tuple[Batch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """How the producer's threads copy stages, where TMA does not."""

    on: bool
    bytes: int  # of an element
    elements: int  # of a word, each loaded by itself; none where cp.async takes whole words
    load: str  # what follows "ld." for one of them
    register: str  # that holds it
    tile_k: int
    boxes: int  # of 128-byte rows along K
    stage_bytes: int  # along a row
    lag: int  # stages whose copies are on their way


def copies(g: Gemm) -> Copies:
    size = g.a.storage.bytes
    return Copies(
        on=g.copies,
        bytes=size,
        elements=WORD_BYTES // size if g.by_elements else 0,
        load=f"global.{'u' if size == 1 else 'b'}{8 * size}",
        register="b32" if size == WORD_BYTES else "b16",
        tile_k=g.tile_k,
        boxes=g.a.boxes if g.copies else 0,
        stage_bytes=g.tile_k * size,
        lag=g.copy_lag,
    )


def loads_in_flight(g: Gemm) -> int:
    """Loads of a lane before the first of them is waited for: as many as it has registers for."""
    kept = STATE_REGISTERS + (STREAM_REGISTERS if g.streams else 0)
    return g.registers.roles[0].registers - kept


def turn(g: Gemm, operand: Operand) -> Turn:
    """Rows of an operand between two branches: two of each warp, or as many as fill a batch."""
    elements = WORD_BYTES // operand.storage.bytes if g.by_elements else 0
    each = operand.boxes * elements  # loads of a row
    atoms = operand.part // ATOM_ROWS
    most = loads_in_flight(g)
    fitting = (n for n in range(1, atoms + 1) if atoms % n == 0 and 2 * n * each <= most)
    at_once = max(fitting, default=1) if elements else 1
    return Turn(
        rows=ATOM_ROWS * at_once,
        bytes=ATOM_ROWS * SPAN * at_once,
        batches=tuple(_batches(operand, 2 * at_once, elements, most)),
    )


def _batches(operand: Operand, rows: int, elements: int, most: int) -> list[Batch]:
    """Words row by row, box by box; a new batch where the loads in flight are enough."""
    boxes = operand.boxes
    words = [(row, box) for row in range(rows) for box in range(boxes)]
    size = most // elements if elements else len(words)
    found = []
    for start in range(0, len(words), size):
        some = words[start : start + size]
        parts = {row: [i for i, word in enumerate(some) if word[0] == row] for row, _ in some}
        found.append(
            Batch(
                rows=tuple(
                    Row(
                        first=WARPS * row,
                        words=tuple(_word(operand, *some[i], element=i * elements) for i in part),
                        ends=(row, boxes - 1) in some,
                    )
                    for row, part in parts.items()
                ),
                elements=len(some) * elements,
            )
        )
    return found


def _word(operand: Operand, row: int, box: int, *, element: int) -> Word:
    """Even and odd rows of a warp have addresses of their own, an atom holds one of each."""
    atom, odd = divmod(row, 2)
    offset = box * operand.layout.box_bytes + atom * ATOM_ROWS * SPAN
    return Word(box=box, bytes=SPAN * box, to=f"%to{odd} + {offset}", element=element)
