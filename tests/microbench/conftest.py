"""Scripts of examples/microbench as modules, and what they recorded."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDER = EXAMPLES / "microbench"


class Load(Protocol):
    def __call__(self, name: str) -> ModuleType: ...


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Import a script of the folder, and forget it and its neighbours afterwards."""
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)

    def load(name: str) -> ModuleType:
        return __import__(name)

    yield load
    for name in set(sys.modules) - before:
        if (FOLDER / f"{name}.py").is_file():
            del sys.modules[name]


@pytest.fixture(scope="session")
def record() -> Mapping[str, Mapping[str, Any]]:
    """The answers of the H200 by fact."""
    lines = (EXAMPLES / "results" / "microbench.jsonl").read_text("utf-8").splitlines()
    return {row["fact"]: row for row in map(json.loads, lines)}
