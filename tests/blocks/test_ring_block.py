"""The pipeline block: a ring hands over every value, whatever the number of laps."""

from __future__ import annotations

import numpy as np
import pytest
from block_kernel import block_kernel
from machines import Runner

from ptxgen.errors import Deadlock
from ptxgen.spec import PointerParam, ScalarParam

pytestmark = pytest.mark.emu

PARAMS = (
    PointerParam(name="in", arg="values", dtype="u32"),
    PointerParam(name="out", arg="out", dtype="u32", access="write"),
    ScalarParam(name="count", ptx_type="u32"),
)
RINGS = [(stages, count) for stages in (1, 2, 3) for count in range(2 * stages + 2)]


@pytest.mark.parametrize("cluster", [1, 2])
@pytest.mark.parametrize(("stages", "count"), RINGS)
def test_all_values_arrive_in_order(
    stages: int, count: int, cluster: int, runner: Runner, rng: np.random.Generator
) -> None:
    """0 .. 2 * stages + 1 values: nothing at all, part of a lap, two laps, and one more."""
    kernel = block_kernel(
        "ring", PARAMS, block=64, grid=cluster, cluster_size=cluster, smem_bytes=20 * stages,
        stages=stages, cluster=cluster,
    )  # fmt: skip
    values = rng.integers(0, 2**32, max(count, 1), np.uint32)  # an array of nothing has no address
    shape = (cluster, max(count, 1))
    out = runner.run(kernel, {"values": values}, {"out": (shape, np.uint32)}, args={"count": count})
    if count:
        assert np.array_equal(out["out"], np.tile(values, (cluster, 1)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cluster", [1, 2])
def test_in_any_order_of_warps(
    seed: int, cluster: int, runner: Runner, rng: np.random.Generator
) -> None:
    kernel = block_kernel(
        "ring", PARAMS, block=64, grid=cluster, cluster_size=cluster, smem_bytes=40,
        stages=2, cluster=cluster,
    )  # fmt: skip
    values = rng.integers(0, 2**32, 9, np.uint32)
    options = {"schedule": "random", "seed": seed}
    words = {"out": ((cluster, 9), np.uint32)}
    out = runner.run(kernel, {"values": values}, words, args={"count": 9}, emulator=options)["out"]
    assert np.array_equal(out, np.tile(values, (cluster, 1)))


def test_a_producer_that_starts_with_the_wrong_parity_waits_for_ever(runner: Runner) -> None:
    """Why a waiter on `empty` begins with parity 1: 0 waits for a release that never was."""
    if "cuda" in runner.backends:
        pytest.skip("a deadlock is for the emulator")
    kernel = block_kernel("ring", PARAMS, block=64, grid=1, smem_bytes=40, stages=2, cluster=1)
    wrong = type(kernel)(
        ptx=kernel.ptx.replace("mov.u32 %parity, 1;", "mov.u32 %parity, 0;", 1),  # type: ignore[arg-type]
        spec=kernel.spec, grid=1,
    )  # fmt: skip
    words = {"out": ((1, 3), np.uint32)}
    with pytest.raises(Deadlock):
        runner.run(wrong, {"values": np.zeros(3, np.uint32)}, words, args={"count": 3})
