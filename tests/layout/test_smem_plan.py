"""The shared-memory plan: placement, the printed sum, and what is refused."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxgen.errors import ConfigError
from ptxgen.isa.arch import SMEM_PER_CTA_BYTES
from ptxgen.layout.smem_plan import Buffer, SmemPlan

pytestmark = pytest.mark.unit


def gemm_plan(stages: int) -> SmemPlan:
    """A 128x256x64 bf16 GEMM with a 64-column output slab."""
    return SmemPlan.of(
        Buffer(name="A", bytes=16_384, align=1024, count=stages),
        Buffer(name="B", bytes=32_768, align=1024, count=stages),
        Buffer(name="D slab", bytes=16_384, align=1024),
        Buffer(name="barriers", bytes=16, align=8, count=stages, note="full, empty"),
    )


def test_offsets_total_and_breakdown() -> None:
    plan = gemm_plan(5)
    assert plan.offset("A") == 0
    assert plan.offset("A", 4) == 4 * 16_384
    assert plan.offset("B") == 5 * 16_384
    assert plan.offset("barriers", 1) - plan.offset("barriers") == 16
    assert plan.total == 262_224
    assert plan.breakdown() == "5 x (A 16,384 + B 32,768) + D slab 16,384 + 5 x 16 barriers"


def test_fits_is_inclusive() -> None:
    assert gemm_plan(4).fits()
    assert not gemm_plan(5).fits()
    full = SmemPlan.of(Buffer(name="all", bytes=SMEM_PER_CTA_BYTES))
    assert full.fits()
    assert not SmemPlan.of(Buffer(name="all", bytes=SMEM_PER_CTA_BYTES + 1)).fits()


def test_a_plan_that_does_not_fit_says_why() -> None:
    (violation,) = gemm_plan(5).violations(field="stages", got="5", fix="use stages<=4")
    text = str(violation)
    assert text.startswith("stages=5  needs 262,224 B of shared memory, the limit is 232,448 B")
    assert "5 x (A 16,384 + B 32,768)" in text
    assert text.endswith("use stages<=4")
    assert gemm_plan(4).violations(field="stages", got="4") == ()


def test_stages_of_an_odd_size_are_padded_and_the_sum_says_so() -> None:
    # 3 x 4 f32 = 48 B a stage: TMA needs 128-byte alignment for each
    plan = SmemPlan.of(
        Buffer(name="bias", bytes=48, align=128, count=3), Buffer(name="bar", bytes=8, align=8)
    )
    assert [plan.offset("bias", i) for i in range(3)] == [0, 128, 256]
    assert plan.total == 256 + 48 + 8
    assert plan.breakdown() == "3 x 48 bias + bar 8 + padding 160"


def test_str_is_a_table_of_hex_offsets() -> None:
    lines = str(gemm_plan(4)).splitlines()
    assert lines[0].split() == ["offset", "region", "bytes", "count", "total", "align"]
    assert lines[2].split() == ["0x10000", "65,536", "B", "32,768", "4", "131,072", "1024"]
    assert lines[-1].split() == ["0x34040", "213,056", "end"]
    assert lines[4].endswith("full, empty")


@pytest.mark.parametrize(
    ("buffers", "words"),
    [
        ([Buffer(name="A", bytes=1), Buffer(name="A", bytes=1)], "A=twice"),
        ([Buffer(name="A", bytes=-1)], "must not be negative"),
        ([Buffer(name="A", bytes=1, align=24)], "power of two"),
        ([Buffer(name="A", bytes=1, align=2048)], "up to 1024"),  # the base has 1024
        ([Buffer(name="A", bytes=1, align=0)], "power of two"),
    ],
)
def test_impossible_buffers(buffers: list[Buffer], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        SmemPlan.of(*buffers)


def test_unknown_names_and_indices() -> None:
    plan = gemm_plan(2)
    with pytest.raises(KeyError, match="regions: A, B, D slab, barriers"):
        plan.offset("C")
    with pytest.raises(IndexError, match=r"A\[2\]: the region has 2 items"):
        plan.offset("A", 2)


def test_an_empty_plan() -> None:
    assert SmemPlan.of().total == 0
    assert SmemPlan.of().breakdown() == "0"
    # A role that is switched off keeps its name and takes nothing, not even alignment.
    plan = SmemPlan.of(Buffer(name="bar", bytes=8), Buffer(name="D", bytes=64, align=1024, count=0))
    assert plan.total == 8


BUFFERS = st.lists(
    st.tuples(
        st.integers(0, 5000), st.sampled_from([1, 8, 16, 128, 256, 512, 1024]), st.integers(0, 5)
    ),
    max_size=6,
)


@given(BUFFERS)
def test_items_are_aligned_and_never_overlap(wishes: list[tuple[int, int, int]]) -> None:
    plan = SmemPlan.of(
        *(Buffer(name=f"b{i}", bytes=b, align=a, count=c) for i, (b, a, c) in enumerate(wishes))
    )
    spans = []
    for region in plan:
        for i in range(region.count):
            start = plan.offset(region.name, i)
            assert start % region.align == 0
            if region.bytes:
                spans.append((start, start + region.bytes))
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert plan.total == max((end for _, end in spans), default=0)
    assert plan.total == sum(r.bytes * r.count for r in plan) + plan.padding
