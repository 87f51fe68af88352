"""Commands that assemble and disassemble."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ptxgen import Kernel, kernel_from
from ptxgen.app import show
from ptxgen.app.cli import app
from ptxgen.toolchain.verify import Count, Expectation

pytestmark = pytest.mark.asm

SMALL = "gemm:tile=64x64x64,stages=2,cluster=1x1"
Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    return lambda *words: CliRunner().invoke(app, list(words))


def test_inspect_has_every_section(run: Run) -> None:
    text = run("inspect", SMALL).stdout
    for title, _ in kernel_from(SMALL).report().sections():
        assert f"\n{title}\n" in text
    answer = json.loads(run("inspect", SMALL, "--json").stdout)
    assert answer["smem"]["total"] == kernel_from(SMALL).spec.smem_bytes


def test_verify_shows_every_row(run: Run) -> None:
    result = run("verify", SMALL)
    report = kernel_from(SMALL).verify()
    assert result.exit_code == 0
    assert f"{len(report.rows)} checks hold" in result.stdout
    for row in report.rows:
        assert row.name in result.stdout
    answer = json.loads(run("verify", SMALL, "--json").stdout)
    assert (answer["ok"], len(answer["rows"])) == (True, len(report.rows))


def test_verify_exits_with_1_when_a_promise_is_broken(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = kernel_from(SMALL).source
    promise = Count(pattern="HMMA", exactly=1, why="so that it fails")  # there is no warp-wide MMA
    broken = Kernel(replace(source, expectation=Expectation(promises=(promise,))))
    monkeypatch.setattr(show, "kernel_from", lambda *_, **__: broken)
    result = run("verify", SMALL)
    assert result.exit_code == 1
    assert "BAD" in result.stdout
    assert "why: so that it fails" in result.stdout
    assert json.loads(run("verify", SMALL, "--json").stdout)["ok"] is False


def test_sass_of_a_reference_a_ptx_file_and_a_cubin_agree(run: Run, tmp_path: Path) -> None:
    kernel = kernel_from(SMALL)
    (tmp_path / "k.ptx").write_text(kernel.ptx)
    (tmp_path / "k.cubin").write_bytes(kernel.cubin)
    ours, ptx, cubin = (
        run("sass", str(what)).stdout.split("\n", 1)
        for what in (SMALL, tmp_path / "k.ptx", tmp_path / "k.cubin")
    )
    assert ours == cubin
    (_, text), (_, of_ptx) = ours, ptx  # other options, so another cubin, but the same code
    assert text == of_ptx
    assert "HGMMA.64x64x16" in text
    assert "// PTX line" in text


def test_sass_of_bad_files(run: Run, tmp_path: Path) -> None:
    missing = run("sass", str(tmp_path / "none.cubin"))
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert "No such file" in missing.stderr

    (tmp_path / "bad.cubin").write_bytes(b"not an ELF file")
    garbage = run("sass", str(tmp_path / "bad.cubin"))
    assert garbage.exit_code == 1
    assert garbage.stderr.startswith("ToolchainError: ")

    broken = kernel_from(SMALL).ptx.replace("mov.u32 %smem", "mov.u33 %smem")
    (tmp_path / "bad.ptx").write_text(broken)
    refused = run("sass", str(tmp_path / "bad.ptx"))
    assert refused.exit_code == 1
    assert "u33" in refused.stderr


def test_no_assembler_names_the_cure(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXGEN_PTXAS", "/nonexistent/ptxas")
    result = run("verify", SMALL)
    assert result.exit_code == 1
    assert "ToolMissing" in result.stderr
    assert "PTXGEN_PTXAS" in result.stderr


def test_resources_and_timing_at_debug_2(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXGEN_DEBUG", "2")
    assert "registers" in run("verify", SMALL).stderr
    monkeypatch.setenv("PTXGEN_DEBUG", "5")
    assert "HGMMA" in run("verify", SMALL).stderr
