"""Rules and encoder against 2,000 recorded answers of a real driver (H200, CUDA 13.0)."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxgen.errors import ArgumentError
from ptxgen.layout.tensor_map import compare_with_driver

pytestmark = pytest.mark.unit

RECORDING = Path(__file__).parents[1] / "data" / "tensormaps.jsonl"


@pytest.fixture
def edited(tmp_path: Path) -> Callable[[int, str], Path]:
    """A copy of the first 20 lines with one line (counted from 1) replaced."""

    def edit(line: int, text: str) -> Path:
        lines = RECORDING.read_text().splitlines()[:20]
        lines[line - 1] = text
        path = tmp_path / "answers.jsonl"
        path.write_text("\n".join(lines) + "\n")
        return path

    return edit


def test_every_answer_and_every_byte_agree() -> None:
    comparison = compare_with_driver(RECORDING)
    assert comparison.disagreements == ()
    assert (comparison.rows, comparison.accepted, comparison.refused) == (2000, 707, 1293)
    assert comparison.ok
    text = str(comparison)
    assert "2,000 of 2,000 agree" in text
    assert "CUDA 13.0" in text
    assert json.loads(json.dumps(comparison.to_dict()))["ok"] is True


def test_every_refusal_names_its_rule() -> None:
    """No rule is idle: each one that a row of the recording can break is broken by some row."""
    reasons = compare_with_driver(RECORDING).reasons
    assert set(reasons) == {
        "interleaved rank", "address", "stride", "box extent", "element stride", "box row",
        "box span", "box size", "nan fill",
    }  # fmt: skip
    assert sum(reasons.values()) >= 1293


def rows() -> list[list]:
    return [json.loads(line) for line in RECORDING.read_text().splitlines()[1:20]]


def test_a_flipped_bit_is_found_and_located(edited) -> None:
    line, row = next((i, r) for i, r in enumerate(rows(), start=2) if r[1])
    row[2] = row[2][: 0x24 * 2] + "ff" + row[2][0x25 * 2 :]  # the byte at 0x24 is extent[1] - 1
    comparison = compare_with_driver(edited(line, json.dumps(row)))
    assert not comparison.ok
    (found,) = comparison.disagreements
    assert (found.line, found.kind) == (line, "bytes differ")
    assert "bytes at 0x24" in str(comparison)


def test_a_flipped_answer_is_found_in_both_directions(edited) -> None:
    line, row = next((i, r) for i, r in enumerate(rows(), start=2) if r[1])
    flipped = json.dumps([row[0], False, "CUDA_ERROR_INVALID_VALUE"])
    (found,) = compare_with_driver(edited(line, flipped)).disagreements
    assert (found.line, found.kind) == (line, "we accept")

    line, row = next((i, r) for i, r in enumerate(rows(), start=2) if not r[1])
    flipped = json.dumps([row[0], True, "00" * 128])
    (found,) = compare_with_driver(edited(line, flipped)).disagreements
    assert (found.line, found.kind) == (line, "we refuse")


QUESTION = ["UINT8", 2, 0, [64, 64], [64], [16, 16], [1, 1], 0, 0, 0, 0]


def malformed(at: int, value: object) -> str:
    question = list(QUESTION)
    question[at] = value
    return json.dumps([question, False, "CUDA_ERROR_INVALID_VALUE"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{not json", "Expecting"),
        ("[1, 2]", r"\[question, accepted, answer\]"),
        ('[["UINT8"], true, ""]', "11 fields"),
        (json.dumps([QUESTION, "yes", ""]), "must be true"),
        (json.dumps([QUESTION, True, "00"]), "128 bytes in hex"),
        (json.dumps([QUESTION, True, "zz" * 128]), "128 bytes in hex"),
        (malformed(0, "INT4"), "unknown dtype 'INT4'"),
        (malformed(1, 3), "dims must be a list of 3 integers"),
        (malformed(2, "0"), "addr_offset must be an integer"),
        (malformed(3, [64, 64.0]), "dims must be an integer"),
        (malformed(4, [64, 64]), "strides_bytes must be a list of 1"),
        (malformed(7, 3), r"interleave must be 0\.\.2"),
        (malformed(8, 4), r"swizzle must be 0\.\.3"),
        (malformed(10, True), "oob must be an integer"),
    ],
)
def test_a_malformed_row_names_its_line(edited, text: str, words: str) -> None:
    with pytest.raises(ArgumentError, match=rf"answers\.jsonl=line 7 +.*{words}"):
        compare_with_driver(edited(7, text))


@pytest.mark.parametrize(
    ("text", "words"),
    [("[]", "first line"), ('{"base": 0, "driver": 1, "fields": ["dtype"]}', "fields are")],
)
def test_a_malformed_header(edited, text: str, words: str) -> None:
    with pytest.raises(ArgumentError, match=rf"line 1 +.*{words}"):
        compare_with_driver(edited(1, text))


def test_missing_and_empty_files(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="No such file"):
        compare_with_driver(tmp_path / "none.jsonl")
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    with pytest.raises(ArgumentError, match="the file is empty"):
        compare_with_driver(empty)


def test_a_file_without_rows_is_not_a_pass(tmp_path: Path) -> None:
    path = tmp_path / "header.jsonl"
    path.write_text(RECORDING.read_text().splitlines()[0] + "\n")
    assert not compare_with_driver(path).ok
