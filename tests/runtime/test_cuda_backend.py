"""Builds the fake driver and runs cuda_scenarios*.py against it, in a process of its own.

The library answers to the name libcuda.so.1, so cuda.bindings' own code is exercised: structs,
attributes and parameter pointers are read back in C, as a driver would.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

HERE = Path(__file__).parent
COMPILER = shutil.which("cc") or shutil.which("gcc")


def test_scenarios(tmp_path: Path) -> None:
    if COMPILER is None:
        pytest.skip("no C compiler to build the fake driver with")
    if not sys.platform.startswith("linux"):
        pytest.skip("the fake driver is an ELF library")
    library = tmp_path / "libcuda.so.1"
    subprocess.run(
        [COMPILER, "-shared", "-fPIC", "-O1", "-Wl,-soname,libcuda.so.1", "-o", str(library),
         str(HERE / "fake_driver.c"), "-ldl"],
        check=True,
    )  # fmt: skip
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[1])]),
    }
    environment.pop("PTXGEN_BACKEND", None)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
         "-p", "no:benchmark", "-p", "cuda_fixtures",
         *map(str, sorted(HERE.glob("cuda_scenarios*.py")))],
        env=environment, cwd=HERE.parents[1], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
