"""README.md says what is so: what ptxas and nvdisasm have a say in."""

from __future__ import annotations

import re

import pytest
import readme

from ptxgen import kernel

pytestmark = pytest.mark.asm


def test_the_verification_excerpt_names_real_promises() -> None:
    """Names and wants; what was got may name addresses, which differ between ptxas releases."""
    rows = {(row.name, row.want) for row in kernel("gemm").verify().rows}
    shown = [
        tuple(re.split(r"\s{2,}", line.strip())[1:3])
        for line in readme.block_with("USETMAXREG").splitlines()
        if line.startswith("  ok  ")
    ]
    assert shown
    assert set(shown) <= rows
