"""`ptxgen inspect gemm --m .. --n .. --k ..`: candidates, times, reasons."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner, Result

from ptxgen.app.cli import app
from ptxgen.configs.base import to_text
from ptxgen.configs.gemm import GemmProblem
from ptxgen.configs.gemm_pick import ranking

pytestmark = pytest.mark.unit

PRODUCT = ["--m", "64", "--n", "2112", "--k", "7168"]


def inspect(*words: str) -> Result:
    return CliRunner().invoke(app, ["inspect", *words])


def test_the_candidates_come_in_order_with_what_their_time_is_made_of() -> None:
    answer = json.loads(inspect("gemm", *PRODUCT, "--top", "5", "--json").stdout)
    best = ranking(GemmProblem(), 64, 2112, 7168)[:5]
    assert [row["config"] for row in answer["best"]] == [to_text(score.config) for score in best]
    for row in answer["best"]:
        assert row["us"] == pytest.approx(max(row["loop_us"], row["memory_us"]) + row["edge_us"])


def test_a_person_reads_why_the_first_is_first() -> None:
    lines = inspect("gemm:dtype=e4m3", *PRODUCT, "--top", "3").stdout.splitlines()
    assert lines[0].startswith("D [64, 2112] with K = 7168: ")
    assert len(lines) == 7  # title, header, three candidates, a gap, the reason
    assert lines[-1].startswith("The first: ")
    assert "waves" in lines[-1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gemm", "--m", "64"], "pass --n"),
        (["gemm:tile=64x64", *PRODUCT], "tells tile, which the picker would choose"),
        (["gemm:tiles=3", *PRODUCT], "gemm has no field tiles"),
        (["nope", *PRODUCT], "kernels: gemm"),
    ],
)
def test_what_cannot_be_explained_says_why(words: list[str], said: str) -> None:
    result = inspect(*words)
    assert result.exit_code == 1
    assert said in result.stderr


def test_a_batch_is_chosen_for_as_a_whole() -> None:
    answer = json.loads(inspect("gemm", *PRODUCT, "--batches", "64", "--json").stdout)
    assert answer["problem"]["batched"] == 1
    assert answer["best"][0]["tiles"] >= 64
