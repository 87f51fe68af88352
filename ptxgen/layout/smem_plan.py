"""Shared memory as named regions: what lies where, and how the total came about.

A plan is built in order, each region aligned as it asks. Offsets count from the start of dynamic
shared memory, which is 1024-aligned: the window begins with 1,024 reserved bytes and dynamic shared
memory follows at 0x400 (a kernel declares `.extern .shared .align 1024` and nothing static).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from ptxgen.errors import ConfigError, Violation
from ptxgen.isa.arch import SMEM_PER_CTA_BYTES
from ptxgen.layout.rounding import align_up
from ptxgen.view import Row, Shown, Stack, Table, View

BASE_ALIGN = 1_024  # of the first byte of dynamic shared memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """A wish for shared memory: `count` items of `bytes` bytes, each on a multiple of `align`."""

    name: str
    bytes: int
    align: int = 16
    count: int = 1
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A placed buffer. `offset` is that of item 0; item i lies `i * stride` after it."""

    name: str
    offset: int
    bytes: int
    align: int
    count: int = 1
    note: str = ""

    @property
    def stride(self) -> int:
        """Bytes from one item to the next."""
        return align_up(self.bytes, self.align)

    @property
    def total(self) -> int:
        """Bytes of all items with the gaps between them."""
        return self.stride * (self.count - 1) + self.bytes if self.count else 0

    @property
    def end(self) -> int:
        return self.offset + self.total


@dataclass(frozen=True, slots=True)
class SmemPlan(Shown):
    """The shared-memory map of one CTA. Made by `SmemPlan.of`."""

    regions: tuple[Region, ...]

    @classmethod
    def of(cls, *buffers: Buffer) -> SmemPlan:
        """Places the buffers in the order given.

        Raises ConfigError for a repeated name, a negative size, or an alignment that is no power of
        two or exceeds the 1024-byte alignment of the base.
        """
        violations = [v for i, b in enumerate(buffers) for v in _violations(b, buffers[:i])]
        if violations:
            raise ConfigError("shared memory cannot be laid out", violations)
        regions: list[Region] = []
        cursor = 0
        for b in buffers:
            region = Region(
                name=b.name,
                offset=align_up(cursor, b.align),
                bytes=b.bytes,
                align=b.align,
                count=b.count,
                note=b.note,
            )
            regions.append(region)
            cursor = region.end if region.total else cursor  # an absent region costs no padding
        return cls(tuple(regions))

    def __iter__(self) -> Iterator[Region]:
        return iter(self.regions)

    def region(self, name: str) -> Region:
        """The region of that name. Raises KeyError with the names there are."""
        for region in self.regions:
            if region.name == name:
                return region
        names = ", ".join(r.name for r in self.regions) or "none"
        raise KeyError(f"no shared-memory region {name!r}; regions: {names}")

    def offset(self, name: str, index: int = 0) -> int:
        """Offset of item `index` of a region from the start of dynamic shared memory, in bytes."""
        region = self.region(name)
        if not 0 <= index < region.count:
            raise IndexError(f"{name}[{index}]: the region has {region.count} items")
        return region.offset + index * region.stride

    @property
    def total(self) -> int:
        """Bytes from the start of dynamic shared memory to the end of the last region."""
        return max((r.end for r in self.regions if r.total), default=0)

    @property
    def padding(self) -> int:
        """Bytes that alignment leaves unused."""
        return self.total - sum(r.bytes * r.count for r in self.regions)

    def fits(self, limit: int = SMEM_PER_CTA_BYTES) -> bool:
        """Whether the plan needs at most `limit` bytes (default: what one CTA may have)."""
        return self.total <= limit

    def breakdown(self) -> str:
        """The total as a sum on one line: `5 x (A 16,384 + B 32,768) + D 16,384 + 5 x 16 barriers`.

        Neighbours with the same count share a bracket. Gaps, if any, are the last term.
        """
        terms = []
        for count, group in groupby((r for r in self.regions if r.count), key=lambda r: r.count):
            members = list(group)
            named = " + ".join(f"{r.name} {r.bytes:,}" for r in members)
            if count == 1:
                terms.append(named)
            elif len(members) == 1:
                terms.append(f"{count} x {members[0].bytes:,} {members[0].name}")
            else:
                terms.append(f"{count} x ({named})")
        if self.padding:
            terms.append(f"padding {self.padding:,}")
        return " + ".join(terms) or "0"

    def violations(
        self, *, field: str, got: str, limit: int = SMEM_PER_CTA_BYTES, fix: str = ""
    ) -> tuple[Violation, ...]:
        """The rule "it must fit" in the words of the config field that decides the size."""
        if self.fits(limit):
            return ()
        return (
            Violation(
                field=field,
                got=got,
                rule=f"needs {self.total:,} B of shared memory, the limit is {limit:,} B",
                why=self.breakdown(),
                fix=fix,
            ),
        )

    def table(self) -> Table:
        """The regions in order, with offsets in hex and decimal."""
        rows = [
            Row(
                (
                    f"0x{r.offset:05x}",
                    f"{r.offset:,}",
                    r.name,
                    f"{r.bytes:,}",
                    str(r.count),
                    f"{r.total:,}",
                    str(r.align),
                ),
                r.note,
            )
            for r in self.regions
        ]
        rows.append(Row((f"0x{self.total:05x}", f"{self.total:,}", "end", "", "", "", "")))
        return Table(
            columns=("offset", "", "region", "bytes", "count", "total", "align"),
            left=frozenset({0, 2}),
            rows=tuple(rows),
        )

    def view(self) -> View:
        """The table, and the regions drawn to scale."""
        from ptxgen.layout.draw_smem import smem_grid  # drawings read plans

        return Stack.of(self.table(), smem_grid(self))

    def __str__(self) -> str:
        return str(self.table())


def _violations(buffer: Buffer, earlier: tuple[Buffer, ...]) -> Iterator[Violation]:
    if any(b.name == buffer.name for b in earlier):
        yield Violation(
            field=buffer.name, got="twice", rule="every region needs its own name", fix="rename one"
        )
    if buffer.bytes < 0 or buffer.count < 0:
        yield Violation(
            field=buffer.name,
            got=f"{buffer.count} x {buffer.bytes} B",
            rule="size and count must not be negative",
        )
    if buffer.align not in {1 << i for i in range(BASE_ALIGN.bit_length())}:
        yield Violation(
            field=buffer.name,
            got=f"align {buffer.align}",
            rule=f"alignment must be a power of two up to {BASE_ALIGN}",
            why=f"dynamic shared memory itself is aligned to {BASE_ALIGN} B only",
        )
