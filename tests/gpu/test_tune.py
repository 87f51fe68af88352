"""Tuning on a GPU: a small search from the command line, and what the picker makes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ptxgen import env
from ptxgen.app.cli import app
from ptxgen.configs.base import to_text
from ptxgen.configs.gemm import GemmProblem
from ptxgen.configs.gemm_pick import pick
from ptxgen.configs.gemm_table import TABLES, read, user_table

pytestmark = pytest.mark.gpu

pytest.importorskip("torch", reason="torch is not installed")

PRODUCT = ["--m", "96", "--n", "320", "--k", "640"]  # small: three tiles at most


def test_a_winner_is_measured_kept_and_picked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(env.CACHE_DIR.name, str(tmp_path))
    TABLES.forget()
    try:
        first = CliRunner().invoke(app, ["tune", "gemm", *PRODUCT, "--json"])
        assert first.exit_code == 0, first.output
        (winner,) = json.loads(first.stdout)["winners"]
        assert 0 < winner["us"] <= winner["model_us"]
        assert [w.config for w in read(user_table())] == [winner["config"]]
        picked = pick(GemmProblem(), 96, 320, 640, sms=winner["sms"])
        assert to_text(picked) == winner["config"]
        again = CliRunner().invoke(app, ["tune", "gemm", *PRODUCT, "--json"])
        assert json.loads(again.stdout)["winners"] == []  # known: nothing is measured
    finally:
        TABLES.forget()
