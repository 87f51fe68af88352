"""The quantize kernels as text: contract, signature, and the SASS on every ptxas."""

from __future__ import annotations

import pytest
from batches import verify_all

import ptxgen
from ptxgen.kernels import registry
from ptxgen.ptx import parse, signature
from ptxgen.spec import PointerParam
from ptxgen.toolchain.discover import Tool, all_ptxas

pytestmark = pytest.mark.asm

REFERENCES = tuple(
    f"quantize:dtype={dtype},out_dtype={out},scales={scales}"
    for dtype in ("bf16", "f16", "f32")
    for out, scales in (("e4m3", "row"), ("e5m2", "row_given"), ("e4m3", "tensor"),
                        ("e5m2", "tensor_given"), ("e4m3", "none"))
)  # fmt: skip


@pytest.mark.parametrize("ptxas", all_ptxas(), ids=lambda tool: tool.version_text)
def test_every_promise_holds(ptxas: Tool) -> None:
    sources = {text: registry.build(*registry.parse_reference(text)) for text in REFERENCES}
    by_version = sorted(sources.items(), key=lambda x: x[1].spec.ptx_version, reverse=True)
    found = verify_all({text: (s.rendered, s.expectation) for text, s in by_version}, ptxas)
    for text, report in found.items():
        assert report.ok, f"{text}\n{report}"


@pytest.mark.parametrize("text", [*REFERENCES, "quantize:warps=4"])
def test_spec_and_contract_are_those_of_the_ptx(text: str) -> None:
    source = registry.build(*registry.parse_reference(text))
    ptx, spec = str(source.rendered), source.spec
    found = signature(parse(ptx))
    assert (found.entry, found.block) == (spec.entry, spec.block)
    assert [p.name for p in found.params] == [p.name for p in spec.params]
    for given, want in zip(found.params, spec.params, strict=True):
        assert given.type == ("u64" if isinstance(want, PointerParam) else want.ptx_type)
    contract = ptx[: ptx.index(".version")]
    assert f"Warps        {spec.block.x // 32} a CTA" in contract
    assert f"{16 // source.problem.x.bytes} elements, 32 lanes" in contract
    assert max(map(len, ptx[: ptx.index(chr(10) + "{")].splitlines())) <= 100


def test_a_report_has_no_pool_of_registers() -> None:
    """Nothing is shared out by setmaxnreg: occupancy goes by what ptxas gave."""
    report = ptxgen.kernel("quantize").report()
    titles = [title for title, _ in report.sections()]
    assert titles == ["config", "launch", "roles", "occupancy", "ptxas", "SASS"]
    assert report.to_dict()["registers"] is None
    assert report.occupancy.ctas == 8  # of 256 threads: all 2,048 of an SM
