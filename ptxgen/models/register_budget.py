"""Registers of one thread: accumulators and fragments counted out, and what is left.

A tile of R x C elements in registers is spread evenly over the threads that hold it. An f32
accumulator of 64 x N over a warpgroup takes N / 2 registers a thread; over one warp it would take
four times as many, which is why wgmma is issued by 128 threads. A 64 x K fragment of 16-bit A takes
K / 4. The rest is for addresses, descriptors, statistics and what the compiler keeps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Annotated

from ptxgen.errors import ConfigError, Violation
from ptxgen.isa.arch import REGISTERS_PER_THREAD, WARPGROUP_THREADS
from ptxgen.models.feed import WGMMA_M
from ptxgen.models.record import Bars, Record, in_range
from ptxgen.models.registers import WGMMA_OVERHEAD_REGISTERS
from ptxgen.view import Row, Table

REGISTER_BITS = 32
_TILE = re.compile(r"(?:(?P<name>\w+)=)?(?P<rows>\d+)x(?P<columns>\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A tile that the threads hold in registers."""

    name: str
    rows: int
    columns: int
    bits: int
    registers: int  # a thread


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBudget(Record):
    """What one thread holds, against what it may have. Made by `register_budget`."""

    held: tuple[Held, ...]
    other: int
    limit: int
    threads: int

    @property
    def tiles(self) -> int:
        """Registers of all tiles."""
        return sum(item.registers for item in self.held)

    @property
    def total(self) -> int:
        return self.tiles + self.other

    @property
    def spare(self) -> int:
        """Registers left; negative where the tiles do not fit."""
        return self.limit - self.total

    @property
    def fits(self) -> bool:
        return self.spare >= 0

    @property
    def spare_n(self) -> int:
        """The widest further 64 x N f32 accumulator that fits, a multiple of 8."""
        return max(self.spare, 0) * self.threads // WGMMA_M // 8 * 8

    def bars(self) -> Bars:
        tiles = {item.name: float(item.registers) for item in self.held}
        return Bars(
            unit="registers a thread",
            values={**tiles, "other": self.other, "total": self.total, "limit": self.limit},
        )

    def headline(self) -> Mapping[str, float | str]:
        return {"total": self.total, "tiles": self.tiles, "spare": self.spare, "limit": self.limit}

    def table(self) -> Table:
        rows = [
            Row((item.name, f"{item.rows} x {item.columns}", str(item.bits), str(item.registers)))
            for item in self.held
        ]
        rows.append(Row(("other", "", "", str(self.other)), "addresses, descriptors, statistics"))
        verdict = (
            f"{self.spare} spare: room for another 64 x {self.spare_n} f32"
            if self.fits
            else f"{-self.spare} too many: they would spill"
        )
        rows.append(
            Row(
                ("total", "", "", f"{self.total} of {self.limit}"),
                verdict,
                "good" if self.fits else "bad",
            )
        )
        return Table(
            title=f"registers of a thread, tiles spread over {self.threads} threads",
            columns=("holds", "tile", "bits", "registers"),
            rows=tuple(rows),
        )


def held(text: str, bits: int, threads: int = WARPGROUP_THREADS) -> tuple[Held, ...]:
    """The tiles written as `S=64x256,O=64x128` (names are optional), of `bits`-bit elements.

    Raises ConfigError for a tile that cannot be read.
    """
    found = []
    for i, part in enumerate(filter(None, text.replace(" ", "").split(","))):
        match = _TILE.fullmatch(part)
        if not match:
            raise ConfigError(
                "tiles cannot be read",
                [
                    Violation(
                        field=f"tile {i}",
                        got=part,
                        rule="must be NAME=ROWSxCOLUMNS or ROWSxCOLUMNS",
                    )
                ],
            )
        rows, columns = int(match["rows"]), int(match["columns"])
        found.append(
            Held(
                name=match["name"] or f"tile {i}",
                rows=rows,
                columns=columns,
                bits=bits,
                registers=ceil(rows * columns * bits / REGISTER_BITS / threads),
            )
        )
    return tuple(found)


def register_budget(
    *,
    accumulators: Annotated[str, "f32 tiles, as S=64x256,O=64x128"] = "S=64x128,O=64x128",
    fragments: Annotated[str, "16-bit tiles held as A fragments, as P=64x128"] = "",
    other: Annotated[int, "registers for everything else"] = WGMMA_OVERHEAD_REGISTERS,
    limit: Annotated[int, "registers a thread may have: 255, or what setmaxnreg gives"] = 240,
    threads: Annotated[int, "threads that share each tile"] = WARPGROUP_THREADS,
) -> RegisterBudget:
    """Registers a thread needs for its accumulators and fragments, and what is left.

    Raises ConfigError for tiles that cannot be read, or a limit that no thread can have.
    """
    in_range(
        "no such budget",
        ("limit", limit, 1, REGISTERS_PER_THREAD + 1),  # setmaxnreg counts to 256
        ("other", other, 0, REGISTERS_PER_THREAD),
        ("threads", threads, 1, 1024),
    )
    return RegisterBudget(
        held=held(accumulators, 32, threads) + held(fragments, 16, threads),
        other=other,
        limit=limit,
        threads=threads,
    )
