"""A small GEMM with one line spoiled, for the emulator to find. README.md shows what it says."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np

import runtime
from ptxgen import Kernel, kernel
from ptxgen.errors import EmulatorError
from ptxgen.templating import Rendered

SPOILED = {  # name -> (text of the PTX, what is put in its place)
    "expect_tx": ("_, [%full_s], 16384;", "_, [%full_s], 16400;"),
    "wait_group": ("wgmma.wait_group.sync.aligned 0;", ""),
}


def message(name: str) -> str:
    """The error of a launch of the spoiled kernel, as the command line would print it."""
    good = kernel("gemm", tile=(64, 64, 64), stages=2, cluster=(1, 1))
    old, new = SPOILED[name]
    if old not in good.ptx:
        raise ValueError(f"the PTX no longer holds {old!r}")
    text = Rendered(good.ptx.replace(old, new), good.ptx.chains)
    a = np.ones((64, 128), ml_dtypes.bfloat16)
    d = np.zeros((64, 64), ml_dtypes.bfloat16)
    try:
        runtime.launch(Kernel(replace(good.source, rendered=text)), a=a, b=a, d=d)
    except EmulatorError as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError(f"the emulator saw nothing wrong without {old!r}")
