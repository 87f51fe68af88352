"""A shared-memory plan as a drawing: a strip to scale, and the items in order of address."""

from __future__ import annotations

from ptxgen.isa.arch import SMEM_PER_CTA_BYTES
from ptxgen.layout.smem_plan import SmemPlan
from ptxgen.view import Cell, Grid

STRIP_COLUMNS = 56  # 227 KB in cells of about 4 KB


def smem_grid(plan: SmemPlan, limit: int = SMEM_PER_CTA_BYTES) -> Grid:
    """One row of shared memory, to scale; a hue is a region. Tiny items are not drawn."""
    scale = max(limit, plan.total) / STRIP_COLUMNS
    cells: list[Cell] = []
    at = 0
    for hue, region in enumerate(plan):
        for item in range(region.count):
            first = region.offset + item * region.stride
            end = round((first + region.bytes) / scale)
            start = max(round(first / scale), at)
            if end <= start:
                continue
            if start > at:
                cells.append(Cell(tone="muted", span=start - at, tip="padding"))
            name = region.name if region.count == 1 else f"{region.name}{item}"
            tip = f"{name}: 0x{first:05x}, {region.bytes:,} B"
            cells.append(Cell(label=name, tone=hue, span=end - start, tip=tip))
            at = end
    if at < STRIP_COLUMNS:
        free = max(limit - plan.total, 0)
        cells.append(Cell(label="free", tone="muted", span=STRIP_COLUMNS - at, tip=f"{free:,} B"))
    verdict = (
        f"{limit - plan.total:,} B free"
        if plan.fits(limit)
        else f"{plan.total - limit:,} B more than the limit"
    )
    return Grid(
        title=f"shared memory to scale: {plan.total:,} of {limit:,} B, {verdict}",
        rows=(tuple(cells),),
        clip=1,
    )
