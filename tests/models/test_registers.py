"""The register pool: entry counts, the split between roles, and what would hang."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxgen.errors import ConfigError
from ptxgen.models.registers import (
    RegisterPool,
    Role,
    accumulator_registers,
    entry_registers,
    producer_consumer,
    split,
)

pytestmark = pytest.mark.unit


def pool(consumers: int, producer: int, consumer: int, **more: int) -> RegisterPool:
    return producer_consumer(
        consumers=consumers, producer_registers=producer, consumer_registers=consumer, **more
    )


@pytest.mark.parametrize(
    ("threads", "min_ctas", "smallest_inc", "registers"),
    # Counts that ptxas 13.0 chooses; 320 and 416 are not whole warpgroups and round up.
    [
        (128, 1, None, 255), (256, 1, None, 255), (320, 1, None, 168), (384, 1, None, 168),
        (416, 1, None, 128), (512, 1, None, 128), (640, 1, None, 96), (768, 1, None, 80),
        (1024, 1, None, 64), (256, 2, None, 128), (384, 3, None, 56),
        (256, 1, 256, 255), (256, 1, 240, 240), (256, 1, 32, 32), (384, 1, 232, 168),
    ],
)  # fmt: skip
def test_entry_registers(
    threads: int, min_ctas: int, smallest_inc: int | None, registers: int
) -> None:
    assert entry_registers(threads, min_ctas, smallest_inc) == registers


@pytest.mark.parametrize(("threads", "min_ctas"), [(0, 1), (1025, 1), (128, 0)])
def test_entry_registers_of_no_cta(threads: int, min_ctas: int) -> None:
    with pytest.raises(ConfigError, match=r"must be 1\.\.1024 threads"):
        entry_registers(threads, min_ctas)


@pytest.mark.parametrize(
    ("rows", "n", "bits", "registers"),
    [(64, 256, 32, 128), (64, 8, 32, 4), (128, 256, 32, 256), (64, 256, 16, 64), (64, 24, 16, 6)],
)
def test_accumulator_registers(rows: int, n: int, bits: int, registers: int) -> None:
    assert accumulator_registers(rows, n, bits) == registers


@pytest.mark.parametrize(
    ("consumers", "expected"),
    [(1, (40, 240)), (2, (40, 232)), (3, (32, 160)), (4, (32, 112)), (5, (40, 88)), (7, (64, 64))],
)
def test_split(consumers: int, expected: tuple[int, int]) -> None:
    assert split(consumers) == expected


@pytest.mark.parametrize("min_ctas", [1, 2])
@pytest.mark.parametrize("consumers", range(1, 8))
def test_every_split_is_legal_and_exact(consumers: int, min_ctas: int) -> None:
    if (consumers + 1) * 128 * min_ctas > 2048:
        pytest.skip("more threads than an SM holds")
    chosen = pool(consumers, *split(consumers, min_ctas=min_ctas), min_ctas=min_ctas)
    assert chosen.violations() == ()
    assert chosen.notes() == ()
    if consumers > 1 or min_ctas > 1:
        assert chosen.demand == chosen.supply


def test_the_shipped_sets_are_exact() -> None:
    for producer, consumer in ((40, 232), (24, 240)):
        chosen = pool(2, producer, consumer)
        assert (chosen.entry, chosen.demand, chosen.supply) == (168, 64_512, 64_512)
        assert chosen.violations() == chosen.notes() == ()


@pytest.mark.parametrize(
    ("consumers", "producer", "consumer", "min_ctas", "fix"),
    [
        (2, 24, 248, 1, 240),  # one step past the pool of 384 threads
        (3, 24, 240, 1, 160),  # the two-consumer set with three consumers
        (1, 24, 240, 2, 232),  # two CTAs an SM halve the entry count
    ],
)
def test_oversubscription_is_an_error_with_the_numbers(
    consumers: int, producer: int, consumer: int, min_ctas: int, fix: int
) -> None:
    bad = pool(consumers, producer, consumer, min_ctas=min_ctas)
    (violation,) = bad.violations()
    assert violation.field == "consumer_registers"
    assert f"{bad.demand:,}" in violation.why
    assert f"{bad.supply:,}" in violation.why
    assert violation.fix == f"use consumer_registers<={fix}"
    assert pool(consumers, producer, fix, min_ctas=min_ctas).violations() == ()


def test_an_inexact_sum_is_a_note() -> None:
    """24/232/232 of 3 x 168 has been reported to hang although the sum is smaller."""
    chosen = pool(2, 24, 232)
    assert chosen.violations() == ()
    (note,) = chosen.notes()
    assert "2,048 registers are left over" in note
    assert "128 x 24 + 256 x 232 = 62,464 of 384 x 168 = 64,512" in note


def test_no_note_where_nobody_grows() -> None:
    """One consumer of 240: the entry count is already 240, so no inc has to wait."""
    chosen = pool(1, 40, 240)
    assert chosen.entry == 240
    assert chosen.demand < chosen.supply
    assert chosen.notes() == ()


@pytest.mark.parametrize(
    ("registers", "fix"), [(16, 24), (23, 24), (100, 104), (257, 256), (264, 256), (0, 24)]
)
def test_values_that_setmaxnreg_does_not_take(registers: int, fix: int) -> None:
    (violation,) = pool(2, registers, 160).violations()
    assert violation.field == "producer_registers"
    assert violation.rule == "must be a multiple of 8 in 24..256"
    assert violation.fix == f"use {fix}"


def test_dec_above_the_entry_count() -> None:
    broken = pool(2, 176, 160).violations()
    assert broken[0].rule == "setmaxnreg.dec must not exceed the entry count, 160"


def test_accumulators_need_room() -> None:
    # m64n256 f32: 128 accumulators need 154 registers, so 160; 3 consumers have exactly that
    assert pool(3, 32, 160, accumulators=128).violations() == ()
    (violation,) = pool(3, 32, 152, accumulators=128).violations()
    assert violation.rule == "must be at least 160 with 128 accumulators"


def test_a_role_needs_a_whole_warpgroup() -> None:
    (violation,) = pool(0, 40, 240).violations()
    assert violation.field == "consumer_warpgroups"


def test_three_roles() -> None:
    roles = (
        Role(name="load", warpgroups=1, registers=24, change="dec"),
        Role(name="mma", warpgroups=2, registers=176, change="inc"),
        Role(name="correct", warpgroups=1, registers=96, change="dec"),
    )
    chosen = RegisterPool(roles=roles)
    assert (chosen.entry, chosen.threads) == (128, 512)
    assert chosen.demand == 128 * 24 + 256 * 176 + 128 * 96
    assert chosen.violations() == ()


def test_str_prints_the_table_and_the_instructions() -> None:
    text = str(pool(2, 40, 232, accumulators=128))
    assert "setmaxnreg.dec.sync.aligned.u32 40;" in text
    assert "setmaxnreg.inc.sync.aligned.u32 232;  128 accumulators" in text
    assert text.splitlines()[-1].split() == ["entry", "384", "168", "64,512"]
    assert "note: " in str(pool(2, 24, 232))


@given(
    consumers=st.integers(1, 7),
    producer=st.integers(3, 32).map(lambda n: 8 * n),
    consumer=st.integers(3, 32).map(lambda n: 8 * n),
)
def test_a_pool_without_violations_can_be_served(
    consumers: int, producer: int, consumer: int
) -> None:
    """The definition: every warpgroup gets its registers out of what the CTA owns at entry."""
    chosen = pool(consumers, producer, consumer)
    entry = entry_registers(128 * (consumers + 1), 1, consumer)
    owned = -(-entry // 8) * 8 * (consumers + 1)
    servable = producer <= entry and producer + consumers * consumer <= owned
    assert (chosen.violations() == ()) == servable
