"""Interleaved timing of several functions on one CUDA device, with an A/A control.

Each round times every contestant once, in an order shuffled anew, so that clock, power and
temperature favour nobody. A card that has rested runs faster for its first 50 ms, until power
limits it: rounds count once it has settled, and the first ones are kept apart. A contestant is
captured into a CUDA graph of `inner` calls that rotate through input sets, so that neither host
time nor a warm L2 is measured. The result is a ratio for each round (peer time / own time); median
and spread are of those ratios.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil
from statistics import median, quantiles
from typing import Any

Run = Callable[[int], object]  # one call on input set i

CONTROL = "control"  # the peer once more, under another name
REST = 0.2  # seconds without work before a contest
RESTED = 0.03  # seconds of work in which a card still runs as if it had rested


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Seconds of one call, a value for each round."""

    name: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """All contestants of one interleaved run. `peer` is what ratios are against.

    `rested` holds the first rounds, of a card that has rested; `samples` those after it settled.
    """

    peer: str
    samples: Mapping[str, Samples]
    rested: Mapping[str, Samples]

    def ratios(self, name: str) -> tuple[float, ...]:
        """Peer time / own time of every round: above 1 means faster than the peer."""
        return _ratios(self.samples, self.peer, name)

    def ratio(self, name: str) -> float:
        return median(self.ratios(name))

    def rested_ratio(self, name: str) -> float:
        """The same of the first rounds."""
        return median(_ratios(self.rested, self.peer, name))

    def spread(self, name: str) -> tuple[float, float]:
        """The middle half of the ratios."""
        low, _, high = quantiles(self.ratios(name), n=4)
        return low, high

    @property
    def control(self) -> float:
        """How far the peer's ratio to itself lies from 1."""
        return abs(self.ratio(CONTROL) - 1) if CONTROL in self.samples else 0.0


def _ratios(samples: Mapping[str, Samples], peer: str, name: str) -> tuple[float, ...]:
    pairs = zip(samples[peer].seconds, samples[name].seconds, strict=True)
    return tuple(theirs / ours for theirs, ours in pairs)


class Replay:
    """Calls captured into one CUDA graph: whole rotations, at least `seconds` long."""

    def __init__(self, run: Run, sets: int, seconds: float) -> None:
        import torch

        start, end = _events()
        start.record()
        for i in range(sets):
            run(i)
        end.record()
        end.synchronize()
        once = max(start.elapsed_time(end) * 1e-3, 1e-6)
        rotations = max(int(seconds / once), 1)
        self.calls = rotations * sets
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            for _ in range(rotations):
                for i in range(sets):
                    run(i)

    def seconds(self, replays: int = 1) -> float:
        """Seconds of one call, over that many replays of the graph."""
        start, end = _events()
        start.record()
        for _ in range(replays):
            self._graph.replay()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1e-3 / (self.calls * replays)


def contest(
    contestants: Mapping[str, Run],
    *,
    peer: str,
    sets: int = 1,
    rounds: int = 30,
    seconds: float = 2e-3,
    settle: float = 0.2,
    seed: int = 0,
) -> Contest:
    """Time all contestants in alternation, on a card that has rested, and then on a settled one.

    Args:
        contestants: a function a name; it is called with the index of the input set to use and must
            queue its work on torch's current stream.
        peer: the name that ratios are against. It also runs as the control.
        sets: input sets that a captured graph rotates through.
        rounds: how often each is timed, once the card has settled.
        seconds: least duration of one timed graph, to keep event resolution out of the numbers.
        settle: seconds of rounds until the card counts as settled.
        seed: of the shuffled order.
    """
    import time

    import torch

    runs = dict(contestants) | {CONTROL: contestants[peer]}
    for run in runs.values():
        for i in range(sets):
            run(i)
    torch.cuda.synchronize()
    replays = {name: Replay(run, sets, seconds) for name, run in runs.items()}
    time.sleep(REST)
    order = _shuffled(replays, seed)
    a_round = sum(replay.calls * replay.seconds() for replay in replays.values())
    rested = _timed(replays, order, max(round(RESTED / a_round), 1))
    _timed(replays, order, ceil(max(settle - RESTED, 0.0) / a_round))
    return Contest(peer=peer, samples=_timed(replays, order, rounds), rested=rested)


