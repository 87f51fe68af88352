"""Who wins a tournament, with clocks that are made up."""

from __future__ import annotations

import pytest

from runtime.bench import timer

pytestmark = pytest.mark.unit

MICROSECONDS = {"slow": 30.0, "fast": 10.0, "close": 11.0, "far": 13.0}


@pytest.fixture
def captured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names in the order in which graphs were captured; a replay takes what the table says."""
    names: list[str] = []

    class Replay:
        calls = 1

        def __init__(self, run: timer.Run, sets: int, seconds: float) -> None:
            self.name = str(run(0))
            names.append(self.name)

        def seconds(self, replays: int = 1) -> float:
            return MICROSECONDS[self.name] * 1e-6

    monkeypatch.setattr(timer, "Replay", Replay)
    return names


def runs() -> dict[str, timer.Run]:
    return {name: lambda i, name=name: name for name in MICROSECONDS}


def test_the_close_ones_get_rounds_and_the_others_a_look(captured: list[str]) -> None:
    samples, looks = timer.tournament(runs(), margin=1.2, rounds=5)
    assert set(samples) == {"fast", "close"}
    assert all(len(s.seconds) == 5 for s in samples.values())
    assert min(samples, key=lambda name: samples[name].median) == "fast"
    assert {name: round(us * 1e6) for name, us in looks.items()} == MICROSECONDS
    assert captured == list(MICROSECONDS)


def test_who_must_run_does(captured: list[str]) -> None:
    samples, _ = timer.tournament(runs(), always=["slow", "fast"], rounds=2)
    assert set(samples) == {"slow", "fast", "close"}
    assert captured.count("slow") == 2  # the graph of its look was dropped
