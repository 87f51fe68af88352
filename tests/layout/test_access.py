"""Sectors, bank conflicts and wavefronts of a warp's addresses."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxgen.errors import ConfigError
from ptxgen.layout.access import access, bank_conflict, sectors, warp_access
from ptxgen.spec import Dim3

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("stride", "count"),
    # bytes between lanes that read 4 bytes: contiguous, every other, a sector each, a row each
    [(4, 4), (8, 8), (32, 32), (4096, 32), (0, 1)],
)
def test_sectors_of_a_strided_load(stride: int, count: int) -> None:
    assert sectors([lane * stride for lane in range(32)]) == count


def test_one_line_when_contiguous_32_when_a_row_apart() -> None:
    """32 threads on 128 contiguous bytes are one transfer; one row apart they are 32."""
    assert access("lane").warps[0].lines == 1
    assert access("lane*1024").warps[0].lines == 32


@pytest.mark.parametrize(
    ("stride", "ways"),
    # words between lanes; the conflict is gcd(stride, 32), 0 is a broadcast
    [(0, 1), (1, 1), (2, 2), (3, 1), (4, 4), (8, 8), (16, 16), (32, 32), (33, 1), (48, 16)],
)
def test_bank_conflict_of_a_stride(stride: int, ways: int) -> None:
    assert bank_conflict([4 * lane * stride for lane in range(32)]) == ways


@pytest.mark.parametrize(("width", "phases"), [(1, 1), (2, 1), (4, 1), (8, 2), (16, 4)])
def test_contiguous_accesses_have_no_excess(width: int, phases: int) -> None:
    warp = access("lane", width=width).warps[0]
    assert (warp.phases, len(warp.wavefronts), warp.ways, warp.excess) == (phases, phases, 1, 0)
    assert warp.sectors == width  # 32 lanes x width bytes / 32
    assert warp.sector_efficiency == 1


def test_bytes_of_one_word_share_it() -> None:
    assert access("lane", width=1).warps[0].wavefronts[0].banks[0] == (0, 1, 2, 3)


@pytest.mark.parametrize(("swizzle", "ways"), [(0, 8), (128, 1)])
def test_the_swizzle_spreads_a_column_over_the_banks(swizzle: int, ways: int) -> None:
    """Eight rows of 128 bytes, one 16-byte chunk of each: what ldmatrix and wgmma read."""
    assert access("lane*8", width=16, swizzle=swizzle).warps[0].ways == ways


def test_padding_by_one_removes_the_conflict_of_a_transpose() -> None:
    assert access("tid*32").warps[0].ways == 32
    assert access("tid*33").warps[0].ways == 1


def test_a_tiled_product_loads_without_waste() -> None:
    """32 x 32 tile of f32: loads coalesce, A is a broadcast, B has one bank a lane."""
    block = Dim3(32, 32)
    load = access("ty*N + tx", block=block, constants={"N": 4096})
    a = access("ty*32 + k", block=block, constants={"k": 5})
    b = access("k*32 + tx", block=block, constants={"k": 5})
    assert {(w.sectors, w.lines) for w in load.warps} == {(4, 1)}
    assert {(w.bytes, w.ways) for w in a.warps} == {(4, 1)}
    assert {w.ways for w in b.warps} == {1}
    assert len(load.warps) == 32


def test_threads_are_counted_x_first() -> None:
    """warp = 32 threads by linear index tx + ty bdx + tz bdx bdy."""
    pattern = access("tx + 100*ty + 10000*tz", block=Dim3(8, 4, 2))
    assert [a.index for a in pattern.warps[0].lanes[:9]] == [0, 1, 2, 3, 4, 5, 6, 7, 100]
    assert pattern.warps[1].lanes[0].index == 10_000


def test_a_short_last_warp() -> None:
    pattern = access("tid", block=Dim3(40), width=16)
    assert [len(w.lanes) for w in pattern.warps] == [32, 8]
    assert [w.phases for w in pattern.warps] == [4, 1]


@given(st.integers(0, 2**32), st.sampled_from([4, 8, 16]))
def test_wavefronts_against_a_plain_count(seed: int, width: int) -> None:
    """A phase takes as many passes as its busiest bank has different words."""
    rng = random.Random(seed)
    addresses = [width * rng.randrange(256) for _ in range(32)]
    lanes = 128 // width if width > 4 else 32
    passes = 0
    for first in range(0, 32, lanes):
        words = {a // 4 + i for a in addresses[first : first + lanes] for i in range(width // 4)}
        passes += max(sum(w % 32 == bank for w in words) for bank in range(32))
    warp = warp_access(addresses, width)
    assert len(warp.wavefronts) == passes
    served = [lane for wave in warp.wavefronts for ls in wave.banks.values() for lane in ls]
    assert sorted(served) == sorted(list(range(32)) * (width // 4))


def test_base_address_counts() -> None:
    assert access("lane", base=16).warps[0].sectors == 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: access("lane", width=3), "must be one of 1, 2, 4, 8, 16"),
        (lambda: access("lane - 1"), "address of lane 0=negative"),
        (lambda: access("lane", base=2), "must be a multiple of 4 B"),
        (lambda: access("lane", block=Dim3(2048)), r"must be 1\.\.1024"),
        (lambda: access("lane", constants={"tid": 1}), "already names a thread's place"),
        (lambda: access("lane", swizzle=48), "must be 0, 32, 64 or 128"),
        (lambda: warp_access([], 4), r"must be 1\.\.32"),
        (lambda: warp_access(range(0, 132, 4), 4), r"must be 1\.\.32"),
    ],
)
def test_refusals(call: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        call()  # type: ignore[operator]


def test_the_drawing_says_what_the_numbers_say() -> None:
    text = access("tid*2").text()
    assert "2-way  <- bank conflict" in text
    assert "2 wavefronts over 32 banks" in text
    assert "8 sectors in 2 lines, 50% of the moved bytes used" in text
    assert access("tid*32").text().count("pass ") == 16  # the other 16 are only counted
    assert "16 more wavefronts" in access("tid*32").text()
    data = access("tid*2").to_dict()
    assert data["warps"][0]["conflict_ways"] == 2  # type: ignore[index]
