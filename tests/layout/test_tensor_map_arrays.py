"""From an array and a kernel parameter to a map: axes, strides, types, and readable refusals."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from ptxgen.errors import TensorMapError
from ptxgen.isa.dtypes import from_numpy
from ptxgen.layout.tensor_map import array_violations, from_array
from ptxgen.spec import ArrayMeta, TensorMapParam

pytestmark = pytest.mark.unit

PARAM = TensorMapParam(name="tmap_a", arg="A", dtype="bf16", axes=(0, 1), box=(64, 64), swizzle=128)


def meta(array: np.ndarray, address: int = 0x1000) -> ArrayMeta:
    row = from_numpy(array.dtype)
    assert row is not None
    return ArrayMeta(shape=array.shape, strides=array.strides, dtype=row.name, address=address)


def bf16(*shape: int) -> np.ndarray:
    return np.zeros(shape, dtype=ml_dtypes.bfloat16)


def test_a_dense_array() -> None:
    spec = from_array(meta(bf16(127, 136)), PARAM)
    assert (spec.shape, spec.strides, spec.box) == ((127, 136), (272, 2), (64, 64))
    assert (spec.swizzle, spec.l2, spec.fill, spec.address) == (128, 128, "zero", 0x1000)


def test_the_pitch_of_d_is_named_with_the_next_legal_n() -> None:
    param = replace(PARAM, name="tmap_d", arg="D", use="store")
    with pytest.raises(TensorMapError) as error:
        from_array(meta(bf16(127, 129)), param, axis_names=("M", "N"))
    text = str(error.value)
    assert "describe D, bf16 [127, 129]" in text
    assert "D.strides[0]=258 B" in text
    assert "row pitch of 129 elements must be a multiple of 16 B" in text
    assert "next legal N is 136; or pad to a pitch of 272 B (136 elements)" in text


@pytest.mark.parametrize(
    ("columns", "legal"),
    [(100, 104), (511, 512), (129, 136), (1, 8)],  # pitches of 200, 1022, 258 and 2 bytes
)
def test_the_next_legal_extent_is_legal(columns: int, legal: int) -> None:
    with pytest.raises(TensorMapError, match=f"next legal axis 1 is {legal};"):
        from_array(meta(bf16(64, columns)), PARAM)
    assert from_array(meta(bf16(64, legal)), PARAM).shape == (64, legal)


def test_a_padded_view_uses_its_real_pitch() -> None:
    spec = from_array(meta(bf16(64, 256)[:, :100]), PARAM)
    assert (spec.shape, spec.strides) == ((64, 100), (512, 2))


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (bf16(64, 256)[:, ::2], r"A\.strides\[1\]=4 B .*innermost axis must be contiguous"),
        (bf16(64, 64).T, r"A\.strides\[1\]=128 B .*innermost axis must be contiguous"),
        (bf16(64, 64)[::-1], r"A\.strides\[0\]=-128 B"),
        (np.broadcast_to(bf16(1, 64), (64, 64)), r"A\.strides\[0\]=0 B .*must not be 0"),
        (np.broadcast_to(bf16(64, 1), (64, 64)), r"A\.strides\[1\]=0 B .*must not be 0"),
        (bf16(0, 64), r"A\.shape\[0\]=0 .*must be 1\.\.4,294,967,296"),
        (bf16(64), r"A\.ndim=1 .*walks array axes \[0, 1\]"),
        (bf16(2, 64, 64), r"A\.shape\[2\]=64 .*must be 1"),
        (bf16(64, 64).astype(np.float16), r"A\.dtype=f16 .*must be bf16"),
        (bf16(64, 64).astype(np.float32), r"A\.dtype=f32 .*must be bf16"),
    ],
)
def test_views_that_no_map_describes(view: np.ndarray, words: str) -> None:
    with pytest.raises(TensorMapError, match=words):
        from_array(meta(view), PARAM)


def test_a_transposed_view_maps_with_its_axes_swapped() -> None:
    spec = from_array(meta(bf16(40, 64).T), replace(PARAM, axes=(1, 0)))
    assert (spec.shape, spec.strides) == ((40, 64), (128, 2))


def test_axis_names_follow_the_axes() -> None:
    with pytest.raises(TensorMapError, match="next legal K is 16;"):
        from_array(meta(bf16(64, 10).T), replace(PARAM, axes=(1, 0)), axis_names=("K", "N"))


@pytest.mark.parametrize(
    "array",
    # One row of 200 bytes, and one column out of rows of 6: their strides are never walked.
    [bf16(1, 100), bf16(1, 3)[:, :1], bf16(4, 1, 104)[:, 0, :].reshape(4, 1, 104)[:, :, :1][:1, 0]],
)
def test_the_stride_of_an_extent_of_one_does_not_matter(array: np.ndarray) -> None:
    spec = from_array(meta(array), PARAM)
    assert spec.strides[0] % 16 == 0
    assert spec.strides[1] == 2


def test_an_unwalked_axis_of_one_may_be_left_out() -> None:
    spec = from_array(meta(bf16(1, 64, 128)), replace(PARAM, axes=(1, 2)))
    assert (spec.shape, spec.strides) == ((64, 128), (256, 2))


def test_three_axes() -> None:
    param = replace(PARAM, axes=(0, 1, 2), box=(1, 64, 64))
    spec = from_array(meta(bf16(3, 64, 128)), param)
    assert spec.strides == (64 * 256, 256, 2)


def test_a_map_type_takes_any_array_of_its_width() -> None:
    f32 = np.zeros((64, 64), dtype=np.float32)
    param = replace(PARAM, dtype="TFLOAT32", box=(64, 32))
    assert from_array(meta(f32), param).element.tf32
    with pytest.raises(TensorMapError, match=r"A\.dtype=bf16 .*must be TFLOAT32"):
        from_array(meta(bf16(64, 64)), param)


@pytest.mark.parametrize("offset", [2, 10])  # bf16 base[1:] and base[5:]
def test_an_unaligned_view_names_the_remainder(offset: int) -> None:
    address = 0x1000 + offset
    with pytest.raises(TensorMapError, match=rf"A\.address=0x{address:x} .*{offset} B past one"):
        from_array(meta(bf16(64, 64), address), PARAM)


def test_a_dense_batch_blames_its_rows() -> None:
    """The batch stride, 127 x 258 B, is illegal too; only the row pitch has a cure of its own."""
    param = replace(PARAM, axes=(0, 1, 2), box=(1, 64, 64))
    batch, row = array_violations(meta(bf16(3, 127, 129)), param, axis_names=("B", "M", "N"))
    assert (batch.field, batch.fix) == ("A.strides[0]", "it follows from the pitch of M")
    assert row.fix == "next legal N is 136; or pad to a pitch of 272 B (136 elements)"
    assert array_violations(meta(bf16(3, 127, 136)), param) == ()


def test_array_violations_are_those_that_from_array_raises() -> None:
    for array in (bf16(64, 129), bf16(64), bf16(64, 64).astype(np.float16)):
        with pytest.raises(TensorMapError) as error:
            from_array(meta(array), PARAM)
        assert error.value.violations == array_violations(meta(array), PARAM)


def test_several_mistakes_at_once() -> None:
    with pytest.raises(TensorMapError) as error:
        from_array(meta(bf16(64, 100), 0x1002), replace(PARAM, box=(300, 64)))
    assert [v.field for v in error.value.violations] == ["A.address", "A.strides[0]", "A.box[0]"]
