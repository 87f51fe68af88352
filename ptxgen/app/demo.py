"""`ptxgen demo`: one kernel all the way, from a tile config to a result compared with NumPy."""

from __future__ import annotations

import re
import time

from rich.console import Group, RenderableType
from rich.text import Text

from ptxgen.api import Kernel, kernel_from
from ptxgen.app import output, show, trial
from ptxgen.app.lines import Lines
from ptxgen.app.output import Answer
from ptxgen.configs.base import options, spell
from ptxgen.errors import ConfigError

KERNEL = "gemm:dtype=bf16,tile=128x256x64,stages=4,cluster=2x1"
TOO_DEEP = KERNEL.replace("stages=4", "stages=5")
SHAPE = (300, 520, 200)  # no multiple of the tile in M, N or K: every edge is clipped

NEXT = (
    (".venv/bin/ptxgen emit gemm", "read the PTX top to bottom"),
    (".venv/bin/ptxgen list", "the fields of a kernel; change one"),
    (".venv/bin/ptxgen run gemm:tile=64x64x64,out_dtype=f32", "run your own choice"),
    (".venv/bin/ptxgen inspect gemm", "shared memory, registers, barriers, SASS"),
    ("make test", "every test that this machine can run"),
)


def tour(*, quiet: bool = False) -> Answer:
    """Show every step as it happens (not if `quiet`), and answer with the outcome."""
    start = time.perf_counter()
    guide = _Guide(quiet)
    kernel = kernel_from(KERNEL)
    guide.step("a tile config, checked against the hardware", _config(kernel))
    guide.step("the PTX it gives, one page, every number explained", *_ptx(kernel))
    guide.step("a cubin, by ptxas", Lines(str(kernel.assembly)))
    report = kernel.check_sass()
    guide.step("its SASS, held against what the kernel promises", show.verify_view(report))
    m, n, k = SHAPE
    tried = trial.attempt(kernel, m, n, k, backend=None, seed=0, inputs="random")
    guide.step("a run on random data, compared with NumPy in float64", trial.view(tried))
    ok = report.ok and tried.comparison.ok
    seconds = time.perf_counter() - start
    return Answer(
        data={"seconds": seconds, "verify": report.to_dict(), "run": tried.to_dict()},
        view=_closing(tried, ok, seconds),
        ok=ok,
    )


class _Guide:
    """Numbers the steps and draws them."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._count = 0

    def step(self, title: str, *views: RenderableType) -> None:
        self._count += 1
        if self._quiet:
            return
        output.draw(Text(f"{self._count}  {title}\n", style="bold cyan"))
        for view in views:
            output.draw(view)
        output.draw(Text(""))


def _config(kernel: Kernel) -> RenderableType:
    fields = ", ".join(
        f"{name}={spell(getattr(part, name))}"
        for part in (kernel.source.problem, kernel.source.resolved)
        for name in options(type(part))
    )
    return Group(
        Lines(f"{fields}\n\n{kernel.source.smem}"),
        Text("\nOne stage more is refused, with the numbers and what would be legal:"),
        Lines(_refusal(), "yellow"),
    )


def _refusal() -> str:
    try:
        kernel_from(TOO_DEEP)
    except ConfigError as error:
        return str(error)
    raise AssertionError(f"{TOO_DEEP} should not fit into shared memory")


def _ptx(kernel: Kernel) -> tuple[Text, Text, Text]:
    """The contract on top of the PTX, and its main loop with register lists shortened."""
    contract = kernel.ptx.partition("\n\n")[0]
    return (
        show.ptx_text(contract),
        Text("... and the heart of it, what a consumer warpgroup does with one stage:\n"),
        show.ptx_text(_main_loop(kernel.ptx)),
    )


def _main_loop(ptx: str) -> str:
    """From the stage's label to its branch back, with one wgmma for all of them."""
    start = ptx.index("    $CONSUME_STAGE:\n")
    end = ptx.index("bra $CONSUME_STAGE;\n", start)
    loop = re.sub(r"\s+\{(%acc\d+),[^}]*?(%acc\d+)\}", r" {\1, ..., \2}", ptx[start:end])
    loop = re.sub(r"(\.\.\., %acc\d+\}),\s+", r"\1, ", loop)
    lines = f"{loop}bra $CONSUME_STAGE;".splitlines()
    mmas = [i for i, line in enumerate(lines) if "wgmma.mma_async" in line]
    commit = next(i for i, line in enumerate(lines) if "wgmma.commit_group" in line)
    more = f"        ... {len(mmas) - 1} more wgmma, each 16 deeper in K ..."
    return "\n".join([*lines[: mmas[0] + 1], more, *lines[commit:]])


def _closing(tried: trial.Trial, ok: bool, seconds: float) -> RenderableType:
    m, n, k = tried.shape
    verdict = ("correct", "bold green") if ok else ("WRONG: see above", "bold red")
    shown = Text.assemble(
        "Shown: config -> PTX -> cubin -> checked SASS -> D[",
        f"{m}, {n}] with K = {k} on the {tried.backend}: ",
        verdict,
        f"  ({seconds:.1f} s)",
    )
    width = max(len(command) for command, _ in NEXT)
    lines = [Text.assemble("  ", (f"{c:{width}}", "bold"), f"  {what}") for c, what in NEXT]
    return Group(shown, Text("Next:"), *lines)
