"""The columns can fail: what checks the cases, checked with cases that are wrong."""

from __future__ import annotations

import assembly
import case_kernel
import compare_results
import goldens
import numpy as np
import pytest
from goldens import Golden

from ptxgen.isa.forms import FORMS, NEWEST, Bound, Form

GOOD = Form(
    id="good", text="add.u32 {d}, {a}, {a};", macro="math.add", writes="d:u32", reads="a:u32"
)
BAD = Form(id="bad", text="add.u77 {d}, {a}, {a};", macro="math.add", writes="d:u32", reads="a:u32")
LATE = Form(id="late", text="elect.sync _|{p}, -1;", macro="warp.elect", writes="p:pred")


def kernel_of(id: str) -> case_kernel.CaseKernel:
    return case_kernel.kernels(next(form for form in FORMS if form.id == id))[0]


@pytest.mark.asm
def test_a_refusal_names_its_case() -> None:
    cases = [case for form in (GOOD, BAD, LATE) for case in form.cases()]
    assert set(assembly.refusals(cases, NEWEST, "sm_90a")) == {"bad"}
    assert set(assembly.refusals(cases, (7, 8), "sm_90")) == {"bad", "late"}


@pytest.mark.unit
@pytest.mark.parametrize(
    ("type_", "ours", "theirs", "distance"),
    [
        ("f32", [1.0, -1.0], [1.0, -1.0], 0),
        ("f32", [0.0], [-0.0], 0),
        ("f32", [np.nextafter(np.float32(1), np.float32(2))], [1.0], 1),
        ("f32", [1e-45], [-1e-45], 2),
        ("f32", [np.nan], [np.nan], 0),
        ("f64", [np.nextafter(2.0, 0)], [np.nextafter(2.0, 3)], 2),
    ],
)
def test_distances(type_: str, ours: list[float], theirs: list[float], distance: int) -> None:
    dtype, raw = (np.float32, np.uint32) if type_ == "f32" else (np.float64, np.uint64)
    slots = [np.array(x, dtype).view(raw).astype(np.uint64) for x in (ours, theirs)]
    assert compare_results.excess(type_, *slots, Bound(ulp=-1)) == distance
    assert compare_results.excess(type_, *slots, Bound(ulp=distance)) == 0


@pytest.mark.unit
@pytest.mark.parametrize(
    ("theirs", "bound", "far"),
    [
        (1.25, Bound(absolute=0.25), False),
        (1.25, Bound(relative=0.25), False),
        (1.25, Bound(absolute=0.2, relative=0.2), True),  # the larger counts, not their sum
        (np.nan, Bound(absolute=9.0), True),
        (np.inf, Bound(absolute=9.0, relative=9.0), True),
    ],
)
def test_bounds(theirs: float, bound: Bound, far: bool) -> None:
    slots = [np.array([x], np.float32).view(np.uint32).astype(np.uint64) for x in (1.0, theirs)]
    assert bool(compare_results.excess("f32", *slots, bound)) == far


@pytest.mark.unit
def test_what_disagrees_is_said() -> None:
    """Bits that differ, inputs that differ, a case that faulted; and values past their bound."""
    kernel = kernel_of("add.int")
    same = Golden(case=kernel.id, inputs="i", digest=case_kernel.digest(b"x"))
    assert compare_results.difference(kernel, b"x", "i", same) == ""
    assert "digest" in compare_results.difference(kernel, b"y", "i", same)
    assert "inputs" in compare_results.difference(kernel, b"x", "j", same)
    fault = Golden(case=kernel.id, inputs="", fault="CUDA_ERROR_ILLEGAL_INSTRUCTION")
    assert "ILLEGAL" in compare_results.difference(kernel, b"x", "i", fault)

    approximate = kernel_of("rcp.approx")
    ours = np.full(32, 0x3F800000, np.uint64)
    for off, verdict in ((2, ""), (3, "3 ulp")):
        theirs = Golden(case="", inputs="i", digest="?", values=(ours + off).tobytes().hex())
        assert verdict in compare_results.difference(approximate, ours.tobytes(), "i", theirs)
    assert compare_results.difference(approximate, ours.tobytes(), "i", theirs)


@pytest.mark.unit
def test_inputs_are_the_same_everywhere() -> None:
    """A record is of use only while the generator gives the same bytes: hold one of each kind."""
    for id in ("add.int", "fma.float", "wgmma.sp.f16", "cp.async.bulk.tensor.load"):
        first, second = (goldens.inputs_digest(kernel_of(id).arrays(0)) for _ in range(2))
        assert first == second != goldens.inputs_digest(kernel_of(id).arrays(1))
