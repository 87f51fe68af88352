"""From shapes to a launch: grid and scalars, and every argument that is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ptxgen
from ptxgen.errors import ArgumentError
from ptxgen.isa.dtypes import dtype
from ptxgen.spec import ArrayMeta, DeviceLimits, LaunchPlan

pytestmark = pytest.mark.unit

H200 = DeviceLimits(name="h200", sms=132, ctas=132)
KERNEL = ptxgen.kernel("gemm")  # tile 128 x 256 x 64, cluster 2 x 1
ALONE = ptxgen.kernel("gemm", cluster=(1, 1))


def meta(*shape: int, pitch: int | None = None, name: str = "bf16", **fields: Any) -> ArrayMeta:
    """A row-major array; `pitch` in bytes, by default that of dense rows."""
    size = dtype(name).bytes
    strides = (pitch or shape[-1] * size, size) if len(shape) == 2 else (size,) * len(shape)
    given: dict[str, Any] = {"shape": shape, "strides": strides, "dtype": name, "address": 4096}
    return ArrayMeta(**{**given, **fields})


def arguments(m: int, n: int, k: int, **others: ArrayMeta) -> dict[str, ArrayMeta]:
    return {"a": meta(m, k), "b": meta(n, k), "d": meta(m, n), **others}


def plan(args: dict[str, ArrayMeta], kernel: Any = KERNEL, **scalars: int) -> LaunchPlan:
    return kernel.plan(args, scalars, H200)  # type: ignore[no-any-return]


def refusal(args: dict[str, ArrayMeta], **scalars: int) -> dict[str, str]:
    """The text of every violation, by the field that it names."""
    with pytest.raises(ArgumentError) as caught:
        plan(args, **scalars)
    assert KERNEL.spec.entry in str(caught.value)
    return {v.field: str(v) for v in caught.value.violations}


@pytest.mark.parametrize(
    ("m", "n", "k", "m_tiles", "n_tiles", "k_tiles", "ctas"),
    [
        (1, 8, 8, 1, 1, 1, 2),  # one element of a tile; still whole clusters
        (256, 256, 64, 1, 1, 1, 2),  # exactly one cluster tile
        (257, 264, 72, 2, 2, 2, 8),  # one more of each
        (8192, 8192, 8192, 32, 32, 128, 132),  # more than fit: the persistent grid
        (300, 520, 200, 2, 3, 4, 12),
        (64, 64, 0, 1, 1, 0, 2),  # nothing to sum: launched, and stores zeros
    ],
)
def test_grid_and_scalars(
    m: int, n: int, k: int, m_tiles: int, n_tiles: int, k_tiles: int, ctas: int
) -> None:
    (step,) = plan(arguments(m, n, k)).steps
    assert step.entry == KERNEL.spec.entry
    assert step.grid == (ctas, 1, 1)
    group = step.scalars["raster_group"]
    assert step.scalars == {
        "m_tiles": m_tiles, "n_tiles": n_tiles, "k_tiles": k_tiles, "raster_group": group,
    }  # fmt: skip
    assert 1 <= group <= m_tiles


@pytest.mark.parametrize(("m", "n"), [(0, 64), (64, 0), (0, 0)])
@pytest.mark.parametrize("k", [0, 64])
def test_an_empty_result_launches_nothing(m: int, n: int, k: int) -> None:
    empty = plan(arguments(m, n, k))
    assert empty.steps == ()
    assert f"D is [{m}, {n}]: empty" in empty.explain()


@given(
    st.integers(1, 5000), st.integers(1, 600).map(lambda n: 8 * n),
    st.integers(0, 300).map(lambda k: 8 * k), st.integers(0, 200),
)  # fmt: skip
def test_tiles_cover_the_result(m: int, n: int, k: int, ctas: int) -> None:
    """No more tiles than needed, no fewer; the grid is whole clusters and no larger than needed."""
    device = DeviceLimits(name="any", sms=132, ctas=ctas)
    (step,) = KERNEL.plan(arguments(m, n, k), {}, device).steps
    tiles = {name: int(step.scalars[name]) for name in ("m_tiles", "n_tiles", "k_tiles")}
    assert (tiles["m_tiles"] - 1) * 256 < m <= tiles["m_tiles"] * 256
    assert (tiles["n_tiles"] - 1) * 256 < n <= tiles["n_tiles"] * 256
    assert (tiles["k_tiles"] - 1) * 64 < k <= tiles["k_tiles"] * 64 or k == tiles["k_tiles"] == 0
    assert step.grid.x % 2 == 0
    assert 2 <= step.grid.x <= max(ctas, 2)
    assert step.grid.x <= 2 * tiles["m_tiles"] * tiles["n_tiles"]


def test_the_plan_is_told_in_words() -> None:
    assert plan(arguments(8192, 8192, 8192)).explain() == (
        f"{KERNEL.spec.entry}: grid 132x1x1 CTAs, m_tiles=32, n_tiles=32, k_tiles=128, "
        "raster_group=6\n1024 cluster tiles on 66 clusters: 16 waves, 97% of the slots busy"
    )


# ------------------------------------------------------------------ what is refused


def test_rows_that_do_not_start_on_16_bytes() -> None:
    """(127, 129, 72): D's rows are 258 bytes apart, and the next N that works is 136."""
    broken = refusal(arguments(127, 129, 72))
    (text,) = broken.values()
    assert "d.strides[M]" in text or text.startswith("d")
    for word in ("258 B", "129 elements", "multiple of 16 B", "136"):
        assert word in text


