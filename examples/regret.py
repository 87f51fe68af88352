"""What the picker loses: 200 random shapes, every config that may win, and cuBLAS, on one GPU.

    python examples/regret.py --measure held_out     on a GPU; goes on where it was stopped
    python examples/regret.py                        the report, from the record alone

The regret of a shape is time of the picked config / time of the fastest, less 1. What the model
finds 1.8 times as slow as its best is not run; the record keeps what took up to 1.5 times the best.
Small products run on 16 input sets, so their operands may come from L2. `held_out` is what is
reported; `tuning`, `tuning_large` and `tuning_skinny` are other seeds, for fitting the model
(`fit_pick.py`), and `looked_at` was held out while the model was made.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ptxgen.app.progress import track
from ptxgen.configs.base import to_text
from ptxgen.configs.gemm import GemmConfig
from ptxgen.configs.gemm_candidates import candidates
from ptxgen.configs.gemm_pick import by_model
from ptxgen.errors import PtxgenError
from runtime.bench.gemm_arena import WrongResult
from runtime.bench.gemm_cases import Case
from runtime.bench.gemm_regret import SETS, Regret, shapes
from runtime.bench.gemm_search import build, promising, reference, search
from runtime.bench.record import Journal, provenance, read

RESULTS = Path(__file__).parent / "results"
KEY = ("case", "dtype", "order", "m", "n", "k")


def tried(case: Case) -> tuple[GemmConfig, ...]:
    """What is run for one shape."""
    return promising(case.problem, candidates(case.problem, case.m, case.n), *case.extents)


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
        picked = by_model(case.problem, *case.extents)[0].config
        try:
            found = search(case, tried(case), always=[picked])
        except (WrongResult, PtxgenError) as error:
            failed.append(case.name)
            print(f"{case.name}: {type(error).__name__}: {error}", flush=True)
            continue
        row: dict[str, object] = {
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", nargs="+", default=[], choices=list(SETS), metavar="SET")
    parser.add_argument("--commit", help="what to record as the commit")
    parser.add_argument("--out", type=Path, default=RESULTS / "regret.jsonl")
    arguments = parser.parse_args()
    failed: list[str] = []
    if arguments.measure:
        todo = [c for name in arguments.measure for c in shapes(name)]
        failed = measure(todo, Journal(arguments.out, KEY), arguments.commit)
    rows = read(arguments.out)
    for name in SETS:
        mine = [row for row in rows if row["case"] == name]
        if mine:
            print(f"{name}, {Regret.of(mine)}")
    if failed:
        raise SystemExit(f"{len(failed)} shapes failed: {' '.join(failed)}")


if __name__ == "__main__":
    main()
