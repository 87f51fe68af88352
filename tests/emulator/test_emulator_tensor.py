"""TMA, mbarriers, wgmma, ldmatrix and stmatrix against definitions written here in NumPy."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from emulate import module, run, u32

from ptxgen.errors import Deadlock, HazardError
from ptxgen.layout.tensor_map import TensorMapSpec, encode
from ptxgen.spec import Dim3
from runtime.emulator.machine import Machine
from runtime.emulator.memory import GlobalMemory
from runtime.emulator.report import Report
from runtime.emulator.tensor_map import decode

pytestmark = pytest.mark.emu

PTX = Path(__file__).parent.parent / "emulator_ptx"
BF16 = np.dtype(ml_dtypes.bfloat16)
MAP = ".align 64 .b8 {}[128]"
SMEM = ".extern .shared .align 1024 .b8 smem[];"
LOAD = (
    "cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes{} "
    "[%r1{}], [%rd1, {{{}}}], [%r2]{};"
)


def tensor_map(memory: GlobalMemory, x: np.ndarray, box: tuple[int, ...], **options: object) -> bytes:
    names = {"bfloat16": "bf16", "float16": "f16", "float32": "f32", "uint8": "u8", "int32": "s32"}
    return encode(
        TensorMapSpec(
            dtype=names[x.dtype.name], address=memory.add(x), shape=x.shape, strides=x.strides,
            box=box, **options,  # type: ignore[arg-type]
        )
    )  # fmt: skip


def swizzled(offset: np.ndarray, swizzle: int) -> np.ndarray:
    """The definition: 16-byte chunk bits XORed with row bits."""
    mask = {0: 0, 32: 1, 64: 3, 128: 7}[swizzle]
    return offset ^ (((offset >> 7) & mask) << 4)


def image_of(box: np.ndarray, swizzle: int) -> np.ndarray:
    """The bytes of shared memory that a box makes, as a tile on a 1024-byte boundary."""
    raw = np.frombuffer(box.tobytes(), np.uint8)
    image = np.zeros(len(raw), np.uint8)
    image[swizzled(np.arange(len(raw)), swizzle)] = raw
    return image


def clipped(x: np.ndarray, start: tuple[int, ...], box: tuple[int, ...], fill: object) -> np.ndarray:
    out = np.full(box, fill, x.dtype)
    for index in np.ndindex(*box):
        at = tuple(s + i for s, i in zip(start, index, strict=True))
        if all(0 <= a < n for a, n in zip(at, x.shape, strict=True)):
            out[index] = x[at]
    return out


LOAD_BODY = """
    mov.u32 %r1, smem; add.u32 %r2, %r1, OFFSET; mov.u32 %r60, %tid.x;
    mov.b64 %rd1, t; cvta.param.u64 %rd1, %rd1;
    setp.ne.u32 %p1, %r60, 0; @%p1 bra $WAIT;
    mbarrier.init.shared::cta.b64 [%r2], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], BYTES;
    LOAD
    $WAIT: bar.sync 0;
    $SPIN: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra $SPIN;
    ld.param.u64 %rd2, [d];
    $COPY: setp.ge.u32 %p3, %r60, COUNT; @%p3 bra $END;
    mad.lo.u32 %r3, %r60, 4, %r1; ld.shared.u32 %r4, [%r3];
    mad.wide.u32 %rd3, %r60, 4, %rd2; st.global.u32 [%rd3], %r4;
    add.u32 %r60, %r60, 32; bra $COPY; $END:
