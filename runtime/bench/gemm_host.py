"""What a GEMM costs the host: a cached call beside torch's, a replayed one, a new kernel."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from ptxgen.api import kernel_from
from ptxgen.toolchain.assemble import HAND_WRITTEN, assemble
from ptxgen.toolchain.cache import Store
from runtime.bench.timer import CONTROL, contest, host_seconds
from runtime.ops import gemm

SIZE = 256  # M = N = K: small, so that the host is what takes time
MOST_EAGER = 2.0  # times the host time of torch
MOST_REPLAYED = 1.0  # times the replayed time of torch
MOST_CUBIN_MS = 300.0


def _operands(size: int) -> tuple[Any, Any, Any]:
    import torch

    return tuple(torch.randn(size, size, device="cuda").bfloat16() for _ in range(3))


def eager(rounds: int = 200, size: int = SIZE) -> list[dict[str, object]]:
    """Host microseconds of a repeated call, with `out=` and with a new result, beside torch's."""
    import torch

    a, w, d = _operands(size)
    taken = host_seconds(
        {
            "out": lambda: gemm(a, w.T, out=d),
            "torch out": lambda: torch.matmul(a, w.T, out=d),
            "new": lambda: gemm(a, w.T),
            "torch new": lambda: torch.matmul(a, w.T),
        },
        rounds=rounds,
    )
    return [
        {
            "what": "eager", "result": result, "size": size,
            "ours_us": round(taken[result] * 1e6, 2),
            "peer_us": round(taken[f"torch {result}"] * 1e6, 2),
            "times_peer": round(taken[result] / taken[f"torch {result}"], 3), "most": MOST_EAGER,
        }
        for result in ("out", "new")
    ]  # fmt: skip


def replayed(rounds: int = 60, size: int = SIZE) -> list[dict[str, object]]:
    """Microseconds a call of captured calls that are replayed, beside torch's."""
    import torch

    a, w, d = _operands(size)
    result = contest(
        {
            "ours": lambda i: gemm(a, w.T, out=d),
            "torch": lambda i: torch.matmul(a, w.T, out=d),
        },
        peer="torch", rounds=rounds,
    )  # fmt: skip
    return [
        {
            "what": "graph replay", "result": "out", "size": size,
            "ours_us": round(result.samples["ours"].median * 1e6, 2),
            "peer_us": round(result.samples["torch"].median * 1e6, 2),
            "times_peer": round(1 / result.ratio("ours"), 3), "most": MOST_REPLAYED,
            "control": round(result.ratio(CONTROL), 4),
        }
    ]  # fmt: skip


def cubin_time(references: Iterable[str], repeats: int = 3) -> list[dict[str, object]]:
    """Milliseconds from a kernel reference to its cubin, without the cache: the slowest of them."""
    taken = {}
    for reference in sorted(set(references)):
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            assemble(kernel_from(reference).ptx, options=HAND_WRITTEN, store=Store(None))
            times.append((time.perf_counter() - start) * 1e3)
        taken[reference] = median(times)
    worst = max(taken, key=lambda reference: taken[reference])
    return [
        {
            "what": "template to cubin", "kernels": len(taken), "slowest": worst,
            "ms": round(taken[worst], 1), "median_ms": round(median(taken.values()), 1),
            "most": MOST_CUBIN_MS,
        }
    ]  # fmt: skip


_CALLS = {"out": "`ops.gemm(a, b, out=d)`", "new": "`ops.gemm(a, b)`"}
_WAYS = {"eager": "of host time", "graph replay": "replayed from a CUDA graph"}


def line(row: Mapping[str, object]) -> str:
    """A row as text, with its limit and whether it holds."""
    limit = float(str(row["most"]))
    if row["what"] == "template to cubin":
        got = float(str(row["ms"]))
        text = (
            f"From template to cubin: {got:.0f} ms for the slowest of {row['kernels']} kernels, "
            f"{float(str(row['median_ms'])):.0f} ms in the median"
        )
        most = f"at most {limit:g} ms"
    else:
        got = float(str(row["times_peer"]))
        text = (
            f"A repeated {_CALLS[str(row['result'])]} of {row['size']}^3 takes {row['ours_us']} us "
            f"{_WAYS[str(row['what'])]}, torch {row['peer_us']} us: {got:.2f} times"
        )
        most = f"at most {limit:g} times"
    return f"{text} (wanted: {most}{'' if got <= limit else '; MISSED'})."
