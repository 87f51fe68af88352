"""State spaces and generic addresses.

A shared address is 32 bits: (rank of the CTA in its cluster << 24) | offset, as on sm_90. The first
1 KB of every CTA's window belongs to the system. A generic address is 64 bits; each state space
other than global is a window in it. Global arrays lie below all windows.
"""

from __future__ import annotations

SMEM_RESERVED_BYTES = 0x400
RANK_SHIFT = 24
OFFSET_MASK = (1 << RANK_SHIFT) - 1

GLOBAL_BASE = 0x0000_0010_0000_0000
WINDOW_BYTES = 1 << 32
SHARED_WINDOW = 0x0000_7F00_0000_0000
LOCAL_WINDOW = 0x0000_7F01_0000_0000
PARAM_WINDOW = 0x0000_7F02_0000_0000
CONST_WINDOW = 0x0000_7F03_0000_0000

WINDOWS = {
    "shared": SHARED_WINDOW,
    "local": LOCAL_WINDOW,
    "param": PARAM_WINDOW,
    "const": CONST_WINDOW,
}


def align_up(value: int, align: int) -> int:
    """The least multiple of `align` that is not below `value`."""
    return (value + align - 1) // align * align


def space_of(address: int) -> str:
    """The state space that a generic address lies in."""
    for name, base in WINDOWS.items():
        if base <= address < base + WINDOW_BYTES:
            return name
    return "global"
