"""GEMM against cuBLAS (torch.matmul) on one GPU: correctness first, then an interleaved contest.

    python examples/bench_gemm.py                  the table, and examples/results/gemm.jsonl
    python examples/bench_gemm.py --cases square   only some of it (square, short_k, odd, small_m)
    python examples/bench_gemm.py --sustained      one second back to back, in alternating blocks

Inputs are random normal; a ratio is peer time / our time: above 1.00 we are faster. The control
is the peer against itself: a ratio within it of 1.00 is a tie.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

import ptxgen
import runtime
from ptxgen.app.progress import track
from ptxgen.configs.base import options, spell
from ptxgen.configs.gemm import GemmProblem
from ptxgen.configs.gemm_pick import pick
from runtime.bench.record import provenance, write
from runtime.bench.timer import CONTROL, contest, rotation, sustained, table

RESULTS = Path(__file__).parent / "results"
TORCH = {"bf16": torch.bfloat16, "f16": torch.float16}

SHAPES = {
    "square": [(2048, 2048, 2048), (4096, 4096, 4096), (6144, 6144, 6144), (8192, 8192, 8192),
               (16384, 8192, 2048), (4096, 7168, 2048)],
    "short_k": [(16384, 8192, 512)],
    "odd": [(4096, 4104, 4096), (5000, 3000, 2104), (8192, 7168, 2112)],
    "small_m": [(1, 8192, 8192), (16, 8192, 8192), (64, 8192, 8192), (128, 8192, 8192),
                (128, 7168, 16384), (64, 2112, 7168)],
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    group: str
    dtype: str
    m: int
    n: int
    k: int

    @property
    def flop(self) -> int:
        return 2 * self.m * self.n * self.k

    @property
    def name(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"


def cases(groups: list[str], dtypes: list[str]) -> Iterator[Case]:
    for dtype in dtypes:
        for group in groups:
            for m, n, k in SHAPES[group]:
                yield Case(group, dtype, m, n, k)


class Buffers:
    """Input sets that together exceed the L2, and one output for each side."""

    def __init__(self, case: Case) -> None:
        size = 2 * (case.m * case.k + case.n * case.k)
        l2 = torch.cuda.get_device_properties(0).L2_cache_size
        self.sets = rotation(size, l2)
        kind = {"device": "cuda", "dtype": TORCH[case.dtype]}
        self.a = [torch.randn(case.m, case.k, **kind) for _ in range(self.sets)]
        self.b = [torch.randn(case.n, case.k, **kind) for _ in range(self.sets)]
        self.ours = torch.full((case.m, case.n), float("nan"), **kind)
        self.theirs = torch.empty_like(self.ours)


def kernel_for(case: Case, overrides: dict[str, str]) -> ptxgen.Kernel:
    """The picked kernel, with fields replaced by --set."""
    config = pick(GemmProblem(dtype=case.dtype), case.m, case.n, case.k)
    fields = {n: spell(getattr(config, n)) for n in options(type(config))} | overrides
    return ptxgen.kernel("gemm", dtype=case.dtype, **fields)


def check(case: Case, buffers: Buffers) -> float:
    """Relative error against float32 accumulation of the same inputs; raises where it is wrong."""
    reference = buffers.a[0].float() @ buffers.b[0].float().T
    error = float((buffers.ours.float() - reference).norm() / reference.norm())
    if not error < 5e-3:
        raise SystemExit(f"{case.name} {case.dtype}: relative error {error}")
    return error


def measure(case: Case, overrides: dict[str, str], rounds: int) -> dict[str, object]:
    buffers = Buffers(case)
    kernel = kernel_for(case, overrides)
    launches = [
        runtime.prepare(kernel, a=a, b=b, d=buffers.ours)
        for a, b in zip(buffers.a, buffers.b, strict=True)
    ]
    launches[0]()
    error = check(case, buffers)
    result = contest(
        {
            "ours": lambda i: launches[i](),
            "cublas": lambda i: torch.matmul(buffers.a[i], buffers.b[i].T, out=buffers.theirs),
        },
        peer="cublas", sets=buffers.sets, rounds=rounds,
    )  # fmt: skip
    low, high = result.spread("ours")
    return {
        "case": case.group, "dtype": case.dtype, "m": case.m, "n": case.n, "k": case.k,
        "peer": "torch.matmul", "ratio": round(result.ratio("ours"), 4),
        "ratio_low": round(low, 4), "ratio_high": round(high, 4),
        "control": round(result.ratio(CONTROL), 4),
        "ours_tflops": round(case.flop / result.samples["ours"].median / 1e12, 1),
        "peer_tflops": round(case.flop / result.samples["cublas"].median / 1e12, 1),
        "ours_us": round(result.samples["ours"].median * 1e6, 2),
        "peer_us": round(result.samples["cublas"].median * 1e6, 2),
        "relative_error": error, "kernel": kernel.reference, "input_sets": buffers.sets,
        "cubin": kernel.assembly.sha256[:12], "ptxas": kernel.assembly.ptxas,
    }  # fmt: skip


def measure_sustained(case: Case, overrides: dict[str, str]) -> dict[str, object]:
    buffers = Buffers(case)
    kernel = kernel_for(case, overrides)
    launches = [
        runtime.prepare(kernel, a=a, b=b, d=buffers.ours)
        for a, b in zip(buffers.a, buffers.b, strict=True)
    ]
    times = sustained(
        {
            "ours": lambda i: launches[i](),
            "cublas": lambda i: torch.matmul(buffers.a[i], buffers.b[i].T, out=buffers.theirs),
        },
        sets=buffers.sets,
    )
    ours, peer = times["ours"].median, times["cublas"].median
    return {
        "case": "sustained", "dtype": case.dtype, "m": case.m, "n": case.n, "k": case.k,
        "peer": "torch.matmul", "ratio": round(peer / ours, 4),
        "ours_tflops": round(case.flop / ours / 1e12, 1),
        "peer_tflops": round(case.flop / peer / 1e12, 1),
        "relative_error": check(case, buffers), "kernel": kernel.reference,
        "cubin": kernel.assembly.sha256[:12], "ptxas": kernel.assembly.ptxas,
    }  # fmt: skip


def show(rows: list[dict[str, object]]) -> str:
    header = [
        "case",
        "dtype",
        "m x n x k",
        "ours",
        "peer",
        "ratio",
        "middle half",
        "control",
        "kernel",
    ]
    body = [
        [
            str(r["case"]), str(r["dtype"]), f"{r['m']}x{r['n']}x{r['k']}",
            f"{r['ours_tflops']:.0f}", f"{r['peer_tflops']:.0f}", f"{r['ratio']:.3f}",
            f"{r['ratio_low']:.3f}-{r['ratio_high']:.3f}" if "ratio_low" in r else "",
            f"{r['control']:.3f}" if "control" in r else "", str(r["kernel"]),
        ]
        for r in rows
    ]  # fmt: skip
    return table([header, *body])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--dtypes", nargs="+", default=["bf16", "f16"], choices=list(TORCH))
    parser.add_argument(
        "--shape", action="append", help="one more shape, MxNxK, instead of --cases"
    )
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--sustained", action="store_true", help="8192^3 for seconds on end")
    parser.add_argument("--commit", help="what to record as the commit")
    parser.add_argument("--out", type=Path, default=RESULTS / "gemm.jsonl")
    options_ = parser.parse_args()
    overrides = dict(item.split("=", 1) for item in options_.set)
    if options_.shape:
        shapes = [tuple(map(int, text.split("x"))) for text in options_.shape]
        todo = [Case("shape", d, *s) for d in options_.dtypes for s in shapes]
    else:
        todo = list(cases(options_.cases, options_.dtypes))
    rows = []
    for case in track(todo, "measuring"):
        rows.append(measure(case, overrides, options_.rounds))
        print(show(rows[-1:]).splitlines()[-1], flush=True)
    if options_.sustained:
        rows.append(measure_sustained(Case("sustained", "bf16", 8192, 8192, 8192), overrides))
    print(show(rows))
    write(options_.out, rows, provenance("random normal", options_.commit))


if __name__ == "__main__":
    main()
