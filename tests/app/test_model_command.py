"""`ptxgen model`: listing, help, sweeps, JSON, files, and errors that name the cure."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ptxgen.app.cli import app
from ptxgen.models.calculators import CALCULATORS

pytestmark = pytest.mark.unit

runner = CliRunner()


def run(*arguments: str, code: int = 0) -> str:
    result = runner.invoke(app, ["model", *arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_alone_it_lists_the_calculators() -> None:
    text = run()
    assert all(name in text for name in CALCULATORS)
    data = json.loads(run("--json"))
    assert [row["name"] for row in data["calculators"]] == list(CALCULATORS)
    assert data["calculators"][1]["inputs"][0] == {
        "name": "n", "type": "int", "default": 256, "choices": [],
        "help": "columns of the result: 8..256 in steps of 8",
    }  # fmt: skip


@pytest.mark.parametrize("name", CALCULATORS)
def test_defaults_and_help(name: str) -> None:
    assert json.loads(run(name, "--json"))["ok"]
    text = run(name, "--help")
    for parameter in CALCULATORS[name].parameters:
        assert f"--{parameter.name.replace('_', '-')}"[:18] in text


def test_a_record() -> None:
    text = run("m-balance", "--chip", "h100_sxm", "--hit", "0.8")
    assert "tensor cores are the limit" in text
    assert "78.3%" in text


def test_a_sweep() -> None:
    lines = run("feed", "--n", "8,64..128:64", "--a", "smem,registers").splitlines()
    assert [line.split()[:3] for line in lines[2:]] == [
        ["8", "smem", "18"], ["8", "registers", "13"], ["64", "smem", "32"],
        ["64", "registers", "32"], ["128", "smem", "64"], ["128", "registers", "64"],
    ]  # fmt: skip


def test_errors_name_the_cure() -> None:
    assert "must be 8..256 in steps of 8" in run("feed", "--n", "12", code=1)
    assert "a list 8,16,32, or a range 8..256:8" in run("feed", "--n", "x", code=1)
    assert "must be one of h200" in run("rates", "--chip", "b200", code=1)
    assert "No such command" in run("nothing", code=2)
    assert "No such option" in run("feed", "--m", "3", code=2)
    assert "must end in one of" in run("feed", "-o", "out.doc", code=1)


def test_a_pool_that_would_hang_is_a_failure() -> None:
    text = run("register-pool", "--consumer-registers", "240", code=1)
    assert "would wait for ever" in text
    assert (
        json.loads(run("register-pool", "--consumer-registers", "240", "--json", code=1))["ok"]
        is False
    )


def test_files(tmp_path: Path) -> None:
    run("stages", "-o", str(tmp_path / "a.html"))
    run("stages", "-o", str(tmp_path / "a.txt"))
    assert "<svg" in (tmp_path / "a.html").read_text()
    assert "deepest ring" in (tmp_path / "a.txt").read_text()


def test_a_plot(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is optional")
    matplotlib.use("Agg")
    run("feed", "--n", "8..256:8", "-o", str(tmp_path / "feed.png"))
    assert (tmp_path / "feed.png").read_bytes().startswith(b"\x89PNG")
