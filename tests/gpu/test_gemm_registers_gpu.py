"""Rows through registers on a GPU: the self-test on exact integers, with every ptxas there is."""

from __future__ import annotations

import pytest
from gemm_registers import SELF_TESTS, assert_exact
from machines import Runner

from ptxgen.api import Kernel
from ptxgen.kernels import registry
from ptxgen.toolchain.discover import Tool, all_ptxas

pytestmark = pytest.mark.gpu

pytest.importorskip("torch", reason="torch is not installed")

SHAPE = (1096, 1104, 4112)  # more tiles than SMs of most, ragged, and many laps of every ring


@pytest.mark.parametrize("ptxas", all_ptxas(), ids=lambda tool: tool.version_text)
@pytest.mark.parametrize("text", SELF_TESTS)
def test_exact(text: str, ptxas: Tool) -> None:
    kernel = Kernel(registry.build(*registry.parse_reference(text)), ptxas=ptxas)
    assert_exact(kernel, SHAPE, Runner("cuda"), f"{text} by ptxas {ptxas.version_text}")
