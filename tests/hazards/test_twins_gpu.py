"""The good twins on a GPU: they end there too, and leave the arrays that the emulator leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hazard_runs import options
from machines import ARRAYS, assert_same_bits

import runtime
from ptxgen.app.check_args import extents, parse_arguments
from ptxgen.foreign import load_ptx
from ptxgen.isa import twins
from ptxgen.isa.rules import RULES

pytestmark = pytest.mark.gpu

ADDRESSES = {"maps"}  # arguments that hold addresses afterwards: each backend has its own


def left_by(pair: twins.Twins, backend: str) -> dict[str, np.ndarray]:
    """Run the good twin; its arrays afterwards, by name."""
    asked = options(pair.options)
    kernel = load_ptx(pair.good, pdl=asked.pdl)
    held: dict[str, Any] = {}
    values = []
    for argument in parse_arguments(asked.args, seed=0):
        value: Any = argument.value
        if argument.array is not None:
            held[argument.name] = ARRAYS[backend].put(argument.array)
            mapped = argument.value is not argument.array
            value = held[argument.name]
            value = replace(argument.value, array=value) if mapped else value  # type: ignore[type-var]
        values.append(value)
    runtime.launch(kernel, *values, grid=extents(asked.grid), backend=backend)
    runtime.wait(*held.values(), backend=backend)
    return {name: ARRAYS[backend].get(x) for name, x in held.items()}


@pytest.mark.parametrize("code", RULES)
def test_the_good_twin_runs_on_a_gpu(code: str) -> None:
    pair = twins.read(code)
    ours, theirs = left_by(pair, "emulator"), left_by(pair, "cuda")
    for name in ours.keys() - ADDRESSES:
        assert_same_bits(ours[name], theirs[name], f"{code}: {name}")
