"""Tensor maps in global memory: who may use them, and after which fences. As a parameter a map
needs none."""

from __future__ import annotations

import numpy as np
import pytest
from hazard_runs import TENSOR_LOAD, check, codes, init, one, program, wait

from ptxgen.errors import HazardError
from ptxgen.foreign import load_ptx
from ptxgen.layout.tensor_map import TensorMapSpec, encode
from ptxgen.spec import Dim3
from runtime.emulator.machine import Machine
from runtime.emulator.memory import GlobalMemory

pytestmark = pytest.mark.emu

PARAMS = ".param .align 64 .b8 map[128], .param .u64 maps"
WORDS = ("--arg", "map=tmap(u32[8,32],box=4x32):arange", "--arg", "maps=u8[256]:zeros")
# 32 threads of the first warp copy the parameter into global memory.
COPY_MAP = """mov.b64 %map, map; cvta.param.u64 %map, %map; ld.param.u64 %x, [maps];
setp.ne.u32 %p, %warp, 0; @%p bra COPIED;
mad.wide.u32 %out, %thread, 4, %map; ld.u32 %word, [%out];
mad.wide.u32 %out, %thread, 4, %x; st.global.u32 [%out], %word;
COPIED:"""
RELEASE = "fence.proxy.tensormap::generic.release.{};"
ACQUIRE = "fence.proxy.tensormap::generic.acquire.{} [%x], 128;"


def using(before: str, *, leader: int = 0, after: str = "", cluster: int = 1) -> str:
    """Thread `leader` loads a box through the map in global memory."""
    body = f"""{COPY_MAP} {init(1)}
    {before}
    setp.ne.u32 %other, %thread, {leader}; @%other bra READY;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], 512;
    {TENSOR_LOAD} [%tile], [%x, {{0, 0}}], [%full];
    {after}
    READY: {wait(0)}"""
    return program(body, PARAMS, threads=64, cluster=cluster)


COPY_FENCE = (
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
)
BOTH = RELEASE.format("gpu") + ACQUIRE.format("gpu")


@pytest.mark.parametrize(
    ("before", "leader", "found"),
    [
        (BOTH, 0, set()),
        (f"{RELEASE.format('gpu')} bar.sync 0; {ACQUIRE.format('gpu')}", 32, set()),
        (f"{RELEASE.format('cta')} bar.sync 0; {ACQUIRE.format('cta')}", 32, set()),
        (f"{BOTH} bar.sync 0;", 32, set()),  # acquired by another warp, which then arrives
        ("", 0, {"tensor-map-fence"}),
        (RELEASE.format("gpu"), 0, {"tensor-map-fence"}),
        (ACQUIRE.format("gpu"), 0, {"tensor-map-fence"}),
        (f"{ACQUIRE.format('gpu')} {RELEASE.format('gpu')}", 0, {"tensor-map-fence"}),
        (f"fence.proxy.async; bar.sync 0; {ACQUIRE.format('gpu')}", 32, {"tensor-map-fence"}),
        (BOTH.replace("[%x]", "[%x+128]"), 0, {"tensor-map-fence"}),  # another map
    ],
)
def test_a_map_that_the_kernel_has_written(before: str, leader: int, found: set[str]) -> None:
    assert codes("written", using(before, leader=leader), WORDS) == found


def test_the_finding_names_the_map_and_its_writer() -> None:
    found = one(check("written", using(""), WORDS))
    assert found.bytes_ == "maps offset 0x0"
    assert "warp 0 wrote" in found.message
    assert "acquire" in found.cure


