"""The whole GEMM family on exact integers: types, orders, batches, clusters, split K, swapped.

Runs on the emulator; `--backend cuda` runs the same tests on a GPU, `--backend both` on the two,
bit for bit.
"""

from __future__ import annotations

import numpy as np
import pytest
from gemm_family import MEMBERS, cover
from machines import Runner

import ptxgen
from ptxgen.app import reference

pytestmark = pytest.mark.emu


def check(
    text: str, shape: tuple[int, int, int], kind: str, runner: Runner, **options: int
) -> None:
    """D against float64; integers must be equal after one rounding."""
    kernel = ptxgen.kernel_from(text)
    problem = kernel.source.problem
    a, b = reference.inputs(kind, problem, *shape, seed=3)
    d = reference.poisoned(problem, *shape[:2])
    emulator = {"emulator": options} if options else {}
    close = (
        None if kind == "integers" else 1e-2
    )  # of fp8 a sum in another order may round a step on
    out = {"d": (d.shape, d.dtype)}
    got = runner.run(kernel, {"a": a, "b": b}, out, close=close, **emulator)["d"]
    result = reference.compare(a, b, got, problem, exact=kind == "integers")
    assert result.ok, result.verdict()


# Less than a tile; ragged tiles and a K that ends inside a stage (of fp8, 208 = 128 + 80).
SHAPES = ((16, 16, 16), (80, 144, 208))


@pytest.mark.parametrize("text", MEMBERS)
def test_members(text: str, runner: Runner) -> None:
    for shape in SHAPES:
        check(text, shape, "integers", runner)
    check(text, (80, 144, 208), "random", runner)


@pytest.mark.parametrize("text", MEMBERS)
def test_no_k_gives_zeros(text: str, runner: Runner) -> None:
    check(text, (80, 144, 0), "integers", runner)


@pytest.mark.parametrize("text", cover())
def test_pairs_of_fields(text: str, runner: Runner) -> None:
    """Several tiles a CTA, so that rings, slabs and partials are used again."""
    check(text, (144, 272, 336), "integers", runner, sms=4)


@pytest.mark.parametrize("parts", [2, 4, 8])
def test_split_k_with_fewer_stages_than_parts(parts: int, runner: Runner) -> None:
    """K of 1 .. parts + 1 stages: some CTAs of the cluster have nothing to multiply."""
    for stages in range(1, parts + 2):
        text = f"gemm:split_k={parts},cluster=1x1,tile=64x64,stages=2"
        check(text, (72, 136, 64 * stages - 8), "integers", runner, sms=parts)


@pytest.mark.parametrize("text", [MEMBERS[1], MEMBERS[10], MEMBERS[12], MEMBERS[15], MEMBERS[22]])
def test_the_same_bits_on_any_grid(text: str, runner: Runner) -> None:
    """Random numbers, whose sums depend on their order: 1, 2 and many tiles a CTA."""
    kernel = ptxgen.kernel_from(text)
    problem = kernel.source.problem
    a, b = reference.inputs("random", problem, 150, 400, 304, seed=5)
    d = reference.poisoned(problem, 150, 400)
    size = kernel.spec.cluster.size
    first, *others = (
        runner.run(
            kernel, {"a": a, "b": b}, {"d": (d.shape, d.dtype)}, close=2e-3,
            emulator={"sms": sms, "schedule": "random", "seed": sms, "mode": mode},
        )["d"]
        for sms, mode in ((size, "eager"), (2 * size, "latest"), (64, "random"))
    )  # fmt: skip
    for other in others:
        assert np.array_equal(first.view(np.uint8), other.view(np.uint8))
