"""Records that grow: a stopped run goes on, and what was measured before stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.bench.record import Journal, Provenance, read

pytestmark = pytest.mark.unit

ORIGIN = Provenance(
    date="2026-01-01T00:00:00+00:00", device="none", driver="0", sm_clock_mhz="0",
    sm_clock_max_mhz="0", power_w="0", power_limit_w="0", temperature_c="0", torch="0", cuda="0",
    commit="abc", inputs="none",
)  # fmt: skip


def test_a_row_is_on_disk_at_once_and_found_again(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "record.jsonl"
    Journal(path, ("m",)).add({"m": 1, "us": 2.0}, ORIGIN)
    again = Journal(path, ("m",))
    found = again.find(m=1, commit="abc")
    assert found is not None
    assert found["us"] == 2.0
    assert again.find(m=1, commit="abd") is None


def test_a_later_row_replaces_one_of_the_same_key_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    journal = Journal(path, ("m",))
    for m, us in ((1, 2.0), (2, 3.0), (1, 4.0)):
        journal.add({"m": m, "us": us}, ORIGIN)
    assert len(read(path)) == 3  # until it is closed, nothing is rewritten
    journal.close()
    assert [(row["m"], row["us"]) for row in read(path)] == [(1, 4.0), (2, 3.0)]
