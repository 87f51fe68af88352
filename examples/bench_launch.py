"""Host time of one launch: what the runtime adds to the driver's own call.

    PYTHONPATH=. python examples/bench_launch.py [--size 256] [--rounds 300] [--calls 50] [--json]

Ways to launch one bf16 GEMM, timed in turn in every round, so that a drifting host slows all
alike. `driver` is a prebuilt cuLaunchKernelEx with the same attributes, through cuda.bindings.

    driver      config and parameters built beforehand
    prepared    prepared = runtime.prepare(k, a=a, b=b, d=d); prepared()
    launch      runtime.launch(k, a=a, b=b, d=d)
    ops         runtime.ops.gemm(a, w.T, out=d)

`control` is `driver` once more: how far it lies from 0 is what the numbers are worth. Needs torch
and a GPU of compute capability 9.0. The GEMM is small, and each burst of calls is waited for
outside the timing, so that the launch queue never fills.
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
from ptxgen.app.progress import track
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
    for number in track(range(rounds + 10), "rounds"):
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


def contestants(size: int) -> tuple[ptxgen.Kernel, dict[str, Launch], Callable[[], None]]:
    """The kernel, the ways to launch it, and a check of what they computed."""
    import torch

    a, w, d = (torch.randn(size, size, device="cuda").bfloat16() for _ in range(3))
    kernel = ptxgen.kernel("gemm", tile=(128, 128, 64), stages=4, cluster=(2, 1))
    arrays = {"a": a, "b": w, "d": d}
    stream = torch.cuda.current_stream().cuda_stream
    runtime.launch(kernel, **arrays)
    launch, gemm = runtime.launch, runtime.ops.gemm
    ways: dict[str, Launch] = {
        "driver": driver_launch(kernel, arrays, stream),
        "control": driver_launch(kernel, arrays, stream),
        "prepared": runtime.prepare(kernel, **arrays),
        "launch": lambda: launch(kernel, a=a, b=w, d=d),
        "ops": lambda: gemm(a, w.T, out=d),
    }

    def check() -> None:
        expected = (a.double() @ w.double().T).bfloat16()
        if not torch.allclose(d, expected, rtol=2e-2, atol=2e-2):
            raise SystemExit("the launches timed here computed something else")

    return kernel, ways, check


def summary(times: dict[str, list[float]]) -> list[dict[str, Any]]:
    """A row a way: median time, and median and middle half of what it adds to `driver`."""
    rows = []
    for name, values in times.items():
        added = [value - other for value, other in zip(values, times["driver"], strict=True)]
        low, _, high = quantiles(added, n=4)
        rows.append(
            {"way": name, "us": median(values), "added_us": median(added), "middle": [low, high]}
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=256, help="M = N = K")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--calls", type=int, default=50, help="launches a round")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    import torch

    kernel, ways, check = contestants(options.size)
    rows = summary(measure(ways, torch.cuda.synchronize, options.rounds, options.calls))
    check()
    ok = next(row["added_us"] for row in rows if row["way"] == "launch") <= BUDGET_US
    record = {
        "device": torch.cuda.get_device_name(), "driver_cuda": list(driver_version()),
        "torch": torch.__version__, "python": sys.version.split()[0], "kernel": kernel.spec.entry,
        "size": options.size, "rounds": options.rounds, "calls": options.calls, "rows": rows,
        "budget_us": BUDGET_US, "within_budget": ok,
    }  # fmt: skip
    if options.json:
        print(json.dumps(record))
        return 0 if ok else 1
    print(f"{record['device']}, {record['kernel']}, M = N = K = {options.size}")
    print(f"{options.rounds} rounds of {options.calls} calls")
    print(f"{'':<10}{'median us':>10}{'above driver':>14}   middle half")
    for row in rows:
        low, high = row["middle"]
        print(f"{row['way']:<10}{row['us']:>10.2f}{row['added_us']:>14.2f}   {low:.2f}..{high:.2f}")
    print(f"launch is {'within' if ok else 'ABOVE'} its budget of {BUDGET_US} us above the driver")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
