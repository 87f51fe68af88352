"""The order of summation that each schedule states, and that it is the same in every launch.

Runs on the emulator; `--backend cuda` runs the same tests on a GPU, `--backend both` on the two.
"""

from __future__ import annotations

import gemm_order
import numpy as np
import pytest
from gemm_cases import normal, numpy_type
from gemm_order import SCHEDULES, launch_options, reference_of, revealing, summed
from machines import Runner

import ptxgen

pytestmark = pytest.mark.emu

STEPS = (
    36  # nine stages: three laps of the ring; parts of 5 and 4, of 3, 3 and 3, of 2 and a last 1
)
F32 = np.dtype(np.float32)


@pytest.mark.parametrize("sums", ["exact", "hardware"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_the_order_is_the_stated_one(name: str, sums: str, runner: Runner) -> None:
    """Every row and column says where it stands in the sum, however tensor cores round."""
    a, b = (x.astype(numpy_type("bf16")) for x in revealing(gemm_order.TILE, STEPS))
    kernel = ptxgen.kernel_from(reference_of(name))
    d = runner.run(
        kernel, {"a": _ordered(kernel, "a", a), "b": _ordered(kernel, "b", b)},
        {"d": ((len(a), len(b)), F32)}, emulator={"sms": 16, "sums": sums},
        **launch_options(name),
    )["d"]  # fmt: skip
    want = summed(name, a.astype(np.float64), b.astype(np.float64))
    assert np.array_equal(d, want)


def test_the_model_tells_orders_apart() -> None:
    """Schedules that add in parts differ from the plain one and each other; backwards differs."""
    a, b = revealing(gemm_order.TILE, STEPS)
    plain = summed("cooperative", a, b)
    others = [summed(name, a, b) for name in ("split in 2", "split in 4", "split in 8")]
    backwards = summed("cooperative", a[:, ::-1], b[:, ::-1])
    for i, x in enumerate(found := [plain, *others, backwards]):
        assert not any(np.array_equal(x, y) for y in found[:i])
    # ascending: only what comes behind both big products is left
    row, column = 5, 20
    assert plain[row, column] == STEPS - 1 - max(row, column)


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_launch_gives_the_same_bits(name: str, runner: Runner) -> None:
    """Random numbers; warps in another order, copies early and late, on fewer SMs and on more."""
    rng = np.random.default_rng(7)
    a, b = normal(rng, (72, 328), "bf16"), normal(rng, (144, 328), "bf16")
    kernel = ptxgen.kernel_from(reference_of(name))
    inputs = {"a": _ordered(kernel, "a", a), "b": _ordered(kernel, "b", b)}
    sms = (8, 8, 8) if launch_options(name) else (8, 16, 64)
    first, *others = (
        runner.run(
            kernel, inputs, {"d": ((72, 144), F32)}, close=1e-5, **launch_options(name),
            emulator={"sms": count, "mode": mode, "schedule": order, "seed": count},
        )["d"]
        for count, mode, order in zip(
            sms, ("eager", "latest", "random"), ("round_robin", "random", "random"), strict=True
        )
    )  # fmt: skip
    for other in others:
        assert np.array_equal(first.view(np.uint32), other.view(np.uint32))


@pytest.mark.parametrize("schedule", ["cooperative", "pingpong"])
def test_promoted_sums_are_added_stage_by_stage(schedule: str, runner: Runner) -> None:
    """Every 128 of K by itself, as a kernel of that K gives it; then added in f32, K ascending."""
    rng = np.random.default_rng(3)
    a, b = normal(rng, (72, 464), "e4m3"), normal(rng, (80, 464), "e4m3")
    fields = {"dtype": "e4m3", "tile": "64x64", "cluster": "1x1", "stages": 2, "out_dtype": "f32"}
    promoted = ptxgen.kernel(
        "gemm", **fields, accumulate="promoted", wait_depth=0, schedule=schedule
    )
    plain = ptxgen.kernel("gemm", **fields)
    out = {"d": ((72, 80), F32)}
    for backend in runner.backends:
        alone = Runner(backend)
        whole = alone.run(promoted, {"a": a, "b": b}, out)["d"]
        want = np.zeros((72, 80), np.float32)
        for k in range(0, 464, 128):
            part = {name: x[:, k : k + 128].copy() for name, x in (("a", a), ("b", b))}
            want = want + alone.run(plain, part, out)["d"]
        assert np.array_equal(whole, want)


def _ordered(kernel: ptxgen.Kernel, name: str, x: np.ndarray) -> np.ndarray:
    """The operand in the order of memory that the kernel reads."""
    if getattr(kernel.source.problem, f"{name}_major") == "k":
        return x
    return np.ascontiguousarray(x.T).T
