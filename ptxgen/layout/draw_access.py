"""Drawings of memory accesses: the summary, the lanes, the passes of the banks, the sectors."""

from __future__ import annotations

from ptxgen.layout.access import (
    BANKS,
    LINE_BYTES,
    SECTOR_BYTES,
    AccessPattern,
    WarpAccess,
)
from ptxgen.view import Cell, Grid, Row, Stack, Table, Tone, View, count

WAVEFRONTS_DRAWN = 16
LINES_DRAWN = 16
_LANES_A_ROW = 8
_PARTS = {2: "half", 3: "part", 4: "quarter"}


def access_view(pattern: AccessPattern, warp: int = 0) -> View:
    """The verdict over all warps, then lanes, banks and sectors of one of them."""
    shown = pattern.warps[warp]
    return Stack.of(summary_table(pattern), lane_grid(shown), bank_grid(shown), sector_grid(shown))


def summary_table(pattern: AccessPattern) -> Table:
    """One row a warp: what global and shared memory do for its request."""
    rows = []
    for w in pattern.warps:
        worst = w.ways > 1
        rows.append(
            Row(
                (
                    str(w.warp),
                    f"{w.bytes:,}",
                    str(w.sectors),
                    str(w.lines),
                    f"{w.sector_efficiency:.0%}",
                    str(len(w.wavefronts)),
                    str(w.phases),
                    f"{w.ways}-way",
                ),
                remark="<- bank conflict" if worst else "",
                tone="bad" if worst else "plain",
            )
        )
    swizzle = f", swizzle {pattern.swizzle}" if pattern.swizzle.span else ""
    return Table(
        title=f"{pattern.expression}, {pattern.width} B a thread, block {pattern.block}{swizzle}",
        columns=("warp", "bytes", "sectors", "lines", "used", "wavefronts", "least", "conflict"),
        left=frozenset(),
        rows=tuple(rows),
        notes=(
            "global: 32-byte sectors and 128-byte lines a request, and the share of them used",
            "shared: wavefronts a request, the least for this width, and the worst conflict",
        ),
    )


def lane_grid(warp: WarpAccess) -> Grid:
    """Index, address, bank and sector of each lane; lanes of one sector share a hue."""
    hue = {sector: i for i, sector in enumerate(dict.fromkeys(a.sector for a in warp.lanes))}
    rows, labels = [], []
    for first in range(0, len(warp.lanes), _LANES_A_ROW):
        part = warp.lanes[first : first + _LANES_A_ROW]
        blank = (Cell(),) * (_LANES_A_ROW - len(part))
        for what in ("index", "address", "bank"):
            texts = {
                "index": [str(a.index) for a in part],
                "address": [f"0x{a.address:x}" for a in part],
                "bank": [f"b{a.bank}" for a in part],
            }[what]
            tones: list[Tone] = [hue[a.sector] if what == "address" else "plain" for a in part]
            rows.append(
                tuple(Cell(label=t, tone=c) for t, c in zip(texts, tones, strict=True)) + blank
            )
            labels.append(f"{first}-{first + len(part) - 1} {what}" if what == "index" else what)
    return Grid(
        title=f"warp {warp.warp}: lane by lane (a hue is a 32-byte sector)",
        rows=tuple(rows),
        row_labels=tuple(labels),
        corner="lanes",
        column_labels=tuple(f"+{i}" for i in range(_LANES_A_ROW)),
    )


def bank_grid(warp: WarpAccess) -> Grid:
    """Which lane each shared-memory bank serves in each pass (`*`: several lanes, one word)."""
    drawn = warp.wavefronts[:WAVEFRONTS_DRAWN]
    rows = []
    for wave in drawn:
        cells = []
        for bank in range(BANKS):
            lanes = wave.banks.get(bank, ())
            label = f"{lanes[0]}*" if len(lanes) > 1 else str(lanes[0]) if lanes else ""
            tip = f"bank {bank}: lanes {', '.join(map(str, lanes))}" if lanes else f"bank {bank}"
            tone: Tone = lanes[0] // 4 if lanes else "muted"
            cells.append(Cell(label=label, tone=tone, tip=tip))
        rows.append(tuple(cells))
    left_out = len(warp.wavefronts) - len(drawn)
    return Grid(
        title=f"warp {warp.warp}: {count(len(warp.wavefronts), 'wavefront')} over {BANKS} banks "
        "(cells: lanes, * one word for several)",
        rows=tuple(rows),
        row_labels=tuple(
            f"pass {i}" if warp.phases == 1 else f"{i} ({_PARTS[warp.phases]} {w.phase})"
            for i, w in enumerate(drawn)
        ),
        corner="bank",
        group=BANKS // 2,
        column_labels=tuple(map(str, range(BANKS))),
        notes=(f"{left_out} more wavefronts",) if left_out else (),
    )


def sector_grid(warp: WarpAccess) -> Grid:
    """The 128-byte lines of the request, sector by sector: how many lanes begin in each."""
    touched = {
        sector
        for a in warp.lanes
        for sector in range(a.sector, (a.address + warp.width - 1) // SECTOR_BYTES + 1)
    }
    per_line = LINE_BYTES // SECTOR_BYTES
    lines = sorted({sector // per_line for sector in touched})
    rows = []
    for line in lines[:LINES_DRAWN]:
        cells = []
        for sector in range(line * per_line, (line + 1) * per_line):
            lanes = sum(a.sector == sector for a in warp.lanes)
            cells.append(
                Cell(
                    label=count(lanes, "lane") if sector in touched else "",
                    tone=2 if sector in touched else "muted",
                    tip=f"sector at 0x{sector * SECTOR_BYTES:x}",
                )
            )
        rows.append(tuple(cells))
    left_out = len(lines) - LINES_DRAWN
    return Grid(
        title=f"warp {warp.warp}: {count(warp.sectors, 'sector')} in {count(warp.lines, 'line')}, "
        f"{warp.sector_efficiency:.0%} of the moved bytes used",
        rows=tuple(rows),
        row_labels=tuple(f"0x{line * LINE_BYTES:x}" for line in lines[:LINES_DRAWN]),
        corner="line",
        column_labels=tuple(f"+{i * SECTOR_BYTES}" for i in range(per_line)),
        notes=(f"{left_out} more lines",) if left_out > 0 else (),
    )
