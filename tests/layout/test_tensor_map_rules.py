"""Each rule of a tensor map at its limit and one past it, and the words of each refusal."""

from dataclasses import replace

import pytest

from ptxgen.errors import TensorMapError
from ptxgen.isa.arch import SMEM_PER_CTA_BYTES
from ptxgen.layout.tensor_map import (
    RULES,
    TensorMapSpec,
    box_bytes,
    broken_rules,
    check,
    encode,
    map_type,
    violations,
)

pytestmark = pytest.mark.unit

# bf16 [64, 128], rows of 256 B, a box of 8 rows x 64 B: legal with every swizzle of 64 B and more.
GOOD = TensorMapSpec(
    dtype="bf16", address=0x1000, shape=(64, 128), strides=(256, 2), box=(8, 32), swizzle=64
)
CUBE = replace(
    GOOD,
    shape=(4, 64, 128),
    strides=(64 * 256, 256, 2),
    box=(1, 8, 32),
    element_strides=(1, 1, 1),
)
BYTES = replace(CUBE, dtype="u8", strides=(64 * 256, 256, 1), swizzle=0)


def rules(spec: TensorMapSpec) -> list[str]:
    return [rule for rule, _ in broken_rules(spec)]


@pytest.mark.parametrize("spec", [GOOD, CUBE], ids=["2d", "3d"])
def test_the_starting_points_are_legal(spec: TensorMapSpec) -> None:
    assert violations(spec) == ()
    assert check(spec) is spec


@pytest.mark.parametrize(
    ("rule", "at", "past"),
    [
        # addresses and strides: multiples of 16
        ("address", replace(GOOD, address=16), replace(GOOD, address=17)),
        ("address", replace(GOOD, address=0x1010), replace(GOOD, address=0x1008)),
        ("address", replace(GOOD, address=2**64 - 16), replace(GOOD, address=2**64)),
        ("stride", replace(GOOD, strides=(272, 2)), replace(GOOD, strides=(264, 2))),
        ("stride", replace(GOOD, strides=(2**40 - 16, 2)), replace(GOOD, strides=(2**40, 2))),
        ("stride", replace(GOOD, strides=(16, 2)), replace(GOOD, strides=(-16, 2))),
        # 32 with 32-byte interleave
        (
            "address",
            replace(CUBE, interleave=32, address=32),
            replace(CUBE, interleave=32, address=48),
        ),
        (
            "stride",
            replace(CUBE, interleave=32, strides=(64 * 256, 64, 2)),
            replace(CUBE, interleave=32, strides=(64 * 256, 48, 2)),
        ),
        ("inner stride", GOOD, replace(GOOD, strides=(256, 4))),
        ("extent", replace(GOOD, shape=(1, 128)), replace(GOOD, shape=(0, 128))),
        ("extent", replace(GOOD, shape=(2**32, 128)), replace(GOOD, shape=(2**32 + 1, 128))),
        ("box extent", replace(GOOD, box=(256, 32)), replace(GOOD, box=(257, 32))),
        ("box extent", replace(GOOD, box=(1, 32)), replace(GOOD, box=(0, 32))),
        (
            "element stride",
            replace(GOOD, element_strides=(8, 1)),
            replace(GOOD, element_strides=(9, 1)),
        ),
        (
            "element stride",
            replace(GOOD, element_strides=(1, 1)),
            replace(GOOD, element_strides=(0, 1)),
        ),
        # rows of 16 and 18 bytes; of 64 and 80 bytes in a span of 64
        ("box row", replace(GOOD, box=(8, 8)), replace(GOOD, box=(8, 9))),
        ("box span", replace(GOOD, box=(8, 32)), replace(GOOD, box=(8, 40))),
        ("box span", replace(GOOD, box=(8, 16), swizzle=32), replace(GOOD, swizzle=32)),
        (
            "box span",
            replace(GOOD, box=(8, 64), swizzle=128),
            replace(GOOD, box=(8, 72), swizzle=128),
        ),
        # What one CTA can have, 227 KB; the recorded driver accepts 229,376 and refuses 244,800.
        ("box size", replace(BYTES, box=(227, 4, 256)), replace(BYTES, box=(228, 4, 256))),
        # Steps divide the size, rounding down: 9 // 2 is 4 again.
        (
            "box size",
            replace(BYTES, box=(227, 9, 256), element_strides=(1, 2, 1)),
            replace(BYTES, box=(227, 10, 256), element_strides=(1, 2, 1)),
        ),
        (
            "interleaved rank",
            replace(CUBE, interleave=16),
            replace(GOOD, interleave=16),
        ),
        ("nan fill", replace(GOOD, fill="nan"), replace(GOOD, dtype="u16", fill="nan")),
        (
            "nan fill",
            replace(GOOD, dtype="e4m3", strides=(256, 1)),
            # fp8 has NaNs, but travels as UINT8
            replace(GOOD, dtype="e4m3", strides=(256, 1), fill="nan"),
        ),
    ],
)
def test_at_the_limit_and_past_it(rule: str, at: TensorMapSpec, past: TensorMapSpec) -> None:
    assert rules(at) == []
    assert rules(past) == [rule]


