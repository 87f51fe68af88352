"""TMA and bulk copies against definitions written here in NumPy."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from emulate import MAP, SMEM, clipped, image_of, module, run, tensor_map

from ptxgen.errors import Deadlock, HazardError
from ptxgen.spec import Dim3
from runtime.emulator.machine import Machine
from runtime.emulator.memory import GlobalMemory
from runtime.emulator.report import Report
from runtime.emulator.tensor_map import decode

pytestmark = pytest.mark.emu

LOAD = (
    "cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes{} "
    "[%r1{}], [%rd1, {{{}}}], [%r2]{};"
)


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
              expect: int | None = None, shown: int | None = None, machine: Machine | None = None,
              shift: int = 0, **options: object) -> tuple[np.ndarray, Report]:  # fmt: skip
    """The shared-memory bytes after one TMA load of a box."""
    memory = GlobalMemory()
    tmap = tensor_map(memory, x, box, **options)
    size = int(np.prod(box)) * x.itemsize
    coordinates = ", ".join(str(c) for c in reversed(start))
    load = LOAD.format(len(box), "", f"+{shift}" if shift else "", coordinates, "")
    body = (LOAD_BODY.replace("LOAD", load).replace("OFFSET", str(size + 1024))
            .replace("BYTES", str(size if expect is None else expect))
            .replace("COUNT", str((shown or size) // 4)))  # fmt: skip
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
    [(0, 0), (8, 16), (-3, -8), (28, 88), (40, 0)],  # inside, before, across the end, outside
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


def test_a_stride_takes_every_row_that_it_reaches() -> None:
    """Rows 0, 3 and 6 of a box of 8: more than 8 // 3. The stride of the innermost axis is ignored,
    as on the H200."""
    x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
    shown = 3 * 128  # of the rest, nothing is written
    got, report = load_tile(x, (2, 16), (8, 32), expect=shown, shown=shown, element_strides=(3, 2))
    assert (got[: 3 * 128].view(np.float32).reshape(3, 32) == x[2:10:3, 16:48]).all()
    assert report.events["tma_load_bytes"] == 3 * 128


def test_tf32_maps_round_to_nearest_even() -> None:
    """As recorded of the H200: ties to even, up to infinity, every NaN to 0x7FFFE000."""
    words = np.array([0x3F801000, 0x3F803000, 0x3F801001, 0xBF800FFF, 0x7F7FFFFF, 0x7FC00001,
                      0x80000001, 0x007FFFFF], np.uint32)  # fmt: skip
    want = [0x3F800000, 0x3F804000, 0x3F802000, 0xBF800000, 0x7F800000, 0x7FFFE000, 0x80000000,
            0x00800000]  # fmt: skip
    x = np.tile(words.view(np.float32), (8, 1))
    got, _ = load_tile(x, (0, 0), (8, 8), dtype="TFLOAT32")
    assert got.view(np.uint32).reshape(8, 8)[3].tolist() == want


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


def store_tile(
    x: np.ndarray,
    box: np.ndarray,
    start: tuple[int, int],
    swizzle: int,
    *,
    end: str = DRAIN,
    machine: Machine | None = None,
    op: str = STORE,
    around: np.ndarray | None = None,
) -> None:
    """Store, or reduce, a box into `x`, which is a view of `around` where that is given."""
    memory = GlobalMemory()
    if around is not None:
        memory.add(around)
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


@pytest.mark.parametrize("op", ["store", "add"])
def test_writes_go_by_16_bytes(op: str) -> None:
    """A row of 5 floats ends inside a unit of 16 bytes: what lies behind it there is written, too,
    and nothing else."""
    whole = np.full((32, 64), 9, np.float32)
    text = (
        STORE if op == "store" else STORE.replace("cp.", "cp.reduce.").replace("cta.", "cta.add.")
    )
    store_tile(whole[:, :5], np.full((8, 16), 4, np.float32), (0, 0), 0, op=text, around=whole)
    want = np.full((32, 64), 9, np.float32)
    want[:8, :8] = 4 if op == "store" else 13
    assert (whole == want).all()


def test_a_write_past_the_array_is_found() -> None:
    whole = np.full((32, 64), 9, np.float32)
    with pytest.raises(HazardError, match="whole 16-byte units"):
        store_tile(whole[:, :61], np.zeros((8, 16), np.float32), (24, 48), 0)


@pytest.mark.parametrize("x", [1, 2, 7, -3])
def test_a_box_starts_at_16_bytes(x: int) -> None:
    array, box = np.zeros((32, 64), np.float32), np.zeros((8, 32), np.float32)
    for copy in (
        lambda: load_tile(array, (0, x), box.shape),
        lambda: store_tile(array, box, (0, x), 0),
    ):
        with pytest.raises(HazardError, match="bytes into a row") as caught:
            copy()
        assert caught.value.findings[0].code == "tma-coordinate"


def test_a_prefetch_starts_at_16_bytes() -> None:
    memory = GlobalMemory()
    body = """mov.b64 %rd1, t; cvta.param.u64 %rd1, %rd1;
    cp.async.bulk.prefetch.tensor.2d.L2.global [%rd1, {4, 0}];
    cp.async.bulk.prefetch.tensor.2d.L2.global [%rd1, {6, 0}];"""
    with pytest.raises(HazardError, match=r"\(6, 0\): 24 bytes into a row"):
        Machine().launch(module(body, [MAP.format("t")]), grid=Dim3(1), block=Dim3(32),
                         params={"t": tensor_map(memory, np.zeros((32, 64), np.float32), (8, 32))},
                         memory=memory)  # fmt: skip


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
    mbarrier.init.shared::cta.b64 [%r2], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 %rd3, [%r2], 256;
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
