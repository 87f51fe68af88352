"""Foreign PTX, printed anew in our form: ptxas makes the same machine code of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from launching import HERE, source

from ptxgen.ptx import parse, print_module
from ptxgen.toolchain.assemble import assemble
from ptxgen.toolchain.elf import sections_of

pytestmark = pytest.mark.asm

TEXTS = sorted(str(path.relative_to(HERE).with_suffix("")) for path in HERE.rglob("*.ptx"))
CODE = (".text.", ".nv.constant", ".nv.global", ".nv.info.")


@pytest.mark.parametrize("name", TEXTS)
def test_the_canonical_text_gives_the_same_code(name: str) -> None:
    text = source(name)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(code, (text, print_module(parse(text))))
    assert any(section.startswith(".text.") for section in first)
    assert first == second


def code(ptx: str) -> dict[str, bytes]:
    """Instructions, constants, initial data and attributes; what is left tells of PTX lines."""
    cubin = assemble(ptx).bytes
    return {
        name: cubin[section.offset : section.end]
        for name, section in sections_of(cubin).items()
        if name.startswith(CODE)
    }


def test_other_code_is_seen() -> None:
    text = source("block_sum")
    assert code(text) != code(text.replace("add.f32", "sub.f32", 1))