def test_every_bad_pitch_is_reported_at_once() -> None:
    """K = 9: rows of A and of B, and of D, in one error."""
    broken = refusal(arguments(16, 9, 9))
    assert len(broken) == 3
    assert {field[0] for field in broken} == {"a", "b", "d"}


def test_a_padded_pitch_is_fine() -> None:
    args = arguments(16, 16, 9, a=meta(16, 9, pitch=32), b=meta(16, 9, pitch=32))
    assert len(plan(args).steps) == 1


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_rank(rank: int) -> None:
    broken = refusal(arguments(16, 16, 16, b=meta(*[16] * rank)))
    assert list(broken) == ["b"]
    assert "must have rank 2: [N, K]" in broken["b"]
    assert str((16,) * rank) in broken["b"]


def test_missing_arguments() -> None:
    args = arguments(16, 16, 16)
    del args["b"], args["d"]
    broken = refusal(args)
    assert list(broken) == ["b", "d"]
    assert "is required, [N, K]" in broken["b"]


@pytest.mark.parametrize(
    ("name", "shape", "field", "words"),
    [
        ("b", (16, 24), "K of b", ["must be 16, as in a", "b (16, 24)"]),
        ("d", (24, 16), "M of d", ["must be 16, as in a"]),
        ("d", (16, 24), "N of d", ["must be 16, as in b"]),
    ],
)
def test_extents_must_agree(
    name: str, shape: tuple[int, int], field: str, words: list[str]
) -> None:
    broken = refusal(arguments(16, 16, 16, **{name: meta(*shape)}))
    assert list(broken) == [field]
    for word in words:
        assert word in broken[field]


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("a", "f16", ["a=f16", "must be bf16", "make the kernel with dtype=f16"]),
        ("b", "f32", ["must be bf16", "dtype=tf32"]),
        ("d", "f32", ["must be bf16", "make the kernel with out_dtype=f32"]),
    ],
)
def test_types(name: str, given: str, words: list[str]) -> None:
    broken = refusal(arguments(16, 16, 16, **{name: meta(16, 16, name=given)}))
    assert list(broken) == [name]
    for word in words:
        assert word in broken[name]


