"""Host time of one launch: what the runtime adds to the driver's own call.

    python examples/bench_launch.py [--size 256] [--rounds 300] [--calls 50] [--json]

Four ways to launch one bf16 GEMM, timed in turn in every round, so that a drifting host slows all
alike. `driver` is a prebuilt cuLaunchKernelEx with the same attributes, through cuda.bindings.

    driver      config and parameters built beforehand
    prepared    prepared = runtime.prepare(k, a=a, b=b, d=d); prepared()
    launch      runtime.launch(k, a=a, b=b, d=d)
    ops         runtime.ops.gemm(a, w.T, out=d)

Needs torch and a GPU of compute capability 9.0. The GEMM is small, and each burst of calls is waited
for outside the timing, so that the launch queue never fills.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from statistics import median, quantiles
from typing import Any

import ptxgen
import runtime
from runtime.backend import BACKENDS
from runtime.binding import bind
from runtime.cuda.attributes import launch_config
from runtime.cuda.driver import api, driver_version
from runtime.cuda.params import ParamBlock

BUDGET_US = 3.0  # what `launch` may add to the driver's call

Launch = Callable[[], object]


def driver_launch(kernel: ptxgen.Kernel, arrays: dict[str, Any], stream: int) -> Launch:
    """A prebuilt cuLaunchKernelEx of the same launch, and nothing else."""
    (step,) = bind(kernel, arrays).bound.steps
    values = [value for value in step.params if isinstance(value, bytes)]
    params = ParamBlock(values)
    config = launch_config(step.loaded.spec, step.step.grid, stream=stream, pdl=step.step.pdl)
    call, function, address = api().cuLaunchKernelEx, step.loaded.handle, params.address

    def launch(keep: object = params) -> object:
        return call(config, function, address, 0)

    return launch


def measure(
    ways: dict[str, Launch], wait: Callable[[], object], rounds: int, calls: int
) -> dict[str, list[float]]:
    """Microseconds of one call, a value for each round, of every way in turn."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    order = list(ways)
    for number in range(rounds + 10):
        order.append(order.pop(0))  # nobody is always first
        for name in order:
            way = ways[name]
            start = time.perf_counter_ns()
            for _ in range(calls):
                way()
            elapsed = time.perf_counter_ns() - start
            wait()
            if number >= 10:  # the first rounds warm caches and clocks
                times[name].append(elapsed / calls / 1_000)
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=256, help="M = N = K")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--calls", type=int, default=50, help="launches a round")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    import torch

    n = options.size
    a, w, d = (torch.randn(n, n, device="cuda").bfloat16() for _ in range(3))
    kernel = ptxgen.kernel("gemm", tile=(128, 128, 64), stages=4, cluster=(2, 1))
    arrays = {"a": a, "b": w, "d": d}
    stream = torch.cuda.current_stream().cuda_stream
    runtime.launch(kernel, **arrays)
    launch = runtime.launch
    ways: dict[str, Launch] = {
        "driver": driver_launch(kernel, arrays, stream),
        "prepared": runtime.prepare(kernel, **arrays),
        "launch": lambda: launch(kernel, a=a, b=w, d=d),
        "ops": lambda: runtime.ops.gemm(a, w.T, out=d),
    }
    times = measure(ways, torch.cuda.synchronize, options.rounds, options.calls)
    expected = (a.double() @ w.double().T).bfloat16()
    if not torch.allclose(d, expected, rtol=2e-2, atol=2e-2):
        raise SystemExit("the launches timed here computed something else")
    base = times["driver"]
    rows = []
    for name, values in times.items():
        added = [value - other for value, other in zip(values, base, strict=True)]
        low, _, high = quantiles(added, n=4)
        rows.append(
            {"way": name, "us": median(values), "added_us": median(added), "middle": [low, high]}
        )
    device = BACKENDS.get("cuda").load(kernel, "cuda:0").limits.name
    ok = next(row["added_us"] for row in rows if row["way"] == "launch") <= BUDGET_US
    record = {
        "device": device, "driver_cuda": list(driver_version()), "torch": torch.__version__,
        "python": sys.version.split()[0], "kernel": kernel.spec.entry, "size": n,
        "rounds": options.rounds, "calls": options.calls, "rows": rows, "budget_us": BUDGET_US,
        "within_budget": ok,
    }  # fmt: skip
    if options.json:
        print(json.dumps(record))
        return 0 if ok else 1
    print(
        f"{device}, {kernel.spec.entry}, M = N = K = {n}, {options.rounds} x {options.calls} calls"
    )
    print(f"{'':<10}{'median us':>10}{'above driver':>14}   middle half")
    for row in rows:
        low, high = row["middle"]
        print(
            f"{row['way']:<10}{row['us']:>10.2f}{row['added_us']:>14.2f}   {low:.2f} .. {high:.2f}"
        )
    print(f"launch is {'within' if ok else 'ABOVE'} its budget of {BUDGET_US} us")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
