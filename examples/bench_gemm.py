"""GEMM against cuBLAS (by torch) on one GPU: correctness first, then an interleaved contest.

    python examples/bench_gemm.py                       everything, into examples/results/gemm.jsonl
    python examples/bench_gemm.py --list                the names of the cases
    python examples/bench_gemm.py --only fp8 order/     cases with one of these words in their name
    python examples/bench_gemm.py --shape 512x512x4096 --set stages=4    one more shape, its config

Inputs are random normal; a ratio is peer time / our time: above 1.00 we are faster. The control
is the peer against itself: a ratio within it of 1.00 is a tie. `ratio` is of a card whose clock has
settled, `rested` of its first 30 ms after a rest. `sustained` runs for seconds back to back, where
the power limit decides. Each case is written when it is done; what the record holds
of the same commit is not measured again, unless --again asks for it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

import ptxgen
from ptxgen.app.progress import track
from ptxgen.configs.base import options, spell
from ptxgen.configs.gemm import GemmProblem
from ptxgen.configs.gemm_pick import pick
from ptxgen.errors import PtxgenError
from runtime.bench import gemm_host
from runtime.bench.gemm_arena import PEERS, Arena, WrongResult
from runtime.bench.gemm_cases import LEAST, Case, cases, chosen
from runtime.bench.record import Journal, provenance
from runtime.bench.timer import CONTROL, contest, sustained, table

RESULTS = Path(__file__).parent / "results"
KEY = ("case", "dtype", "order", "m", "n", "k", "scaling")
HOST_KEY = ("what", "result", "size")
Row = dict[str, object]


def kernel_for(case: Case, overrides: dict[str, str]) -> ptxgen.Kernel:
    """The picked kernel, with fields replaced by --set."""
    problem = case.problem
    config = pick(problem, *case.extents)
    fields = {n: getattr(problem, n) for n in options(GemmProblem)}
    fields |= {n: spell(getattr(config, n)) for n in options(type(config))} | overrides
    return ptxgen.kernel("gemm", **fields)


def measure(case: Case, overrides: dict[str, str], rounds: int) -> Row:
    """One row of the table."""
    arena = Arena(case)
    kernel = kernel_for(case, overrides)
    ours, peer = arena.run(kernel), arena.peer()
    error, peer_error = arena.check(ours, peer)
    row: Row = {
        "case": case.group, "dtype": case.dtype, "order": case.order, "m": case.m, "n": case.n,
        "k": case.k, "scaling": case.scaling, "peer": PEERS[case.dtype],
    }  # fmt: skip
    if case.group == "sustained":
        times = sustained({"ours": ours, "peer": peer}, sets=arena.sets)
        row["ratio"] = round(times["peer"].median / times["ours"].median, 4)
    else:
        result = contest({"ours": ours, "peer": peer}, peer="peer", sets=arena.sets, rounds=rounds)
        times = result.samples
        low, high = result.spread("ours")
        row |= {
            "ratio": round(result.ratio("ours"), 4), "ratio_low": round(low, 4),
            "ratio_high": round(high, 4), "control": round(result.ratio(CONTROL), 4),
            "rested": round(result.rested_ratio("ours"), 4),
            "rested_control": round(result.rested_ratio(CONTROL), 4), "rounds": rounds,
        }  # fmt: skip
    for side in ("ours", "peer"):
        row[f"{side}_tflops"] = round(case.flop / times[side].median / 1e12, 1)
        row[f"{side}_us"] = round(times[side].median * 1e6, 2)
    arena.check(ours)  # the last launch must be as right as the first
    return row | {
        "relative_error": error, "peer_relative_error": peer_error, "input_sets": arena.sets,
        "config": kernel.reference, "cubin": kernel.assembly.sha256[:12],
        "ptxas": kernel.assembly.ptxas,
    }  # fmt: skip


def short(rows: Sequence[Row]) -> list[str]:
    """Names of the rows below what their group is held to, by more than their control's spread."""
    found = []
    for row in rows:
        ratio, least = float(str(row["ratio"])), LEAST.get(str(row["case"]), 0.0)
        slack = abs(float(str(row.get("control", 1.0))) - 1)
        if ratio + slack < least:
            found.append(f"{row['case']} {row['dtype']} {row['m']}x{row['n']}x{row['k']}: {ratio}")
    return found


