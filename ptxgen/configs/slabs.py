"""How D is cut for its stores: the slabs that a consumer stages, and the TMA boxes of a slab.

Eight rows of a slab are written at once, 16 bytes each, and should lie in different banks. Rows
that are whole spans of 64 or 128 bytes are swizzled, a box a span. A row with an odd number of
16-byte chunks needs no swizzle, its neighbours are shifted as it is: the slab is one box. Rows of
twice an odd number take boxes of 32 bytes, as do 32-bit elements whose rows are no multiple of 64.
"""

from __future__ import annotations

from math import gcd

from ptxgen.layout.swizzle import CHUNK_BYTES, largest_swizzle

SPANS = (128, 64)  # whose boxes are wide enough to be better than plain ones
COLUMNS = 64  # default width of a slab, where the tile has whole ones
PLAIN_COLUMNS = 104  # and of a plain one
EIGHT = 8  # columns that a warp writes together


def least(element_bytes: int) -> int:
    """Columns of the narrowest slab: what a warp writes together, and no less than a box row."""
    return max(EIGHT, CHUNK_BYTES // element_bytes)


def legal(columns: int, element_bytes: int) -> tuple[int, ...]:
    """Slab widths that divide the columns of a CTA."""
    unit = least(element_bytes)
    return tuple(n for n in range(unit, columns + 1, unit) if columns % n == 0)


def default(columns: int, element_bytes: int) -> int:
    """The widest slab up to 64 columns in whole spans; else a plain one; else whatever divides.

    Slabs of 16 columns and less are no choice where there are others: each costs two barriers.
    """
    widths = legal(columns, element_bytes)
    unit = gcd(columns, SPANS[0] // element_bytes)
    if unit * element_bytes in SPANS:
        return max((n for n in widths if n % unit == 0 and n <= max(COLUMNS, unit)), default=unit)
    plain = [n for n in widths if _is_plain(n, element_bytes)]
    most = PLAIN_COLUMNS if plain else COLUMNS
    wide = [n for n in plain or widths if n > 2 * EIGHT] or widths
    return max((n for n in wide if n <= most), default=min(wide, default=columns))


def box_columns(width: int, element_bytes: int) -> int:
    """Columns of a TMA box of a slab."""
    if _is_plain(width, element_bytes):
        return width
    return largest_swizzle(width * element_bytes).span // element_bytes


def _is_plain(width: int, element_bytes: int) -> bool:
    return width * element_bytes // CHUNK_BYTES % 2 == 1
