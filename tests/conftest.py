"""What all tests share: the tiers, options, a cache of their own, and seeds that do not change."""

from __future__ import annotations

import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from typing import Any

import hypothesis
import isa_columns
import numpy as np
import pytest
from machines import BACKENDS, Runner
from tiers import (
    pytest_collection_modifyitems,
    pytest_runtest_logreport,
    pytest_sessionfinish,
    pytest_terminal_summary,
)

__all__ = [
    "pytest_collection_modifyitems",
    "pytest_runtest_logreport",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
]

# Knobs of ours that would change what a test sees; paths of tools stay as they are.
CLEARED = ("PTXGEN_BACKEND", "PTXGEN_DEBUG", "PTXGEN_DUMP", "PTXGEN_ADVISORIES")

# No deadline: two workers share a machine with whatever else runs. No database: each run draws the
# same examples, so that a failure is a failure for everybody.
hypothesis.settings.register_profile("ptxgen", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("ptxgen")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--backend", choices=tuple(BACKENDS), default="emulator",
        help="where kernels run; both: on the two, and the results must be equal bit for bit",
    )  # fmt: skip
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite golden files and show what changed"
    )


def pytest_configure(config: pytest.Config) -> None:
    """One cache for all workers of this run: the controller makes it, they inherit its variable."""
    config.pluginmanager.register(isa_columns)
    if hasattr(config, "workerinput"):
        return
    for name in CLEARED:
        os.environ.pop(name, None)
    # JAX would take three quarters of the GPU's memory, and workers share it.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    folder = tempfile.mkdtemp(prefix="ptxgen-tests-")
    os.environ["PTXGEN_CACHE_DIR"] = folder
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers that depend on the test's name only."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture
def host_jax() -> Iterator[Any]:
    """JAX, whose arrays are made in host memory also where it has a GPU."""
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    with jax.default_device(jax.devices("cpu")[0]):
        yield jax


@pytest.fixture(scope="session")
def runner(request: pytest.FixtureRequest) -> Runner:
    """Runs kernels on the backends that `--backend` names."""
    return Runner(request.config.getoption("--backend"))
