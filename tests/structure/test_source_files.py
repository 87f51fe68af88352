"""Files that stay short, and speak of this project only."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
MOST_LINES = 450  # a file with one job
TABLES = ("ptxgen/isa/forms",)  # one row an instruction form
# Files that are longer than that, and by how much at most. Rows may only go.
LONGER = {"ptxgen/ptx/parser.py": 500}
# Places of one machine, and words that mean "not done"; added up, so that this file may hold them.
PLACES = ["/wo" + "rk/", "/tm" + "p/", "/home/" + r"\w", "/ro" + "ot/"]
UNDONE = [rf"\b{word}\b" for word in ("TO" + "DO", "FIX" + "ME", "X" + "XX")]
FORBIDDEN = re.compile("|".join([*PLACES, *UNDONE]))
TEXT = (".py", ".j2", ".md", ".toml", ".ptx", ".cfg", ".yml", ".txt", "Makefile", "run")


def tracked() -> list[str]:
    """Files under version control; without git, what the packages hold."""
    done = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    if done.returncode == 0 and done.stdout:
        return [name for name in done.stdout.splitlines() if (ROOT / name).is_file()]
    folders = ("ptxgen", "runtime", "ptx_templates", "tests", "examples")
    return [
        str(path.relative_to(ROOT))
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]


def test_python_files_are_short() -> None:
    lengths = {
        name: len((ROOT / name).read_text(encoding="utf-8").splitlines())
        for name in tracked()
        if name.endswith(".py") and not name.startswith(TABLES)
    }
    assert all(lengths[name] > MOST_LINES for name in LONGER), "a row of LONGER can go"
    limits = {name: LONGER.get(name, MOST_LINES) for name in lengths}
    assert {name: n for name, n in lengths.items() if n > limits[name]} == {}


def test_templates_are_short() -> None:
    """A kernel is one page of template; lib and blocks are small."""
    for name in tracked():
        if name.endswith(".ptx.j2"):
            limit = MOST_LINES if name.startswith("ptx_templates/kernels/") else 150
            assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= limit, name


def test_no_machine_paths_and_nothing_left_to_do() -> None:
    found = [
        f"{name}:{number}: {line.strip()[:80]}"
        for name in tracked()
        if name.endswith(TEXT)
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1)
        if FORBIDDEN.search(line)
    ]
    assert found == []
