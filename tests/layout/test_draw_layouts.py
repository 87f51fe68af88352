"""Drawings of swizzles, fragments, descriptors and shared memory: they say what the maps say."""

import re

import numpy as np
import pytest

from ptxgen.errors import ConfigError, TensorMapError
from ptxgen.layout import fragments as f
from ptxgen.layout.draw_desc import (
    desc_remarks,
    desc_strip,
    desc_view,
    tensor_map_bytes,
    tensor_map_of_hex,
)
from ptxgen.layout.draw_fragments import NAMES, fragment
from ptxgen.layout.draw_smem import STRIP_COLUMNS, smem_grid
from ptxgen.layout.draw_swizzle import column_conflict, swizzle_grid
from ptxgen.layout.mma_fragments import mma_b, mma_b_owner
from ptxgen.layout.smem_desc import SmemDesc, k_major
from ptxgen.layout.smem_plan import Buffer, SmemPlan
from ptxgen.layout.swizzle import Swizzle
from ptxgen.layout.tensor_map import TensorMapSpec, encode
from ptxgen.view import Grid, Stack, View

pytestmark = pytest.mark.unit


def labels(view: View) -> list[list[str]]:
    assert isinstance(view, Grid)
    return [[cell.label for cell in row] for row in view.rows]


# -- swizzle ---------------------------------------------------------------------------------------


def test_the_128_byte_atom_is_the_xor_of_row_and_chunk() -> None:
    drawn = labels(swizzle_grid(128))
    assert drawn == [[f"{r}:{8 * (c ^ r)}-{8 * (c ^ r) + 7}" for c in range(8)] for r in range(8)]


