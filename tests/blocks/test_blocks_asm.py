"""The kernels of this folder that only the emulator runs in CI, through ptxas: a GPU takes them."""

from __future__ import annotations

import pytest
from block_kernel import BlockKernel
from operands import ORDERS, Form
from operands import kernel_of as multiplying
from streaming import Shares
from streaming import kernel_of as streaming
from turning import turns_of
from walking import walker

from ptxgen.toolchain.assemble import assemble, require_clean
from ptxgen.toolchain.discover import Tool, all_ptxas

pytestmark = pytest.mark.asm

KERNELS = {
    "scheduler": walker((1, 1), 1),
    "scheduler in clusters": walker((2, 2), 1),
    "turns": turns_of(3, 2),
    "stream-K": streaming(Shares(tiles=1, k=1, clusters=2)),
    "stream-K in clusters": streaming(Shares(tiles=1, k=1, clusters=2, size=2, consumers=2)),
    "16-bit operands": multiplying([Form("bf16", 256, orders) for orders in ORDERS]),
    "other operands": multiplying([Form(name, 64, ("k", "k")) for name in ("tf32", "e4m3", "s8")]),
}


@pytest.mark.parametrize("ptxas", all_ptxas(), ids=lambda tool: tool.version_text)
@pytest.mark.parametrize("name", KERNELS)
def test_it_assembles_without_a_remark(name: str, ptxas: Tool) -> None:
    """No wgmma is serialised, nothing spills: what runs is what the text says."""
    kernel: BlockKernel = KERNELS[name]
    require_clean(assemble(kernel.ptx, ptxas=ptxas, locate=kernel.ptx.locate))
