"""Who wins a tournament, with clocks that are made up."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace

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


def test_rounds_count_once_the_card_has_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rested, the peer is as fast as we are; after 50 ms of work half as fast."""
    done = 0.0

    class Replay:
        calls = 10

        def __init__(self, run: timer.Run, sets: int, seconds: float) -> None:
            self.name = str(run(0))

        def seconds(self, replays: int = 1) -> float:
            nonlocal done
            once = 1e-4 if self.name == "ours" or done < 0.05 else 2e-4
            done += once * self.calls
            return once

    def rest(seconds: float) -> None:
        nonlocal done
        assert seconds == timer.REST
        done = 0.0

    monkeypatch.setattr(timer, "Replay", Replay)
    monkeypatch.setattr(time, "sleep", rest)
    cuda = SimpleNamespace(synchronize=lambda: None)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    result = timer.contest(
        {"ours": lambda i: "ours", "peer": lambda i: "peer"}, peer="peer", rounds=7
    )
    assert result.rested_ratio("ours") == 1.0
    assert result.ratio("ours") == 2.0
    assert result.ratio(timer.CONTROL) == 1.0
    assert [len(s.seconds) for s in result.samples.values()] == [7, 7, 7]
    assert len(result.rested["ours"].seconds) == 10  # rounds of 3 ms in the first 30
    assert done >= 0.2 + 7 * 5e-3
