"""Register fragments of the warp-level `mma.sync.m16n8k*`.

A and C/D are those of one warp of wgmma (`fragments.wgmma_a`, `fragments.wgmma_d` with N = 8); only
B is new, because wgmma never takes B from registers. Functions take ints or NumPy integer arrays.

    g = lane / 4     t = lane % 4

PTX ISA 9.7.14.5 (Matrix fragments for mma.m16n8k16, k32, k8).
"""

from __future__ import annotations

from ptxgen.layout.fragments import elements_per_register
from ptxgen.layout.swizzle import Index

MMA_N = 8


def mma_b(bits: int, lane: Index, register: Index, slot: Index) -> tuple[Index, Index]:
    """(k, column) of the B fragment of m16n8k(256/bits): registers 0 and 1 of a lane.

    `bits` is the element width: 16 (k16), 8 (k32), or 32 for tf32 (k8). `slot` numbers the 32/bits
    elements of a register from its low bits, which hold the lower k.
    """
    pack = elements_per_register(bits)
    return 4 * pack * register + pack * (lane % 4) + slot, lane // 4


def mma_b_owner(bits: int, k: Index, column: Index) -> tuple[Index, Index, Index]:
    """(lane, register, slot) that holds B[k, column]: the inverse of `mma_b`."""
    pack = elements_per_register(bits)
    return 4 * column + k % (4 * pack) // pack, k // (4 * pack), k % pack
