"""The twins are programs that ptxas takes: their mistakes are those that no assembler reports."""

from __future__ import annotations

import re

import pytest

from ptxgen.errors import AssembleError
from ptxgen.isa import twins
from ptxgen.isa.rules import RULES
from ptxgen.toolchain.assemble import assemble
from ptxgen.toolchain.discover import all_ptxas

pytestmark = pytest.mark.asm

_HEADER = re.compile(r"^\.(version|target|address_size) .*$", re.MULTILINE)
# The bad twins that ptxas does refuse, and its words: they say little about the cause.
REFUSED = {
    "lint-version": "Feature 'elect' requires PTX ISA .version 8.0",
    "lint-special-name": "Unknown video selector: '.x'",
}


def module(side: str) -> str:
    """One module with an entry for every rule, under the newest header that a twin asks for."""
    parts = [".version 8.3", ".target sm_90a", ".address_size 64"]
    for code in RULES:
        pair = twins.read(code)
        text = pair.bad if side == "bad" and code not in REFUSED else pair.good
        name = code.replace("-", "_")
        body = _HEADER.sub("", text)
        parts.append(body.replace(" twin(", f" {name}(").replace("table", f"table_{name}"))
    return "\n".join(parts)


@pytest.mark.parametrize("side", ["good", "bad"])
def test_ptxas_takes_the_twins(side: str) -> None:
    """One process for all good twins and one for all bad ones, with every ptxas that is here."""
    text = module(side)
    for tool in all_ptxas():
        assemble(text, ptxas=tool)


@pytest.mark.parametrize(("code", "words"), REFUSED.items())
def test_ptxas_refuses_only_these(code: str, words: str) -> None:
    with pytest.raises(AssembleError, match=re.escape(words)):
        assemble(twins.read(code).bad)
