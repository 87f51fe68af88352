"""Cases that the emulator refuses although their form is executed: pattern of case ids -> reason.

Each must raise UnsupportedPtx with its line. A row goes when the emulator learns the case, and a
test fails if it is left behind.
"""

from __future__ import annotations

from collections.abc import Mapping

_CARRY = "the carry flag is not modelled"
_F64_ROUNDING = "f64 is rounded to nearest only"
_B128 = "there are no 128-bit registers"
_XORSIGN = ".xorsign.abs is not executed"

REFUSED: Mapping[str, str] = {
    "add.cc:*": _CARRY,
    "sub.cc:*": _CARRY,
    "addc:*": _CARRY,
    "subc:*": _CARRY,
    "mad.cc:*": _CARRY,
    "madc:*": _CARRY,
    "lop3.pred:*": "lop3 with a predicate result",
    "mov.*pack:b32.4": "parts of 8 bits",
    "mov.b128": _B128,
    "mov.reserved_smem:[c01]*": "what these registers hold is not documented",
    "ld.b128": _B128,
    "st.b128": _B128,
    "atom.b128:*": _B128,
    "*.float:r[zmp].f64": _F64_ROUNDING,
    "*:xorsign*": _XORSIGN,
    "*.xorsign*": _XORSIGN,
    "fma.oob:*": ".oob is not executed",
    "cvt.pack:*": ".pack is not executed",
    "cvt.pack8:*": ".pack is not executed",
    "createpolicy.range:*": "a hint that the emulator has no cache for",
}
