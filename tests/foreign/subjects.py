"""The foreign programs as `ptxgen prove --programs` wants them: by name, with result checks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [folder for folder in (str(HERE.parent), str(HERE)) if folder not in sys.path]

import launching  # noqa: E402

import ptxgen  # noqa: E402
from runtime.emulator.backend import EmulatorBackend  # noqa: E402


class ForeignSubject:
    """A program with the arguments and the results of its case."""

    sms = 4

    def __init__(self, name: str) -> None:
        self.name = name
        self.ptx = launching.source(name)
        self.case = launching.case_of(name)
        self.entry = ptxgen.load_ptx(self.ptx, block=self.case.block).spec.entry

    def where(self, line: int) -> str:
        return ""

    def launch(self, ptx: str, backend: EmulatorBackend) -> str:
        found = launching.launch(ptx, self.case, "emulator", backend)
        try:
            launching.check(self.case, found, self.name)
        except AssertionError as wrong:
            return str(wrong)
        return ""


def subjects() -> Mapping[str, Callable[[], ForeignSubject]]:
    return {name: partial(ForeignSubject, name) for name in launching.CASES}
