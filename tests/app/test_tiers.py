"""The tiers of our own tests: what is skipped, what is refused, and the table at the end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
WITHOUT = [f"-pno:{plugin}" for plugin in ("cacheprovider", "xdist", "hypothesispytest")]  # fast
ONE_OF = "import pytest\n@pytest.mark.{tier}\ndef test_it():\n    pass\n"


def session(
    folder: Path, text: str, *, conftest: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run pytest on one test file with our hooks, in a process of its own."""
    (folder / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "tiers.py", folder / "tests")
    hooks = "from tiers import *\n" + conftest
    (folder / "tests" / "conftest.py").write_text(hooks)
    (folder / "tests" / "test_one.py").write_text(text)
    shutil.copy(ROOT / "pyproject.toml", folder)
    clean = {k: v for k, v in os.environ.items() if k != "CI" and not k.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *WITHOUT],
        cwd=folder,
        env={**clean, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_table_counts_each_tier(tmp_path: Path) -> None:
    done = session(tmp_path, ONE_OF.format(tier="unit"))
    assert done.returncode == 0, done.stdout
    (row,) = [line.split() for line in done.stdout.splitlines() if line.startswith("unit")]
    assert row[1:4] == ["1", "0", "0"]


def test_a_test_without_a_tier_is_refused(tmp_path: Path) -> None:
    done = session(tmp_path, "def test_it():\n    pass\n")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "has none of the markers unit, asm, emu, gpu" in done.stderr + done.stdout


def test_a_missing_tool_skips_with_its_name(tmp_path: Path) -> None:
    done = session(tmp_path, ONE_OF.format(tier="asm"), PTXGEN_PTXAS="/nonexistent")
    assert done.returncode == 0
    assert "asm tier: ptxas: /nonexistent" in done.stdout


def test_a_missing_tool_is_an_error_in_ci(tmp_path: Path) -> None:
    done = session(tmp_path, ONE_OF.format(tier="asm"), PTXGEN_PTXAS="/nonexistent", CI="true")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "CI must run the asm tier" in done.stderr + done.stdout


@pytest.mark.parametrize("ci", ["true", ""])
def test_a_tier_that_takes_too_long_fails_in_ci_only(tmp_path: Path, ci: str) -> None:
    shares = "import tiers\ntiers.SHARES['unit'] = 0.0\n"
    done = session(tmp_path, ONE_OF.format(tier="unit"), conftest=shares, CI=ci)
    assert (done.returncode != 0) is bool(ci)
    assert ("its share is 0 s" in done.stdout) is bool(ci)
