"""Whether setmaxnreg works when the counts of a CTA sum to less than it entered with.

Each variant runs in a process of its own, since one that asks for too much hangs. Hundreds of CTAs
follow each other on every SM, so a pool that lost registers would run dry.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from lab import Fact, Lab, Seen, has_gpu, kernel, leave, run_guarded, say

ENTRY = 168
VARIANTS = {
    "equal": (24, 240, 240), "16 below": (24, 232, 232), "72 below": (24, 232, 176),
    "two dec": (24, 24, 240), "all dec": (24, 40, 128),
    "8 above": (24, 240, 248),
}  # fmt: skip
CTAS = 132 * 20
FACT = Fact(id="register_pool", question="Is a register pool that sums below the entry total safe?")
LIMIT_S = 12.0


def answer(lab: Lab, counts: tuple[int, int, int], ctas: int) -> Seen:
    out = np.zeros((ctas, 3), np.uint32)
    lab.run(kernel("register_pool", counts=list(counts)), grid=(ctas, 1, 1), out=out)
    return {"out": out}


def child(variant: str, backend: str) -> None:
    ctas = CTAS if backend == "cuda" else 8
    for _ in range(5 if backend == "cuda" else 1):
        out = answer(Lab(backend), VARIANTS[variant], ctas)["out"]
        assert (out == 1).all(), f"{int((out != 1).sum())} of {out.size} warpgroups did not end"
    print("ends", flush=True)


def ask(variant: str, backend: str) -> str:
    command = [sys.executable, __file__, "--variant", variant, "--backend", backend]
    done = run_guarded(command, LIMIT_S)
    if done.code is None:
        return f"hangs (no end within {LIMIT_S:.0f} s)"
    if done.code == 0:
        return "ends"
    last = [line for line in done.err.splitlines() if line.strip()]
    errors = [line for line in last if "Error" in line or "Deadlock" in line or "error" in line]
    return f"fails: {(errors or last or ['?'])[-1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=FACT.question)
    parser.add_argument("--variant", choices=VARIANTS)
    parser.add_argument("--backend", choices=("cuda", "emulator"))
    parser.add_argument("--raw", help="accepted and unused: there is nothing to keep")
    options = parser.parse_args()
    backend = options.backend or ("cuda" if has_gpu() else "emulator")
    if options.variant:
        child(options.variant, backend)
        return
    verdicts = {}
    for variant, counts in VARIANTS.items():
        key = f"{variant}: {counts}, sum {sum(counts)} of {3 * ENTRY}"
        verdicts[key] = ask(variant, backend)
        emulated = ask(variant, "emulator")
        say(
            Fact(id=f"register_pool.{variant.replace(' ', '_')}", question=FACT.question),
            f"{counts}, sum {sum(counts)} of {3 * ENTRY}: {verdicts[key]}",
            {"counts": counts, "sum": sum(counts), "entry": 3 * ENTRY},
            backend=backend,
            emulator=emulated,
        )


if __name__ == "__main__":
    leave(main)
