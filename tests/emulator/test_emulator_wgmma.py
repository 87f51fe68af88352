"""wgmma against definitions written here in NumPy, and a GEMM of TMA and wgmma."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from emulate import BF16, SMEM, module, run, swizzled, tensor_map, u32

from ptxgen.errors import HazardError
from ptxgen.spec import Dim3
from runtime.emulator.machine import Machine
from runtime.emulator.memory import GlobalMemory

pytestmark = pytest.mark.emu

PTX = Path(__file__).parent.parent / "emulator_ptx"
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
    zero = (
        "".join(f"mov.b32 acc{i}, {initial};" for i in range(count)) if initial is not None else ""
    )
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
    ("trans", "n"),
    [((0, 0), 64), ((0, 0), 8), ((0, 0), 256), ((1, 0), 64), ((0, 1), 128), ((1, 1), 64)],
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
        ("add.u64 %desc_a, %desc_a, 2;",
         "and.b32 %lo, %thread, 96; cvt.u64.u32 %high, %lo; add.u64 %desc_a, %desc_a, %high;",
         "wgmma-mismatch"),
        ("cvt.u64.u32 %desc_a, %lo;", "add.u32 %lo, %lo, 16; cvt.u64.u32 %desc_a, %lo;",
         "descriptor"),
        ("[%row], [%map_b", "[%base], [%map_b", "uninitialised-memory"),
        ("wgmma.fence.sync.aligned;",
         "and.b32 %lo, %thread, 31; setp.lt.u32 %p, %lo, 16; @%p wgmma.fence.sync.aligned;",
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