@pytest.mark.parametrize(
    ("strides", "words"),
    [
        ((2, 32), ["contiguous M needs another kernel", "a_major=mn", "copy with contiguous K"]),
        ((64, 4), ["contiguous inner axis", "copy with contiguous K"]),
        ((-32, 2), ["-32 B"]),
        ((0, 2), ["0 B", "contiguous copy"]),
        ((0, 0), ["0 B", "contiguous copy"]),
        ((34, 2), ["34 B", "multiple of 16 B"]),
    ],
    ids=["transposed", "every second", "reversed", "broadcast", "one element", "pitch"],
)
def test_strides(strides: tuple[int, int], words: list[str]) -> None:
    broken = refusal(arguments(16, 16, 16, a=meta(16, 16, strides=strides)))
    text = "\n".join(broken.values())
    for word in words:
        assert word in text


def test_strides_of_axes_with_one_element_do_not_matter() -> None:
    """A row vector and a column of one: no step along that axis is ever taken."""
    one_row = meta(1, 16, strides=(2, 2))
    assert plan(arguments(1, 16, 16, a=one_row, d=meta(1, 16, strides=(6, 2)))).steps
    column = meta(16, 1, strides=(16, 999))
    assert plan(arguments(16, 16, 1, a=column, b=column)).steps


def test_an_unaligned_address() -> None:
    text = "\n".join(refusal(arguments(16, 16, 16, a=meta(16, 16, address=4104))).values())
    assert "0x1008" in text
    assert "16" in text


def test_coordinates_beyond_32_bits() -> None:
    broken = refusal(arguments(2**31, 8, 8))
    assert "must be below 2,147,483,648" in broken["M of a"]
    assert len(plan(arguments(2**31 - 1, 8, 8)).steps) == 1


def test_more_tiles_than_32_bits_count() -> None:
    broken = refusal(arguments(2**23, 2**24 + 8, 8))
    assert list(broken) == ["d"]
    assert "the kernel counts tiles in 32 bits" in broken["d"]


def test_scalars_are_the_plans() -> None:
    broken = refusal(arguments(16, 16, 16), m_tiles=3)
    assert list(broken) == ["m_tiles"]
    assert "computed by the plan" in broken["m_tiles"]


# ------------------------------------------------------------------ the rest of the family

SMALL = {"cluster": (1, 1), "stages": 2}


@pytest.mark.parametrize(
    ("fields", "m_tiles", "n_tiles", "others"),
    [
        ({"tile": (64, 16), "swap_ab": 1}, 5, 2, {"k_tiles": 4}),  # 300 = 5 x 64, 24 = 2 x 16
        ({"tile": (64, 64), "split_k": 2}, 1, 5, {"k_tiles": 4, "k_tiles_per_cta": 2}),
        ({"tile": (64, 64), "split_k": 8}, 1, 5, {"k_tiles": 4, "k_tiles_per_cta": 1}),
    ],
)
def test_grid_of_swapped_and_split_tiles(
    fields: dict[str, Any], m_tiles: int, n_tiles: int, others: dict[str, int]
) -> None:
    """D [24, 304], K 200: what runs along N of D, and how many stages a CTA takes."""
    kernel = ptxgen.kernel("gemm", **SMALL, **fields)
    (step,) = plan(arguments(24, 304, 200), kernel).steps
    assert {n: step.scalars[n] for n in ("m_tiles", "n_tiles")} == {
        "m_tiles": m_tiles, "n_tiles": n_tiles,
    }  # fmt: skip
    assert others.items() <= step.scalars.items()
    assert step.grid.x == m_tiles * n_tiles * kernel.spec.cluster.size


def test_batches_multiply_the_tiles() -> None:
    kernel = ptxgen.kernel("gemm", batched=1, tile=(64, 64), **SMALL)

    def stack(*shape: int) -> ArrayMeta:
        return meta(*shape, strides=(shape[1] * shape[2] * 2, shape[2] * 2, 2))

    args = {"a": stack(3, 65, 64), "b": stack(3, 64, 64), "d": stack(3, 65, 64)}
    (step,) = plan(args, kernel).steps
    assert (step.scalars["batches"], step.scalars["m_tiles"], step.grid.x) == (3, 2, 6)
    with pytest.raises(ArgumentError, match=r"must have rank 3: \[batch, M, K\]"):
        plan(arguments(65, 64, 64), kernel)
    with pytest.raises(ArgumentError, match="batch of b"):
        plan({**args, "b": stack(2, 64, 64)}, kernel)
    assert plan({n: stack(0, 64, 64) for n in "abd"}, kernel).steps == ()


