"""Finding tools: the order of the search, what counts as usable, and what is said when none is."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxgen.errors import ToolMissing
from ptxgen.toolchain import discover

pytestmark = pytest.mark.unit

PTXAS_13_0 = """ptxas: NVIDIA (R) Ptx optimizing assembler
Copyright (c) 2005-2025 NVIDIA Corporation
Built on Wed_Aug_20_01:55:12_PM_PDT_2025
Cuda compilation tools, release 13.0, V13.0.88
Build cuda_13.0.r13.0/compiler.36424714_0
"""


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine without any CUDA tool, whatever this one has."""

    def not_installed(name: str) -> importlib.metadata.Distribution:
        raise importlib.metadata.PackageNotFoundError(name)

    for name in ("PTXGEN_PTXAS", "PTXGEN_NVDISASM", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(importlib.metadata, "distribution", not_installed)
    monkeypatch.setattr(discover, "_SYSTEM_ROOT", tmp_path / "usr_local")
    pathfinder = pytest.importorskip("cuda.pathfinder")
    monkeypatch.setattr(pathfinder, "find_nvidia_binary_utility", lambda name: None, raising=False)
    return monkeypatch


def test_version_text() -> None:
    assert discover.parse_version("ptxas", PTXAS_13_0) == (
        (13, 0, 88), "cuda_13.0.r13.0/compiler.36424714_0", "",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "exit_code", "says"),
    [
        ("", 0, "said: nothing"),
        (PTXAS_13_0, 1, "exit 1"),  # a tool that prints its version and fails is broken
        (PTXAS_13_0.replace("ptxas", "fatbinary"), 0, "not that of ptxas"),
        ("ptxas: command not understood", 0, "command not understood"),
    ],
)
def test_version_that_is_none(text: str, exit_code: int, says: str) -> None:
    version, _, problem = discover.parse_version("ptxas", text, exit_code)
    assert version == ()
    assert says in problem


def test_missing_tool_lists_every_place_and_the_cure(bare: pytest.MonkeyPatch) -> None:
    with pytest.raises(ToolMissing) as caught:
        discover.ptxas()
    message = str(caught.value)
    for place in ("PTXGEN_PTXAS", "nvidia-cuda-nvcc", "cuda.pathfinder", "CUDA_HOME", "CUDA_PATH",
                  "PATH", "usr_local", "pip install nvidia-cuda-nvcc"):  # fmt: skip
        assert place in message
    assert discover.all_ptxas() == ()


def test_missing_disassembler_names_itself(bare: pytest.MonkeyPatch) -> None:
    with pytest.raises(ToolMissing, match="nvdisasm was not found") as caught:
        discover.nvdisasm()
    assert "pip install nvidia-cuda-nvdisasm" in str(caught.value)


def test_order_of_the_search(
    bare: pytest.MonkeyPatch, tmp_path: Path, fake_tool: Callable[..., Path]
) -> None:
    fake_tool(version="13.1.0", folder="usr_local/cuda-13.1/bin")
    assert discover.ptxas().version == (13, 1, 0)
    bare.setenv("PATH", str(fake_tool(version="13.2.0", folder="on_path").parent))
    assert discover.ptxas().version == (13, 2, 0)
    fake_tool(version="13.3.0", folder="home/bin")
    bare.setenv("CUDA_HOME", str(tmp_path / "home"))
    assert discover.ptxas().version == (13, 3, 0)
    bare.setenv("PTXGEN_PTXAS", str(fake_tool(version="12.0.0", folder="chosen")))
    assert discover.ptxas().version == (12, 0, 0)  # the knob wins although it is the oldest
    assert [t.version[1] for t in discover.all_ptxas()] == [0, 3, 2, 1]


def test_newest_system_toolkit_first(
    bare: pytest.MonkeyPatch, fake_tool: Callable[..., Path]
) -> None:
    # As text, 13.10 sorts before 13.9; a plain `cuda` link says nothing of its version.
    for name in ("13.9", "13.10"):
        fake_tool(version=f"{name}.0", folder=f"usr_local/cuda-{name}/bin")
    fake_tool(version="11.0.0", folder="usr_local/cuda/bin")
    assert [t.version_text for t in discover.all_ptxas()] == ["13.10.0", "13.9.0", "11.0.0"]


def test_one_build_at_two_paths_counts_once(
    bare: pytest.MonkeyPatch, fake_tool: Callable[..., Path]
) -> None:
    paths = [fake_tool(folder=f) for f in ("a", "b")]
    bare.setenv("PATH", os.pathsep.join(str(p.parent) for p in paths))
    (tool,) = discover.all_ptxas()
    assert tool.path == paths[0]


@pytest.mark.parametrize("kind", ["absent", "folder", "not executable", "another program"])
def test_bad_knob_is_never_skipped(
    bare: pytest.MonkeyPatch, tmp_path: Path, fake_tool: Callable[..., Path], kind: str
) -> None:
    bare.setenv("PATH", str(fake_tool(folder="good").parent))  # would do, but was not asked for
    path = tmp_path / "chosen"
    if kind == "folder":
        path.mkdir()
    elif kind != "absent":
        path.write_text("#!/bin/sh\necho hello\n")
        path.chmod(0o755 if kind == "another program" else 0o644)
    bare.setenv("PTXGEN_PTXAS", str(path))
    with pytest.raises(ToolMissing, match="from PTXGEN_PTXAS") as caught:
        discover.ptxas()
    assert str(path) in str(caught.value)


def test_broken_tool_on_path_is_passed_over(
    bare: pytest.MonkeyPatch, tmp_path: Path, fake_tool: Callable[..., Path]
) -> None:
    broken = tmp_path / "broken" / "ptxas"
    broken.parent.mkdir()
    broken.write_text("not a program")
    broken.chmod(0o755)
    good = fake_tool(folder="good")
    bare.setenv("PATH", f"{broken.parent}{os.pathsep}{good.parent}")
    assert discover.ptxas().path == good


def test_upgrade_in_place_is_seen(bare: pytest.MonkeyPatch, fake_tool: Callable[..., Path]) -> None:
    bare.setenv("PTXGEN_PTXAS", str(fake_tool(version="13.0.1")))
    assert discover.ptxas().version == (13, 0, 1)
    path = fake_tool(version="13.5.2")
    os.utime(path, ns=(1, 1))  # certainly another time stamp than before
    assert discover.ptxas().version == (13, 5, 2)


def test_tool_as_data(fake_tool: Callable[..., Path]) -> None:
    tool = discover.tool_at("ptxas", fake_tool(version="13.5.37"))
    assert tool.to_dict() == {
        "name": "ptxas", "path": str(tool.path), "version": "13.5.37",
        "build": "cuda_13.5.37/compiler.1_0", "source": "argument",
    }  # fmt: skip
