"""Every line of every template, through every ptxas that is here, in one process each."""

from __future__ import annotations

import pytest
from coverage_kernels import module, sources

from ptxgen.toolchain.assemble import assemble, require_clean
from ptxgen.toolchain.discover import Tool, all_ptxas

pytestmark = pytest.mark.asm


@pytest.mark.parametrize("ptxas", all_ptxas(), ids=lambda tool: tool.version_text)
def test_every_template_line_assembles_and_nothing_is_lost(ptxas: Tool) -> None:
    """What renders all lines is `coverage_kernels`; a unit test holds it to that."""
    cubin = require_clean(assemble(module(), ptxas=ptxas))
    entries = {entry.function for entry in cubin.report.entries}
    assert entries == {source.spec.entry for source in sources()}
