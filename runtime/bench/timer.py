"""Interleaved timing of several functions on one CUDA device, with an A/A control.

Each round times every contestant once, in an order shuffled anew, so that clock, power and
temperature favour nobody. A contestant is captured into a CUDA graph of `inner` calls that rotate
through input sets, so that neither host time nor a warm L2 is measured. The result is a ratio for
each round (peer time / own time); median and spread are of those ratios.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

Run = Callable[[int], object]  # one call on input set i

CONTROL = "control"  # the peer once more, under another name


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
    """All contestants of one interleaved run. `peer` is what ratios are against."""

    peer: str
    samples: Mapping[str, Samples]

    def ratios(self, name: str) -> tuple[float, ...]:
        """Peer time / own time of every round: above 1 means faster than the peer."""
        pairs = zip(self.samples[self.peer].seconds, self.samples[name].seconds, strict=True)
        return tuple(theirs / ours for theirs, ours in pairs)

    def ratio(self, name: str) -> float:
        return median(self.ratios(name))

    def spread(self, name: str) -> tuple[float, float]:
        """The middle half of the ratios."""
        low, _, high = quantiles(self.ratios(name), n=4)
        return low, high

    @property
    def control(self) -> float:
        """How far the peer's ratio to itself lies from 1."""
        return abs(self.ratio(CONTROL) - 1) if CONTROL in self.samples else 0.0


def contest(
    contestants: Mapping[str, Run],
    *,
    peer: str,
    sets: int = 1,
    rounds: int = 30,
    seconds: float = 2e-3,
    seed: int = 0,
) -> Contest:
    """Time all contestants in alternation.

    Args:
        contestants: a function a name; it is called with the index of the input set to use and must
            queue its work on torch's current stream.
        peer: the name that ratios are against. It also runs as the control.
        sets: input sets that a captured graph rotates through.
        rounds: how often each is timed (after two rounds that are thrown away).
        seconds: least duration of one timed graph, to keep event resolution out of the numbers.
        seed: of the shuffled order.
    """
    import torch

    runs = dict(contestants) | {CONTROL: contestants[peer]}
    for run in runs.values():
        for i in range(sets):
            run(i)
    torch.cuda.synchronize()
    graphs = {name: _graph(run, sets, seconds) for name, run in runs.items()}
    order = list(runs)
    shuffle = random.Random(seed).shuffle
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 2):
        shuffle(order)
        for name in order:
            graph, calls = graphs[name]
            start, end = _events()
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            if number >= 2:
                taken[name].append(start.elapsed_time(end) * 1e-3 / calls)
    return Contest(
        peer=peer, samples={n: Samples(name=n, seconds=tuple(t)) for n, t in taken.items()}
    )


def sustained(
    contestants: Mapping[str, Run], *, sets: int = 1, seconds: float = 1.0, blocks: int = 6
) -> Mapping[str, Samples]:
    """Each contestant back to back for `seconds`, in alternating blocks: the power-limited rate."""
    import torch

    graphs = {name: _graph(run, sets, 20e-3) for name, run in contestants.items()}
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(blocks):
        for name, (graph, calls) in graphs.items():
            start, end = _events()
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            replays = max(int(seconds / (start.elapsed_time(end) * 1e-3)), 1)
            start, end = _events()
            start.record()
            for _ in range(replays):
                graph.replay()
            end.record()
            end.synchronize()
            taken[name].append(start.elapsed_time(end) * 1e-3 / (calls * replays))
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


def _graph(run: Run, sets: int, seconds: float) -> tuple[Any, int]:
    """A captured graph of whole rotations, at least `seconds` long, and its number of calls."""
    import torch

    start, end = _events()
    start.record()
    for i in range(sets):
        run(i)
    end.record()
    end.synchronize()
    once = max(start.elapsed_time(end) * 1e-3, 1e-6)
    rotations = max(int(seconds / once), 1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(rotations):
            for i in range(sets):
                run(i)
    return graph, rotations * sets


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
