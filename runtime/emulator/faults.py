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
            "the address is not inside the allocation",
            "check the index, or allocate more",
        ),
        "align": (
            "misaligned",
            f"{what}{who} at {where} is not aligned to {error.unit} bytes",
            "an access must be aligned to its size",
            f"align the address to {error.unit} bytes, or use narrower accesses",
        ),
        "unwritten": (
            "uninitialised-memory",
            f"{what}{who} reads {where}, which nothing has written",
            "shared and local memory start undefined",
            "write it first, and synchronise with the writer",
        ),
        "in-flight": (
            "in-flight",
            f"{what}{who} touches {where}, which an asynchronous copy is about to write",
            "the bytes are undefined until the copy has completed and was waited for",
            "wait on the mbarrier of the copy (or its group) before touching its destination",
        ),
        "barrier": (
            "mbarrier-access",
            f"{what}{who} touches {where}, which is a live mbarrier",
            "an mbarrier may only be touched by mbarrier instructions",
            "keep data and barriers apart, or mbarrier.inval first",
        ),
        "readonly": (
            "read-only",
            f"{what}{who} writes {error.bank}, which is read-only",
            "the array was passed as an input, or the space is constant",
            "pass a writable array",
        ),
    }
    code, message, reason, cure = texts[error.kind]
    return hazard(
        code, message, path=p, line=line, reason=reason, cure=cure, bytes_=where,
        isa="5.1 State spaces",
    )  # fmt: skip
