"""Fits the picker's rates to the tuning shapes of the record of `regret.py`.

    python examples/fit_pick.py [--steps 3000] [--seed 0]      prints Rates(...) and what they lose

Random descent: one or two rates at a time are scaled by a random factor, and kept where the loss is
less. The loss is the mean regret on the tuning shapes, smoothed over predictions that are close,
plus a part of the mean deviation of the predicted from the measured times, so that rates stay what
they say they are. The held-out shapes are only looked at in the end.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from math import exp, log
from pathlib import Path
from statistics import mean, median

from ptxgen.configs.base import to_text
from ptxgen.configs.gemm_candidates import candidates
from ptxgen.configs.gemm_shape import Gemm
from ptxgen.configs.gemm_time import H200, Rates, Work, times, together
from runtime.bench.gemm_cases import Case
from runtime.bench.record import read

RECORD = Path(__file__).parent / "results" / "regret.jsonl"
SMS = 132
SLOW = 1.5  # times the best: what the record left out is at least as slow as that
CLOSE = 1.3  # times the best: whose times should be predicted
DOUBT = 0.03  # relative: predictions that are so close share the choice
DEVIATION = 0.15  # weight of what is predicted wrong, beside the regret
CLOCK = 0.2  # weight in it of what is wrong for all configs of a shape alike


@dataclass(frozen=True, slots=True)
class Shape:
    """One shape of the record: what each config counts, and how long it took."""

    works: tuple[Work, ...]
    us: tuple[float, ...]  # SLOW times the best where the record has none


def load(name: str) -> list[Shape]:
    """The shapes of one set."""
    found = []
    for row in read(RECORD):
        if row["case"] != name:
            continue
        case = Case(group=name, dtype=str(row["dtype"]), m=row["m"], n=row["n"], k=row["k"])
        measured = row["looks"] | row["us"]
        best = min(measured.values())
        works, us = [], []
        for config in candidates(case.problem, case.m, case.n):
            works.append(Work.of(Gemm(case.problem, config), *case.extents, SMS, 1))
            us.append(measured.get(to_text(config), SLOW * best))
        found.append(Shape(tuple(works), tuple(us)))
    return found


def predicted(shape: Shape, rates: Rates) -> list[float]:
    """Microseconds of every config."""
    return [together(*times(work, rates, SMS), rates) for work in shape.works]


def regrets(shapes: Sequence[Shape], rates: Rates) -> list[float]:
    """What the rates lose on each shape."""
    lost = []
    for shape in shapes:
        us = predicted(shape, rates)
        lost.append(shape.us[us.index(min(us))] / min(shape.us) - 1)
    return lost


def loss(shapes: Sequence[Shape], rates: Rates) -> float:
    """What is made small. A shape's own clock (power, temperature) is a factor on all its times."""
    regret, deviation = [], []
    for shape in shapes:
        us = predicted(shape, rates)
        least, best = min(us), min(shape.us)
        weights = [(least / x) ** (1 / DOUBT) for x in us]
        lost = (w * (x / best - 1) for w, x in zip(weights, shape.us, strict=True))
        regret.append(sum(lost) / sum(weights))
        pairs = zip(us, shape.us, strict=True)
        errors = [log(mine / real) for mine, real in pairs if real <= CLOSE * best]
        clock = mean(errors)
        deviation.append(mean(abs(error - clock) for error in errors) + CLOCK * abs(clock))
    return mean(regret) + DEVIATION * mean(deviation)


def descend(start: Rates, of: Callable[[Rates], float], steps: int, seed: int) -> Rates:
    """The best rates that a random walk finds."""
    generator = random.Random(seed)
    best, least = start, of(start)
    names = list(asdict(start))
    for step in range(steps):
        width = 0.5 * (1 - step / steps) + 0.02
        changes = {}
        for name in generator.sample(names, generator.choice((1, 1, 2, 3))):
            value = getattr(best, name) or 1e-3
            changes[name] = value * exp(generator.gauss(0, width))
        tried = replace(best, **changes)
        now = of(tried)
        if now < least:
            best, least = tried, now
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    tuning = load("tuning") + load("tuning_large") + load("tuning_skinny")
    rates = descend(H200, lambda r: loss(tuning, r), arguments.steps, arguments.seed)
    print(
        "Rates(" + ", ".join(f"{name}={value:.4g}" for name, value in asdict(rates).items()) + ")"
    )
    for name, shapes in (("tuning", tuning), ("held_out", load("held_out"))):
        for title, which in (("before", H200), ("after", rates)):
            lost = regrets(shapes, which)
            print(f"{name}, {title}: mean {mean(lost):.1%}, median {median(lost):.1%}")


if __name__ == "__main__":
    main()
