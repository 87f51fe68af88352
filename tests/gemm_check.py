"""Any member of the GEMM family, with its epilogue, against float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from machines import Runner

import ptxgen
from ptxgen.app import reference


def check(
    text: str, shape: tuple[int, int, int], kind: str, runner: Runner, **emulator: Any
) -> None:
    """D and amax of a kernel with all that its epilogue takes; integers must be exact."""
    kernel = ptxgen.kernel_from(text)
    problem = kernel.source.problem
    a, b = reference.inputs(kind, problem, *shape, seed=3)
    given = reference.epilogue(kind, problem, *shape[:2], seed=3)
    d = reference.poisoned(problem, *shape[:2])
    exact = kind == "integers" and problem.activation in ("none", "relu")
    arrays = given.arrays()
    largest = {"amax": arrays.pop("amax")} if problem.amax else {}
    got = runner.run(
        kernel, {"a": a, "b": b, **arrays}, {"d": (d.shape, d.dtype)},
        close=None if exact else 1e-2, updated=largest, args=given.scalars(problem),
        emulator=emulator,
    )  # fmt: skip
    given = replace(given, amax=got.get("amax"))
    result = reference.compare(a, b, got["d"], problem, exact=kind == "integers", given=given)
    assert result.ok, result.verdict()
