"""Three ways to feed a tensor core, played out: who works when, and how often it idles.

    serial     one buffer: load, multiply, then CUDA-core work, one after the other
    ring       a producer loads up to `stages` tiles ahead; one consumer multiplies, then works
    ping-pong  the same ring for two consumers that alternate: one multiplies while the other works

Every tile needs its load first, then wgmma, then CUDA-core work of the consumer that multiplied it
(a softmax, a scale). A stage is free again once it has been multiplied. TMA and the tensor core are
one each and serve in order. In steady state a ring takes max(load, wgmma + cuda) a tile, ping-pong
max(load, wgmma, (wgmma + cuda) / 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from ptxgen.models.record import ANY, Bars, Record, in_range, one_of, plot_axes
from ptxgen.view import Cell, Grid, Row, Stack, Table, View

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Design = Literal["serial", "ring", "ping-pong"]
DESIGNS: tuple[Design, ...] = ("serial", "ring", "ping-pong")
TILES_MAX = 10_000
_GANTT_COLUMNS = 56


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """An engine at work on a tile from `start` to `end`, in cycles."""

    engine: str
    tile: int
    start: float
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline(Record):
    """One design played over a number of tiles. Made by `timeline`."""

    design: Design
    load: float
    wgmma: float
    cuda: float
    stages: int
    tiles: int
    events: tuple[Busy, ...]

    @property
    def cycles(self) -> float:
        """Cycles until the last tile is done."""
        return max(event.end for event in self.events)

    @property
    def per_tile(self) -> float:
        """Cycles from tile to tile at the end of the run, when the pipeline is full.

        The mean over the last two (ping-pong finishes tiles in pairs).
        """
        ends = sorted(e.end for e in self.events if e.engine.startswith("CUDA"))
        return (ends[-1] - ends[-3]) / 2 if len(ends) >= 3 else self.cycles / self.tiles

    @property
    def tensor_busy(self) -> float:
        """Share of the cycles in which the tensor core works."""
        return self.tiles * self.wgmma / self.cycles

    def headline(self) -> Mapping[str, float | str]:
        return {
            "cycles": self.cycles,
            "a tile": self.per_tile,
            "tensor busy": round(self.tensor_busy, 3),
        }

    def table(self) -> Table:
        return Table(
            title=f"{self.design}: {self.tiles} tiles, load {self.load:g}, wgmma {self.wgmma:g}, "
            f"CUDA {self.cuda:g} cycles",
            columns=("", "cycles"),
            rows=(
                Row(("whole run", f"{self.cycles:,.0f}")),
                Row(("a tile, when full", f"{self.per_tile:,.1f}")),
                Row(
                    ("tensor core busy", f"{self.tiles * self.wgmma:,.0f}"),
                    f"{self.tensor_busy:.0%}",
                ),
            ),
        )

    def bars(self) -> Bars:
        busy: dict[str, float] = {}
        for event in self.events:
            busy[event.engine] = busy.get(event.engine, 0.0) + event.end - event.start
        return Bars(unit="busy cycles", values=busy)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Who works when, as bars over the cycles."""
        ax = plot_axes(axes)
        engines = list(dict.fromkeys(event.engine for event in self.events))
        for row, engine in enumerate(engines):
            spans = [(e.start, e.end - e.start) for e in self.events if e.engine == engine]
            ax.broken_barh(spans, (row - 0.4, 0.8), edgecolor="black", linewidth=0.4)
        ax.set_yticks(range(len(engines)), engines)
        ax.invert_yaxis()
        ax.set_xlabel("cycles")
        ax.set_title(self.design)
        return ax

    def gantt(self) -> Grid:
        """Who works when; a hue and a number is a tile."""
        engines = tuple(dict.fromkeys(event.engine for event in self.events))
        scale = self.cycles / _GANTT_COLUMNS
        rows = []
        for engine in engines:
            cells: list[Cell] = []
            at = 0
            for event in (e for e in self.events if e.engine == engine):
                start, end = max(round(event.start / scale), at), round(event.end / scale)
                if end <= start:
                    continue
                if start > at:
                    cells.append(Cell(tone="muted", span=start - at))
                tip = f"tile {event.tile}: {event.start:g} to {event.end:g}"
                cells.append(
                    Cell(label=str(event.tile), tone=event.tile, span=end - start, tip=tip)
                )
                at = end
            if at < _GANTT_COLUMNS:
                cells.append(Cell(tone="muted", span=_GANTT_COLUMNS - at))
            rows.append(tuple(cells))
        return Grid(
            title=f"{self.design}: {self.cycles:,.0f} cycles from left to right",
            rows=tuple(rows),
            row_labels=engines,
            clip=1,
        )

    def view(self) -> View:
        return Stack.of(self.table(), self.gantt())


def timeline(
    *,
    design: Annotated[Design, "who waits for whom"] = "ring",
    load: Annotated[float, "cycles TMA needs for a tile"] = 400.0,
    wgmma: Annotated[float, "tensor-core cycles of a tile"] = 512.0,
    cuda: Annotated[float, "CUDA-core cycles of a tile"] = 256.0,
    stages: Annotated[int, "tiles that fit into the ring"] = 4,
    tiles: Annotated[int, "tiles to play"] = 8,
) -> Timeline:
    """Play serial, ring or ping-pong over some tiles and see who idles.

    Raises ConfigError for negative times, no time at all, or no tiles.
    """
    one_of("design", design, DESIGNS)
    in_range(
        "no such timeline",
        ("load", load, 0, ANY),
        ("wgmma", wgmma, 0, ANY),
        ("cuda", cuda, 0, ANY),
        ("load + wgmma + cuda", load + wgmma + cuda, 1e-9, ANY),
        ("stages", stages, 1, ANY),
        ("tiles", tiles, 1, TILES_MAX),
    )
    consumers = 2 if design == "ping-pong" else 1
    loaded = tensor = 0.0  # when TMA and the tensor core are free
    done = [0.0] * consumers  # when each consumer is free
    released: list[float] = []  # when the stage of tile i was free again
    events: list[Busy] = []
    for tile in range(tiles):
        own = tile % consumers
        if design == "serial":
            start = done[0]
        else:
            start = max(loaded, released[tile - stages] if tile >= stages else 0.0)
        loaded = start + load
        multiply = max(loaded, tensor, done[own])
        tensor = multiply + wgmma
        released.append(tensor)
        done[own] = tensor + cuda
        name = f"CUDA {own}" if consumers > 1 else "CUDA"
        events += [
            Busy(engine="TMA", tile=tile, start=start, end=loaded),
            Busy(engine="wgmma", tile=tile, start=multiply, end=tensor),
            Busy(engine=name, tile=tile, start=tensor, end=done[own]),
        ]
    return Timeline(
        design=design, load=load, wgmma=wgmma, cuda=cuda, stages=stages, tiles=tiles,
        events=tuple(events),
    )  # fmt: skip
