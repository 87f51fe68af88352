"""Operands of wgmma in shared memory: all widths N, in either order, in every swizzle, on integers.

The layouts and descriptors are those of `ptxgen.layout`; the emulator decodes them by itself. With
`--backend cuda` or `--backend both` a GPU does.
"""

from __future__ import annotations

import pytest
from machines import Runner
from operands import ORDERS, Form, assert_products

from ptxgen.isa.wgmma import WGMMA_INPUTS

pytestmark = pytest.mark.emu


@pytest.mark.parametrize("n", range(8, 257, 8))
def test_all_orders_of_16_bit_types(n: int, runner: Runner) -> None:
    assert_products([Form("bf16", n, orders) for orders in ORDERS], runner)


@pytest.mark.parametrize("n", range(8, 257, 8))
def test_other_types(n: int, runner: Runner) -> None:
    """On the emulator alone a type for each N, in turns: its clock is not a GPU's."""
    names = [name for name in ("tf32", "e4m3", "s8") if WGMMA_INPUTS[name].legal_n(n)]
    if runner.backends == ("emulator",):
        names = [names[n // 8 % len(names)]]
    assert_products([Form(name, n, ("k", "k")) for name in names], runner)
