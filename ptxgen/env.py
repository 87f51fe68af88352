"""Every environment variable that this project reads: one typed registry, one README table.

Knobs choose tools, places and how much is said. What a kernel computes, and how, is never a knob:
ablations are config fields.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from ptxgen.errors import KnobError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Knob(Generic[T]):
    """One variable: its name, how its text is read, its default, and what it is for."""

    name: str
    parse: Callable[[str], T]
    default: T
    help: str

    def get(self) -> T:
        """The value that the environment gives, or the default. Raises KnobError for a bad one."""
        text = os.environ.get(self.name, "")
        if not text:
            return self.default
        try:
            return self.parse(text)
        except ValueError as error:
            raise KnobError(f"{self.name}={text!r}: {error} ({self.help})") from None


def _one_of(*values: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in values:
            raise ValueError(f"must be one of {', '.join(values)}")
        return text

    return parse


def _level(text: str) -> int:
    if text not in {"0", "1", "2", "3", "4", "5", "6"}:
        raise ValueError("must be 0..6")
    return int(text)


def _cache_dir() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ptxgen"


BACKEND: Knob[str | None] = Knob(
    "PTXGEN_BACKEND", _one_of("cuda", "emulator"), None, "where kernels run: cuda or emulator"
)
DEBUG: Knob[int] = Knob(
    "PTXGEN_DEBUG", _level, 0,
    "1 choices, 2 resources and timing, 3 config and smem map, 4 PTX, 5 SASS, 6 emulator trace",
)  # fmt: skip
CACHE_DIR: Knob[Path] = Knob("PTXGEN_CACHE_DIR", Path, _cache_dir(), "where cubins are kept")
DUMP: Knob[Path | None] = Knob("PTXGEN_DUMP", Path, None, "write every PTX, cubin and SASS here")
ADVISORIES: Knob[str] = Knob(
    "PTXGEN_ADVISORIES", _one_of("error", "warn"), "error",
    "whether C75xx remarks of ptxas and spills are errors or warnings",
)  # fmt: skip
PTXAS: Knob[str | None] = Knob("PTXGEN_PTXAS", str, None, "path of the ptxas to use")
NVDISASM: Knob[str | None] = Knob("PTXGEN_NVDISASM", str, None, "path of the nvdisasm to use")

KNOBS: tuple[Knob[object], ...] = (BACKEND, DEBUG, CACHE_DIR, DUMP, ADVISORIES, PTXAS, NVDISASM)  # type: ignore[assignment]


def table() -> str:
    """The README's table of knobs."""
    rows = [f"| `{k.name}` | {k.help} |" for k in KNOBS]
    return "\n".join(["| variable | meaning |", "|---|---|", *rows])
