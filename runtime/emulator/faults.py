"""A bank's refusal as a finding: where the path, the lane and the PTX line are known."""

from __future__ import annotations

from ptxgen.errors import HazardError

from .memory import Fault
from .report import hazard
from .state import Path


def fault(p: Path, error: Fault, line: int, lane: int | None, what: str) -> HazardError:
    """A bank's refusal as a finding."""
    where = f"{error.bank} offset {error.offset:#x}"
    who = f" by lane {lane}" if lane is not None else ""
    texts = {
        "range": (
            "out-of-bounds",
            f"{what} of {error.unit} bytes{who} at {where}, outside its {error.size:#x} bytes",
        ),
        "align": ("misaligned", f"{what}{who} at {where} is not aligned to {error.unit} bytes"),
        "unwritten": (
            "uninitialised-memory",
            f"{what}{who} reads {where}, which nothing has written",
        ),
        "in-flight": (
            "in-flight",
            f"{what}{who} touches {where}, which an asynchronous copy is about to write",
        ),
        "barrier": (
            "mbarrier-access",
            f"{what}{who} touches {where}, which is a live mbarrier",
        ),
        "readonly": ("read-only", f"{what}{who} writes {error.bank}, which is read-only"),
    }
    code, message = texts[error.kind]
    cure = ""
    if error.kind == "align":
        cure = f"align the address to {error.unit} bytes, or use narrower accesses"
    return hazard(code, message, path=p, line=line, cure=cure, bytes_=where)
