"""Tuning: which shapes are read, what is refused, classes, tables, and what the picker makes of it.

What is measured needs a GPU; here the table is filled by hand.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ptxgen import env
from ptxgen.app.cli import app
from ptxgen.configs.base import to_text
from ptxgen.configs.gemm import GemmProblem
from ptxgen.configs.gemm_pick import by_model, pick, ranking
from ptxgen.configs.gemm_shape import Gemm
from ptxgen.configs.gemm_table import SHIPPED, TABLES, Winner, class_of, read, user_table, write
from ptxgen.errors import ArgumentError, CacheError
from runtime.bench.gemm_cases import Case, cases
from runtime.bench.gemm_search import promising
from runtime.bench.gemm_tune import configs, coolest, kernels, parse_shapes, untuned

pytestmark = pytest.mark.unit

SHAPE = (1000, 1000, 1000)
WINNER = Winner(
    product=class_of(GemmProblem(), *SHAPE), m=1000, n=1000, k=1000, config="tile=64x64,stages=4",
    us=9.0, model="tile=64x64,stages=max", model_us=10.0, device="a GPU", sms=132,
    date="2026-01-01T00:00:00+00:00", commit="abc",
)  # fmt: skip


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder of this test's own; where its table goes."""
    monkeypatch.setenv(env.CACHE_DIR.name, str(tmp_path))
    TABLES.forget()
    yield user_table()
    TABLES.forget()


def test_shapes_are_read_with_what_a_line_leaves_out() -> None:
    found = parse_shapes("64x2112x7168 e4m3\n\n# all\n128x256x512 f16 NT  # one\n8X8X8\n")
    assert [(c.extents, c.dtype, c.order) for c in found] == [
        ((64, 2112, 7168), "e4m3", "TN"), ((128, 256, 512), "f16", "NT"), ((8, 8, 8), "bf16", "TN"),
    ]  # fmt: skip


def test_every_line_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_shapes("64x64\n8x8x8 bf16 NX\n8x8x0\n8x8x8 bf16 TN more\n8x8x8 bf17\n8x8x8")
    lines = [violation.field for violation in caught.value.violations]
    assert lines == ["line 1", "line 2", "line 3", "line 4", "line 5"]


def test_a_class_is_what_every_tile_cuts_alike() -> None:
    problem = GemmProblem()
    same = class_of(problem, 1000, 1000, 1000)
    assert class_of(problem, 1024, 1024, 1024) == same  # the largest of the class
    assert class_of(problem, 961, 993, 961) == same  # the smallest
    assert class_of(GemmProblem(dtype="f16"), *SHAPE) == same
    for other in ((960, 1000, 1000), (1000, 992, 1000), (1000, 1000, 960)):
        assert class_of(problem, *other) != same
    for unlike in (
        GemmProblem(dtype="e4m3"), GemmProblem(b_major="mn"), GemmProblem(out_dtype="f32"),
        GemmProblem(batched=1),
    ):  # fmt: skip
        assert class_of(unlike, *SHAPE) != same


def test_few_rows_are_classes_of_their_own() -> None:
    """Up to 64 rows they may become the columns of a tile, in steps of 8."""
    assert class_of(GemmProblem(), 9, 64, 64) == class_of(GemmProblem(), 16, 64, 64)
    assert class_of(GemmProblem(), 17, 64, 64) != class_of(GemmProblem(), 16, 64, 64)


def test_a_winner_stands_first_for_its_whole_class_and_says_so(table: Path) -> None:
    model = pick(GemmProblem(), *SHAPE)
    write(table, [WINNER])
    assert pick(GemmProblem(), 1024, 1024, 1024) == WINNER.parsed() != model
    first, *others = ranking(GemmProblem(), *SHAPE)
    assert first.measured == WINNER
    assert "measured: 9.0 us" in first.explain()
    assert WINNER.parsed() not in [score.config for score in others]
    assert pick(GemmProblem(), *SHAPE, sms=114) != WINNER.parsed()  # another chip
    assert by_model(GemmProblem(), *SHAPE)[0].config == model


def test_a_winner_that_is_no_longer_legal_is_passed_over(table: Path) -> None:
    model = pick(GemmProblem(), *SHAPE)
    write(table, [replace(WINNER, config="tile=128x256,stages=5")])  # too much shared memory
    assert pick(GemmProblem(), *SHAPE) == model


def test_a_table_keeps_one_winner_a_class_and_chip(table: Path) -> None:
    write(table, [WINNER, replace(WINNER, sms=114)])
    write(table, [replace(WINNER, us=8.0)])
    assert sorted((w.sms, w.us) for w in read(table)) == [(114, 9.0), (132, 8.0)]


def test_a_damaged_table_is_an_error_with_its_cure(table: Path) -> None:
    table.parent.mkdir()
    table.write_text('{"winners": [{"m": 1}]}', encoding="utf-8")
    with pytest.raises(CacheError, match="delete it, and run `ptxgen tune` again"):
        pick(GemmProblem(), *SHAPE)


def test_what_is_tuned_is_not_measured_again(table: Path) -> None:
    write(table, [WINNER])
    todo = [Case(group="tune", dtype="bf16", m=m, n=1000, k=1000) for m in (1000, 1024, 64, 63)]
    assert [case.m for case in untuned(todo, table, 132)] == [64]
    assert [case.m for case in untuned(todo, table, 114)] == [1000, 64]


def test_a_search_tries_what_is_promising_and_legal_and_no_kernel_twice() -> None:
    case = Case(group="tune", dtype="bf16", m=64, n=2112, k=7168)
    tried = configs(case, 132)
    assert pick(case.problem, *case.extents) in tried
    assert all(Gemm(case.problem, config).check() == () for config in tried)
    assert len(promising(case.problem, tried, *case.extents)) == len(tried) > 20
    assert len(kernels([case, replace(case, n=2176)], 132)) < 2 * len(tried)


def test_ties_go_to_the_config_that_reads_least() -> None:
    """256x200 reads 9.8 GB from L2 at 8192^3, 128x192 14.4."""
    large, turns = "tile=256x200,stages=3,cluster=1x1", "tile=128x192,stages=max,cluster=1x1"
    case = Case(group="tune", dtype="bf16", m=8192, n=8192, k=8192)
    assert coolest(case, {turns: 1000.0, large: 1004.0}, 132) == large
    assert coolest(case, {turns: 1000.0, large: 1006.0}, 132) == turns


def test_the_shipped_table_is_legal_and_has_no_shape_of_the_benchmark() -> None:
    published = {case.extents for case in cases()}
    for winner in read(SHIPPED):
        assert (winner.m, winner.n, winner.k) not in published
        assert to_text(winner.parsed()) == winner.config


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--backend", "emulator", "--m", "8", "--n", "8", "--k", "8"], "it has no clock"),
        (["--m", "8"], "must be --m, --n and --k, or --shapes FILE"),
        ([], "ptxgen tune gemm --m 4096"),
    ],
)
def test_the_command_says_why_it_cannot(words: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["tune", "gemm", *words])
    assert result.exit_code == 1
    assert said in result.stderr


def test_the_shapes_of_the_shipped_table_are_read_and_none_is_published() -> None:
    text = (Path(__file__).parents[2] / "examples" / "language_models.txt").read_text()
    found = {case.extents for case in parse_shapes(text)}
    assert len(found) > 100
    assert not found & {case.extents for case in cases()}
