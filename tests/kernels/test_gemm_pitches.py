"""Arrays that TMA cannot take, on exact integers: any pitch, any address that suits an element."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gemm_cases import assert_exact, numpy_type
from gemm_pitches import COPIED, DIRECT, LOADED, check
from machines import Runner
from mutants import Mutant

import ptxgen
import runtime
from ptxgen.configs.gemm import GemmConfig
from ptxgen.errors import ArgumentError, HazardError
from ptxgen.spec import ArrayMeta, DeviceLimits
from runtime import ops

pytestmark = pytest.mark.emu

H200 = DeviceLimits(name="h200", sms=132, ctas=132)

# One element; an odd N and M that end inside of a tile; several tiles, both ways. K is what TMA
# takes of every type.
SHAPES = ((1, 1, 16), (63, 37, 80), (130, 101, 208))


@pytest.mark.parametrize("text", DIRECT)
def test_stores_at_any_pitch(text: str, runner: Runner) -> None:
    for shape in SHAPES:
        check(text, shape, runner)


@pytest.mark.parametrize("text", DIRECT)
def test_stores_of_no_k_and_even_pitches(text: str, runner: Runner) -> None:
    """Zeros (and what an epilogue makes of them), where rows would suit pairs."""
    check(text, (65, 66, 0), runner, before=0, behind=2)


@pytest.mark.parametrize("text", DIRECT)
def test_stores_of_any_schedule_of_warps(text: str, runner: Runner) -> None:
    """Hazards are looked for: rings and sums are used again while others still store."""
    for seed in range(2):
        check(text, (130, 131, 336), runner, sms=4, schedule="random", seed=seed, hazards=True)


# K of one element, and one that ends inside of 4 bytes and wraps the ring; M and N beyond a tile. N
# is what TMA stores, where it does. The emulator takes a tenth of a second for a stage.
COPIED_SHAPES = ((1, 8, 1), (66, 72, 331))


@pytest.mark.parametrize("text", COPIED)
def test_copies_at_any_pitch(text: str, runner: Runner) -> None:
    for shape in COPIED_SHAPES:
        check(text, shape, runner)


@pytest.mark.parametrize("text", COPIED[::4])
def test_copies_of_no_k_and_whole_rows(text: str, runner: Runner) -> None:
    check(text, (65, 72, 0), runner)
    check(text, (64, 64, 128), runner, words=4)


@pytest.mark.parametrize("text", [COPIED[1], COPIED[3], COPIED[9], COPIED[10]])
@pytest.mark.parametrize("mode", ["latest", "random"])
def test_copies_of_any_schedule_of_warps(text: str, mode: str, runner: Runner) -> None:
    """Rings wrap over several tiles, and copies land as late as they may, or at random."""
    columns = 24 if "tile=64x8," in text else 72  # three tiles of eight columns are several, too
    check(
        text, (66, columns, 202), runner, sms=1, schedule="random", seed=1, mode=mode, hazards=True
    )


# K of one element, and one that ends inside of every word and of a row of 128 bytes; one row, and M
# and N that end inside of a tile. Every pitch is odd.
LOADED_SHAPES = ((1, 8, 1), (66, 72, 331))


@pytest.mark.parametrize("text", LOADED)
def test_loads_at_any_pitch(text: str, runner: Runner) -> None:
    for shape in LOADED_SHAPES:
        check(text, shape, runner)


@pytest.mark.parametrize("text", LOADED[::4])
def test_loads_of_no_k_and_dense_rows(text: str, runner: Runner) -> None:
    """Zeros; rows of an odd K one after another; even rows that start at an odd element."""
    check(text, (65, 72, 0), runner)
    check(text, (64, 64, 129), runner, words=0)
    check(text, (63, 56, 128), runner, words=3)


@pytest.mark.parametrize("text", [LOADED[1], LOADED[4], LOADED[11], LOADED[12]])
@pytest.mark.parametrize("mode", ["latest", "random"])
def test_loads_of_any_schedule_of_warps(text: str, mode: str, runner: Runner) -> None:
    """Rings wrap over several tiles, and hazards are looked for: stages are used again."""
    check(text, (66, 72, 203), runner, sms=1, schedule="random", seed=1, mode=mode, hazards=True)


KERNEL = ptxgen.kernel("gemm", store="direct", beta=1)


def meta(*shape: int, strides: tuple[int, ...] = (), **fields: Any) -> ArrayMeta:
    dense = strides or tuple(2 * int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
    return ArrayMeta(
        **{"shape": shape, "strides": dense, "dtype": "bf16", "address": 4096, **fields}
    )


@pytest.mark.parametrize("name", ["d", "c"])
@pytest.mark.parametrize(
    ("array", "words"),
    [
        (meta(16, 9, strides=(18, 4)), ["contiguous along N", "2 bytes"]),
        (meta(16, 9, strides=(19, 2)), ["19 B", "multiple of 2 B"]),
        (meta(16, 9, strides=(16, 2)), ["16 B", "18 B or more"]),
        (meta(16, 9, strides=(0, 2)), ["0 B"]),
        (meta(16, 9, strides=(-18, 2)), ["-18 B"]),
        (meta(16, 9, address=4097), ["0x1001", "multiple of 2 B"]),
        (meta(16, 9, dtype="f32", strides=(36, 4)), ["must be bf16"]),
    ],
)
def test_what_direct_stores_refuse(name: str, array: ArrayMeta, words: list[str]) -> None:
    args = {"a": meta(16, 16), "b": meta(9, 16), "c": meta(16, 9), "d": meta(16, 9)}
    assert KERNEL.plan(args, {"beta": 1.0}, H200).steps[0].scalars["d_pitch"] == 18
    with pytest.raises(ArgumentError) as caught:
        KERNEL.plan({**args, name: array}, {"beta": 1.0}, H200)
    (violation,) = caught.value.violations
    assert violation.field.startswith(name)
    for word in words:
        assert word in str(violation)


def test_one_row_has_no_pitch() -> None:
    """And one column no order: strides of axes with one element are never walked."""
    args = {"a": meta(1, 16), "b": meta(9, 16), "c": meta(1, 9), "d": meta(1, 9, strides=(-7, 2))}
    assert KERNEL.plan(args, {"beta": 1.0}, H200).steps[0].scalars["d_pitch"] == 0
    column = meta(16, 1, strides=(2, 999))
    args = {"a": meta(16, 16), "b": meta(1, 16), "c": column, "d": column}
    assert KERNEL.plan(args, {"beta": 1.0}, H200).steps[0].scalars["d_pitch"] == 2


def test_tma_names_direct_stores() -> None:
    """What TMA refuses of D says which config takes it, and only where one does."""
    kernel = ptxgen.kernel("gemm")
    args = {"a": meta(16, 16), "b": meta(9, 16), "d": meta(16, 9)}
    with pytest.raises(ArgumentError, match="make the kernel with store=direct"):
        kernel.plan(args, {}, H200)
    with pytest.raises(ArgumentError) as caught:
        kernel.plan({**args, "d": meta(16, 9, strides=(0, 2))}, {}, H200)
    assert "store=direct" not in str(caught.value)


COPYING = ptxgen.kernel("gemm", load="cp_async", cluster=(1, 1))


@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize(
    ("array", "words"),
    [
        (meta(16, 9), ["18 B", "multiple of 4 B", "padded"]),
        (meta(16, 9, strides=(-20, 2)), ["-20 B", "not negative"]),
        (meta(16, 9, strides=(2, 32)), ["contiguous along K"]),
        (meta(16, 9, strides=(20, 2), address=4098), ["0x1002", "multiple of 4 B"]),
        (meta(16, 9, strides=(36, 4), dtype="f32"), ["must be bf16", "dtype=tf32"]),
    ],
)
def test_what_copies_refuse(name: str, array: ArrayMeta, words: list[str]) -> None:
    padded = meta(16, 9, strides=(20, 2), address=4100)
    args = {"a": padded, "b": padded, "d": meta(16, 16)}
    scalars = COPYING.plan(args, {}, H200).steps[0].scalars
    assert {name: scalars[name] for name in ("a_pitch", "b_rows", "k_elements")} == {
        "a_pitch": 20, "b_rows": 16, "k_elements": 9,
    }  # fmt: skip
    with pytest.raises(ArgumentError) as caught:
        COPYING.plan({**args, name: array}, {}, H200)
    (violation,) = caught.value.violations
    assert violation.field.startswith(name)
    for word in words:
        assert word in str(violation)


LOADING = ptxgen.kernel("gemm", load="ld", cluster=(1, 1))


@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize(
    ("array", "words"),
    [
        (meta(16, 9, strides=(19, 2)), ["19 B", "multiple of 2 B", "contiguous copy"]),
        (meta(16, 9, strides=(-18, 2)), ["-18 B", "not negative"]),
        (meta(16, 9, strides=(2, 32)), ["contiguous along K"]),
        (meta(16, 9, address=4097), ["0x1001", "multiple of 2 B"]),
    ],
)
def test_what_loads_refuse(name: str, array: ArrayMeta, words: list[str]) -> None:
    """And what they take: an odd pitch, an odd element, and rows that are one."""
    odd = meta(16, 9, address=4098)
    args = {"a": odd, "b": meta(16, 9, strides=(0, 2)), "d": meta(16, 16)}
    scalars = LOADING.plan(args, {}, H200).steps[0].scalars
    assert (scalars["a_pitch"], scalars["b_pitch"], scalars["k_elements"]) == (18, 0, 9)
    with pytest.raises(ArgumentError) as caught:
        LOADING.plan({**args, name: array}, {}, H200)
    (violation,) = caught.value.violations
    assert violation.field.startswith(name)
    assert "make the kernel" not in violation.fix
    for word in words:
        assert word in str(violation)


TMA = ptxgen.kernel("gemm")
TF32 = ptxgen.kernel("gemm", dtype="tf32", load="cp_async", cluster=(1, 1))
GATED = ptxgen.kernel("gemm", gated=1)
ROWS10, ROWS9 = meta(16, 10), meta(16, 9)  # multiples of 4 bytes apart, and not
PADDED9 = meta(16, 9, strides=(20, 2))
WORDS9 = meta(16, 9, strides=(38, 4), dtype="f32")
TRANSPOSED9 = meta(16, 9, strides=(2, 36))


@pytest.mark.parametrize(
    ("kernel", "a", "b", "names"),
    [
        (TMA, ROWS10, ROWS10, "load=cp_async"),
        (TMA, ROWS9, ROWS9, "load=ld"),
        (TMA, PADDED9, ROWS9, "load=ld"),  # a kernel has one load
        (TMA, ROWS9, PADDED9, "load=ld"),
        (TMA, ROWS9, TRANSPOSED9, None),  # no load takes both
        (GATED, ROWS10, meta(2, 16, 10), None),
        (COPYING, ROWS9, PADDED9, "load=ld"),
        (COPYING, ROWS9, TRANSPOSED9, None),
        (TF32, WORDS9, WORDS9, None),  # no multiple of an element
    ],
)
def test_refusals_name_the_cheapest_load(
    kernel: ptxgen.Kernel, a: ArrayMeta, b: ArrayMeta, names: str | None
) -> None:
    """What A and B are refused for says which config takes both, where one does."""
    with pytest.raises(ArgumentError) as caught:
        kernel.plan({"a": a, "b": b, "d": meta(16, 16)}, {}, H200)
    loads = [v for v in caught.value.violations if v.field[0] in "ab"]
    assert loads
    for violation in loads:
        assert ("make the kernel with load" in violation.fix) == (names is not None)
        assert names is None or f"{names}, cluster=1x1" in violation.fix


@pytest.mark.parametrize("only", [r"setp.gt.s32 %reads, %rest, \1;", "mov.pred %reads, %inside;"])
def test_nothing_outside_of_an_array_is_read(only: str, runner: Runner) -> None:
    """Arrays that end with their last element: loads held back along one axis alone fault."""
    kernel = ptxgen.kernel_from(LOADED[0])
    a, b = (np.ones((rows, 67), numpy_type("bf16")) for rows in (65, 72))
    assert_exact(runner.run(kernel, {"a": a, "b": b}, {"d": ((65, 72), a.dtype)})["d"], a, b)
    edges = r"setp\.gt\.and\.s32 %reads, %rest, (\d+), %inside;"
    half = Mutant(re.sub(edges, only, kernel.ptx), kernel)
    assert half.ptx != kernel.ptx
    with pytest.raises(HazardError, match="past the end"):
        runtime.launch(half, a=a, b=b, d=np.empty((65, 72), a.dtype), backend="emulator")


def test_gemm_of_views_by_config(rng: np.random.Generator) -> None:
    """ops.gemm refuses views whose rows lie anywhere, and names the configs that take them."""
    a = rng.integers(-3, 4, (70, 106)).astype(numpy_type("bf16"))[:, 2:104]
    w = rng.integers(-3, 4, (37, 106)).astype(numpy_type("bf16"))[:, 2:104]
    whole = np.full((70, 39), 7, numpy_type("bf16"))
    d = whole[:, 1:38]
    with pytest.raises(ArgumentError) as caught:
        ops.gemm(a, w.T, out=d, backend="emulator")
    assert "pass config=GemmConfig(load='cp_async', cluster=(1, 1))" in str(caught.value)
    assert "pass config=GemmConfig(store='direct')" in str(caught.value)
    with pytest.raises(ArgumentError, match=r"pass config=GemmConfig\(load='ld', cluster="):
        ops.gemm(a[:, 1:], w[:, 1:].T, out=d, backend="emulator")
    config = GemmConfig(tile=(64, 64), load="ld", store="direct", cluster=(1, 1))
    assert ops.gemm(a[:, 1:], w[:, 1:].T, out=d, config=config, backend="emulator") is d
    assert_exact(d, a[:, 1:], w[:, 1:])
    config = replace(config, load="cp_async")
    assert ops.gemm(a, w.T, out=d, config=config, backend="emulator") is d
    assert_exact(d, a, w)
    assert np.array_equal(whole[:, 0].astype(int), [7] * 70)
    assert np.array_equal(whole[:, 38].astype(int), [7] * 70)