"""


def load_tile(x: np.ndarray, start: tuple[int, ...], box: tuple[int, ...], *,
              expect: int | None = None, machine: Machine | None = None, shift: int = 0,
              **options: object) -> tuple[np.ndarray, Report]:  # fmt: skip
    """The shared-memory bytes after one TMA load of a box."""
    memory = GlobalMemory()
    tmap = tensor_map(memory, x, box, **options)
    size = int(np.prod(box)) * x.itemsize
    coordinates = ", ".join(str(c) for c in reversed(start))
    load = LOAD.format(len(box), "", f"+{shift}" if shift else "", coordinates, "")
    body = (LOAD_BODY.replace("LOAD", load).replace("OFFSET", str(size + 1024))
            .replace("BYTES", str(size if expect is None else expect))
            .replace("COUNT", str(size // 4)))  # fmt: skip
    d = np.zeros(size // 4, np.uint32)
    source = module(body, [MAP.format("t"), ".u64 d"], head=SMEM)
    report = (machine or Machine()).launch(
        source, grid=Dim3(1), block=Dim3(32), smem_bytes=size + 2048,
        params={"t": tmap, "d": struct.pack("<Q", memory.add(d))}, memory=memory,
    )  # fmt: skip
    return d.view(np.uint8), report


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize(
    "start",
    [(0, 0), (8, 16), (-3, -5), (28, 90), (40, 0)],  # inside, before, across the end, outside
)
def test_tensor_load_2d(swizzle: int, start: tuple[int, int]) -> None:
    x = np.arange(32 * 96, dtype=np.uint32).astype(np.uint16).view(np.float16).reshape(32, 96)
    box = (16, (swizzle or 64) // 2)
    got, report = load_tile(x, start, box, swizzle=swizzle)
    want = image_of(clipped(x.view(np.uint16), start, box, 0), swizzle)
    assert (got == want).all()
    assert report.events["tma_load_bytes"] == want.size


def test_nan_fill_of_elements_outside() -> None:
    x = np.ones((4, 16), np.float32)
    got, _ = load_tile(x, (2, 8), (4, 16), fill="nan")
    values = got.view(np.float32).reshape(4, 16)
    assert (values[:2, :8] == 1).all()
    assert np.isnan(values[2:]).all()
    assert np.isnan(values[:, 8:]).all()


@pytest.mark.parametrize("rank", [1, 3, 4, 5])
def test_tensor_load_of_other_ranks(rank: int) -> None:
    shape = (3, 4, 2, 5, 32)[-rank:]
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    box = (2, 3, 2, 2, 16)[-rank:]
    start = (2, -1, 0, 4, 24)[-rank:]
    got, _ = load_tile(x, start, box)
    assert (got.view(np.int32).reshape(box) == clipped(x, start, box, 0)).all()


def test_element_strides_skip_elements() -> None:
    x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
    memory = GlobalMemory()
    spec = decode(tensor_map(memory, x, (8, 32), element_strides=(2, 1)))
    assert spec.counts == (32, 4)
    assert spec.element_strides == (1, 2)


@pytest.mark.parametrize("mode", ["eager", "random", "latest"])
def test_the_time_of_a_copy_does_not_matter_to_a_right_program(mode: str) -> None:
    x = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)
    for seed in range(4):
        machine = Machine(mode=mode, seed=seed, schedule="random")  # type: ignore[arg-type]
        got, _ = load_tile(x, (8, 0), (8, 32), machine=machine, swizzle=128)
        assert (got == image_of(x[8:16, :32], 128)).all()


def test_too_many_bytes_expected_is_a_deadlock_that_says_so() -> None:
    x = np.zeros((32, 64), np.float32)
    with pytest.raises(Deadlock) as caught:
        load_tile(x, (0, 0), (8, 32), expect=2048)
    text = str(caught.value)
    assert "bytes expected 2,048, delivered 1,024" in text
    assert "phase 0" in text
    assert "0 of 1 arrivals pending" in text
    assert "offset 0xc00" in text  # 1 KB of the system, 1 KB of tile, 1 KB of space


def _code(**options: object) -> str:
    x = np.zeros((32, 64), np.float32)
    with pytest.raises(HazardError) as caught:
        load_tile(x, (0, 0), (8, 32), **options)  # type: ignore[arg-type]
    assert caught.value.findings[0].lines
    return caught.value.findings[0].code


def test_misaligned_tiles_are_found() -> None:
    assert _code(shift=64) == "misaligned"
    assert _code(shift=128, swizzle=128) == "swizzle-atom"


def test_map_address_without_cvta_is_found() -> None:
    memory = GlobalMemory()
    x = np.zeros((32, 64), np.float32)
    body = "mov.b64 %rd1, t; prefetch.tensormap [%rd1];"
    with pytest.raises(HazardError, match=r"cvta.param"):
        Machine().launch(module(body, [MAP.format("t")]), grid=Dim3(1), block=Dim3(32),
                         params={"t": tensor_map(memory, x, (8, 32))}, memory=memory)  # fmt: skip


STORE_BODY = """
    mov.u32 %r1, smem; mov.u32 %r60, %tid.x; ld.param.u64 %rd2, [s];
    mov.b64 %rd1, t; cvta.param.u64 %rd1, %rd1; mov.u32 %r5, %r60;
    $COPY: setp.ge.u32 %p3, %r5, COUNT; @%p3 bra $END;
    mad.wide.u32 %rd3, %r5, 4, %rd2; ld.global.u32 %r4, [%rd3];
    mad.lo.u32 %r3, %r5, 4, %r1; st.shared.u32 [%r3], %r4;
    add.u32 %r5, %r5, 32; bra $COPY; $END:
    fence.proxy.async.shared::cta; bar.sync 0;
    setp.ne.u32 %p1, %r60, 0; @%p1 ret;
    STORE
