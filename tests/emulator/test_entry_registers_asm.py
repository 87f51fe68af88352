"""The registers a thread starts with are those that ptxas fixes in the cubin."""

from __future__ import annotations

import pytest

from ptxgen.foreign import load_ptx
from runtime.emulator.backend import EmulatorBackend

pytestmark = pytest.mark.asm

ROLES = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry roles()
.reqntid {threads}
{directive}
{{
    .reg .pred %p;
    .reg .b32 %thread;
    mov.u32 %thread, %tid.x;
    setp.lt.u32 %p, %thread, 128;
    @%p bra GIVE;
    setmaxnreg.inc.sync.aligned.u32 {inc};
    bra DONE;
GIVE:
    setmaxnreg.dec.sync.aligned.u32 24;
DONE:
    ret;
}}
"""


@pytest.mark.parametrize("threads", [256, 384])
@pytest.mark.parametrize("inc", [88, 160, 240])
@pytest.mark.parametrize("directive", [".maxnreg 128", ".maxnreg 96", ".minnctapersm 1"])
def test_entry_count(threads: int, inc: int, directive: str) -> None:
    """The smallest setmaxnreg.inc bounds it too, whatever the directive allows."""
    kernel = load_ptx(ROLES.format(threads=threads, inc=inc, directive=directive))
    entry = kernel.assembly.report.entry()
    assert EmulatorBackend().load(kernel, "cpu").registers == entry.registers
