"""Two kernels' SASS compared, beyond addresses, labels and the names of registers.

model    the comparison as data                regions  loops by role, and which is which
align    which instruction is which            naming   registers renamed consistently
compare  all of it together                    verdict  the difference in one line
"""

from __future__ import annotations

from ptxgen.toolchain.diff.compare import compare, diff
from ptxgen.toolchain.diff.model import (
    Diff,
    FunctionDiff,
    Kind,
    Line,
    OpcodeRow,
    RegionDiff,
    ResourceRow,
    Side,
)

__all__ = [
    "Diff",
    "FunctionDiff",
    "Kind",
    "Line",
    "OpcodeRow",
    "RegionDiff",
    "ResourceRow",
    "Side",
    "compare",
    "diff",
]
