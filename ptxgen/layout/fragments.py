"""Who holds which element: the register fragments of wgmma, ldmatrix and stmatrix.

Every function takes ints, or NumPy integer arrays that broadcast, so that a whole tile is one call.
`thread` counts 0..127 in the warpgroup, `lane` 0..31 in the warp. Throughout

    warp = thread / 32     g = lane / 4     t = lane % 4

PTX ISA 9.7.15.5 (wgmma register fragments) and 9.7.14.5.15 (ldmatrix), 9.7.14.5.16 (stmatrix).
"""

from __future__ import annotations

from ptxgen.errors import ConfigError, Violation
from ptxgen.layout.swizzle import Index

REGISTER_BITS = 32


def wgmma_d(thread: Index, element: Index) -> tuple[Index, Index]:
    """(row, column) of element i = 0..N/2-1 of a thread's part of a 64 x N result D.

    With f32 and s32, element i is register i. With f16, register j holds elements 2j (low half) and
    2j + 1 (high half): see `wgmma_d_f16`.
    """
    lane = thread % 32
    row = thread // 32 * 16 + lane // 4 + 8 * (element >> 1 & 1)
    return row, 8 * (element >> 2) + 2 * (lane % 4) + (element & 1)


def wgmma_d_owner(row: Index, column: Index) -> tuple[Index, Index]:
    """(thread, element) that holds D[row, column]: the inverse of `wgmma_d`."""
    thread = 32 * (row // 16) + 4 * (row % 8) + column % 8 // 2
    return thread, 4 * (column // 8) + 2 * (row % 16 // 8) + column % 2


def wgmma_d_f16(thread: Index, register: Index, half: Index) -> tuple[Index, Index]:
    """(row, column) of the low (0) or high (1) half of register j = 0..N/4-1 of an f16 D."""
    return wgmma_d(thread, 2 * register + half)


def wgmma_d_f16_owner(row: Index, column: Index) -> tuple[Index, Index, Index]:
    """(thread, register, half) that holds D[row, column] of an f16 result."""
    thread, element = wgmma_d_owner(row, column)
    return thread, element // 2, element % 2


def wgmma_a(bits: int, thread: Index, register: Index, slot: Index) -> tuple[Index, Index]:
    """(row, k) of the A fragment that wgmma takes from registers 0..3.

    `bits` is the element width: 16 (k16), 8 (k32), or 32 for tf32 (k8). `slot` numbers the 32/bits
    elements of a register from its low bits, which hold the lower k.
    """
    pack = elements_per_register(bits)
    lane = thread % 32
    row = thread // 32 * 16 + lane // 4 + 8 * (register & 1)
    return row, 4 * pack * (register >> 1) + pack * (lane % 4) + slot


def wgmma_a_owner(bits: int, row: Index, k: Index) -> tuple[Index, Index, Index]:
    """(thread, register, slot) that holds A[row, k]: the inverse of `wgmma_a`."""
    pack = elements_per_register(bits)
    thread = 32 * (row // 16) + 4 * (row % 8) + k % (4 * pack) // pack
    return thread, 2 * (k // (4 * pack)) + row % 16 // 8, k % pack


def d_to_a_registers(slice16: int) -> tuple[tuple[int, int], ...]:
    """The (low, high) D elements to pack into A registers 0..3 of the next wgmma.

    D columns 16 s .. 16 s + 15 become k 0..15 of a 16-bit A without any exchange between threads.
    """
    first = 8 * slice16
    return tuple((first + 2 * j, first + 2 * j + 1) for j in range(4))


def ldmatrix(lane: Index, half: Index, *, trans: bool = False) -> tuple[Index, Index]:
    """(row, column) within an 8 x 8 matrix of 16-bit elements of a lane's register half.

    Register j belongs to matrix j. stmatrix stores with the same map.
    """
    row, column = lane // 4, 2 * (lane % 4) + half
    return (column, row) if trans else (row, column)


def ldmatrix_owner(row: Index, column: Index, *, trans: bool = False) -> tuple[Index, Index]:
    """(lane, half) that receives element (row, column) of a matrix: the inverse of `ldmatrix`."""
    if trans:
        row, column = column, row
    return 4 * row + column // 2, column % 2


def ldmatrix_address(lane: Index) -> tuple[Index, Index]:
    """(matrix, row) whose 16-byte row address a lane must supply: lanes 8j..8j+7 serve matrix j."""
    return lane // 8, lane % 8


def stmatrix_d(lane: Index) -> tuple[Index, Index]:
    """(row, column) of the 16-byte row that a lane addresses when it stores D with stmatrix.x4.

    One instruction stores 16 rows x 16 columns of one warp's D: columns 16 s .. 16 s + 15, packed
    as `d_to_a_registers(s)` says. Row and column count from that block's corner.
    """
    return lane & 15, 8 * (lane >> 4)


def elements_per_register(bits: int) -> int:
    """Elements of `bits` bits in one 32-bit register of an A or B fragment: 4, 2 or 1.

    Raises ConfigError for a width that wgmma and mma do not read from registers.
    """
    if bits not in (8, 16, 32):
        raise ConfigError(
            "no such wgmma A fragment",
            [
                Violation(
                    field="bits",
                    got=str(bits),
                    rule="must be 8, 16 or 32 (tf32)",
                    why="these are the element widths that wgmma reads from registers",
                )
            ],
        )
    return REGISTER_BITS // bits
