"""examples/notebooks/tour.ipynb: every cell runs, top to bottom, and shows what it speaks of."""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from cells import code_cells, load, run_notebook

pytestmark = pytest.mark.emu

TOUR = Path(__file__).parents[2] / "examples" / "notebooks" / "tour.ipynb"
LIMIT_S = 90.0
KERNEL = find_spec("nbclient") is not None and find_spec("ipykernel") is not None


def test_it_runs_and_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXGEN_BACKEND", "emulator")
    monkeypatch.setitem(sys.modules, "torch", None)  # as on a machine without it
    start = time.perf_counter()
    ran = run_notebook(TOUR)
    assert time.perf_counter() - start < LIMIT_S
    pages = [bundle["text/html"] for bundle in ran.shown if "text/html" in bundle]
    assert len(pages) >= 15, "most cells end in something to look at"
    for page in pages:
        assert page.count("<script") == 0
        assert 'class="pg-view"' in page
    everything = "".join(pages)
    for words in (
        "consumers: multiply and store",  # the PTX, folded
        "checks hold",
        "HGMMA",
        "same tensor and TMA code",  # the verdict of the diff
        "tma load bytes",  # what the emulator counted
        "plain load from global memory",  # the path check
    ):
        assert words in everything
    text = "".join(ran.printed)
    for words in (
        "use stages<=4",
        "wgmma-in-flight",
        "row pitch",
        "gemm.ptx.j2",
    ):
        assert words in text


@pytest.mark.skipif(not KERNEL, reason="nbclient and ipykernel are not installed")
def test_it_runs_in_a_kernel_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same through Jupyter's own machinery: an error in a cell is raised here."""
    import nbclient
    import nbformat

    monkeypatch.setenv("PTXGEN_BACKEND", "emulator")
    monkeypatch.setenv("PYTHONPATH", str(TOUR.parents[2]))
    notebook = nbformat.read(TOUR, as_version=4)
    nbclient.NotebookClient(notebook, timeout=LIMIT_S, kernel_name="python3").execute()
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    assert sum(any("text/html" in o.get("data", {}) for o in found) for found in outputs) >= 15


def test_it_is_kept_without_outputs() -> None:
    """What is committed is what was written; whoever runs it sees their own machine."""
    for cell in load(TOUR):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


def test_it_teaches() -> None:
    """Words between the code, and no cell too long to read."""
    cells = load(TOUR)
    words = [cell for cell in cells if cell["cell_type"] == "markdown"]
    assert len(words) >= len(cells) // 3
    assert max(code.count("\n") for code in code_cells(TOUR)) <= 45
