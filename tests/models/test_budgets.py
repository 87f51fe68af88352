"""Register budgets, stages and shared-memory maps of published kernels."""

import pytest

from ptxgen.errors import ConfigError
from ptxgen.models.register_budget import register_budget
from ptxgen.models.registers import register_pool
from ptxgen.models.stages import smem_map, stage_capacity

pytestmark = pytest.mark.unit


def test_attention_with_256_keys_leaves_little() -> None:
    """S[64, 256] takes 128, O[64, 128] 64: 192 of 255, with P, statistics and addresses to come."""
    budget = register_budget(accumulators="S=64x256,O=64x128", other=0, limit=255)
    assert [item.registers for item in budget.held] == [128, 64]
    assert (budget.total, budget.spare) == (192, 63)
    full = register_budget(accumulators="S=64x256,O=64x128", fragments="P=64x256", limit=240)
    assert not full.fits
    assert "42 too many" in str(full)


def test_attention_with_176_keys() -> None:
    """The choice of FlashAttention-3 at head size 128: 88 + 64, and P as fragments."""
    budget = register_budget(accumulators="S=64x176,O=64x128", fragments="P=64x176")
    assert [item.registers for item in budget.held] == [88, 64, 44]
    assert budget.fits


def test_a_multi_head_ffn_fills_160() -> None:
    """O 64, Q as fragments 32, two products of 32 each: 160, all that three consumers get."""
    budget = register_budget(
        accumulators="O=64x128,M=64x64,N=64x64", fragments="Q=64x128", other=0, limit=160
    )
    assert budget.total == 160
    assert budget.fits


def test_128_threads_hold_what_would_swamp_32() -> None:
    assert register_budget(accumulators="64x64", other=0).tiles == 32
    assert register_budget(accumulators="64x64", other=0, threads=32).tiles == 128


def test_spare_registers_as_columns() -> None:
    budget = register_budget(accumulators="64x128", other=0, limit=128)
    assert (budget.spare, budget.spare_n) == (64, 128)
    more = register_budget(accumulators="64x128,64x128", other=0, limit=128)
    assert more.spare == 0


@pytest.mark.parametrize("text", ["64", "64x", "S:64x64", "x64"])
def test_tiles_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ConfigError, match="must be NAME=ROWSxCOLUMNS"):
        register_budget(accumulators=text)


# -- the pool --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("consumers", "producer", "consumer", "sum_of_8s"),
    # 128 x the sum must not exceed 65,536: 40 + 2 x 232, 24 + 2 x 240, 32 + 3 x 160
    [(2, 40, 232, 504), (2, 24, 240, 504), (3, 32, 160, 512)],
)
def test_published_splits(consumers: int, producer: int, consumer: int, sum_of_8s: int) -> None:
    pool = register_pool(
        consumers=consumers, producer_registers=producer, consumer_registers=consumer
    )
    assert pool.demand == 128 * sum_of_8s <= 65_536
    assert pool.violations() == ()
    assert pool.headline()["legal"] == "yes"


def test_a_split_that_would_hang_is_named() -> None:
    pool = register_pool(consumers=2, producer_registers=40, consumer_registers=240)
    assert pool.headline()["legal"] == "no"
    assert "setmaxnreg.inc would wait for ever" in str(pool)


def test_defaults_are_an_exact_split() -> None:
    assert register_pool(consumers=3).demand == 65_536


def test_more_threads_than_an_sm_holds() -> None:
    with pytest.raises(ConfigError, match="threads x min_ctas"):
        register_pool(consumers=7, min_ctas=4)


# -- stages and shared memory ----------------------------------------------------------------------


def test_the_ring_of_the_default_gemm() -> None:
    """128x256x64 bf16: 49,152 B a stage, four stages with a 16 KB slab, 3,072 cycles covered."""
    ring = stage_capacity(tile_m=128, tile_n=256, tile_k=64)
    assert (ring.stage_bytes, ring.most_stages, ring.smem.total) == (49_152, 4, 213_056)
    assert ring.stage_cycles == 1024
    assert ring.covered_cycles == 3072


@pytest.mark.parametrize(
    ("tile", "other", "stages"),
    # one byte decides: 14 stages of 16 KB with their barriers take 229,600 B
    [
        ((64, 64, 64), 2_848, 14), ((64, 64, 64), 2_849, 13),
        ((256, 256, 64), 0, 3), ((384, 256, 128), 0, 1),
    ],
)  # fmt: skip
def test_deepest_ring(tile: tuple[int, int, int], other: int, stages: int) -> None:
    m, n, k = tile
    ring = stage_capacity(tile_m=m, tile_n=n, tile_k=k, other=other)
    assert ring.most_stages == stages
    assert ring.fits
    deeper = stage_capacity(tile_m=m, tile_n=n, tile_k=k, other=other, stages=stages + 1)
    assert not deeper.fits


def test_fp8_halves_the_bytes_and_the_cycles() -> None:
    ring = stage_capacity(tile_m=128, tile_n=256, tile_k=64, dtype="e4m3", stages=4)
    assert (ring.stage_bytes, ring.stage_cycles) == (24_576, 512)


def test_smem_of_a_multi_head_ffn() -> None:
    """Q 3 x 16 KB, three stages of K, U and V of 16 KB, 768 B of gates: 197,376 B."""
    plan = smem_map(buffers="Q=3x16384,K=3x16384,U=3x16384,V=3x16384,R=768")
    assert plan.total == 197_376
    assert plan.free == 232_448 - 197_376
    assert "0x30000  196,608  R" in str(plan)
    assert "shared memory to scale" in plan.text()


def test_alignment_is_1024_unless_given() -> None:
    plan = smem_map(buffers="bar=8@8,tile=1024,tail=16@16").plan
    assert [region.offset for region in plan] == [0, 1024, 2048]


@pytest.mark.parametrize("text", ["A", "A=", "A=4x", "=16", "A=16@"])
def test_buffers_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ConfigError, match="must be NAME="):
        smem_map(buffers=text)