def tournament(
    contestants: Mapping[str, Run],
    *,
    always: Sequence[str] = (),
    sets: int = 1,
    margin: float = 1.2,
    rounds: int = 7,
    seconds: float = 5e-4,
    seed: int = 0,
) -> tuple[Mapping[str, Samples], Mapping[str, float]]:
    """Find the fastest of many: one look at each, then rounds in turns among those that are close.

    Args:
        contestants: as of `contest`. Each has run before, so that nothing is loaded here.
        always: names that go into the rounds however slow they were.
        sets: input sets that a captured graph rotates through.
        margin: times the fastest look up to which a contestant is close.
        rounds: how often each of those is timed.
        seconds: least duration of one timed graph.
        seed: of the shuffled order.

    Returns:
        The samples of the rounds, and the seconds of the first look at everybody, the faster of
        two.
    """
    looks: dict[str, float] = {}
    close: dict[str, Replay] = {}
    for name, run in contestants.items():
        replay = Replay(run, sets, seconds)
        looks[name] = min(replay.seconds() for _ in range(2))
        most = margin * min(looks.values())
        close = {n: r for n, r in (close | {name: replay}).items() if looks[n] <= most}
    # a graph that was dropped early is captured anew
    close |= {n: Replay(contestants[n], sets, seconds) for n in always if n not in close}
    order = _shuffled(close, seed)
    _timed(close, order, 1)
    return _timed(close, order, rounds), looks


def _shuffled(names: Iterable[str], seed: int) -> Iterator[Sequence[str]]:
    """The names in an order that is shuffled anew, for ever."""
    order = list(names)
    shuffle = random.Random(seed).shuffle
    while True:
        shuffle(order)
        yield order


def _timed(
    replays: Mapping[str, Replay], orders: Iterator[Sequence[str]], rounds: int
) -> dict[str, Samples]:
    """Seconds of one call for each round, everybody once a round."""
    taken: dict[str, list[float]] = {name: [] for name in replays}
    for order in islice(orders, rounds):
        for name in order:
            taken[name].append(replays[name].seconds())
    return {name: Samples(name=name, seconds=tuple(times)) for name, times in taken.items()}


def sustained(
    contestants: Mapping[str, Run], *, sets: int = 1, seconds: float = 1.0, blocks: int = 6
) -> Mapping[str, Samples]:
    """Each contestant back to back for `seconds`, in alternating blocks: the power-limited rate."""
    import torch

    replays = {name: Replay(run, sets, 20e-3) for name, run in contestants.items()}
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(blocks):
        for name, replay in replays.items():
            once = replay.seconds() * replay.calls
            taken[name].append(replay.seconds(max(int(seconds / once), 1)))
    torch.cuda.synchronize()
    return {name: Samples(name=name, seconds=tuple(times)) for name, times in taken.items()}


def host_seconds(
    calls: Mapping[str, Callable[[], object]], *, rounds: int = 200
) -> Mapping[str, float]:
    """Median host time of one call, interleaved, with the device idle in between.

    Each sample is a batch of 20 calls: enough to hide the clock, too few to fill the launch queue.
    """
    import time

    import torch

    batch = 20
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(batch):
                call()
            taken[name].append((time.perf_counter() - start) / batch)
    return {name: median(times) for name, times in taken.items()}


def _events() -> tuple[Any, Any]:
    import torch

    return torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)


def rotation(bytes_per_set: int, l2_bytes: int, budget: int = 8 * 2**30) -> int:
    """Input sets that together exceed three times the L2, as far as memory allows."""
    wanted = -(-3 * l2_bytes // max(bytes_per_set, 1))
    return max(1, min(wanted, budget // max(bytes_per_set, 1)))


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as aligned text; the first row is the header."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
