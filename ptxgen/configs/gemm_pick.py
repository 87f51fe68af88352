"""Which config for a product: candidates, each with a time from the model; the least wins.

A winner that was measured for the product's class stands before all of them.
"""

from __future__ import annotations

from dataclasses import replace

from ptxgen.configs.gemm import GemmConfig, GemmProblem
from ptxgen.configs.gemm_candidates import candidates
from ptxgen.configs.gemm_shape import Gemm
from ptxgen.configs.gemm_table import TABLES, class_of
from ptxgen.configs.gemm_time import Score, score

HOT_US = 200.0  # microseconds, from which on a product is taken to be at the power limit
BRISK_US = 100.0  # and from which on up to that it may run at either clock
TIE = 0.01  # relative: times that are no difference to the model


def by_model(
    problem: GemmProblem, m: int, n: int, k: int, *, batches: int = 1, sms: int = 132
) -> tuple[Score, ...]:
    """All candidates as the model orders them, best first.

    Products that take long run into the power limit. Of those within `TIE` of the least time, the
    one that reads least from L2 then comes first: it leaves most power to the tensor cores. For
    those from `BRISK_US` on, the mean of the times on a settled card and on a rested one decides,
    where small tiles wait for L2. Shorter ones wait for other things.
    """
    found = [score(problem, c, m, n, k, sms, batches) for c in candidates(problem, m, n, sms)]
    scores = sorted(found, key=lambda s: s.order)
    if BRISK_US < scores[0].us <= HOT_US:
        scores.sort(key=lambda s: s.us + s.rested_us)  # of equals, the order stays
    if scores[0].us > HOT_US:
        close = [s for s in scores if s.us <= scores[0].us * (1 + TIE)]
        coolest = min(close, key=lambda s: s.read)
        scores = [coolest, *(s for s in scores if s is not coolest)]
    return tuple(scores)


def ranking(
    problem: GemmProblem, m: int, n: int, k: int, *, batches: int = 1, sms: int = 132
) -> tuple[Score, ...]:
    """All candidates, best first: the winner of a measurement before what the model finds."""
    scores = by_model(problem, m, n, k, batches=batches, sms=sms)
    winner = TABLES.find(class_of(problem, m, n, k, batches), sms)
    if winner is None or Gemm(problem, winner.parsed()).check():
        return scores
    config = winner.parsed()
    first = replace(score(problem, config, m, n, k, sms, batches), measured=winner)
    return first, *(s for s in scores if s.config != config)


def pick(
    problem: GemmProblem, m: int, n: int, k: int, *, batches: int = 1, sms: int = 132
) -> GemmConfig:
    """The config for D[m, n] with depth k on a chip with `sms` SMs: measured, else by the model."""
    return ranking(problem, m, n, k, batches=batches, sms=sms)[0].config
