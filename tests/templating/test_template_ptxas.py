"""A refusal of ptxas names the template line and the macro calls behind the PTX line."""

from __future__ import annotations

import pytest

import ptxgen
from ptxgen.errors import AssembleError
from ptxgen.toolchain.assemble import assemble

pytestmark = pytest.mark.asm

KERNEL = """\
.version 8.0
.target sm_90a
.address_size 64
# macro broken(r)
# if 1
add.u33 ${r}, ${r}, 1;
# endif
# endmacro
.visible .entry k()
{
.reg .u32 %a;
mov.u32 %a, 0;
${ broken("%a") }
ret;
}
"""


def test_a_refusal_is_mapped_to_the_template() -> None:
    ptx = ptxgen.render_text(KERNEL, "mine.ptx.j2")
    with pytest.raises(AssembleError) as caught:
        assemble(ptx, locate=ptx.locate)
    message = str(caught.value)
    assert "PTX line 8" in message
    assert "add.u33 %a, %a, 1;" in message
    assert "mine.ptx.j2:6, called from mine.ptx.j2:13" in message


def test_a_kernel_maps_its_own_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Kernel` passes its map on: what ptxas says of a PTX line is found in the template."""
    from ptxgen.templating import Rendered

    kernel = ptxgen.kernel("gemm", stages=2)
    broken = kernel.ptx.replace("wgmma.fence.sync.aligned;", "wgmma.fence.sync.alined;", 1)
    source = kernel.source
    object.__setattr__(source, "rendered", Rendered(broken, kernel.ptx.chains))
    with pytest.raises(AssembleError, match=r"lib/wgmma\.ptx\.j2:\d+, called from blocks/multiply"):
        _ = kernel.cubin
