"""A search, with an arena and clocks that are made up: who runs, who is kept, what is wrong."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ptxgen.configs.base import to_text
from ptxgen.configs.gemm import GemmConfig
from runtime.bench import gemm_search
from runtime.bench.gemm_arena import WrongResult
from runtime.bench.gemm_cases import Case
from runtime.bench.timer import Run, Samples

pytestmark = pytest.mark.unit

CASE = Case(group="tune", dtype="bf16", m=256, n=256, k=256)
FAST, CLOSE, FAR, HOPELESS = (GemmConfig(tile=(64, n), cluster=(1, 1)) for n in (64, 128, 192, 256))
US = {to_text(c): us for c, us in ((FAST, 10.0), (CLOSE, 11.0), (FAR, 13.0), (HOPELESS, 40.0))}
PEER_US = 12.0


class Arena:
    """Runs kernels that do nothing; the config named in `wrong` computes nonsense."""

    wrong = ""
    sets = 2

    def __init__(self, case: Case, *, most_sets: int) -> None:
        self.problem = case.problem

    def run(self, kernel: GemmConfig) -> Run:
        return lambda i: to_text(kernel)

    def peer(self) -> Run:
        return lambda i: gemm_search.PEER

    def check(self, run: Run) -> None:
        if run(0) == self.wrong:
            raise WrongResult(str(run(0)))


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def tournament(
        runs: Mapping[str, Run], *, always: list[str], sets: int, rounds: int, seconds: float
    ) -> tuple[dict[str, Samples], dict[str, float]]:
        times = {name: 1e-6 * US.get(str(run(0)), PEER_US) for name, run in runs.items()}
        close = [n for n in runs if times[n] <= 1.2 * min(times.values()) or n in always]
        return {n: Samples(name=n, seconds=(times[n],) * rounds) for n in close}, times

    monkeypatch.setattr(gemm_search, "Arena", Arena)
    monkeypatch.setattr(gemm_search, "tournament", tournament)
    monkeypatch.setattr(gemm_search, "kernel_of", lambda problem, config: config)


def test_the_fastest_wins_and_what_is_far_behind_is_forgotten() -> None:
    found = gemm_search.search(CASE, [HOPELESS, FAR, CLOSE, FAST])
    assert found.best == to_text(FAST)
    assert found.us == {to_text(FAST): 10.0, to_text(CLOSE): 11.0}
    assert found.looks == {to_text(FAR): 13.0}  # within 1.5 times the best
    assert (found.peer_us, found.tried) == (PEER_US, 4)


def test_what_the_picker_took_is_timed_however_slow_it_is() -> None:
    found = gemm_search.search(CASE, [FAST], always=[HOPELESS], peer=False)
    assert found.us == {to_text(FAST): 10.0, to_text(HOPELESS): 40.0}
    assert found.peer_us is None


def test_a_wrong_kernel_stops_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Arena, "wrong", to_text(CLOSE))
    with pytest.raises(WrongResult, match=to_text(CLOSE)):
        gemm_search.search(CASE, [FAST, CLOSE])
