"""2:4 sparse matrices: the metadata that says where the kept elements lie (PTX ISA 9.7.14.6).

Four bits a group: two ascending 2-bit indices into four elements; of tf32, which one of two
elements is kept (0b0100 the first, 0b1110 the second). `selector` names the lanes of each quad that
give the metadata. A warp has 16 rows: g and g + 8 of lane 4 g + t.
"""

from __future__ import annotations

import numpy as np

from .values import Array


def expand(kept: Array, metadata: Array, type_: str, selector: int) -> Array:
    """The kept elements `[16, k / 2]` of one warp, and 32 words, to the whole matrix `[16, k]`."""
    size = 2 if type_ == "tf32" else 4
    groups = kept.shape[1] * 2 // size
    nibble = _nibbles(metadata, type_, selector, groups)
    whole = np.zeros((16, groups, size), kept.dtype)
    row, group = np.indices((16, groups))
    if type_ == "tf32":
        whole[row, group, nibble >> 1 & 1] = kept
    else:
        pairs = kept.reshape(16, groups, 2)
        whole[row, group, nibble & 3] = pairs[:, :, 0]
        whole[row, group, nibble >> 2 & 3] = pairs[:, :, 1]
    return whole.reshape(16, groups * size)


def _nibbles(metadata: Array, type_: str, selector: int, groups: int) -> Array:
    """The four bits of every row and group, `[16, groups]`."""
    words = metadata.reshape(8, 4)  # [g, t]
    out = np.zeros((2, 8, groups), np.intp)
    for q in range(groups):
        for half in (0, 1):
            if type_ in ("f16", "bf16", "tf32"):  # a word holds 4 groups of row g, then of g + 8
                lane = selector if groups == 4 else 2 * selector + q // 4
                shift = 16 * half + 4 * (q % 4)
            else:  # a word holds 8 groups of one row
                lane = 2 * selector + half + 2 * (q // 8)
                shift = 4 * (q % 8)
            out[half, :, q] = words[:, lane] >> np.uint32(shift) & np.uint32(15)
    return out.reshape(16, groups)
