"""Index expressions: Python's integer arithmetic, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxgen.errors import ConfigError
from ptxgen.layout.expression import parse

pytestmark = pytest.mark.unit

NAMES = frozenset({"tid", "lane", "K"})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("tid*33", 231), ("tid / 2", 3), ("tid // 2", 3), ("tid % 4", 3), ("tid << 2", 28),
        ("tid >> 1", 3), ("tid & 3", 3), ("tid | 8", 15), ("tid ^ 1", 6), ("~tid", -8),
        ("-tid + +tid", 0), ("(tid + 1) * K", 512), ("0x10", 16), ("lane if tid > 3 else K", 5),
        ("tid == 7", 1), ("max(tid, lane, 3)", 7), ("min(tid, lane)", 5), ("abs(lane - tid)", 2),
        ("  tid", 7),
    ],
)  # fmt: skip
def test_values(text: str, value: int) -> None:
    assert parse(text, NAMES)({"tid": 7, "lane": 5, "K": 64}) == value


@given(st.integers(-1000, 1000), st.integers(1, 1000), st.integers(0, 20))
def test_arithmetic_is_that_of_python(a: int, b: int, c: int) -> None:
    text = "(tid * lane - K) // lane + tid % lane ^ (tid << K)"
    value = parse(text, NAMES)({"tid": a, "lane": b, "K": c})
    assert value == eval(text, {"tid": a, "lane": b, "K": c})


def test_only_names_that_occur_are_reported() -> None:
    assert parse("tid * 2", NAMES).names == {"tid"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tid +", "is not an expression"),
        ("", "is not an expression"),
        ("tid\0", "is not an expression"),
        ("warp", "known names: K, lane, tid"),
        ("tid * 1.5", r"1\.5  is not allowed here"),
        ("'a'", "is not allowed here"),
        ("True", "is not allowed here"),
        ("tid ** 2", "is not allowed here"),
        ("__import__('os')", "is not allowed here"),
        ("tid.real", "is not allowed here"),
        ("[tid]", "is not allowed here"),
        ("(lambda: tid)()", "is not allowed here"),
        ("0 < tid < 4", "is not allowed here"),
        ("min(tid)", "is not allowed here"),
        ("abs(tid, 1)", "is not allowed here"),
        ("max(tid, lane, key=abs)", "is not allowed here"),
        ("tid if (tid := 3) else 1", "is not allowed here"),
        (str(1 << 63), r"must be below 2\^63"),
    ],
)
def test_refusals_name_the_part_and_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(text, NAMES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tid % (lane - 5)", "divide by zero"),
        ("tid / 0", "divide by zero"),
        ("1 << (K * K)", "must be 0..63"),
        ("1 << -tid", "must be 0..63"),
        ("K << 63", r"value of 2\^63 or more"),
    ],
)
def test_values_that_cannot_be(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(text, NAMES)({"tid": 7, "lane": 5, "K": 64})


def test_a_deep_expression_is_refused_and_does_not_crash() -> None:
    with pytest.raises(ConfigError, match="is not an expression"):
        parse("(" * 100_000 + "1" + ")" * 100_000, NAMES)
