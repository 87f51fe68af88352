"""How fast the tensor cores multiply when nothing has to be moved: the ceiling of a GEMM.

Two warpgroups an SM issue m64n256k16 on random normal bf16 that lies in shared memory, for about a
second and then for another one, in which the card is at its power limit. Sums begin anew every 8192
of K, as in a product of that depth.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from lab import Array, Fact, Lab, Seen, kernel, main

from ptxgen.layout.smem_desc import k_major

SMS, STAGES, DEPTH = 132, 4, 8192
A_BYTES, B_BYTES = 128 * 128, 256 * 128
STAGE_BYTES = A_BYTES + B_BYTES
K_ROUND = STAGES * 64
ROUNDS = 340_000  # of both halves each: a second at 1.4 GHz
FLOP_ROUND = 2 * 128 * 256 * K_ROUND


def text(rounds: int) -> Any:
    desc = k_major("bf16", 128, mn=256, k=64).template_bits
    return kernel(
        "wgmma_ceiling", smem=STAGES * STAGE_BYTES, stages=STAGES, rounds=rounds,
        chunks=STAGES * STAGE_BYTES // 16, restart=DEPTH // K_ROUND,
        low=desc & 0xFFFFFFFF, high=desc >> 32,
        a_units=A_BYTES // 16, a_group_units=A_BYTES // 32, stage_units=STAGE_BYTES // 16,
        acc="{" + ", ".join(f"%acc{i}" for i in range(128)) + "}",
    )  # fmt: skip


def operands() -> Array:
    """Shared memory, byte for byte."""
    values = np.random.default_rng(0).standard_normal(STAGES * STAGE_BYTES // 2)
    return values.astype(ml_dtypes.bfloat16).view(np.uint8)


def observe(lab: Lab, rounds: int = ROUNDS) -> Seen:
    out = np.zeros((SMS, 3), np.uint64)
    sums = np.zeros((SMS, 256), np.float32)
    lab.run(text(rounds), grid=(SMS, 1, 1), image=operands(), out=out, sums=sums)
    return {"ns": out, "sums": sums}


def finding(seen: Seen) -> tuple[str, object]:
    begin, middle, end = seen["ns"].astype(np.int64).T
    flop = ROUNDS * FLOP_ROUND * SMS
    first = flop / ((middle.max() - begin.min()) * 1e-9)
    second = flop / ((end - middle).mean() * 1e-9)
    same = bool((seen["sums"] == seen["sums"][0]).all())
    numbers = {
        "TFLOP/s, first second": round(first * 1e-12, 1),
        "TFLOP/s, second second": round(second * 1e-12, 1),
        "all SMs have the same sums": same,
    }
    return f"bf16 in TFLOP/s: {first * 1e-12:.0f} at first, {second * 1e-12:.0f} later", numbers


if __name__ == "__main__":
    question = "How fast do the tensor cores multiply from shared memory, at the power limit?"
    main(Fact(id="wgmma_ceiling", question=question, emulated=False), observe, finding)
