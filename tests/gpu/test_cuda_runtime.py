"""The CUDA runtime on a real GPU: every check of the checks_* files as a test."""

from __future__ import annotations

import importlib

import pytest
from checking import CHECKS, Skip

pytestmark = pytest.mark.gpu

pytest.importorskip("torch", reason="torch is not installed")
for module in ("results", "arguments", "streams", "launches", "interop"):
    importlib.import_module(f"checks_{module}")


@pytest.mark.parametrize("name", list(CHECKS))
def test_check(name: str) -> None:
    try:
        CHECKS[name]()
    except Skip as reason:
        pytest.skip(str(reason))
