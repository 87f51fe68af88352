"""The entry register count is ptxas's choice: ask every ptxas of this machine."""

import pytest

from ptxgen.models.registers import entry_registers, split
from ptxgen.toolchain.assemble import assemble
from ptxgen.toolchain.cache import Store
from ptxgen.toolchain.discover import Tool, all_ptxas

pytestmark = pytest.mark.asm

PTX = """
.version 8.0
.target sm_90a
.address_size 64

.visible .entry roles(.param .u64 out)
    .reqntid {threads}
    .minnctapersm {min_ctas}
{{
    .reg .pred %producer;
    .reg .b32 %thread;
    .reg .b64 %out;
    mov.u32 %thread, %tid.x;
    setp.lt.u32 %producer, %thread, 128;
    @%producer bra PRODUCER;
    setmaxnreg.inc.sync.aligned.u32 {inc};
    bra.uni DONE;
PRODUCER:
    setmaxnreg.dec.sync.aligned.u32 {dec};
DONE:
    ld.param.u64 %out, [out];
    st.global.u32 [%out], %thread;
    ret;
}}
"""


@pytest.fixture(
    params=all_ptxas() or [pytest.param(None, marks=pytest.mark.skip(reason="no ptxas was found"))],
    ids=lambda tool: f"ptxas-{tool.version_text}" if tool else "no-ptxas",
)
def assembler(request: pytest.FixtureRequest) -> Tool:
    tool: Tool = request.param
    return tool


@pytest.mark.parametrize(
    ("threads", "min_ctas"),
    # one to seven consumers, and threads that are no whole number of warpgroups (320, 416)
    [
        (256, 1), (320, 1), (384, 1), (416, 1), (512, 1), (640, 1), (768, 1), (1024, 1),
        (256, 2), (384, 2),
    ],
)  # fmt: skip
def test_ptxas_chooses_the_count_that_the_model_says(
    threads: int, min_ctas: int, assembler: Tool, tmp_path
) -> None:
    dec, inc = split(-(-threads // 128) - 1, min_ctas=min_ctas)
    ptx = PTX.format(threads=threads, min_ctas=min_ctas, inc=inc, dec=dec)
    cubin = assemble(ptx, ptxas=assembler, store=Store(tmp_path))
    assert cubin.report.entry().registers == entry_registers(threads, min_ctas, inc)


@pytest.mark.parametrize(("inc", "registers"), [(256, 255), (32, 32)])
def test_the_smallest_inc_lowers_the_entry_count(
    inc: int, registers: int, assembler: Tool, tmp_path
) -> None:
    ptx = PTX.format(threads=256, min_ctas=1, inc=inc, dec=24)
    cubin = assemble(ptx, ptxas=assembler, store=Store(tmp_path))
    assert cubin.report.entry().registers == entry_registers(256, 1, inc) == registers
