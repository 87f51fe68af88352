"""The swizzle: a permutation of 16-byte chunks, the same for TMA, wgmma and the epilogue."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxgen.errors import ConfigError
from ptxgen.layout.swizzle import SWIZZLES, Swizzle, largest_swizzle

pytestmark = pytest.mark.unit

SPANS = (0, 32, 64, 128)
SMEM_ADDRESS = st.integers(0, 2**18 - 1)  # what a descriptor can reach


def by_bits(span: int, address: int) -> int:
    """The PTX ISA, bit by bit: bits 4.. are XOR-ed with bits 7.., log2(span / 16) of them."""
    for i in range({0: 0, 32: 1, 64: 2, 128: 3}[span]):
        address ^= (address >> (7 + i) & 1) << (4 + i)
    return address


@given(span=st.sampled_from(SPANS), address=SMEM_ADDRESS)
def test_apply_moves_the_bits_that_the_isa_names(span: int, address: int) -> None:
    assert SWIZZLES[span].apply(address) == by_bits(span, address)


@given(span=st.sampled_from(SPANS), address=SMEM_ADDRESS)
def test_apply_is_an_involution_and_stays_within_its_chunk_row(span: int, address: int) -> None:
    swizzle = SWIZZLES[span]
    moved = swizzle.apply(address)
    assert swizzle.apply(moved) == address
    assert moved % 16 == address % 16
    assert moved // swizzle.row_bytes == address // swizzle.row_bytes


@pytest.mark.parametrize("span", SPANS)
def test_apply_is_a_bijection_of_every_atom(span: int) -> None:
    # 4 atoms from an atom boundary that is not 0, so that higher address bits take part.
    swizzle = SWIZZLES[span]
    start = 5 * swizzle.atom_bytes
    addresses = np.arange(start, start + 4 * swizzle.atom_bytes)
    moved = swizzle.apply(addresses)
    assert np.array_equal(np.sort(moved), addresses)
    assert np.array_equal(moved // swizzle.atom_bytes, addresses // swizzle.atom_bytes)


@pytest.mark.parametrize("span", SPANS)
def test_arrays_and_ints_agree(span: int) -> None:
    swizzle = SWIZZLES[span]
    addresses = np.arange(0, 2048).reshape(4, 512)
    scalar = np.array([swizzle.apply(int(a)) for a in addresses.ravel()]).reshape(4, 512)
    assert np.array_equal(swizzle.apply(addresses), scalar)


@pytest.mark.parametrize("span", SPANS[1:])
def test_row_form_equals_address_form(span: int) -> None:
    """What an epilogue computes from (row, chunk) is what TMA computes from the address."""
    swizzle = SWIZZLES[span]
    row, chunk = np.meshgrid(np.arange(64), np.arange(span // 16), indexing="ij")
    moved = chunk ^ (row >> swizzle.row_shift & swizzle.chunk_mask)
    assert np.array_equal(swizzle.apply(row * span + chunk * 16), row * span + moved * 16)


def test_a_column_of_chunks_falls_into_all_banks() -> None:
    """The purpose: eight rows of one column use each of the eight 16-byte bank groups once."""
    moved = SWIZZLES[128].apply(np.arange(8) * 128)
    assert sorted(moved % 128 // 16) == list(range(8))


@pytest.mark.parametrize(
    ("span", "atom", "mask", "shift", "desc", "code", "name"),
    [
        (0, 128, 0, 0, 0, 0, "none"),
        (32, 256, 1, 2, 3, 1, "32B"),
        (64, 512, 3, 1, 2, 2, "64B"),
        (128, 1024, 7, 0, 1, 3, "128B"),
    ],
)
def test_codes(
    span: int, atom: int, mask: int, shift: int, desc: int, code: int, name: str
) -> None:
    """wgmma and the tensor map number the modes in opposite order."""
    swizzle = Swizzle(span)
    assert (swizzle.atom_bytes, swizzle.chunk_mask, swizzle.row_shift) == (atom, mask, shift)
    assert (swizzle.desc_layout, swizzle.map_code, str(swizzle)) == (desc, code, name)
    assert Swizzle.from_desc_layout(desc) == Swizzle.from_map_code(code) == SWIZZLES[span]


@pytest.mark.parametrize(
    ("row_bytes", "span"),
    # multiples of each span, the values between, and rows that no span divides
    [
        (512, 128), (128, 128), (192, 64), (64, 64), (96, 32), (32, 32), (160, 32),
        (16, 0), (48, 0), (0, 0), (8, 0), (130, 0),
    ],
)  # fmt: skip
def test_largest_swizzle(row_bytes: int, span: int) -> None:
    assert largest_swizzle(row_bytes).span == span


def test_unknown_span_names_the_legal_ones() -> None:
    with pytest.raises(ConfigError, match=r"swizzle=16 .*0, 32, 64 or 128"):
        Swizzle(16)
