"""PROOFS.md: what `ptxgen prove` found, as a page."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ptxgen.app.prove import SOURCES, Options, Proof, sources_digest
from ptxgen.app.sweep import MODES
from ptxgen.kernels.gemm_proof import PROOFS
from ptxgen.kernels.registry import FAMILIES

FATES = ("killed", "survived", "equivalent")
HEAD = """# Proofs

Written by `make prove`; not by hand. "Proved" is short for: run on the emulator under many
schedules with every hazard check on, and broken in every way that the mutants know. It is evidence,
not a proof in logic.

{what}

* **Schedules.** A clean program runs under {seeds} seeds x {modes} modes ({names}: when
  asynchronous work completes), warps in round-robin, random and priority order. Results must be
  exact, and nothing may break a rule of `ptxgen/isa/rules.py`.
* **Mutants.** {sample}: one synchronisation instruction is dropped or changed
  (`ptxgen/ptx/mutate.py`). A mutant runs under up to {mutant_seeds} x {modes} schedules, until one
  kills it: by a finding, a deadlock, a wrong result, or advice that the kernel itself does not get.
* **Score** = killed / (killed + survived). "Of all" counts equivalents as survivors too. A mutant
  is equivalent only by a rule that is shown for it below, with its numbers.
"""
RULE = """An equivalent mutant is harmless by a rule of PTX (`ptxgen/app/equivalence.py`). There is
one: setmaxnreg (9.7.19.5) moves registers between warps, and PTX registers are virtual, so its
counts matter only where an increase waits for ever or a role does not fit its count. For each
mutant below every count is legal, the total stays within the pool (so that an increase is served in
any order of warps), and ptxas fits every role into its count without a spill or a remark.
"""


def line(proof: Proof, kept: bool, place: str) -> str:
    """One finished part, for stderr."""
    told = f"{proof.verdict}, {proof.runs} schedules, {len(proof.findings)} findings"
    if proof.mutants:
        told += f", {proof.killed} of {proof.mutants} mutants killed ({proof.percent:.1f} %)"
    return f"{place} {proof.name}: {told}, {'kept' if kept else f'{proof.seconds:.1f} s'}"


def page(proofs: Sequence[Proof], options: Options) -> str:
    """The page, in Markdown."""
    kernels = [p for p in proofs if not p.program]
    programs = [p for p in proofs if p.program]
    what = "every mutant" if not options.sample else f"a fixed sample of {options.sample} mutants"
    head = HEAD.format(
        what=_summary(proofs), seeds=options.seeds, mutant_seeds=options.mutant_seeds,
        modes=len(MODES), names=", ".join(MODES), sample=what.capitalize(),
    )  # fmt: skip
    parts = [head, _kernels(kernels), _survivors(kernels), _equivalents(kernels), _killers(kernels)]
    if programs:
        parts.append(_programs(programs))
    parts.append(_findings(proofs))
    return "\n".join(part for part in parts if part)


def totals(proofs: Sequence[Proof]) -> str:
    """All of it in two sentences."""
    kernels = sum(not p.program for p in proofs)
    fates = (
        f"{sum(p.count(f) for p in proofs):,} {f}" for f in ("killed", "survived", "equivalent")
    )
    return (
        f"{kernels} kernels and {len(proofs) - kernels} foreign programs, "
        f"{sum(p.runs for p in proofs):,} clean runs, {sum(len(p.findings) for p in proofs)} "
        f"findings. {sum(p.mutants for p in proofs):,} mutants: {', '.join(fates)}."
    )


def _summary(proofs: Sequence[Proof]) -> str:
    covered = {reference.partition(":")[0] for reference in PROOFS}
    missing = sorted(set(FAMILIES) - covered)
    rows = [
        f"{datetime.now(UTC):%Y-%m-%d}, emulator and checks at commit {_commit()}, sources "
        f"{sources_digest()[:12]}; {sum(p.seconds for p in proofs):,.0f} s of processes.",
        "",
        totals(proofs),
    ]
    if missing:
        rows += ["", f"Kernel families without a proof kernel: {', '.join(missing)}."]
    return "\n".join(rows)


def _commit() -> str:
    """The last commit that touched what results depend on, and whether there is more than it."""
    root = Path(__file__).parents[2]

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words, "--", *SOURCES], cwd=root, capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = git("log", "-1", "--format=%h")
    if not commit:
        return "unknown (no git here)"
    return f"{commit}, with changes that are not committed" if git("status", "-s") else commit


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [list(columns), ["---"] * len(columns), *([str(c) for c in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def _kernels(proofs: Sequence[Proof]) -> str:
    columns = ("kernel", "schedules", "findings", "mutants", "killed", "by advice alone",
               "survived", "equivalent", "score", "of all")  # fmt: skip
    rows = [
        (f"`{p.name}`", p.runs, len(p.findings), p.mutants, p.killed, p.by_advice,
         p.count("survived"), p.count("equivalent"), f"{p.percent:.1f} %", f"{p.raw_percent:.1f} %")
        for p in proofs
    ]  # fmt: skip
    return f"## Kernels\n\n{_table(columns, rows)}"


def _survivors(proofs: Sequence[Proof]) -> str:
    rows = [
        (f"`{p.name}`", x.operator, f"`{x.was}`", x.by or "nobody noticed")
        for p in proofs
        for x in p.left
        if x.fate == "survived"
    ]
    table = _table(("kernel", "mutant", "instruction", "why"), rows) if rows else "None.\n"
    return f"## Survivors\n\n{table}"


def _equivalents(proofs: Sequence[Proof]) -> str:
    rows = [
        (f"`{p.name}`", x.operator, f"`{x.was}`", x.by.partition(": ")[2].partition("; so")[0])
        for p in proofs
        for x in p.left
        if x.fate == "equivalent"
    ]
    table = _table(("kernel", "mutant", "instruction", "rule, with its numbers"), rows)
    return f"## Equivalent mutants\n\n{RULE}\n{table}" if rows else ""


def _killers(proofs: Sequence[Proof]) -> str:
    found: Counter[str] = Counter()
    for p in proofs:
        found.update(p.killers)
    rows = [(f"`{code}`", n) for code, n in sorted(found.items(), key=lambda x: (-x[1], x[0]))]
    return f"## What killed them first\n\n{_table(('code', 'mutants'), rows)}" if rows else ""


def _programs(proofs: Sequence[Proof]) -> str:
    columns = ("program", "verdict", "schedules", "findings", "advice")
    rows = [
        (f"`{p.name}`", p.verdict, p.runs, len(p.findings), ", ".join(p.advice) or "-")
        for p in proofs
    ]
    text = "PTX that other compilers wrote, with the results that NumPy gives. Advice is for what\n"
    text += "is disputed or formal; it is no finding.\n"
    return f"## Foreign programs\n\n{text}\n{_table(columns, rows)}"


def _findings(proofs: Sequence[Proof]) -> str:
    rows = [f"* `{p.name}`: {text}" for p in proofs for text in p.findings]
    return "## Findings\n\n" + ("\n".join(rows) if rows else "None.") + "\n"
