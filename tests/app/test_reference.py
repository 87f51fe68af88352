"""The float64 reference and its bound: what passes, and what must not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ptxgen.app import reference
from ptxgen.configs.gemm import GemmProblem
from ptxgen.isa.dtypes import dtype

pytestmark = pytest.mark.unit

TYPES = ("bf16", "f16", "f32")


def product(kind: str, k: int, out: str):
    a, b = reference.inputs(kind, GemmProblem(), 24, 40, k, seed=1)
    d = (a.astype(np.float64) @ b.astype(np.float64).T).astype(dtype(out).np_dtype)
    return a, b, d


@pytest.mark.parametrize("out", TYPES)
@pytest.mark.parametrize("k", [0, 1, 100])
def test_the_rounded_reference_passes(out: str, k: int) -> None:
    a, b, d = product("random", k, out)
    result = reference.compare(a, b, d, GemmProblem(out_dtype=out), exact=False)
    assert result.ok
    assert result.bound_used <= 1


@pytest.mark.parametrize("out", TYPES)
def test_a_sum_in_f32_passes_in_any_order(out: str) -> None:
    """What hardware may do: f32 additions, here in order of rising magnitude and reversed."""
    a, b, _ = product("random", 300, out)
    terms = a[:, None, :].astype(np.float32) * b[None, :, :].astype(np.float32)
    for order in (np.sort(terms, axis=-1), terms[..., ::-1]):
        total = np.zeros(terms.shape[:2], np.float32)
        for i in range(terms.shape[-1]):
            total += order[..., i]
        d = total.astype(dtype(out).np_dtype)
        assert reference.compare(a, b, d, GemmProblem(out_dtype=out), exact=False).ok


@pytest.mark.parametrize("out", TYPES)
def test_a_missing_k_step_is_seen(out: str) -> None:
    """A wgmma that is left out drops 16 of the products: the smallest real mistake in a sum."""
    a, b, _ = product("random", 100, out)
    short = a.astype(np.float64)[:, :84] @ b.astype(np.float64)[:, :84].T
    result = reference.compare(
        a, b, short.astype(dtype(out).np_dtype), GemmProblem(out_dtype=out), exact=False
    )
    assert not result.ok
    assert result.wrong > 0.9 * result.elements


@pytest.mark.parametrize("exact", [False, True])
def test_an_element_that_nobody_wrote_is_seen(exact: bool) -> None:
    a, b, d = product("integers", 64, "bf16")
    d[3, 5] = np.nan
    result = reference.compare(a, b, d, GemmProblem(), exact=exact)
    assert (result.ok, result.wrong) == (False, 1)
    assert result.first_bad.startswith("D[3, 5] is nan")


@pytest.mark.parametrize("out", TYPES)
def test_exact_means_rounded_once(out: str) -> None:
    a, b, d = product("integers", 200, out)
    assert reference.compare(a, b, d, GemmProblem(out_dtype=out), exact=True).ok
    off = d.copy()
    off[0, 0] = np.nextafter(np.float32(d[0, 0]), np.float32(9e9)) if out == "f32" else d[0, 0] + 8
    assert reference.compare(a, b, off, GemmProblem(out_dtype=out), exact=True).wrong == 1


def test_no_k_gives_zeros_and_nothing_else() -> None:
    a, b, d = product("random", 0, "bf16")
    assert reference.compare(a, b, d, GemmProblem(), exact=False).ok
    d[1, 1] = 2.0**-120
    assert not reference.compare(a, b, d, GemmProblem(), exact=False).ok


def test_an_empty_result_is_correct() -> None:
    a, b = reference.inputs("random", GemmProblem(), 0, 8, 16, seed=0)
    d = reference.poisoned(GemmProblem(), 0, 8)
    assert reference.compare(a, b, d, GemmProblem(), exact=False).ok


def test_the_poison_is_nan_in_every_type() -> None:
    for out in TYPES:
        assert np.isnan(
            reference.poisoned(GemmProblem(out_dtype=out), 2, 3).astype(np.float32)
        ).all()


@pytest.mark.parametrize("activation", ["none", "relu", "gelu", "gelu_tanh", "silu"])
@pytest.mark.parametrize("left_out", ["", "alpha", "beta", "bias"])
def test_an_epilogue_without_one_of_its_terms_is_seen(activation: str, left_out: str) -> None:
    """The right result passes, one with a term left out does not."""
    problem = GemmProblem(alpha=1, beta=1, bias="row", activation=activation)
    a, b = reference.inputs("random", problem, 24, 40, 16, seed=1)
    given = reference.epilogue("random", problem, 24, 40, seed=1)
    nothing = {"": {}, "alpha": {"alpha": 1.0}, "beta": {"beta": 0.0}, "bias": {"bias": None}}
    sums = a.astype(np.float64) @ b.astype(np.float64).T
    given_less = replace(given, **nothing[left_out])
    d = reference.finishing.apply(problem, given_less, sums, 0.0, 0.0).value
    d = d.astype(dtype("bf16").np_dtype)
    assert reference.compare(a, b, d, problem, exact=False, given=given).ok == (not left_out)


@pytest.mark.parametrize("gated", [0, 1])
@pytest.mark.parametrize("scales", ["tensor", "row"])
@pytest.mark.parametrize("forgotten", ["", "scale_a", "scale_b", "out_scale", "amax"])
def test_a_forgotten_scale_is_seen(gated: int, scales: str, forgotten: str) -> None:
    """A scale of 1 in the place of the right one, and an amax that nobody wrote."""
    problem = GemmProblem(scales=scales, gated=gated, out_scale=1, amax=1, activation="silu")
    a, b = reference.inputs("random", problem, 24, 40, 16, seed=1)
    given = reference.epilogue("random", problem, 24, 40, seed=1)
    used = given
    if forgotten not in ("", "amax"):
        used = replace(given, **{forgotten: np.ones_like(getattr(given, forgotten))})
    wide = a.astype(np.float64)[None] if gated else a.astype(np.float64)
    sums = wide @ b.astype(np.float64).swapaxes(-1, -2)
    nothing = np.zeros_like(sums)
    result = reference.finishing.apply(problem, used, sums, nothing, nothing)
    if forgotten != "amax":
        given = replace(given, amax=np.array([result.largest], np.float32))
    d = result.value.astype(dtype("bf16").np_dtype)
    verdict = reference.compare(a, b, d, problem, exact=False, given=given)
    assert verdict.ok == (not forgotten)
    assert ("amax is 0" in verdict.first_bad) == (forgotten == "amax")
