"""Cases that the emulator refuses although their form is executed: pattern of case ids -> reason.

Each must raise UnsupportedPtx with its line. A row goes when the emulator learns the case, and a
test fails if it is left behind.
"""

from __future__ import annotations

from collections.abc import Mapping

_MAP = "maps are not changed by kernels: they are made by the host"

REFUSED: Mapping[str, str] = {
    "tensormap.*": _MAP,
    "fence.proxy.tensormap.*": _MAP,
}
