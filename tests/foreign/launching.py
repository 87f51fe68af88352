"""Launches a case of a foreign program on one backend and reads its arrays back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import programs_numbers  # noqa: F401  (adds its programs to the table)
from machines import ARRAYS, assert_same_bits
from programs import PROGRAMS, Box, Case
from triton_programs import KERNELS

import ptxgen
import runtime
from runtime.backend import Backend

HERE = Path(__file__).parent


CASES = {**PROGRAMS, **{f"triton/{name}": make for name, make in KERNELS.items()}}
"""What makes the case of each PTX file beside this one, by its name without suffix."""


def source(name: str) -> str:
    return (HERE / f"{name}.ptx").read_text(encoding="utf-8")


def case_of(name: str) -> Case:
    """The case of a program; the same one every time."""
    return CASES[name](np.random.default_rng(list(name.encode())))


def launch(
    ptx: str, case: Case, backend: str, runner: Backend | None = None
) -> dict[str, np.ndarray]:
    """Run a case; what is in its arrays afterwards, by name. `runner` is a backend of that name."""
    k = ptxgen.load_ptx(ptx, block=case.block, smem=case.smem)
    arrays = ARRAYS[backend]
    held: dict[str, Any] = {}
    arguments = []
    for name, value in case.arguments.items():
        if isinstance(value, Box):
            held[name] = arrays.put(value.array.copy())
            value = runtime.tensor_map(held[name], box=value.box, swizzle=value.swizzle)
        elif isinstance(value, np.ndarray):
            value = held[name] = arrays.put(value.copy())
        arguments.append(value)
    runtime.launch(k, *arguments, grid=case.grid, backend=runner or backend)
    runtime.wait(*held.values(), backend=runner or backend)
    return {name: arrays.get(x) for name, x in held.items()}


def check(case: Case, found: Mapping[str, np.ndarray], what: str) -> None:
    """What a case expects, bit by bit or within its tolerance."""
    for name, wanted in case.expected.items():
        assert found[name].dtype == wanted.dtype
        if case.rtol:
            floats = found[name].astype(np.float64), wanted.astype(np.float64)
            np.testing.assert_allclose(*floats, rtol=case.rtol, atol=case.rtol, err_msg=what)
        else:
            assert_same_bits(np.ascontiguousarray(wanted), found[name], f"{what}: {name}")
