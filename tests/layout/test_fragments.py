"""Register fragments: bijections with the right inverse, and the values that the PTX ISA prints."""

import numpy as np
import pytest

from ptxgen.errors import ConfigError
from ptxgen.layout import fragments as f

pytestmark = pytest.mark.unit

THREADS = np.arange(128)
NS = (8, 16, 24, 136, 256)  # least, one slice, odd multiple of 8, past 128, most


@pytest.mark.parametrize("n", NS)
def test_wgmma_d_covers_the_tile_once(n: int) -> None:
    thread, element = np.meshgrid(THREADS, np.arange(n // 2), indexing="ij")
    row, column = f.wgmma_d(thread, element)
    assert np.array_equal(np.sort((row * n + column).ravel()), np.arange(64 * n))
    owner = f.wgmma_d_owner(row, column)
    assert np.array_equal(owner[0], thread)
    assert np.array_equal(owner[1], element)


@pytest.mark.parametrize("n", NS)
def test_wgmma_d_f16_covers_the_tile_once(n: int) -> None:
    thread, register, half = np.meshgrid(THREADS, np.arange(n // 4), np.arange(2), indexing="ij")
    row, column = f.wgmma_d_f16(thread, register, half)
    assert np.array_equal(np.sort((row * n + column).ravel()), np.arange(64 * n))
    owner = f.wgmma_d_f16_owner(row, column)
    assert all(np.array_equal(a, b) for a, b in zip(owner, (thread, register, half), strict=True))


@pytest.mark.parametrize(("bits", "k"), [(8, 32), (16, 16), (32, 8)])
def test_wgmma_a_covers_the_operand_once(bits: int, k: int) -> None:
    thread, register, slot = np.meshgrid(
        THREADS, np.arange(4), np.arange(32 // bits), indexing="ij"
    )
    row, column = f.wgmma_a(bits, thread, register, slot)
    assert np.array_equal(np.sort((row * k + column).ravel()), np.arange(64 * k))
    owner = f.wgmma_a_owner(bits, row, column)
    assert all(np.array_equal(a, b) for a, b in zip(owner, (thread, register, slot), strict=True))


@pytest.mark.parametrize(
    ("thread", "element", "at"),
    # Figure "WGMMA .m64nNk16 register fragment layout for accumulator matrix D".
    [
        (0, 0, (0, 0)), (0, 1, (0, 1)), (0, 2, (8, 0)), (0, 4, (0, 8)), (3, 1, (0, 7)),
        (4, 0, (1, 0)), (31, 3, (15, 7)), (32, 0, (16, 0)), (127, 127, (63, 255)),
    ],
)  # fmt: skip
def test_wgmma_d_known_places(thread: int, element: int, at: tuple[int, int]) -> None:
    assert f.wgmma_d(thread, element) == at
    assert f.wgmma_d_owner(*at) == (thread, element)


@pytest.mark.parametrize(
    ("bits", "thread", "register", "slot", "at"),
    [
        (16, 0, 0, 0, (0, 0)), (16, 1, 0, 1, (0, 3)), (16, 0, 1, 0, (8, 0)), (16, 0, 2, 0, (0, 8)),
        (16, 127, 3, 1, (63, 15)), (8, 0, 0, 3, (0, 3)), (8, 1, 2, 0, (0, 20)),
        (8, 35, 3, 3, (24, 31)), (32, 2, 2, 0, (0, 6)), (32, 33, 1, 0, (24, 1)),
    ],
)  # fmt: skip
def test_wgmma_a_known_places(
    bits: int, thread: int, register: int, slot: int, at: tuple[int, int]
) -> None:
    assert f.wgmma_a(bits, thread, register, slot) == at


@pytest.mark.parametrize("trans", [False, True])
def test_ldmatrix_covers_a_matrix_once(trans: bool) -> None:
    lane, half = np.meshgrid(np.arange(32), np.arange(2), indexing="ij")
    row, column = f.ldmatrix(lane, half, trans=trans)
    assert np.array_equal(np.sort((row * 8 + column).ravel()), np.arange(64))
    owner = f.ldmatrix_owner(row, column, trans=trans)
    assert np.array_equal(owner[0], lane)
    assert np.array_equal(owner[1], half)


def test_ldmatrix_known_places() -> None:
    assert f.ldmatrix(5, 1) == (1, 3)  # lane 5: row 1, columns 2 and 3
    assert f.ldmatrix(5, 1, trans=True) == (3, 1)
    assert f.ldmatrix_address(11) == (1, 3)  # lane 11 addresses row 3 of matrix 1


def test_two_d_slices_are_the_next_a_operand() -> None:
    """The pairs that `d_to_a_registers` packs are the elements that A wants (P in attention)."""
    for slice16 in (0, 3, 15):
        for register, pair in enumerate(f.d_to_a_registers(slice16)):
            for slot, element in enumerate(pair):
                row, column = f.wgmma_d(THREADS, np.int64(element))
                a_row, a_k = f.wgmma_a(16, THREADS, np.int64(register), np.int64(slot))
                assert np.array_equal(row, a_row)
                assert np.array_equal(column - 16 * slice16, a_k)


@pytest.mark.parametrize("warp", range(4))
def test_stmatrix_x4_writes_d_where_it_belongs(warp: int) -> None:
    """Simulates stmatrix.x4: matrix j goes, row by row, to the addresses of lanes 8j..8j+7."""
    slice16 = 2
    out = np.full((16, 16), -1)
    for register, pair in enumerate(f.d_to_a_registers(slice16)):
        for lane in range(32):
            for half, element in enumerate(pair):
                matrix_row, matrix_column = f.ldmatrix(lane, half)
                row, column = f.stmatrix_d(8 * register + matrix_row)
                d_row, d_column = f.wgmma_d(32 * warp + lane, element)
                out[row, column + matrix_column] = d_row * 256 + d_column
    rows, columns = np.meshgrid(np.arange(16), np.arange(16), indexing="ij")
    assert np.array_equal(out, (16 * warp + rows) * 256 + 16 * slice16 + columns)


def test_unknown_width() -> None:
    with pytest.raises(ConfigError, match=r"bits=64 .*8, 16 or 32"):
        f.wgmma_a(64, 0, 0, 0)
