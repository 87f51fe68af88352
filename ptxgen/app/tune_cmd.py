"""`ptxgen tune`: measure the configs of a GEMM on this machine's GPU, and keep the winners."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Group
from rich.table import Table
from rich.text import Text

from ptxgen.app.output import Answer, note
from ptxgen.app.progress import track
from ptxgen.configs.gemm_table import user_table
from ptxgen.errors import ArgumentError, KernelReferenceError, Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the command line asks for: one product by its extents, or those of a file."""

    kernel: str
    m: int | None
    n: int | None
    k: int | None
    dtype: str
    order: str
    shapes: Path | None
    table: Path | None
    again: bool
    backend: str | None
    commit: str | None

    def text(self) -> str:
        """The products as lines."""
        extents = [self.m, self.n, self.k]
        if self.shapes is not None and not any(extents):
            return self.shapes.read_text(encoding="utf-8")
        if self.shapes is None and all(extents):
            return "x".join(map(str, extents))
        raise ArgumentError(
            "ptxgen tune: nothing to tune",
            [
                Violation(
                    field="shape", got="an incomplete one" if any(extents) else "none",
                    rule="must be --m, --n and --k, or --shapes FILE",
                    fix="ptxgen tune gemm --m 4096 --n 7168 --k 2048",
                )
            ],
        )  # fmt: skip


def tune(request: Request) -> Answer:
    """Search every class of products that the table lacks; each winner is written at once."""
    if request.kernel != "gemm":
        raise KernelReferenceError(f"{request.kernel!r} cannot be tuned; kernels: gemm")
    from runtime.bench import gemm_tune

    cases = gemm_tune.parse_shapes(request.text(), request.dtype, request.order)
    sms = gemm_tune.require_clock(request.backend)
    path = request.table or user_table()
    todo = cases if request.again else gemm_tune.untuned(cases, path, sms)
    if len(todo) < len(cases):
        note(f"{len(cases) - len(todo)} of {len(cases)} are of a class that was tuned before")
    needed = gemm_tune.kernels(todo, sms)
    for _ in track(gemm_tune.assemble(needed), "assembling", total=len(needed)):
        pass
    found = [gemm_tune.tune(case, path, sms, request.commit) for case in track(todo, "measuring")]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("m x n x k", "us", "of the model's", "of torch's", "tried", "winner"):
        table.add_column(column, justify="left" if column in ("m x n x k", "winner") else "right")
    for one in found:
        w = one.winner
        table.add_row(
            f"{w.m}x{w.n}x{w.k}", f"{w.us:.2f}", f"{1 / one.gain:.3f}", f"{1 / one.ratio:.3f}",
            str(one.tried), w.config,
        )  # fmt: skip
    return Answer(
        data={
            "table": str(path),
            "winners": [
                {**asdict(one.winner), "peer_us": one.peer_us, "tried": one.tried} for one in found
            ],
        },
        view=Group(table, Text(f"{len(found)} winners written to {path}")),
    )