@pytest.mark.parametrize(("fence", "found"), [(ACQUIRE, set()), ("", {"tensor-map-fence"})])
def test_a_map_that_the_host_has_copied(fence: str, found: set[str]) -> None:
    """An SM may still hold the map of an earlier launch."""
    body = f"""ld.param.u64 %x, [maps]; {init(1)} {fence.format("sys")}
    @%other bra READY;
    prefetch.tensormap [%x];
    READY:"""
    use = body.replace("prefetch.tensormap [%x];", f"""
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], 512;
    {TENSOR_LOAD} [%tile], [%x, {{0, 0}}], [%full];""")  # fmt: skip
    ptx = program(use + wait(0), ".param .u64 maps, .param .u64 data")
    assert from_host(ptx) == found


def from_host(ptx: str) -> set[str]:
    """Launch with a map that is encoded into an array, as a host would copy it."""
    memory = GlobalMemory()
    data = np.arange(256, dtype=np.uint32).reshape(8, 32)
    raw = encode(
        TensorMapSpec(dtype="u32", address=memory.add(data, "data"), shape=data.shape,
                      strides=data.strides, box=(4, 32))
    )  # fmt: skip
    room = np.zeros(512, np.uint8)
    maps = room[-room.ctypes.data % 128 :][:128]
    maps[:] = np.frombuffer(raw, np.uint8)
    spec = load_ptx(ptx).spec
    params = {"maps": memory.add(maps, "maps").to_bytes(8, "little"), "data": bytes(8)}
    try:
        Machine(hazards=True).launch(
            ptx, grid=Dim3(1), block=spec.block, params=params, memory=memory
        )
    except HazardError as error:
        return {f.code for f in error.findings}
    return set()


def test_a_map_that_is_changed_while_copies_use_it() -> None:
    change = "tensormap.replace.tile.global_dim.global.b1024.b32 [%x], 1, 4;"
    for after, found in ((change, {"source-overwritten"}), (f"{wait(0)} {change}", set())):
        ptx = using(BOTH, after=after.replace("WAIT", "FIRST"))
        assert codes("changed", ptx, WORDS) == found
    assert "mbarrier" in one(check("changed", using(BOTH, after=change), WORDS)).cure


@pytest.mark.parametrize(
    ("field", "value", "row"),
    [("global_address", "%data", 3), ("rank", "1", 3), ("box_dim", "4", 3), ("global_dim", "2", 0),
     ("global_stride", "%twice", 6)],
)  # fmt: skip
def test_a_map_is_replaced_field_by_field(field: str, value: str, row: int) -> None:
    """In shared memory, then copied and released in one instruction. Row 3 of the box then holds
    row 3 of the array, row 6 where the pitch is doubled, and 0 below a tensor of two rows."""
    axis = {"box_dim": "1, ", "global_dim": "1, ", "global_stride": "0, "}.get(field, "")
    kind = "b64" if value.startswith("%") else "b32"
    body = f""".reg .b64 %data, %twice; .reg .b32 %stage;
    mov.b64 %map, map; cvta.param.u64 %map, %map; ld.param.u64 %x, [maps];
    ld.u64 %data, [%map]; mov.u64 %twice, 256; mov.u32 %stage, tile; add.u32 %stage, %stage, 2048;
    mad.wide.u32 %out, %thread, 4, %map; ld.u32 %word, [%out];
    mad.lo.u32 %mine, %thread, 4, %stage; st.shared.u32 [%mine], %word; {init(1)}
    @!%other tensormap.replace.tile.{field}.shared::cta.b1024.{kind} [%stage], {axis}{value};
    bar.warp.sync -1;
    {COPY_FENCE} [%x], [%stage], 128;
    {ACQUIRE.format("gpu")}
    @%other bra READY;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], 512;
    {TENSOR_LOAD} [%tile], [%x, {{0, 0}}], [%full];
    READY: {wait(0)}
    add.u32 %mine, %tile, 384; ld.shared.u32 %word, [%mine];  // row 3
    @!%other st.global.u32 [%x], %word;"""
    found = check("field", program(body, PARAMS), WORDS)
    assert found.verdict == "pass", found.findings
    assert found.advice == ()
    assert found.arrays["maps"].startswith(f"u8 [256]  {32 * row} 0 0 0 ")