def show(rows: Sequence[Row]) -> str:
    """Rows as aligned text."""
    header = ["case", "dtype", "order", "m x n x k", "ours", "peer", "ratio", "middle half",
              "control", "rested", "config"]  # fmt: skip
    body = [
        [
            str(r["case"]), str(r["dtype"]), str(r["order"]), f"{r['m']}x{r['n']}x{r['k']}",
            f"{r['ours_tflops']:.0f}", f"{r['peer_tflops']:.0f}", f"{r['ratio']:.3f}",
            f"{r['ratio_low']:.3f}-{r['ratio_high']:.3f}" if "ratio_low" in r else "",
            f"{r['control']:.3f}" if "control" in r else "",
            f"{r['rested']:.3f}" if "rested" in r else "", str(r["config"]),
        ]
        for r in rows
    ]  # fmt: skip
    return table([header, *body])


def todo(arguments: argparse.Namespace) -> tuple[Case, ...]:
    """The cases of this run, by --only or --shape."""
    if not arguments.shape:
        return chosen(cases(), arguments.only)
    base = Case(group="shape", dtype=arguments.dtype, m=0, n=0, k=0, order=arguments.order)
    extents = [tuple(map(int, text.split("x"))) for text in arguments.shape]
    return tuple(replace(base, m=m, n=n, k=k) for m, n, k in extents)


def host_lines(references: Sequence[str], journal: Journal, commit: str | None) -> None:
    """Measure, record and print the lines on host time."""
    rows = [*gemm_host.eager(), *gemm_host.replayed(), *gemm_host.cubin_time(references)]
    for row in rows:
        journal.add(row, provenance("random normal", commit))
        print(gemm_host.line(row))
    journal.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="part of the cases")
    parser.add_argument("--shape", action="append", metavar="MxNxK", help="instead of the cases")
    parser.add_argument("--dtype", default="bf16", help="of --shape")
    parser.add_argument("--order", default="TN", help="of --shape: TN, NN, NT, TT")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--no-host", action="store_true", help="leave out the lines on host time")
    parser.add_argument("--again", action="store_true", help="measure also what is recorded")
    parser.add_argument("--commit", help="what to record as the commit")
    parser.add_argument("--out", type=Path, help="default: gemm.jsonl, of trials gemm_trials.jsonl")
    arguments = parser.parse_args()
    overrides = dict(item.split("=", 1) for item in arguments.set)
    found = todo(arguments)
    if arguments.list:
        print("\n".join(case.name for case in found))
        return
    trial = bool(arguments.shape or arguments.set)
    out = arguments.out or RESULTS / ("gemm_trials.jsonl" if trial else "gemm.jsonl")
    journal, failed = Journal(out, KEY), []
    here = provenance("random normal", arguments.commit).commit
    rows: list[Row] = []
    for case in track(found, "measuring"):
        known = journal.find(
            case=case.group, dtype=case.dtype, order=case.order, m=case.m, n=case.n, k=case.k,
            scaling=case.scaling, commit=here, config=kernel_for(case, overrides).reference,
        )  # fmt: skip
        if known is not None and not arguments.again:
            rows.append(known)
            continue
        try:
            row = measure(case, overrides, arguments.rounds)
        except (WrongResult, PtxgenError, RuntimeError) as error:
            failed.append(case.name)
            print(f"{case.name}: {type(error).__name__}: {error}", flush=True)
            continue
        rows.append(journal.add(row, provenance("random normal", arguments.commit)))
        print(f"{case.name}: {row['ratio']}", flush=True)
        torch.cuda.empty_cache()
    journal.close()
    print(show(rows))
    print("below what is wanted:", "; ".join(short(rows)) or "none")
    if not arguments.no_host and rows:
        host = Journal(out.with_name("gemm_host.jsonl"), HOST_KEY)
        host_lines([str(row["config"]) for row in rows], host, arguments.commit)
    if failed:
        raise SystemExit(f"{len(failed)} cases failed: {' '.join(failed)}")


if __name__ == "__main__":
    main()
