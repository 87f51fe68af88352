"""What the picker loses: 200 random shapes, every config that may win, and cuBLAS, on one GPU.

    python examples/regret.py --measure held_out     on a GPU; goes on where it was stopped
    python examples/regret.py                        the report, from the record alone

Shapes are log-uniform: M in 1..16384, N and K in 128..16384, at most 2^39 multiplications. Half of
them are multiples of 64 (M too, above 64), the others have any M, and N and K in steps of 8, which
is what TMA can read. None is a shape of the published benchmark. `held_out` is what is reported;
`tuning` is another seed, for fitting the model.

The regret of a shape is time of the picked config / time of the fastest, less 1. What the model
finds 1.8 times as slow as its best is not run; the record keeps what took up to 1.5 times the best.
Small products run on 16 input sets, so their operands may come from L2.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from math import exp, log
from pathlib import Path
from statistics import geometric_mean, mean, median, quantiles

from ptxgen.app.progress import track
from ptxgen.configs.base import to_text
from ptxgen.configs.gemm import GemmConfig
from ptxgen.configs.gemm_candidates import space
from ptxgen.configs.gemm_pick import pick
from ptxgen.errors import PtxgenError
from runtime.bench.gemm_arena import WrongResult
from runtime.bench.gemm_cases import Case, cases
from runtime.bench.gemm_search import build, promising, reference, search
from runtime.bench.record import Journal, provenance, read

RESULTS = Path(__file__).parent / "results"
SEEDS = {"held_out": 2026, "tuning": 1}
COUNT = 200
MOST_PRODUCTS = 2**39
KEY = ("case", "dtype", "order", "m", "n", "k")
Row = dict[str, object]


def shapes(name: str, dtype: str = "bf16", count: int = COUNT) -> Iterator[Case]:
    """The random cases of one set."""
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


def tried(case: Case) -> tuple[GemmConfig, ...]:
    """What is run for one shape."""
    return promising(case.problem, space(case.problem, case.m), *case.extents)


def measure(todo: Sequence[Case], journal: Journal, commit: str | None) -> list[str]:
    """Search every shape that the record lacks, each written when it is done; what failed."""
    import torch

    todo = [c for c in todo if journal.find(case=c.group, dtype=c.dtype, order=c.order,
                                            m=c.m, n=c.n, k=c.k) is None]  # fmt: skip
    needed = {reference(case.problem, config) for case in todo for config in tried(case)}
    for _ in track(build(needed), "assembling", total=len(needed)):
        pass
    failed: list[str] = []
    for case in track(todo, "measuring"):
        picked = pick(case.problem, *case.extents)
        try:
            found = search(case, tried(case), always=[picked])
        except (WrongResult, PtxgenError) as error:
            failed.append(case.name)
            print(f"{case.name}: {type(error).__name__}: {error}", flush=True)
            continue
        row: Row = {
            "case": case.group, "dtype": case.dtype, "order": case.order, "m": case.m,
            "n": case.n, "k": case.k, "peer": "torch.matmul", "picked": to_text(picked),
            "picked_us": found.us[to_text(picked)], "best": found.best,
            "best_us": found.us[found.best], "peer_us": found.peer_us, "tried": found.tried,
            "us": found.us, "looks": found.looks,
        }  # fmt: skip
        journal.add(row, provenance("random normal", commit))
        torch.cuda.empty_cache()
    journal.close()
    return failed


def times(row: Row) -> dict[str, float]:
    """Microseconds by config: of the rounds, else of the look."""
    looks, us = row["looks"], row["us"]
    assert isinstance(looks, dict)
    assert isinstance(us, dict)
    return looks | us


def report(rows: Sequence[Row]) -> str:
    """Regret of today's picker on these rows, and how picked and best stand against the peer."""
    lost, ratios, best_ratios, unknown = [], [], [], 0
    for row in rows:
        case = Case(
            group=str(row["case"]), dtype=str(row["dtype"]), order=str(row["order"]),
            m=int(str(row["m"])), n=int(str(row["n"])), k=int(str(row["k"])),
        )  # fmt: skip
        measured = times(row)
        best, peer = min(measured.values()), float(str(row["peer_us"]))
        us = measured.get(to_text(pick(case.problem, *case.extents)))
        if us is None:  # slower than what the record keeps
            unknown += 1
            us = 1.5 * best
        lost.append(us / best - 1)
        ratios.append(peer / us)
        best_ratios.append(peer / best)
    cuts = quantiles(lost, n=20)
    return "\n".join(
        [
            f"{len(rows)} shapes; regret: median {median(lost):.1%}, mean {mean(lost):.1%}, "
            f"95th percentile {cuts[-1]:.1%}, most {max(lost):.1%}",
            f"picked not in the record, taken as 50%: {unknown}",
            f"against torch.matmul, geometric mean: picked {geometric_mean(ratios):.3f}, "
            f"best {geometric_mean(best_ratios):.3f}",
            f"picked at least as fast as torch: {mean(r >= 1 for r in ratios):.0%} of shapes, "
            f"at least 0.97: {mean(r >= 0.97 for r in ratios):.0%}",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", nargs="+", default=[], choices=list(SEEDS), metavar="SET")
    parser.add_argument("--count", type=int, default=COUNT, help="shapes of each set")
    parser.add_argument("--commit", help="what to record as the commit")
    parser.add_argument("--out", type=Path, default=RESULTS / "regret.jsonl")
    arguments = parser.parse_args()
    failed: list[str] = []
    if arguments.measure:
        todo = [c for name in arguments.measure for c in shapes(name, count=arguments.count)]
        failed = measure(todo, Journal(arguments.out, KEY), arguments.commit)
    rows = read(arguments.out)
    for name in SEEDS:
        mine = [row for row in rows if row["case"] == name]
        if mine:
            print(f"{name}: {report(mine)}")
    if failed:
        raise SystemExit(f"{len(failed)} shapes failed: {' '.join(failed)}")


if __name__ == "__main__":
    main()
