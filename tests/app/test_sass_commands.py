"""`ptxgen diff`, `ptxgen verify FILE` and `ptxgen sass --map`: exit codes, files, pages, JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ptxgen.app.cli import app
from ptxgen.toolchain.discover import all_ptxas

pytestmark = pytest.mark.asm

SMALL = "gemm:tile=64x64x64,stages=2,cluster=1x1"
DEEPER = "gemm:tile=64x64x64,stages=3,cluster=1x1"
CUBINS = Path(__file__).parent.parent / "toolchain" / "path"
Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    return lambda *words: CliRunner().invoke(app, list(words))


def test_diff_of_a_kernel_with_itself(run: Run, tmp_path: Path) -> None:
    """However it is spelled: a reference, its PTX, its SASS."""
    ptx, sass = tmp_path / "k.ptx", tmp_path / "k.sass"
    run("emit", SMALL, "-o", str(ptx))
    sass.write_text(run("sass", SMALL).stdout)
    for other in (SMALL, str(ptx), str(sass)):
        result = run("diff", SMALL, other)
        assert result.exit_code == 0, result.stdout
        assert result.stdout.startswith("the same code")


def test_diff_of_two_configs(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "diff.html"
    result = run("diff", SMALL, DEEPER, "--html", str(page))
    assert result.exit_code == 1
    assert result.stdout.startswith("same tensor and TMA code")
    assert "2 more SYNCS outside loops" in result.stdout  # one stage more: two barriers more
    assert "Resources" in result.stdout
    html = page.read_text()
    assert html.startswith("<!doctype html>")
    assert "producer loop" in html
    answer = json.loads(run("diff", SMALL, DEEPER, "--json").stdout)
    assert (answer["ok"], answer["equal"]) == (False, False)
    smem = next(r for r in answer["functions"][0]["resources"] if r["name"].startswith("dynamic"))
    assert smem["delta"] == 2 * 64 * 64 * 2 + 2 * 8  # A and B tiles of bf16, full and empty


def test_diff_of_two_assemblers(run: Run) -> None:
    tools = all_ptxas()
    if len(tools) < 2:
        pytest.skip("one ptxas only")
    result = run(
        "diff", SMALL, SMALL, "--ptxas-a", str(tools[1].path), "--ptxas", str(tools[0].path)
    )
    assert "same tensor and TMA code" in result.stdout or "the same code" in result.stdout
    assert tools[0].version_text in result.stdout
    assert tools[1].version_text in result.stdout


def test_diff_says_what_it_cannot_read(run: Run, tmp_path: Path) -> None:
    nothing = tmp_path / "x.sass"
    nothing.write_text("dear diary")
    assert run("diff", SMALL, str(nothing)).exit_code == 1
    assert "no SASS instruction" in run("diff", SMALL, str(nothing)).stderr
    assert run("diff", SMALL, str(tmp_path / "absent.cubin")).exit_code == 1
    assert "cannot be used" in run("diff", SMALL, SMALL, "--ptxas", "/no/ptxas").stderr


@pytest.mark.parametrize(
    ("name", "code", "word"),
    [
        ("wgmma", 0, "native"),
        ("cp_async", 0, "LDGSTS"),
        ("mma_sync_fp8", 1, "fallback"),
        ("tma", 1, "elect.sync"),
        ("spill", 1, "spill"),
    ],
)
def test_verify_of_a_foreign_cubin(run: Run, name: str, code: int, word: str) -> None:
    result = run("verify", str(CUBINS / f"{name}.cubin"))
    assert result.exit_code == code
    assert word in result.stdout
    answer = json.loads(run("verify", str(CUBINS / f"{name}.cubin"), "--json").stdout)
    assert answer["ok"] is (code == 0)
    assert answer["paths"]


def test_verify_of_foreign_ptx(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "k.ptx"
    file.write_text(
        ".version 8.0\n.target sm_90a\n.address_size 64\n"
        ".visible .entry k(.param .u64 p) { .reg .b64 %p; .reg .b32 %x; ld.param.u64 %p, [p];\n"
        "ld.global.u32 %x, [%p]; st.global.u32 [%p+4], %x; ret; }\n"
    )
    result = run("verify", str(file))
    assert result.exit_code == 0
    assert "1 load from global memory (PTX line 5)" in result.stdout


def test_verify_shows_the_paths_of_a_kernel(run: Run) -> None:
    result = run("verify", SMALL)
    assert "asked for by PTX" in result.stdout
    answer = json.loads(run("verify", SMALL, "--json").stdout)
    assert answer["paths"][0]["ok"] is True


def test_sass_map(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "map.html"
    result = run("sass", SMALL, "--map", "--html", str(page))
    assert result.exit_code == 0
    assert "kernels/gemm.ptx.j2:" in result.stdout
    assert "wgmma.fence.sync.aligned;" in result.stdout
    assert "most live:" in result.stdout
    assert "wgmma.fence" in page.read_text()
    answer = json.loads(run("sass", SMALL, "--map", "--json").stdout)
    row = answer["functions"][0]["rows"][0]
    assert row["control"]["stall"] >= 1
    assert row["live"]["general"] >= 1


def test_sass_map_of_a_listing_is_refused(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "k.sass"
    file.write_text("k:\n/*0000*/ EXIT ;\n")
    assert "EXIT" in run("sass", str(file)).stdout
    result = run("sass", str(file), "--map")
    assert result.exit_code == 1
    assert "a listing has no live registers" in result.stderr
