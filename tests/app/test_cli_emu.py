"""`ptxgen run`, `demo`, `doctor`, and README.md's first example, on the emulator."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable

import broken_gemm
import numpy as np
import pytest
import readme
from typer.testing import CliRunner, Result

from ptxgen.app import reference, trial
from ptxgen.app.cli import app
from ptxgen.configs.gemm import GemmProblem

pytestmark = pytest.mark.emu

SMALL = "gemm:tile=64x64x64,stages=2,cluster=1x1"
Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("PTXGEN_BACKEND", "emulator")
    return lambda *words: CliRunner().invoke(app, list(words))


@pytest.mark.parametrize("inputs", ["random", "integers"])
@pytest.mark.parametrize("out", ["same", "f16", "f32"])
def test_run_is_correct(run: Run, inputs: str, out: str) -> None:
    """70 and 72 are no multiples of the tile; K = 200 needs four stages of a ring of two."""
    words = ("--m", "70", "--n", "72", "--k", "200", "--inputs", inputs)
    result = run("run", f"{SMALL},out_dtype={out}", *words)
    assert result.exit_code == 0, result.output
    assert "correct: 5,040 of 5,040 elements" in result.stdout
    assert "emulator" in result.stdout


def test_run_as_json(run: Run) -> None:
    words = ("run", SMALL, "--m", "64", "--n", "64", "--k", "64", "--json", "--seed", "3")
    answer = json.loads(run(*words).stdout)
    assert (answer["ok"], answer["backend"], answer["seed"]) == (True, "emulator", 3)
    assert 0 < answer["comparison"]["bound_used"] <= 1


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 0), (0, 64, 64), (64, 0, 64)])
def test_run_of_empty_extents(run: Run, m: int, n: int, k: int) -> None:
    result = run("run", SMALL, "--m", str(m), "--n", str(n), "--k", str(k))
    assert result.exit_code == 0, result.output


def test_run_exits_with_1_on_a_wrong_result(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that leaves D alone: the poison is still in it."""
    monkeypatch.setattr(trial, "_launch", lambda *_: (0.0, {}))
    result = run("run", SMALL, "--m", "64", "--n", "64", "--k", "64")
    assert result.exit_code == 1
    assert "WRONG: 4,096 of 4,096 elements; first D[0, 0] is nan" in result.stdout


def test_run_names_what_is_wrong_with_a_shape(run: Run) -> None:
    result = run("run", "gemm", "--m", "127", "--n", "129", "--k", "72")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "258 B" in result.stderr
    assert "136" in result.stderr


@pytest.mark.parametrize(
    ("words", "printed"), [s for s in readme.sessions() if s[0][0] == "run"], ids=str
)
def test_every_run_in_the_readme_prints_what_is_shown(
    run: Run, words: list[str], printed: str
) -> None:
    assert run(*words).output.rstrip("\n") == printed


@pytest.mark.parametrize("word", ["worst error", "quantize_fp8"])
def test_an_example_of_the_readme_prints_what_is_shown(run: Run, word: str) -> None:
    ((code, shown),) = [pair for pair in readme.python_with_output() if word in pair[0]]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == shown


@pytest.mark.parametrize("name", broken_gemm.SPOILED)
def test_a_spoiled_kernel_is_told_as_the_readme_says(run: Run, name: str) -> None:
    said = broken_gemm.message(name)
    assert readme.block_with(said.splitlines()[0]).rstrip("\n") == said


def test_debug_6_traces_the_turns_of_the_warps(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXGEN_DEBUG", "6")
    result = run("run", SMALL, "--m", "64", "--n", "64", "--k", "64")
    assert result.exit_code == 0
    assert "CTA (0,0,0), warp 4: PTX line" in result.stderr
    assert "waits for parity 0 of mbarrier" in result.stderr
    assert "CTA" not in result.stdout.split("plan")[0]


def test_demo_shows_every_step(run: Run) -> None:
    result = run("demo")
    assert result.exit_code == 0, result.output
    for number in range(1, 6):
        assert f"\n{number}  " in "\n" + result.stdout
    assert result.stdout.rstrip().endswith("every test that this machine can run")
    assert json.loads(run("demo", "--json").stdout)["ok"] is True


def test_doctor_finds_that_all_works(run: Run) -> None:
    result = run("doctor", "--json")
    answer = json.loads(result.stdout)
    abilities = {ability["name"]: ability for ability in answer["abilities"]}
    assert all(a["works"] for a in abilities.values() if a["core"]), abilities
    assert result.exit_code == 0
    assert set(abilities) == {"emit", "assemble", "verify", "emulator", "cuda"}


def test_doctor_names_what_is_missing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXGEN_NVDISASM", "/nonexistent/nvdisasm")
    result = run("doctor")
    assert result.exit_code == 1
    assert "/nonexistent/nvdisasm" in result.stdout
    assert "pip install nvidia-cuda-nvdisasm" in result.stdout


def test_inputs_are_the_same_for_a_seed() -> None:
    first, second = (
        reference.inputs("random", GemmProblem(), 4, 5, 6, seed=7)[0] for _ in range(2)
    )
    assert np.array_equal(first, second)


@pytest.mark.parametrize(
    "fields", ["bias=row,activation=relu", "alpha=1,beta=1,bias=column,activation=gelu"]
)
def test_run_compares_epilogues(fields: str, run) -> None:
    result = run("run", f"{SMALL},{fields}", "--m", "70", "--n", "72", "--k", "72")
    assert result.exit_code == 0
    assert "correct: 5,040 of 5,040 elements" in result.output
    assert f"then {fields.replace(',', ', ')}" in " ".join(result.output.split())
