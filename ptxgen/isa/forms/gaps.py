"""Cases that the emulator refuses although their form is executed: pattern of case ids -> reason.

Each must raise UnsupportedPtx with its line. A row goes when the emulator learns the case, and a
test fails if it is left behind.
"""

from __future__ import annotations

from collections.abc import Mapping

_VIDEO = "how the H200 saturates this to u32 is not understood"

REFUSED: Mapping[str, str] = {
    "fma.oob:*": "what the H200 gives for the NaN that fills tensors is not understood",
    "video:*.u32.s32.u32.sat": _VIDEO,
    "video:*.u32.u32.s32.sat": _VIDEO,
    "video:add.u32.u32.u32.sat": _VIDEO,
}
