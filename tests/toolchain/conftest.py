"""What the toolchain tests share: captured data, every ptxas that is here, a cache of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ptxgen.toolchain.cache import Store
from ptxgen.toolchain.discover import Tool, all_nvdisasm, all_ptxas

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    return DATA


@pytest.fixture(scope="session")
def ring_ptx() -> str:
    """A warp-specialised kernel with TMA, mbarriers, wgmma and setmaxnreg."""
    return (DATA / "wgmma_ring.ptx").read_text()


@pytest.fixture(
    params=all_ptxas() or [pytest.param(None, marks=pytest.mark.skip(reason="no ptxas was found"))],
    ids=lambda tool: f"ptxas-{tool.version_text}" if tool else "no-ptxas",
)
def assembler(request: pytest.FixtureRequest) -> Tool:
    """Each ptxas of this machine in turn: what holds must hold for all of them."""
    tool: Tool = request.param
    return tool


@pytest.fixture
def disassembler() -> Tool:
    tools = all_nvdisasm()
    if not tools:
        pytest.skip("no nvdisasm was found")
    return tools[0]


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A cache that no other test run shares."""
    return Store(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def fake_tool(tmp_path: Path) -> Callable[..., Path]:
    """Writes a shell script that answers --version like the real tool and runs `body` otherwise."""

    def make(
        name: str = "ptxas", version: str = "13.9.1", body: str = "exit 0", folder: str = "bin"
    ) -> Path:
        path = tmp_path / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "#!/bin/sh\n"
            'if [ "$1" = "--version" ]; then\n'
            f'  echo "{name}: NVIDIA (R) tool"\n'
            f'  echo "Cuda compilation tools, release {version[:4]}, V{version}"\n'
            f'  echo "Build cuda_{version}/compiler.1_0"\n'
            "  exit 0\n"
            "fi\n"
            f"{body}\n"
        )
        path.chmod(0o755)
        return path

    return make