@pytest.mark.parametrize(("span", "lines"), [(0, 1), (32, 2), (64, 4), (128, 8)])
@pytest.mark.parametrize(("dtype", "elements"), [("e4m3", 16), ("bf16", 8), ("f32", 4)])
def test_an_atom_holds_eight_rows_once(span: int, lines: int, dtype: str, elements: int) -> None:
    drawn = [cell for row in labels(swizzle_grid(span, dtype)) for cell in row]
    mode = Swizzle(span)
    assert len(drawn) == 8 * lines
    expected = {
        f"{r}:{first}-{first + elements - 1}"
        for r in range(8)
        for first in range(0, mode.row_bytes // (16 // elements), elements)
    }
    assert set(drawn) == expected


@pytest.mark.parametrize("span", [0, 32, 64, 128])
def test_every_swizzle_makes_its_own_columns_free(span: int) -> None:
    mode = Swizzle(span)
    assert column_conflict(mode, mode.row_bytes) == 1
    assert column_conflict(Swizzle(0), mode.row_bytes) == max(span // 16, 1)
    assert "conflict-free" in swizzle_grid(mode).text()


# -- fragments -------------------------------------------------------------------------------------


def owners(view: View) -> dict[tuple[int, int], str]:
    """(row of the drawing, cell) -> label."""
    return {(r, c): text for r, row in enumerate(labels(view)) for c, text in enumerate(row)}


@pytest.mark.parametrize("warp", [0, 3])
def test_wgmma_d_says_thread_and_registers(warp: int) -> None:
    drawn = owners(fragment("wgmma_d", n=24, warp=warp))
    for thread in range(32 * warp, 32 * warp + 32):
        for element in range(0, 12, 2):
            row, column = f.wgmma_d(thread, element)
            assert drawn[row - 16 * warp, column // 2] == f"{thread}:{element}-{element + 1}"


def test_a_whole_warpgroup() -> None:
    assert len(labels(fragment("wgmma_d", n=8, warp=None))) == 64


def test_f16_d_packs_two_elements() -> None:
    drawn = labels(fragment("wgmma_d", n=8, dtype="f16"))
    assert drawn[0] == ["0:0", "1:0", "2:0", "3:0"]
    assert drawn[8] == ["0:1", "1:1", "2:1", "3:1"]


@pytest.mark.parametrize(("dtype", "bits"), [("bf16", 16), ("e4m3", 8), ("f32", 32)])
@pytest.mark.parametrize("name", ["wgmma_a", "mma_a"])
def test_a_says_thread_and_register(name: str, dtype: str, bits: int) -> None:
    drawn = owners(fragment(name, dtype=dtype))
    side = 32 // bits
    assert len(drawn) == 16 * 8
    for lane in range(32):
        for register in range(4):
            row, k = f.wgmma_a(bits, lane, register, 0)
            assert drawn[row, k // side] == f"{lane}:{register}"


@pytest.mark.parametrize(
    ("bits", "lane", "register", "slot", "at"),
    # B of m16n8k16, k32 and k8 as the PTX ISA draws them: column = lane / 4
    [
        (16, 0, 0, 0, (0, 0)), (16, 1, 0, 1, (3, 0)), (16, 5, 1, 0, (10, 1)),
        (16, 31, 1, 1, (15, 7)),
        (8, 1, 0, 2, (6, 0)), (8, 0, 1, 0, (16, 0)), (8, 31, 1, 3, (31, 7)),
        (32, 2, 0, 0, (2, 0)), (32, 2, 1, 0, (6, 0)), (32, 31, 1, 0, (7, 7)),
    ],
)  # fmt: skip
def test_mma_b_known_places(
    bits: int, lane: int, register: int, slot: int, at: tuple[int, int]
) -> None:
    assert mma_b(bits, lane, register, slot) == at
    assert mma_b_owner(bits, *at) == (lane, register, slot)


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_mma_b_covers_the_operand_once(bits: int) -> None:
    lane, register, slot = np.meshgrid(
        np.arange(32), np.arange(2), np.arange(32 // bits), indexing="ij"
    )
    k, column = mma_b(bits, lane, register, slot)
    assert np.array_equal(np.sort((k * 8 + column).ravel()), np.arange(8 * 256 // bits))
    back = mma_b_owner(bits, k, column)
    assert all(np.array_equal(a, b) for a, b in zip(back, (lane, register, slot), strict=True))


def test_mma_c_is_one_warp_of_wgmma_d() -> None:
    assert labels(fragment("mma_c")) == labels(fragment("wgmma_d", n=8))


def test_ldmatrix_has_a_matrix_a_register() -> None:
    stack = fragment("ldmatrix")
    assert isinstance(stack, Stack)
    assert [labels(part)[7][3] for part in stack.parts] == [f"31:{j}" for j in range(4)]
    trans = fragment("ldmatrix", trans=True)
    assert isinstance(trans, Stack)
    assert labels(trans.parts[0])[2] == [f"{4 * c + 1}:0" for c in range(8)]  # row 2 in lane 4c + 1


def test_stmatrix_rows_are_addressed_by_two_lanes() -> None:
    drawn = fragment("stmatrix")
    assert isinstance(drawn, Grid)
    assert drawn.row_labels[3] == "3 <- addresses of lanes 3 and 19"
    assert labels(drawn)[8] == ["0:1", "1:1", "2:1", "3:1", "0:3", "1:3", "2:3", "3:3"]


def test_a_marked_thread() -> None:
    drawn = fragment("wgmma_d", n=64, thread=5)
    assert isinstance(drawn, Grid)
    marked = [cell for row in drawn.rows for cell in row if cell.tone == "mark"]
    assert len(marked) == 16  # 32 registers, two a cell
    assert all(cell.label.startswith("5:") for cell in marked)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "tcgen05"}, "must be one of wgmma_d, wgmma_a"),
        ({"name": "wgmma_d", "n": 12}, r"must be 8\.\.256 in steps of 8\n.*use 16"),
        ({"name": "wgmma_d", "n": 264}, "use 256"),
        ({"name": "wgmma_a", "dtype": "b1"}, "unknown dtype"),
        ({"name": "wgmma_a", "dtype": "f64"}, r"must be 8, 16 or 32"),
        ({"name": "wgmma_d", "warp": 4}, r"must be 0\.\.3"),
        ({"name": "wgmma_d", "thread": 128}, r"must be 0\.\.127"),
    ],
)
def test_fragment_refusals(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        fragment(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_every_fragment_is_drawn(name: str) -> None:
    assert "<svg" in fragment(name).html()
    assert re.search(r"\d+:\d", fragment(name).text())


# -- descriptors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bits", "swizzle", "sbo"),
    # K-major tiles of each swizzle with tight strides, as kernels use them
    [
        (0x4000004000010000, "128B", "1,024 B"),
        (0x8000002000010000, "64B", "512 B"),
        (0xC000001000010000, "32B", "256 B"),
    ],
)
def test_descriptor_constants(bits: int, swizzle: str, sbo: str) -> None:
    text = desc_view(bits).text()
    assert re.search(rf"63-62 +layout +0x[123] +{swizzle} ", text)
    assert re.search(rf"45-32 +sbo +0x\w+ +{sbo} ", text)
    assert desc_remarks(bits) == []


def test_the_strip_covers_64_bits_once() -> None:
    strip = desc_strip(k_major("bf16", 128, mn=64, k=64).desc.encode())
    bits = []
    for label in strip.column_labels:
        high, _, low = label.partition("-")
        bits += list(range(int(high), int(low or high) - 1, -1))
    assert bits == list(range(63, -1, -1))


@pytest.mark.parametrize(
    ("bits", "remark"),
    [
        (0x4000004000010002, "start is 32 B into a 1024 B atom"),
        (0x4000004000014000 | 1 << 14, "bit 14 set outside every field"),
        (0x4000404000010000, "version in tcgen05 descriptors"),
        (0x4002004000010000, "the swizzle pattern itself starts off"),
        (0x4000008000010000, "sbo is not the tight 1,024 B"),
    ],
)
def test_what_looks_wrong_is_said(bits: int, remark: str) -> None:
    assert any(remark in text for text in desc_remarks(bits))


@pytest.mark.parametrize("bits", [-1, 1 << 64])
def test_a_number_that_is_no_descriptor(bits: int) -> None:
    with pytest.raises(ConfigError, match=r"must be 0 \.\. 2\^64 - 1"):
        desc_view(bits)


def test_a_descriptor_shows_itself_in_a_notebook() -> None:
    desc = SmemDesc(sbo=1024)
    assert "<svg" in desc._repr_mimebundle_()["text/html"]
    assert str(desc).startswith("0x4000004000010000: start")


# -- tensor maps -----------------------------------------------------------------------------------

SPEC = TensorMapSpec(
    dtype="bf16", address=0x7F0000001000, shape=(300, 520), strides=(1040, 2), box=(128, 64),
    swizzle=128, l2=128,
)  # fmt: skip


def test_tensor_map_from_hex() -> None:
    data = encode(SPEC)
    spaced = " ".join(f"0x{byte:02x}," for byte in data)
    for text in (
        data.hex(),
        data.hex().upper(),
        spaced,
        "\n".join(re.findall("." * 32, data.hex())),
    ):
        assert tensor_map_bytes(text) == data
    text = tensor_map_of_hex(data.hex()).view().text()
    assert "BFLOAT16 at 0x7f0000001000" in text
    assert re.search(r"0 +1 +300 +1,040 +128 +1", text)
    assert re.search(r"box bytes +16,384", text)


@pytest.mark.parametrize(
    ("text", "got"),
    [("00" * 127, "254 digits"), ("zz" * 128, "256 digits with 'z'"), ("", "0 digits")],
)
def test_what_is_not_hex_of_a_map(text: str, got: str) -> None:
    with pytest.raises(ConfigError, match=got):
        tensor_map_bytes(text)


def test_bytes_of_something_else() -> None:
    with pytest.raises(TensorMapError, match="not a tiled tensor map"):
        tensor_map_of_hex("ff" * 128)


# -- shared memory ---------------------------------------------------------------------------------


def test_smem_strip_is_to_scale() -> None:
    plan = SmemPlan.of(
        Buffer(name="A", bytes=16_384, align=1024, count=4),
        Buffer(name="B", bytes=32_768, align=1024, count=4),
        Buffer(name="full", bytes=8, align=8, count=4),
    )
    (row,) = smem_grid(plan).rows
    spans = {cell.label: cell.span for cell in row}
    assert sum(cell.span for cell in row) == STRIP_COLUMNS
    assert all(abs(spans[f"A{i}"] - 16_384 / 232_448 * STRIP_COLUMNS) <= 1 for i in range(4))
    assert "full0" not in spans  # too small to see; the table has it
    assert "35,808 B free" in smem_grid(plan).title
    assert "full" in plan.text()


def test_a_plan_that_does_not_fit_says_so() -> None:
    grid = smem_grid(SmemPlan.of(Buffer(name="A", bytes=300_000)))
    assert "67,552 B more than the limit" in grid.title
