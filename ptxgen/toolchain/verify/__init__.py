"""Does the SASS hold what the kernel promises?

A kernel builds an `Expectation` from the same numbers that filled its template; `verify` turns each
promise into one row of a report. All checks are data: a promise is a small frozen record with one
method, `row(facts)`.

    facts    what promises are held against     counts   how much of something there is
    order    what comes before what             report   Expectation, verify, VerifyReport

ptxas unrolls loops and peels iterations off them, so inside the main loop a count is a multiple of
what one iteration of the PTX has, never an exact number. What is outside loops is exact. How often
an instruction runs is for the emulator's profile to say, not for this package.
"""

from __future__ import annotations

from ptxgen.toolchain.verify.counts import (
    NO_CALLS,
    NO_LOCAL_MEMORY,
    NO_WARP_MMA,
    Count,
    GroupSize,
    NoLosses,
    Resource,
    Setmaxnreg,
    forbidden,
)
from ptxgen.toolchain.verify.facts import TMA_ISSUE, Facts, Promise, Row
from ptxgen.toolchain.verify.order import (
    ARRIVE_BEFORE_MMA,
    BARRIER_BEFORE_TMA_STORE,
    FENCE_BEFORE_TMA_STORE,
    WAIT_BEFORE_RELEASE,
    Elected,
    Guarded,
    NotPerLane,
)
from ptxgen.toolchain.verify.report import Expectation, VerifyReport, verify

# What every kernel promises, and what every kernel with wgmma promises beyond that.
ALWAYS: tuple[Promise, ...] = (NoLosses(), NO_LOCAL_MEMORY, NotPerLane())
ALWAYS_WGMMA: tuple[Promise, ...] = (*ALWAYS, NO_CALLS, NO_WARP_MMA, ARRIVE_BEFORE_MMA)

__all__ = [
    "ALWAYS",
    "ALWAYS_WGMMA",
    "ARRIVE_BEFORE_MMA",
    "BARRIER_BEFORE_TMA_STORE",
    "FENCE_BEFORE_TMA_STORE",
    "NO_CALLS",
    "NO_LOCAL_MEMORY",
    "NO_WARP_MMA",
    "TMA_ISSUE",
    "WAIT_BEFORE_RELEASE",
    "Count",
    "Elected",
    "Expectation",
    "Facts",
    "GroupSize",
    "Guarded",
    "NoLosses",
    "NotPerLane",
    "Promise",
    "Resource",
    "Row",
    "Setmaxnreg",
    "VerifyReport",
    "forbidden",
    "verify",
]
