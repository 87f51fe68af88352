"""`.aligned`: instructions that the whole warp executes together."""

from __future__ import annotations

from .report import hazard
from .state import Path
from .values import Array


def require_whole_warp(p: Path, line: int, name: str, mask: Array | None = None) -> None:
    """`.aligned`: every lane of the warp that has not exited executes the instruction."""
    here = p.active(mask)
    if here != p.w.live:
        raise hazard(
            "partial-warp",
            f"{name} is executed by lanes {here:#010x} of {p.w.live:#010x}",
            path=p,
            line=line,
        )


def guarded_aligned(p: Path, mask: Array, line: int) -> None:
    """An `.aligned` instruction under a guard: the guard must hold in every lane."""
    require_whole_warp(p, line, "an .aligned instruction", mask)
