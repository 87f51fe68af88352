"""What the picker loses on random shapes: which shapes, and the loss, from a record of searches."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import geometric_mean, mean, median, quantiles
from typing import Any

from ptxgen.configs.base import to_text
from ptxgen.configs.gemm_pick import by_model
from runtime.bench.gemm_cases import Case, cases

SEEDS = {"held_out": 2026, "tuning": 1}
COUNT = 200
MOST_PRODUCTS = 2**39
KEPT = 1.5  # times the best: the record has no times above

Row = Mapping[str, Any]


def shapes(name: str, dtype: str = "bf16", count: int = COUNT) -> Iterator[Case]:
    """The random cases of one set.

    M is log-uniform in 1..16384, N and K in 128..16384, with at most 2^39 multiplications. Half of
    them are multiples of 64 (M too, above 64), the others have any M, and N and K in steps of 8,
    which is what TMA can read. None is a shape of the published benchmark.
    """
    generator = random.Random(SEEDS[name])
    published = {case.extents for case in cases()}

    def size(low: int, high: int, step: int) -> int:
        value = exp(generator.uniform(log(low), log(high)))
        return max(round(value / step), 1) * step

    found = 0
    while found < count:
        even = generator.random() < 0.5
        m = size(1, 16384, 1)
        m = round(m / 64) * 64 if even and m > 64 else m
        n, k = (size(128, 16384, 64 if even else 8) for _ in range(2))
        if m * n * k <= MOST_PRODUCTS and (m, n, k) not in published:
            found += 1
            yield Case(group=name, dtype=dtype, m=m, n=n, k=k)


def case_of(row: Row) -> Case:
    """The case that a row measured."""
    return Case(
        group=row["case"], dtype=row["dtype"], m=row["m"], n=row["n"], k=row["k"],
        order=row["order"],
    )  # fmt: skip


def measured(row: Row) -> dict[str, float]:
    """Microseconds by config: of the rounds, else of the look."""
    return {**row["looks"], **row["us"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Regret:
    """Losses of a picker, and ratios of torch's time to the picked and to the best."""

    lost: tuple[float, ...]  # time of the picked config / time of the fastest - 1
    ratios: tuple[float, ...]
    best_ratios: tuple[float, ...]
    unknown: int  # picked, but slower than what the record keeps: counted as `KEPT`

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Regret:
        """Of today's model, without tables of winners."""
        lost, ratios, best_ratios, unknown = [], [], [], 0
        for row in rows:
            case = case_of(row)
            times = measured(row)
            best = min(times.values())
            picked = by_model(case.problem, *case.extents)[0].config
            us = times.get(to_text(picked))
            if us is None:
                unknown += 1
                us = KEPT * best
            lost.append(us / best - 1)
            ratios.append(row["peer_us"] / us)
            best_ratios.append(row["peer_us"] / best)
        return cls(
            lost=tuple(lost), ratios=tuple(ratios), best_ratios=tuple(best_ratios), unknown=unknown
        )

    def __str__(self) -> str:
        p95 = quantiles(self.lost, n=20)[-1]
        return (
            f"{len(self.lost)} shapes: median {median(self.lost):.1%}, mean {mean(self.lost):.1%}, "
            f"95th percentile {p95:.1%}, most {max(self.lost):.1%}. Geometric mean of torch's time "
            f"/ ours: {geometric_mean(self.ratios):.3f} as picked, "
            f"{geometric_mean(self.best_ratios):.3f} at best; as fast as torch or faster: "
            f"{mean(ratio >= 1 for ratio in self.ratios):.0%} of the shapes."
        )
