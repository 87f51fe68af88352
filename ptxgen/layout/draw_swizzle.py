"""The swizzle atom, drawn as it lies in shared memory: which logical chunk is in which banks."""

from __future__ import annotations

from ptxgen.isa.dtypes import dtype as dtype_row
from ptxgen.layout.access import PASS_BYTES, warp_access
from ptxgen.layout.swizzle import CHUNK_BYTES, Swizzle
from ptxgen.view import Cell, Grid

ROWS = 8  # rows of an atom, and rows of a core matrix that ldmatrix or wgmma reads together
_CHUNKS = PASS_BYTES // CHUNK_BYTES  # 16-byte chunks that lie side by side over all banks
_BANKS_A_CHUNK = 4


def swizzle_grid(swizzle: Swizzle | int, dtype: str = "bf16") -> Grid:
    """One atom of a swizzle: 8 rows of its span, cells are 16-byte chunks labelled row:elements.

    A line of the drawing is 128 bytes, all 32 banks. A hue follows one chunk column of the tile, so
    that where a hue falls into one drawing column, reading that column conflicts.
    """
    mode = swizzle if isinstance(swizzle, Swizzle) else Swizzle(swizzle)
    row = dtype_row(dtype)
    logical = {mode.apply(a): a for a in range(0, mode.atom_bytes, CHUNK_BYTES)}
    lines = []
    for line in range(0, mode.atom_bytes, PASS_BYTES):
        cells = []
        for address in range(line, line + PASS_BYTES, CHUNK_BYTES):
            source = logical[address]
            r, chunk = source // mode.row_bytes, source % mode.row_bytes // CHUNK_BYTES
            first = chunk * CHUNK_BYTES // row.bytes
            last = first + CHUNK_BYTES // row.bytes - 1
            cells.append(
                Cell(
                    label=f"{r}:{first}-{last}" if last > first else f"{r}:{first}",
                    tone=chunk,
                    tip=f"row {r}, {row.name} elements {first}..{last}, at byte 0x{address:x}",
                )
            )
        lines.append(tuple(cells))
    return Grid(
        title=f"swizzle {mode}, {row.name}: one atom of {mode.atom_bytes:,} B, "
        f"{ROWS} rows of {mode.row_bytes} B (cells are row:elements)",
        rows=tuple(lines),
        row_labels=tuple(f"0x{a:03x}" for a in range(0, mode.atom_bytes, PASS_BYTES)),
        corner="banks",
        column_labels=tuple(
            f"{i * _BANKS_A_CHUNK}-{i * _BANKS_A_CHUNK + _BANKS_A_CHUNK - 1}"
            for i in range(_CHUNKS)
        ),
        notes=(_rule(mode), _verdict(mode)),
    )


def column_conflict(swizzle: Swizzle, row_bytes: int) -> int:
    """Bank conflict of reading one 16-byte column of 8 rows that are `row_bytes` bytes apart."""
    addresses = [swizzle.apply(r * row_bytes) for r in range(ROWS)]
    return warp_access(addresses, CHUNK_BYTES).ways


def _rule(mode: Swizzle) -> str:
    if not mode.span:
        return "no address bit changes"
    bits = mode.chunk_mask.bit_length()
    low = "4" if bits == 1 else f"4-{3 + bits}"
    high = "7" if bits == 1 else f"7-{6 + bits}"
    return (
        f"address bits {low} ^= bits {high}; align every tile to {mode.atom_bytes:,} B, "
        "because absolute bits take part"
    )


def _verdict(mode: Swizzle) -> str:
    with_it, without = (column_conflict(s, mode.row_bytes) for s in (mode, Swizzle(0)))
    word = "conflict-free" if with_it == 1 else f"a {with_it}-way conflict"
    before = "" if with_it == without else f" ({without}-way without the swizzle)"
    return f"reading one 16-byte column of the 8 rows is {word}{before}"
