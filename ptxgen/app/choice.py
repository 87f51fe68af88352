"""`ptxgen inspect gemm --m .. --n .. --k ..`: which config is chosen for a product, and why."""

from __future__ import annotations

from dataclasses import asdict

from rich.console import Group
from rich.table import Table
from rich.text import Text

from ptxgen.app.output import Answer
from ptxgen.configs.base import from_text, options
from ptxgen.configs.gemm import GemmConfig, GemmProblem
from ptxgen.configs.gemm_pick import HOT_US, TIE, ranking
from ptxgen.configs.gemm_time import Score
from ptxgen.errors import ArgumentError, KernelReferenceError, Violation
from ptxgen.kernels.registry import parse_reference


def explain(
    reference: str, m: int | None, n: int | None, k: int | None, *, batches: int, top: int
) -> Answer:
    """The best candidates for D [m, n] with depth k, each with its time and the reasons."""
    if m is None or n is None or k is None:
        given = {"m": m, "n": n, "k": k}
        broken = [
            Violation(field=name, got="nothing", rule="must be given", fix=f"pass --{name}")
            for name, value in given.items()
            if value is None
        ]
        raise ArgumentError("ptxgen inspect: a product has three extents", broken)
    problem = _problem(reference, batches)
    scores = ranking(problem, m, n, k, batches=batches)
    title = f"D [{m}, {n}] with K = {k}" + (f", {batches} times" if batches > 1 else "")
    return Answer(
        data={
            "m": m, "n": n, "k": k, "batches": batches, "problem": asdict(problem),
            "candidates": len(scores), "best": [_data(score) for score in scores[:top]],
        },
        view=Group(
            Text(f"{title}: {len(scores)} candidates on 132 SMs", style="bold"),
            _table(scores[:top]),
            Text(),
            Text(_reason(scores)),
        ),
    )  # fmt: skip


def _problem(reference: str, batches: int) -> GemmProblem:
    name, values = parse_reference(reference)
    if name != "gemm":
        raise KernelReferenceError(f"{name!r} has no choice to explain; kernels: gemm")
    chosen = [key for key in values if key in options(GemmConfig)]
    if chosen:
        raise KernelReferenceError(
            f"{reference!r} tells {', '.join(chosen)}, which the picker would choose; leave it "
            "out, or leave --m, --n and --k out to see that very kernel"
        )
    unknown = [key for key in values if key not in options(GemmProblem)]
    if unknown:
        raise KernelReferenceError(f"gemm has no field {', '.join(unknown)}")
    return from_text(GemmProblem, values | ({"batched": "1"} if batches > 1 else {}))


def _data(score: Score) -> dict[str, object]:
    return {
        "config": score.fields, "us": score.us, "rested_us": score.rested_us,
        "loop_us": score.loop_us, "bound": score.bound, "memory_us": score.memory_us,
        "edge_us": score.edge_us, "waves": score.waves.waves, "tiles": score.waves.tiles,
        "busy": score.waves.efficiency,
        "measured_us": score.measured.us if score.measured else None,
    }  # fmt: skip


def _table(scores: tuple[Score, ...]) -> Table:
    """Terms of the model side by side, in microseconds."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("us", "rested", "loops", "bound by", "memory", "edges", "waves", "busy", "config"):
        table.add_column(name, justify="left" if name in ("bound by", "config") else "right")
    for s in scores:
        table.add_row(
            f"{s.us:.1f}", f"{s.rested_us:.1f}", f"{s.loop_us:.1f}", s.bound,
            f"{s.memory_us:.1f}", f"{s.edge_us:.1f}", str(s.waves.waves),
            f"{s.waves.efficiency:.0%}", s.fields,
        )  # fmt: skip
    return table


def _reason(scores: tuple[Score, ...]) -> str:
    """Why the first stands first."""
    first = scores[0]
    if first.measured is not None:
        w = first.measured
        return (
            f"The first was measured: {w.us:.2f} us at {w.m}x{w.n}x{w.k} on an {w.device} "
            f"({w.date[:10]}), the fastest of its class; the model alone would take "
            f"{w.model or 'the default'}, {w.model_us:.2f} us."
        )
    quickest = min(scores, key=lambda s: s.order)
    if quickest is first:
        why = ""
    elif first.us > HOT_US:
        why = f" Of those within {TIE:.0%} of the quickest it reads least from L2: power decides."
    else:
        why = " A product that long may find the card settled or rested: the mean decides."
    return f"The first: {first.explain()}.{why}"
