"""The 128 bytes: where each field lies, and that nothing is lost on the way there and back."""

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxgen.errors import TensorMapError
from ptxgen.layout.tensor_map import (
    MAP_TYPES,
    TensorMapSpec,
    decode,
    encode,
    violations,
)

pytestmark = pytest.mark.unit

SPEC = TensorMapSpec(
    dtype="BFLOAT16",
    address=0x7F00_1234_5670,
    shape=(3, 64, 128),
    strides=(2**39, 272, 2),  # an outer stride that needs the high bits
    box=(1, 8, 32),
    element_strides=(1, 2, 3),
    swizzle=64,
    l2=256,
    fill="nan",
)


def test_every_field_lies_where_the_table_says() -> None:
    data = encode(SPEC)
    word = {at: struct.unpack_from("<I", data, at)[0] for at in range(0, 128, 4)}
    assert len(data) == 128
    assert struct.unpack_from("<Q", data, 0)[0] == SPEC.address
    assert word[0x08] == (3 - 1) << 4 | 10 << 7 | 0 << 11 | 2 << 13 | 1 << 15 | 0 << 16 | 3 << 17
    assert (word[0x0C], word[0x10], word[0x14]) == (272 >> 4, 2**39 >> 4 & 0xFFFFFFFF, 0)
    assert word[0x1C] == (2**39 >> 36) << 4  # bits 32-35 of the second stride >> 4
    assert [word[0x20 + 4 * i] for i in range(5)] == [127, 63, 2, 0, 0]
    assert word[0x34] == 2 | 1 << 3 | 31 << 24
    assert word[0x38] == 7
    assert word[0x40] == 2 * (32 // 3) * (8 // 2)
    assert word[0x48] == 0x200
    assert data[0x4C:] == bytes(0x80 - 0x4C)


def test_dtype_spelling_does_not_change_the_bytes() -> None:
    assert encode(replace(SPEC, dtype="bf16")) == encode(SPEC)


def specs() -> st.SearchStrategy[TensorMapSpec]:
    """Legal maps of every rank, type and mode, with extents and strides up to their limits."""

    @st.composite
    def build(draw: st.DrawFn) -> TensorMapSpec:
        element = MAP_TYPES[draw(st.sampled_from(sorted(MAP_TYPES)))]
        interleave = draw(st.sampled_from([0, 16, 32]))
        rank = draw(st.integers(3 if interleave else 1, 5))
        swizzle = draw(st.sampled_from([0, 32, 64, 128]))
        unit = 32 if interleave == 32 else 16
        row = draw(st.integers(1, (swizzle or 128) // 16)) * 16
        return TensorMapSpec(
            dtype=element.name,
            address=draw(st.integers(0, 2**59)) * unit,
            shape=tuple(draw(st.integers(1, 2**32)) for _ in range(rank)),
            strides=(
                *(draw(st.integers(0, 2**40 // unit - 1)) * unit for _ in range(rank - 1)),
                element.bytes,
            ),
            box=(*(draw(st.integers(1, 5)) for _ in range(rank - 1)), row // element.bytes),
            element_strides=tuple(draw(st.integers(1, 8)) for _ in range(rank)),
            interleave=interleave,
            swizzle=swizzle,
            l2=draw(st.sampled_from([0, 64, 128, 256])),
            fill=draw(st.sampled_from(["zero", "nan"])) if element.is_float else "zero",
        )

    return build()


@given(specs())
def test_decode_inverts_encode(spec: TensorMapSpec) -> None:
    assert violations(spec) == ()
    assert decode(encode(spec)) == spec


@pytest.mark.parametrize(
    ("at", "value", "words"),
    [
        (0x08, 7 << 4, "no such rank"),  # rank 8
        (0x08, 2 << 4 | 15 << 7, "no such rank, type"),
        (0x08, 2 << 4 | 0 << 7 | 1 << 16, "no such rank, type"),  # TF32 flag on bytes
        (0x08, 2 << 4 | 10 << 7 | 3 << 11, "interleave"),
        (0x40, 1, "do not encode back"),  # a box size that contradicts the box
        (0x7C, 1, "do not encode back"),  # a bit that we do not know
    ],
)
def test_foreign_bytes_are_refused(at: int, value: int, words: str) -> None:
    data = bytearray(encode(SPEC))
    struct.pack_into("<I", data, at, value)
    with pytest.raises(TensorMapError, match=words):
        decode(bytes(data))


def test_a_truncated_object_is_refused() -> None:
    with pytest.raises(TensorMapError, match="must be 128 B"):
        decode(encode(SPEC)[:64])


def test_describe_shows_both_orders() -> None:
    text = SPEC.describe()
    assert "driver order: dims [128, 64, 3], strides [272, 549755813888], box [32, 8, 1]" in text
    rows = [line.split() for line in text.splitlines()[1:5]]
    assert rows[0] == ["axis", "driver", "dim", "extent", "stride", "B", "box", "step"]
    assert rows[3] == ["2", "0", "128", "2", "32", "3"]
    one = TensorMapSpec(dtype="u8", address=0, shape=(64,), strides=(1,), box=(16,))
    assert "strides []" in one.describe()
