"""Cases that the emulator refuses although their form is executed: pattern of case ids -> reason.

Each must raise UnsupportedPtx with its line. A row goes when the emulator learns the case, and a
test fails if it is left behind.
"""

from __future__ import annotations

from collections.abc import Mapping

REFUSED: Mapping[str, str] = {}
