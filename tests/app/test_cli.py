"""The command line: what is printed where, exit codes, JSON, and bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ptxgen import env, kernel_from
from ptxgen.app.cli import app
from ptxgen.kernels.registry import FAMILIES

pytestmark = pytest.mark.unit

RECORDING = Path(__file__).parents[1] / "data" / "tensormaps.jsonl"
Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    for knob in env.KNOBS:
        if knob is not env.CACHE_DIR:
            monkeypatch.delenv(knob.name, raising=False)
    return lambda *words: CliRunner().invoke(app, list(words))


def test_list_shows_every_field_with_its_legal_values_on_one_line(run: Run) -> None:
    lines = run("list").stdout.splitlines()
    for family in FAMILIES.values():
        for name, field in family.fields():
            said = (field.metadata["legal"], field.metadata["help"])
            named = [line for line in lines if line.split()[:1] == [name]]
            assert len([line for line in named if all(text in line for text in said)]) == 1


def test_emit_prints_the_ptx_and_nothing_else(run: Run) -> None:
    result = run("emit", "gemm:tile=64x64x64")
    assert result.exit_code == 0
    assert result.stdout == kernel_from("gemm:tile=64x64x64").ptx
    assert result.stderr == ""


def test_emit_to_a_file(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    result = run("emit", "gemm", "-o", str(path))
    assert result.exit_code == 0
    assert path.read_text() == kernel_from("gemm").ptx
    assert str(path) in result.stdout


def test_emit_to_an_impossible_file(run: Run, tmp_path: Path) -> None:
    result = run("emit", "gemm", "-o", str(tmp_path / "no" / "k.ptx"))
    assert result.exit_code == 1
    assert "No such file" in result.stderr


@pytest.mark.parametrize(
    ("reference", "error", "said"),
    [
        ("nope", "KernelReferenceError", "kernels: gemm"),
        ("gemm:foo=1", "KernelReferenceError", "Fields: dtype"),
        ("gemm:tile=128", "KernelReferenceError", "joined by x"),
        ("gemm:tile", "KernelReferenceError", "is not key=value"),
        ("gemm:stages=2,stages=3", "KernelReferenceError", "given twice"),
        ("gemm:tile=128x256x64,stages=5", "ConfigError", "use stages<=4"),
    ],
)
def test_a_bad_reference_says_why_without_a_traceback(
    run: Run, reference: str, error: str, said: str
) -> None:
    result = run("emit", reference)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"{error}: ")
    assert said in result.stderr
    assert "Traceback" not in result.output


def test_an_error_as_json_holds_every_violation(run: Run) -> None:
    result = run("inspect", "gemm:tile=100x100x64,cluster=3x2", "--json")
    answer = json.loads(result.stdout)
    assert result.exit_code == 1
    assert answer["ok"] is False
    assert answer["error"]["type"] == "ConfigError"
    assert {v["field"] for v in answer["error"]["violations"]} == {"tile_m", "tile_n", "cluster"}


def test_a_bad_knob_names_itself(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXGEN_DEBUG", "9")
    result = run("emit", "gemm")
    assert result.exit_code == 1
    assert "PTXGEN_DEBUG='9': must be 0..6" in result.stderr


@pytest.mark.parametrize(
    "words", [["bogus"], ["emit"], ["run", "gemm", "--m", "-1"], ["layout", "tensormap"]]
)
def test_a_wrong_command_line_exits_with_2(run: Run, words: list[str]) -> None:
    assert run(*words).exit_code == 2


def test_debug_levels_speak_on_stderr_only(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {}
    for level in ("0", "1", "3", "4"):
        monkeypatch.setenv("PTXGEN_DEBUG", level)
        result = run("emit", "gemm:tile=64x64x64")
        assert result.stdout == kernel_from("gemm:tile=64x64x64").ptx
        said[level] = result.stderr
    assert said["0"] == ""
    assert "rendered gemm_bf16" in said["1"]
    assert "ring of A tiles" in said["3"]
    assert ".visible .entry" in said["4"]
    assert ".visible .entry" not in said["3"]


def test_tensor_maps_agree_with_the_driver(run: Run) -> None:
    result = run("layout", "tensormap", "--against", str(RECORDING))
    assert result.exit_code == 0
    assert "2,000 of 2,000 agree" in result.stdout
    answer = json.loads(run("layout", "tensormap", "--against", str(RECORDING), "--json").stdout)
    assert (answer["ok"], answer["rows"], answer["disagreements"]) == (True, 2000, [])


def test_a_tensor_map_that_differs_exits_with_1(run: Run, tmp_path: Path) -> None:
    lines = RECORDING.read_text().splitlines()[:60]
    at = next(i for i, line in enumerate(lines[1:], start=1) if json.loads(line)[1])
    row = json.loads(lines[at])
    row[2] = "ff" + row[2][2:]  # the first byte of the address
    lines[at] = json.dumps(row)
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(lines))
    result = run("layout", "tensormap", "--against", str(path))
    assert result.exit_code == 1
    assert f"line {at + 1}: bytes differ" in result.stdout


def test_a_missing_recording_exits_with_1(run: Run, tmp_path: Path) -> None:
    result = run("layout", "tensormap", "--against", str(tmp_path / "none"))
    assert result.exit_code == 1
    assert "No such file" in result.stderr


def test_piped_output_is_plain_and_has_no_trailing_blanks(run: Run) -> None:
    text = run("list").stdout
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_the_command_line_starts_without_anything_heavy() -> None:
    """`ptxgen --help` must answer at once: what takes long to import waits for its command."""
    code = (
        "import sys, ptxgen.app.cli, runtime; "
        "print([m for m in ('numpy', 'jinja2', 'ml_dtypes', 'cuda', 'torch') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == "[]"


def test_a_closed_pipe_is_no_traceback() -> None:
    """`ptxgen emit gemm | head -1`: the reader leaves after the first line."""
    command = f"{sys.executable} -m ptxgen emit gemm | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("// gemm")
    assert done.stderr == ""
