"""Importing the packages loads nothing heavy, and works without a driver."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]


def modules_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"],
        check=True, capture_output=True, text=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return set(done.stdout.split())


@pytest.mark.parametrize("name", ["numpy", "jinja2", "cuda.bindings", "ml_dtypes", "torch"])
def test_import_is_light(name: str) -> None:
    assert name not in modules_after("import ptxgen, runtime")


def test_a_launcher_on_the_host_imports_no_cuda() -> None:
    loaded = modules_after("import runtime; runtime.launch; runtime.ops; runtime.tensor_map")
    assert "numpy" in loaded
    assert not {m for m in loaded if m.startswith(("cuda", "runtime.cuda"))}


def test_names_are_listed_and_unknown_ones_refused() -> None:
    import runtime

    assert {"launch", "prepare", "wait", "ops", "tensor_map"} <= set(dir(runtime))
    with pytest.raises(AttributeError, match="lunch"):
        runtime.lunch  # noqa: B018