"""
STORE = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {{{}}}], [%r1];"
DRAIN = "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;"


def store_tile(x: np.ndarray, box: np.ndarray, start: tuple[int, int], swizzle: int, *,
               end: str = DRAIN, machine: Machine | None = None, op: str = STORE) -> None:  # fmt: skip
    memory = GlobalMemory()
    tmap = tensor_map(memory, x, box.shape, swizzle=swizzle)
    image = image_of(box, swizzle)
    store = op.format(", ".join(str(c) for c in reversed(start))) + end
    body = STORE_BODY.replace("COUNT", str(len(image) // 4)).replace("STORE", store)
    (machine or Machine()).launch(
        module(body, [MAP.format("t"), ".u64 s"], head=SMEM), grid=Dim3(1), block=Dim3(32),
        smem_bytes=len(image), params={"t": tmap, "s": struct.pack("<Q", memory.add(image))},
        memory=memory,
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["eager", "random", "latest"])
@pytest.mark.parametrize("swizzle", [0, 32, 128])
@pytest.mark.parametrize("start", [(0, 0), (28, 40)])
def test_tensor_store_clips(swizzle: int, start: tuple[int, int], mode: str) -> None:
    x = np.full((32, 64), 9, np.float32)
    box = np.arange(8 * (swizzle or 64) // 4, dtype=np.float32).reshape(8, -1)
    want = x.copy()
    part = want[start[0] : start[0] + box.shape[0], start[1] : start[1] + box.shape[1]]
    part[...] = box[: part.shape[0], : part.shape[1]]
    store_tile(x, box, start, swizzle, machine=Machine(mode=mode))  # type: ignore[arg-type]
    assert (x == want).all()


def test_tensor_reduction_adds() -> None:
    x = np.full((32, 64), 2, np.float32)
    op = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%rd1, {{{}}}], [%r1];"
    store_tile(x, np.full((8, 32), 5, np.float32), (30, 0), 0, op=op)
    assert (x[30:, :32] == 7).all()
    assert (x[:30] == 2).all()


@pytest.mark.parametrize(
    ("start", "end", "code"),
    [
        ((-8, 0), DRAIN, "negative-coordinate"),
        ((0, 0), "", "exit-with-bulk-store"),
        ((0, 0), "cp.async.bulk.commit_group;", "exit-with-bulk-store"),
        ((0, 0), "cp.async.bulk.wait_group.read 0;", "uncommitted-group"),
    ],
)
def test_store_protocol(start: tuple[int, int], end: str, code: str) -> None:
    with pytest.raises(HazardError) as caught:
        store_tile(np.zeros((32, 64), np.float32), np.zeros((8, 32), np.float32), start, 0, end=end)
    assert caught.value.findings[0].code == code


def test_bulk_copies_without_a_map() -> None:
    x, d = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    body = """
    mov.u32 %r1, smem; add.u32 %r2, %r1, 1024; ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [d];
    mbarrier.init.shared::cta.b64 [%r2], 1; mbarrier.arrive.expect_tx.shared::cta.b64 %rd3, [%r2], 256;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 256, [%r2];
    $W: mbarrier.try_wait.shared::cta.b64 %p1, [%r2], %rd3; @!%p1 bra $W;
    cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], 256;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    """
    run(module(body, [".u64 x", ".u64 d"], head=SMEM), {"x": x, "d": d}, block=1, smem=2048)
    assert (d == x).all()
    with pytest.raises(HazardError, match="size is not a multiple of 16"):
        run(module(body.replace("256", "24"), [".u64 x", ".u64 d"], head=SMEM), {"x": x, "d": d},
            block=1, smem=2048)  # fmt: skip


def test_cp_async_copies_and_fills_with_zeros() -> None:
    x, d = np.arange(128, dtype=np.uint32), np.ones(128, np.uint32)
    body = """
    mov.u32 %r60, %tid.x; mov.u32 %r1, smem; mad.lo.u32 %r1, %r60, 16, %r1;
    ld.param.u64 %rd1, [x]; mad.wide.u32 %rd1, %r60, 16, %rd1; and.b32 %r2, %r60, 12;
    cp.async.cg.shared.global [%r1], [%rd1], 16, %r2; cp.async.commit_group; cp.async.wait_group 0;
    ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r1];
    ld.param.u64 %rd2, [d]; mad.wide.u32 %rd2, %r60, 16, %rd2;
    st.global.v4.u32 [%rd2], {%r4, %r5, %r6, %r7};
    """
    run(module(body, [".u64 x", ".u64 d"], head=SMEM), {"x": x, "d": d}, smem=512)
    words = np.arange(4) < (np.arange(32)[:, None] & 12) // 4
    assert (d.reshape(32, 4) == np.where(words, x.reshape(32, 4), 0)).all()


# -- mbarrier --------------------------------------------------------------------------------------

INIT = (
    "mov.u32 %r1, smem; mov.u32 %r60, %tid.x; setp.eq.u32 %p1, %r60, 0;"
    "@%p1 mbarrier.init.shared::cta.b64 [%r1], {}; bar.sync 0;"
)


def test_phases_and_states() -> None:
    """Two phases of 64 arrivals; the state names the phase; parity 1 of a fresh barrier is over."""
    d = np.zeros(64, np.uint32)
    body = INIT.format(64) + """
    mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1], 1; selp.u32 %r2, 1, 0, %p2;
    mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1], 0; selp.u32 %r3, 2, 0, %p2; bar.sync 0;
    mbarrier.arrive.shared::cta.b64 %rd1, [%r1];
    $A: mbarrier.try_wait.shared::cta.b64 %p3, [%r1], %rd1; @!%p3 bra $A;
    mbarrier.arrive.shared::cta.b64 %rd2, [%r1];
    $B: mbarrier.test_wait.parity.shared::cta.b64 %p3, [%r1], 1; @!%p3 bra $B;
    add.u32 %r2, %r2, %r3; ld.param.u64 %rd3, [d]; mad.wide.u32 %rd3, %r60, 4, %rd3;
    st.global.u32 [%rd3], %r2;
    """
    report = run(module(body, [".u64 d"], head=SMEM), {"d": d}, block=64, smem=64)
    assert set(d.tolist()) == {1}
    assert report.events["mbarrier_phase"] == 2


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("mbarrier.arrive.shared::cta.b64 _, [%r1+8];", "mbarrier-uninitialised"),
        ("@%p1 mbarrier.init.shared::cta.b64 [%r1], 1;", "mbarrier-reinit"),
        ("mbarrier.init.shared::cta.b64 [%r1+8], 1;", "mbarrier-reinit"),  # by 32 lanes
        ("@%p1 mbarrier.init.shared::cta.b64 [%r1+8], 0;", "mbarrier-count"),
        ("@%p1 mbarrier.init.shared::cta.b64 [%r1+4], 1;", "misaligned"),
        ("mbarrier.arrive.shared::cta.b64 _, [%r1];", "mbarrier-overrun"),  # 32 arrivals, 2 expected
        ("@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 2000000;", "mbarrier-tx"),
        ("st.shared.u32 [%r1+4], %r60;", "mbarrier-access"),
        ("ld.shared.u32 %r2, [%r1];", "mbarrier-access"),
        ("setmaxnreg.inc.sync.aligned.u32 40;", "setmaxnreg"),
    ],
)
def test_mbarrier_rules(body: str, code: str) -> None:
    with pytest.raises(HazardError) as caught:
        run(module(INIT.format(2) + body, head=SMEM, directives=".maxnreg 64"), smem=64)
    assert caught.value.findings[0].code == code


def test_setmaxnreg_beyond_the_pool_is_a_deadlock_that_names_it() -> None:
    body = """
    mov.u32 %r60, %tid.x; setp.lt.u32 %p1, %r60, 128; @%p1 bra $A;
    setmaxnreg.inc.sync.aligned.u32 240; bra $B; $A: setmaxnreg.dec.sync.aligned.u32 104; $B:
    """
    directives = ".reqntid 256\n.maxnreg 128"
    with pytest.raises(Deadlock, match=r"setmaxnreg.inc needs 3584 registers .* the CTA's pool has"):
        run(module(body, directives=directives), block=256)
    good = body.replace("104", "24").replace("240", "232")
    run(module(good, directives=directives), block=256)


def test_multicast_fills_and_signals_every_cta_of_the_mask() -> None:
    x = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)
    d = np.zeros((4, 256), np.float32)
    body = """
    mov.u32 %r1, smem; add.u32 %r2, %r1, 2048; mov.u32 %r60, %tid.x; mov.u32 %r5, %cluster_ctarank;
    mov.b64 %rd1, t; cvta.param.u64 %rd1, %rd1; setp.eq.u32 %p1, %r60, 0;
    @%p1 mbarrier.init.shared::cta.b64 [%r2], 1; @%p1 fence.mbarrier_init.release.cluster;
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 1024;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    setp.eq.and.u32 %p2, %r5, 0, %p1; mov.b16 %h1, MASK;
    @%p2 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
        [%r1], [%rd1, {32, 8}], [%r2], %h1;
    $W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], 0; @!%p3 bra $W;
    ld.param.u64 %rd2, [d]; mov.u32 %r6, %ctaid.x; mad.wide.u32 %rd2, %r6, 1024, %rd2;
    mad.wide.u32 %rd2, %r60, 32, %rd2; mad.lo.u32 %r7, %r60, 32, %r1;
    ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r7]; st.global.v4.f32 [%rd2], {%f1, %f2, %f3, %f4};
    ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r7+16]; st.global.v4.f32 [%rd2+16], {%f1, %f2, %f3, %f4};
    barrier.cluster.arrive; barrier.cluster.wait;
    """

    def launch(mask: str) -> None:
        memory = GlobalMemory()
        tmap = tensor_map(memory, x, (8, 32))
        Machine().launch(
            module(body.replace("MASK", mask), [MAP.format("t"), ".u64 d"], head=SMEM),
            grid=Dim3(4), block=Dim3(32), cluster=Dim3(2), smem_bytes=4096,
            params={"t": tmap, "d": struct.pack("<Q", memory.add(d))}, memory=memory,
        )  # fmt: skip

    launch("3")
    assert (d.reshape(4, 8, 32) == x[8:16, 32:]).all()
    with pytest.raises(HazardError, match="multicast mask 0x7 in a cluster of 2"):
        launch("7")
    with pytest.raises(Deadlock, match=r"bytes expected 1,024, delivered 0"):
        launch("1")  # the second CTA waits for bytes that nobody sends it


# -- ldmatrix and stmatrix -------------------------------------------------------------------------


@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_matrix_loads_and_stores(count: int, trans: str) -> None:
    """Register j of lane l holds row l / 4, columns 2 (l % 4) and the next, of matrix j."""
    x = np.arange(count * 64, dtype=np.uint16).reshape(count, 8, 8)
    loaded, stored = np.zeros((4, 32), np.uint32), np.zeros((count, 8, 8), np.uint16)
    registers = ", ".join(f"%r{10 + i}" for i in range(count))
    form = f"m8n8.x{count}{trans}.shared.b16"
    body = f"""
    mov.u32 %r60, %tid.x; mov.u32 %r1, smem; mad.lo.u32 %r2, %r60, 16, %r1;
    ld.param.u64 %rd1, [x]; mad.wide.u32 %rd1, %r60, 16, %rd1; setp.lt.u32 %p1, %r60, {8 * count};
    @%p1 ld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%rd1];
    @%p1 st.shared.v4.u32 [%r2], {{%r4, %r5, %r6, %r7}}; bar.warp.sync 0xffffffff;
    ldmatrix.sync.aligned.{form} {{{registers}}}, [%r2];
    stmatrix.sync.aligned.{form} [%r2+512], {{{registers}}}; bar.warp.sync 0xffffffff;
    @%p1 ld.shared.v4.u32 {{%r4, %r5, %r6, %r7}}, [%r2+512];
    ld.param.u64 %rd2, [s]; mad.wide.u32 %rd2, %r60, 16, %rd2;
    @%p1 st.global.v4.u32 [%rd2], {{%r4, %r5, %r6, %r7}};
    ld.param.u64 %rd3, [l]; mad.wide.u32 %rd3, %r60, 4, %rd3;
    """ + "".join(f"st.global.u32 [%rd3+{128 * i}], %r{10 + i};" for i in range(count))
    run(module(body, [".u64 x", ".u64 s", ".u64 l"], head=SMEM),
        {"x": x, "s": stored, "l": loaded}, smem=1024)  # fmt: skip
    lane = np.arange(32)
    for j in range(count):
        matrix = x[j].T if trans else x[j]
        low, high = matrix[lane // 4, 2 * (lane % 4)], matrix[lane // 4, 2 * (lane % 4) + 1]
        assert (loaded[j] == (high.astype(np.uint32) << 16 | low)).all()
    assert (stored == x).all()


# -- wgmma -----------------------------------------------------------------------------------------

TYPES = {
    "bf16": BF16, "f16": np.dtype(np.float16), "tf32": np.dtype(np.float32),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "s8": np.dtype(np.int8), "u8": np.dtype(np.uint8),
}  # fmt: skip


def tile_image(x: np.ndarray, swizzle: int, mn_major: bool) -> tuple[np.ndarray, int, int]:
    """(bytes, leading offset, stride offset) of an operand `[mn, k]` of 32 bytes of K, by the
    canonical layouts: offset of element (mn, k), then the swizzle."""
    rows, depth = x.shape
    es = x.itemsize
    mn, k = np.meshgrid(np.arange(rows), np.arange(depth), indexing="ij")
    unit, span = 16 // es, max(swizzle, 16)
    if not mn_major:
        if swizzle:
            lead, stride = 16, 8 * span
            offset = mn // 8 * stride + mn % 8 * span + k * es
        else:
            lead, stride = 128, 256
            offset = mn // 8 * stride + mn % 8 * 16 + k // unit * lead + k % unit * es
    elif swizzle:
        width = span // es
        stride, lead = 8 * span, 16 * span
        offset = mn // width * lead + mn % width * es + k // 8 * stride + k % 8 * span
    else:
        stride, lead = 256, 128
        offset = mn // unit * stride + mn % unit * es + k // 8 * lead + k % 8 * 16
    image = np.zeros(int(offset.max()) + 1024, np.uint8)
    at = swizzled(offset, swizzle)
    raw = np.frombuffer(x.tobytes(), np.uint8).reshape(rows, depth, es)
    for byte in range(es):
        image[at + byte] = raw[:, :, byte]
    return image[: -(-len(image) // 1024) * 1024], lead, stride


def descriptor(lead: int, stride: int, swizzle: int) -> int:
    layout = {0: 0, 128: 1, 64: 2, 32: 3}[swizzle]
    return layout << 62 | (stride >> 4) << 32 | (lead >> 4) << 16


def run_wgmma(
    a: np.ndarray, b: np.ndarray, types: tuple[str, str, str], *, swizzle: int = 128,
    trans: tuple[int, int] = (0, 0), scale: tuple[int, int] = (1, 1), from_registers: bool = False,
    initial: int | None = None, registers: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """One wgmma; the accumulator registers of every thread, `[registers, 128]`."""
    accumulator, a_type, b_type = types
    n, es = len(b), a.itemsize
    a_image, a_lead, a_stride = tile_image(a, swizzle, bool(trans[0]))
    b_image, b_lead, b_stride = tile_image(b, swizzle, bool(trans[1]))
    size = max(len(a_image), 1024) + len(b_image) + 1024
    raw = np.zeros(-(-size // 2048) * 2048, np.uint8)
    b_at = -(-len(a_image) // 1024) * 1024
    raw[: len(a_image)] = a_image
    raw[b_at : b_at + len(b_image)] = b_image
    count = n // 4 if accumulator == "f16" else n // 2
    kind = ".f32" if accumulator == "f32" else ".b32"
    out = np.zeros((count, 128), np.uint32)
    d = "{" + ", ".join(f"acc{i}" for i in range(count)) + "}"
    source_a = "{fa0, fa1, fa2, fa3}" if from_registers else "%rd5"
    flags = [] if accumulator == "s32" else [str(s) for s in scale]
    if es == 2:
        flags += [str(t) for t in (trans[1:] if from_registers else trans)]
    start = "1" if initial is not None else "0"
    form = f"m64n{n}k{32 // es}.{accumulator}.{a_type}.{b_type}"
    zero = "".join(f"mov.b32 acc{i}, {initial};" for i in range(count)) if initial is not None else ""
    fragment = "".join(f"ld.global.b32 fa{i}, [%rd7+{512 * i}];" for i in range(4))
    body = f"""
    .reg {kind} acc<{count}>; .reg .b32 fa<4>;
    mov.u32 %r60, %tid.x; mov.u32 %r1, smem; ld.param.u64 %rd1, [image]; mov.u32 %r5, %r60;
    $COPY: setp.ge.u32 %p3, %r5, {len(raw) // 4}; @%p3 bra $GO;
    mad.wide.u32 %rd3, %r5, 4, %rd1; ld.global.u32 %r4, [%rd3];
    mad.lo.u32 %r3, %r5, 4, %r1; st.shared.u32 [%r3], %r4; add.u32 %r5, %r5, 128; bra $COPY;
    $GO: fence.proxy.async.shared::cta; bar.sync 0;
    ld.param.u64 %rd7, [fragment]; mad.wide.u32 %rd7, %r60, 4, %rd7; {fragment} {zero}
    shr.u32 %r6, %r1, 4; cvt.u64.u32 %rd4, %r6;
    or.b64 %rd5, %rd4, {descriptor(a_lead, a_stride, swizzle):#x};
    add.u64 %rd6, %rd4, {b_at // 16}; or.b64 %rd6, %rd6, {descriptor(b_lead, b_stride, swizzle):#x};
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.{form} {d}, {source_a}, %rd6, {", ".join([start, *flags])};
    wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
    ld.param.u64 %rd8, [out]; mad.wide.u32 %rd8, %r60, 4, %rd8;
    """ + "".join(f"st.global.b32 [%rd8+{512 * i}], acc{i};" for i in range(count))
    given = np.zeros((4, 128), np.uint32) if registers is None else registers
    run(module(body, [".u64 image", ".u64 fragment", ".u64 out"], head=SMEM),
        {"image": raw, "fragment": given, "out": out}, block=128, smem=len(raw))  # fmt: skip
    return out


def from_fragment(out: np.ndarray, n: int, accumulator: str) -> np.ndarray:
    """Registers to `[64, n]`: element i of lane 4 g + t of warp w is row 16 w + g + 8 (i / 2 % 2),
    column 8 (i / 4) + 2 t + i % 2."""
    dtype = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[accumulator]
    values = out.T.copy().view(dtype)  # [128 threads, elements]
    d = np.zeros((64, n), dtype)
    for thread in range(128):
        w, g, t = thread // 32, thread % 32 // 4, thread % 4
        for i in range(n // 2):
            d[16 * w + g + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * t + i % 2] = values[thread, i]
    return d


def small(shape: tuple[int, int], dtype: np.dtype, seed: int) -> np.ndarray:
    low = 0 if dtype == np.uint8 else -3
    return np.random.default_rng(seed).integers(low, 4, shape).astype(dtype)


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize(
    ("trans", "n"), [((0, 0), 64), ((0, 0), 8), ((0, 0), 256), ((1, 0), 64), ((0, 1), 128), ((1, 1), 64)]
)
def test_wgmma_layouts(swizzle: int, trans: tuple[int, int], n: int) -> None:
    a, b = small((64, 16), BF16, 1), small((n, 16), BF16, 2)
    out = run_wgmma(a, b, ("f32", "bf16", "bf16"), swizzle=swizzle, trans=trans)
    want = a.astype(np.float32) @ b.astype(np.float32).T
    assert (from_fragment(out, n, "f32") == want).all()


@pytest.mark.parametrize(
    "types",
    [("f32", "f16", "f16"), ("f16", "f16", "f16"), ("f32", "tf32", "tf32"), ("f32", "e4m3", "e5m2"),
     ("f16", "e5m2", "e4m3"), ("s32", "s8", "u8")],
)  # fmt: skip
def test_wgmma_types(types: tuple[str, str, str]) -> None:
    dtypes = [TYPES[t] for t in types[1:]]
    depth = 32 // dtypes[0].itemsize
    a, b = small((64, depth), dtypes[0], 1), small((32, depth), dtypes[1], 2)
    out = run_wgmma(a, b, types)
    want = a.astype(np.float64) @ b.astype(np.float64).T
    assert (from_fragment(out, 32, types[0]).astype(np.float64) == want).all()


def test_wgmma_adds_negates_and_takes_a_from_registers() -> None:
    a, b = small((64, 16), BF16, 1), small((16, 16), BF16, 2)
    product = a.astype(np.float32) @ b.astype(np.float32).T
    out = run_wgmma(a, b, ("f32", "bf16", "bf16"), initial=0x40000000, scale=(-1, 1))
    assert (from_fragment(out, 16, "f32") == 2 - product).all()
    fragment = np.zeros((4, 128, 2), BF16)
    for thread in range(128):
        w, g, t = thread // 32, thread % 32 // 4, thread % 4
        for j in range(4):
            row, k = 16 * w + g + 8 * (j % 2), 2 * t + 8 * (j // 2)
            fragment[j, thread] = a[row, k : k + 2]
    registers = fragment.view(np.uint32)[:, :, 0].copy()
    out = run_wgmma(a, b, ("f32", "bf16", "bf16"), from_registers=True, registers=registers)
    assert (from_fragment(out, 16, "f32") == product).all()


@pytest.mark.parametrize("k_blocks", [1, 3])
@pytest.mark.parametrize("mode", ["eager", "latest"])
def test_a_gemm_of_tma_and_wgmma(k_blocks: int, mode: str) -> None:
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-3, 4, (64, 64 * k_blocks)).astype(BF16) for _ in range(2))
    d = np.zeros((64, 64), np.float32)
    memory = GlobalMemory()
    params = {
        "tmap_a": tensor_map(memory, a, (64, 64), swizzle=128),
        "tmap_b": tensor_map(memory, b, (64, 64), swizzle=128),
        "d": struct.pack("<Q", memory.add(d)),
        "k_blocks": u32(k_blocks),
    }
    source = (PTX / "wgmma_tma_gemm.ptx").read_text(encoding="utf-8")
    report = Machine(mode=mode).launch(  # type: ignore[arg-type]
        source, grid=Dim3(1), block=Dim3(128), smem_bytes=17408, params=params, memory=memory
    )
    assert (d == a.astype(np.float32) @ b.astype(np.float32).T).all()
    assert report.events["wgmma"] == 4 * k_blocks
    assert report.count("wgmma.mma_async") == 16 * k_blocks


def broken_gemm(old: str, new: str) -> str:
    """The code of the finding that a changed program raises."""
    source = (PTX / "wgmma_tma_gemm.ptx").read_text(encoding="utf-8")
    assert old in source
    memory = GlobalMemory()
    a = np.ones((64, 128), BF16)
    d = np.zeros((64, 64), np.float32)
    params = {
        "tmap_a": tensor_map(memory, a, (64, 64), swizzle=128),
        "tmap_b": tensor_map(memory, a, (64, 64), swizzle=128),
        "d": struct.pack("<Q", memory.add(d)),
        "k_blocks": u32(2),
    }
    with pytest.raises(HazardError) as caught:
        Machine().launch(source.replace(old, new, 1), grid=Dim3(1), block=Dim3(128),
                         smem_bytes=17408, params=params, memory=memory)  # fmt: skip
    return caught.value.findings[0].code


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("wgmma.wait_group.sync.aligned 0;", "", "wgmma-in-flight"),
        ("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;", "wgmma-in-flight"),
        ("setp.ne.u32 %accumulate, %k, 0;", "setp.ge.u32 %accumulate, %k, 0;",
         "uninitialised-register"),
        ("add.u64 %desc_a, %desc_a, 2;", "and.b32 %lo, %thread, 96; cvt.u64.u32 %high, %lo; add.u64 %desc_a, %desc_a, %high;",
         "wgmma-mismatch"),
        ("cvt.u64.u32 %desc_a, %lo;", "add.u32 %lo, %lo, 16; cvt.u64.u32 %desc_a, %lo;",
         "descriptor"),
        ("[%row], [%map_b", "[%base], [%map_b", "uninitialised-memory"),
        ("wgmma.fence.sync.aligned;", "and.b32 %lo, %thread, 31; setp.lt.u32 %p, %lo, 16; @%p wgmma.fence.sync.aligned;",
         "partial-warp"),
    ],
)  # fmt: skip
def test_wgmma_rules(old: str, new: str, code: str) -> None:
    assert broken_gemm(old, new) == code


@pytest.mark.asm
def test_the_programs_of_this_folder_assemble() -> None:
    ptxas = shutil.which("ptxas")
    if ptxas is None:
        pytest.skip("no ptxas on PATH")
    for path in sorted(PTX.glob("*.ptx")):
        subprocess.run([ptxas, "-arch=sm_90a", "-o", "/dev/null", str(path)], check=True)
