"""wgmma operand layouts: what TMA writes is what the descriptor reads.

Two readers are compared that share no code with the layout: a TMA box writer, and a walker of
canonical layouts that knows only the decoded 64 bits (PTX ISA 9.7.15.5.1).
"""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxgen.errors import ConfigError
from ptxgen.layout.smem_desc import OperandLayout, SmemDesc, k_major, mn_major
from ptxgen.layout.swizzle import SWIZZLES

pytestmark = pytest.mark.unit

SPANS = (0, 32, 64, 128)
BASE = 0x2400  # 1024-aligned and not 0, so that a lost base shows


def xor(span: int, address: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return address ^ (address >> 3 & {0: 0, 32: 0x10, 64: 0x30, 128: 0x70}[span])


def write_boxes(layout: OperandLayout, tile: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Shared memory after TMA wrote the tile, one entry a byte: the element's number, or -1."""
    es, span = layout.dtype.bytes, layout.swizzle.span
    smem = np.full(BASE + layout.bytes + 4096, -1, dtype=np.int64)
    source = tile if layout.major == "k" else tile.T  # [rows][contiguous]
    inner = layout.box[1]
    for i in range(layout.boxes):
        box = np.ascontiguousarray(source[:, i * inner : (i + 1) * inner])
        flat = np.repeat(box.ravel(), es)
        smem[xor(span, BASE + i * layout.box_bytes + np.arange(flat.size))] = flat
    return smem


def read_wgmma(
    smem: npt.NDArray[np.int64], bits: int, *, major: str, rows: int, es: int
) -> npt.NDArray[np.int64]:
    """The [rows, 32 bytes of k] operand of one wgmma, by the canonical layouts of the PTX ISA."""
    start, lbo, sbo = ((bits >> at & 0x3FFF) << 4 for at in (0, 16, 32))
    span = {0: 0, 1: 128, 2: 64, 3: 32}[bits >> 62]
    t, w = 16 // es, max(span, 16) // 16
    mn, k = np.meshgrid(np.arange(rows), np.arange(32 // es), indexing="ij")
    if major == "k" and span:
        offset = mn // 8 * sbo + mn % 8 * 16 * w + k * es
    elif major == "k":
        offset = mn // 8 * sbo + mn % 8 * 16 + k // t * lbo + k % t * es
    elif span:
        offset = mn // (t * w) * lbo + mn % (t * w) * es + k // 8 * sbo + k % 8 * 16 * w
    else:
        offset = mn // t * sbo + mn % t * es + k // 8 * lbo + k % 8 * 16
    return smem[xor(span, start + offset)]


def layouts() -> list[OperandLayout]:
    # k of 64 and 128 bytes and more: one box and several; mn of 64 (A of one wgmma), 256 (widest B)
    # and 192 (three blocks of 64). fp8, 16-bit and 32-bit (tf32) elements.
    cases = [
        k_major(name, span, mn=mn, k=k_bytes // es)
        for name, es in (("e4m3", 1), ("bf16", 2), ("f32", 4))
        for span in SPANS
        for mn in (64, 192, 256)
        for k_bytes in (128, 256)
    ]
    return cases + [
        mn_major("bf16", span, mn=mn, k=k)
        for span in SPANS
        for mn in (64, 192, 256)
        for k in (16, 64)
    ]


@pytest.mark.parametrize("layout", layouts(), ids=lambda x: f"{x.dtype.name}-{x.major}-{x.mn}")
def test_descriptor_reads_what_tma_wrote(layout: OperandLayout) -> None:
    tile = np.arange(layout.mn * layout.k).reshape(layout.mn, layout.k)
    smem = write_boxes(layout, tile)

    # Every element is where the layout says.
    mn, k = np.meshgrid(np.arange(layout.mn), np.arange(layout.k), indexing="ij")
    assert np.array_equal(smem[layout.address(mn, k, start=BASE)], tile)

    # Every wgmma of a 64-row part finds its operand through the descriptor alone.
    for first in range(0, layout.mn, 64):
        for step in range(layout.k_steps):
            units = (BASE >> 4) + layout.mn_units(first) + layout.k_units(step)
            got = read_wgmma(
                smem,
                layout.template_bits | units,
                major=layout.major,
                rows=64,
                es=layout.dtype.bytes,
            )
            columns = slice(step * layout.wgmma_k, (step + 1) * layout.wgmma_k)
            assert np.array_equal(got, tile[first : first + 64, columns])


@pytest.mark.parametrize("layout", layouts()[::5], ids=lambda x: f"{x.dtype.name}-{x.major}")
def test_offsets_fill_the_tile_exactly(layout: OperandLayout) -> None:
    mn, k = np.meshgrid(np.arange(layout.mn), np.arange(layout.k), indexing="ij")
    offsets = np.sort(layout.offset(mn, k).ravel())
    assert np.array_equal(offsets, np.arange(0, layout.bytes, layout.dtype.bytes))


@pytest.mark.parametrize(
    ("span", "bits"),
    # Known constants: LBO field 1, SBO 8 rows of the span.
    [(128, 0x4000004000010000), (64, 0x8000002000010000), (32, 0xC000001000010000)],
)
def test_k_major_constants(span: int, bits: int) -> None:
    assert k_major("bf16", span, mn=128, k=64).template_bits == bits


def test_the_usual_advances() -> None:
    """bf16, 128-byte swizzle: +2 a wgmma inside the span, then the next box; 8 SBO for 64 rows."""
    a = k_major("bf16", 128, mn=128, k=128)
    assert [a.k_units(s) for s in range(a.k_steps)] == [0, 2, 4, 6, 1024, 1026, 1028, 1030]
    assert a.mn_units(64) == 8 * 1024 // 16
    assert a.stage_units == 128 * 128 * 2 // 16
    b = mn_major("bf16", 128, mn=128, k=64)
    assert [b.k_units(s) for s in range(b.k_steps)] == [0, 128, 256, 384]
    assert (b.lbo, b.sbo, b.mn_units(64)) == (64 * 128, 1024, 64 * 128 // 16)


def test_a_stage_starts_on_an_atom() -> None:
    # 8 rows x 32 bytes = 256 B without padding; 72 rows of 64 bytes = 4608 B = 9 atoms of 512.
    assert k_major("bf16", 32, mn=8, k=16).stage_units == 16
    assert k_major("bf16", 64, mn=72, k=32).stage_units == 4608 // 16
    # Without swizzle 8 rows x 32 bytes are two chunks of 128 bytes.
    assert k_major("bf16", 0, mn=8, k=16).stage_units == 16


def test_the_k_step_comes_from_the_buffer_not_from_the_rows_read() -> None:
    """A wgmma that reads rows 0..63 of a 128-row buffer still steps over all 128 rows to k = 64."""
    assert k_major("bf16", 128, mn=128, k=128).k_units(4) == 128 * 128 // 16
    assert k_major("bf16", 128, mn=64, k=128).k_units(4) == 64 * 128 // 16


@given(
    start=st.integers(0, 2**14 - 1),
    lbo=st.integers(0, 2**14 - 1),
    sbo=st.integers(0, 2**14 - 1),
    base_offset=st.integers(0, 7),
    span=st.sampled_from(SPANS),
)
def test_encode_and_decode_are_inverse(
    start: int, lbo: int, sbo: int, base_offset: int, span: int
) -> None:
    desc = SmemDesc(
        start=start * 16,
        lbo=lbo * 16,
        sbo=sbo * 16,
        base_offset=base_offset,
        swizzle=SWIZZLES[span],
    )
    bits = desc.encode()
    assert 0 <= bits < 2**64
    assert SmemDesc.decode(bits) == desc
    assert desc.template_bits | start == bits


def test_fields_lie_where_the_isa_says() -> None:
    bits = SmemDesc(start=0x10, lbo=0x20, sbo=0x40, base_offset=5, swizzle=SWIZZLES[64]).encode()
    assert bits == 1 | 2 << 16 | 4 << 32 | 5 << 49 | 2 << 62


@pytest.mark.parametrize("field", ["start", "lbo", "sbo"])
@pytest.mark.parametrize("value", [8, 1025, 2**18, -16])  # not 16-aligned (2), first out, below
def test_values_that_no_field_holds(field: str, value: int) -> None:
    values = {"start": 0, "lbo": 16, "sbo": 1024, field: value}
    with pytest.raises(ConfigError, match=rf"{field}={value} B .*multiple of 16"):
        SmemDesc(start=values["start"], lbo=values["lbo"], sbo=values["sbo"])


def test_the_last_representable_address() -> None:
    assert SmemDesc(start=2**18 - 16, sbo=1024).encode() & 0x3FFF == 0x3FFF


def test_base_offset_out_of_range_and_all_violations_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        SmemDesc(start=4, sbo=1028, base_offset=8)
    assert [v.field for v in error.value.violations] == ["start", "sbo", "base_offset"]


@pytest.mark.parametrize(
    ("build", "words"),
    [
        # k of 32 elements is half a 128-byte row
        (lambda: k_major("bf16", 128, mn=64, k=32), r"k=32 .*multiple of 64"),
        # one wgmma needs 16 elements of k
        (lambda: k_major("bf16", 0, mn=64, k=8), r"k=8 .*multiple of 16"),
        (lambda: k_major("bf16", 128, mn=60, k=64), r"mn=60 .*multiple of 8"),
        (lambda: k_major("bf16", 128, mn=0, k=64), r"mn=0 .*positive multiple"),
        # a warp tile of 96 cuts an atom of 64
        (lambda: mn_major("bf16", 128, mn=96, k=64), r"mn=96 .*multiple of 64"),
        (lambda: mn_major("e4m3", 128, mn=128, k=64), r"dtype=e4m3 .*16-bit"),
        (lambda: mn_major("f32", 128, mn=64, k=64), r"dtype=f32 .*16-bit"),
        (lambda: k_major("f64", 128, mn=64, k=16), r"dtype=f64"),
        (lambda: mn_major("bf16", 128, mn=192, k=64).mn_units(96), r"mn=96 .*multiple of 64"),
    ],
)
def test_cut_atoms_are_refused(build, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build()


def test_a_narrower_swizzle_admits_the_cut_tile() -> None:
    assert mn_major("bf16", 64, mn=96, k=64).boxes == 3


def test_str_shows_every_field() -> None:
    text = str(k_major("bf16", 128, mn=128, k=64))
    assert "box [128, 64]" in text
    assert "sbo 1,024 B" in text
    assert "0x4000004000010000" in text