def test_mn_major_arguments_are_column_major() -> None:
    kernel = ptxgen.kernel("gemm", a_major="mn")
    columns = meta(64, 48, strides=(2, 128))
    assert plan(arguments(64, 32, 48, a=columns), kernel).steps
    with pytest.raises(ArgumentError, match=r"contiguous M.*\n.*\n.*a_major=k"):
        plan(arguments(64, 32, 48), kernel)


def test_the_kernel_may_overlap_the_grid_before_it() -> None:
    """It waits by itself, so every launch says so to the driver."""
    (step,) = plan(arguments(64, 64, 64)).steps
    assert step.pdl
    assert KERNEL.ptx.index("griddepcontrol.wait") < KERNEL.ptx.index("cp.async.bulk.tensor")


def test_nothing_is_loaded_from_an_empty_operand() -> None:
    """With K = 0 neither pitch nor order of A and B matters: no map is made of them."""
    nothing = meta(16, 0, strides=(1, 7))
    assert plan(arguments(16, 16, 0, a=nothing, b=nothing)).steps


# ------------------------------------------------------------------ epilogues


EPILOGUE = ptxgen.kernel("gemm", alpha=1, beta=1, bias="row")


def finished(**others: ArrayMeta) -> dict[str, ArrayMeta]:
    """Arguments of `EPILOGUE` at 64 x 96 x 64."""
    given = {"c": meta(64, 96), "bias": meta(96, name="f32"), **others}
    return arguments(64, 96, 64, **given)


def test_an_epilogue_plans_extents_and_the_pitch_of_c() -> None:
    (step,) = EPILOGUE.plan(finished(c=meta(64, 96, pitch=256)), {"alpha": 2.0}, H200).steps
    assert {name: step.scalars[name] for name in ("d_rows", "d_columns", "c_pitch")} == {
        "d_rows": 64, "d_columns": 96, "c_pitch": 256,
    }  # fmt: skip
    assert "alpha" not in step.scalars  # the caller's


@pytest.mark.parametrize(
    ("others", "field", "words"),
    [
        ({"bias": meta(95, name="f32")}, "N of bias", ["95", "must be 96", "bias is [N]"]),
        ({"bias": meta(1, 96, name="f32")}, "bias", ["must have rank 1: [N]"]),
        ({"bias": meta(96)}, "bias", ["bf16", "must be f32", "bias_dtype=out"]),
        ({"bias": meta(96, name="f16")}, "bias", ["must be f32"]),
        ({"bias": meta(96, name="f32", strides=(8,))}, "bias", ["contiguous", "4 bytes"]),
        ({"c": meta(64, 88)}, "N of c", ["88", "must be 96"]),
        ({"c": meta(64, 96, name="f32")}, "c", ["f32", "must be bf16"]),
        ({"c": meta(64, 96, strides=(2, 128))}, "c", ["contiguous along its last axis"]),
        ({"c": meta(64, 96, pitch=200)}, "c", ["200 B", "multiple of 16 B"]),
    ],
)
def test_what_an_epilogue_refuses(
    others: dict[str, ArrayMeta], field: str, words: list[str]
) -> None:
    with pytest.raises(ArgumentError) as caught:
        EPILOGUE.plan(finished(**others), {"alpha": 1.0, "beta": 1.0}, H200)
    (violation,) = caught.value.violations
    assert violation.field.startswith(field)
    for word in words:
        assert word in str(violation)


def test_a_missing_bias_and_scalars_of_the_plan() -> None:
    args = finished()
    del args["bias"]
    with pytest.raises(ArgumentError, match="bias"):
        EPILOGUE.plan(args, {"alpha": 1.0, "beta": 1.0}, H200)
    with pytest.raises(ArgumentError, match="computed by the plan"):
        EPILOGUE.plan(finished(), {"d_rows": 64}, H200)
    assert "alpha" in refusal(arguments(64, 96, 64), alpha=1)  # a kernel without one