@pytest.mark.parametrize("span", [0, 32, 64, 128])
def test_what_the_driver_accepts_although_others_refuse_it(span: int) -> None:
    """A box beyond its tensor, a row narrower than the span, and any swizzle with interleave 32."""
    narrow = replace(GOOD, box=(200, 8), shape=(3, 5), swizzle=span)
    assert violations(narrow) == ()
    assert violations(replace(CUBE, interleave=32, swizzle=span, box=(1, 8, 64))) == ()


def test_ranks() -> None:
    ones = {"shape": (1,) * 5, "strides": (16,) * 4 + (2,), "box": (1,) * 4 + (8,)}
    assert rules(TensorMapSpec(dtype="bf16", address=0, **ones)) == []
    assert rules(TensorMapSpec(dtype="bf16", address=0, shape=(1,), strides=(2,), box=(8,))) == []
    six = {"shape": (1,) * 6, "strides": (16,) * 5 + (2,), "box": (1,) * 5 + (8,)}
    assert rules(TensorMapSpec(dtype="bf16", address=0, **six)) == ["rank"]
    assert rules(TensorMapSpec(dtype="bf16", address=0, shape=(), strides=(), box=())) == ["rank"]


def test_lists_of_different_lengths_are_counted_not_guessed() -> None:
    with pytest.raises(TensorMapError, match=r"A\.strides=1 entries .*must have 2"):
        check(replace(GOOD, strides=(2,)), name="A")


@pytest.mark.parametrize(
    ("field", "value"), [("interleave", 8), ("swizzle", 16), ("l2", 32), ("fill", "one")]
)
def test_unknown_modes_list_the_legal_ones(field: str, value: object) -> None:
    with pytest.raises(TensorMapError, match=rf"tensor\.{field}={value} +must be one of"):
        check(replace(GOOD, **{field: value}))


@pytest.mark.parametrize("dtype", ["int4", "bool", "complex64", "float8", "UINT4", ""])
def test_unsupported_types_are_named(dtype: str) -> None:
    with pytest.raises(TensorMapError, match=rf"dtype={dtype} +must be one of bf16"):
        map_type(dtype)
    with pytest.raises(TensorMapError, match=rf"A\.dtype={dtype} +must be one of bf16"):
        check(replace(GOOD, dtype=dtype), name="A")


@pytest.mark.parametrize(
    ("dtype", "name", "size"),
    [
        ("e4m3", "UINT8", 1), ("e5m2", "UINT8", 1), ("s8", "UINT8", 1), ("bf16", "BFLOAT16", 2),
        ("float16", "FLOAT16", 2), ("f32", "FLOAT32", 4), ("TFLOAT32", "TFLOAT32", 4),
    ],
)  # fmt: skip
def test_map_types(dtype: str, name: str, size: int) -> None:
    assert (map_type(dtype).name, map_type(dtype).bytes) == (name, size)


def test_all_broken_rules_are_reported_at_once() -> None:
    bad = replace(GOOD, address=8, strides=(258, 2), box=(300, 9), dtype="s16", fill="nan")
    assert rules(bad) == ["address", "stride", "box extent", "box row", "nan fill"]
    with pytest.raises(
        TensorMapError, match=rf"A, s16 \[64, 128\] \(5 of {len(RULES)} rules broken\)"
    ):
        encode(bad, name="A")


def test_box_bytes_is_what_a_copy_delivers() -> None:
    assert box_bytes("bf16", (128, 64)) == 16_384
    assert box_bytes("e4m3", (128, 64)) == 8_192
    assert GOOD.box_bytes == box_bytes("bf16", GOOD.box)
    assert box_bytes("u8", (227, 4, 256)) == SMEM_PER_CTA_BYTES


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (replace(GOOD, address=0x1008), r"A\.address=0x1008 .*8 B past one"),
        (replace(GOOD, box=(384, 32)), r"2 copies of at most 256 along axis 0"),
        (replace(GOOD, box=(8, 9)), "next legal inner box is 16 elements"),
        (replace(GOOD, box=(8, 64)), "inner box of at most 32 elements"),
        (replace(GOOD, strides=(200, 2), shape=(64, 100)), "next legal axis 1 is 104; or pad to"),
        (replace(GOOD, strides=(200, 2), shape=(64, 90)), r"\n +pad to a pitch of 208 B \(104 el"),
        (replace(GOOD, strides=(2, 128)), "innermost axis must be contiguous"),
        (replace(GOOD, shape=(0, 128)), "empty array needs no tensor map"),
        (replace(GOOD, dtype="s16", fill="nan"), "mask after the load"),
    ],
)
def test_refusals_carry_the_cure(spec: TensorMapSpec, words: str) -> None:
    with pytest.raises(TensorMapError, match=words):
        check(spec, name="A")
