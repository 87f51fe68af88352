"""What a warp's 32 addresses cost: sectors from global memory, wavefronts from shared memory.

Coalescing and bank conflicts are one question, how 32 addresses are laid out:

* Global memory moves 32-byte sectors, four to a 128-byte line. A request touches as many sectors as
  its lanes' bytes fall into; 32 lanes of 4 contiguous bytes are 4 sectors.
* Shared memory has 32 banks of 4 bytes; word w is in bank w % 32. Lanes that read different words
  of one bank take turns; lanes that read the same word share it. Accesses of 8 and 16 bytes are
  served by half and quarter warps, so that one pass never moves more than 128 bytes.

CUDA C++ Programming Guide, "Global memory" and "Shared memory" of compute capability 5.x and later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from ptxgen.errors import ConfigError, Violation
from ptxgen.isa.arch import THREADS_PER_CTA, WARP_THREADS
from ptxgen.layout.expression import parse
from ptxgen.layout.swizzle import SWIZZLES, Swizzle
from ptxgen.spec import Dim3
from ptxgen.view import Shown, View

BANKS, BANK_BYTES = 32, 4
PASS_BYTES = BANKS * BANK_BYTES  # what all banks deliver at once
SECTOR_BYTES, LINE_BYTES = 32, 128
WIDTHS = (1, 2, 4, 8, 16)
PLACE_NAMES = ("tid", "lane", "warp", "tx", "ty", "tz")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One lane's access. `address` is in bytes, after the swizzle if there is one."""

    lane: int
    index: int
    address: int

    @property
    def word(self) -> int:
        """The 4-byte word of the first byte."""
        return self.address // BANK_BYTES

    @property
    def bank(self) -> int:
        """The shared-memory bank of the first byte."""
        return self.word % BANKS

    @property
    def sector(self) -> int:
        """The 32-byte sector of the first byte."""
        return self.address // SECTOR_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Wavefront:
    """One pass of the shared-memory banks: for each busy bank the lanes that it serves."""

    phase: int
    banks: Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WarpAccess:
    """One warp's request of `width` bytes a lane."""

    warp: int
    width: int
    lanes: tuple[Lane, ...]
    wavefronts: tuple[Wavefront, ...] = field(repr=False)

    @property
    def sectors(self) -> int:
        """32-byte sectors that the request touches."""
        return len(self._blocks(SECTOR_BYTES))

    @property
    def lines(self) -> int:
        """128-byte lines that the request touches."""
        return len(self._blocks(LINE_BYTES))

    @property
    def bytes(self) -> int:
        """Different bytes that the lanes ask for."""
        return len({a.address + i for a in self.lanes for i in range(self.width)})

    @property
    def sector_efficiency(self) -> float:
        """Share of the moved sectors that was asked for."""
        return self.bytes / (self.sectors * SECTOR_BYTES)

    @property
    def phases(self) -> int:
        """Parts of the warp that shared memory serves one after the other: 1, 2 or 4."""
        return -(-len(self.lanes) // _lanes_a_phase(self.width))

    @property
    def ways(self) -> int:
        """The worst conflict: different words of one bank in one phase. 1 is conflict-free."""
        passes = [sum(w.phase == p for w in self.wavefronts) for p in range(self.phases)]
        return max(passes)

    @property
    def excess(self) -> int:
        """Wavefronts beyond one a phase."""
        return len(self.wavefronts) - self.phases

    def _blocks(self, size: int) -> set[int]:
        return {
            block
            for a in self.lanes
            for block in range(a.address // size, (a.address + self.width - 1) // size + 1)
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPattern(Shown):
    """An index expression over a block of threads, warp by warp. Made by `access`."""

    expression: str
    width: int
    block: Dim3
    swizzle: Swizzle
    warps: tuple[WarpAccess, ...]

    def view(self) -> View:
        """What every warp costs, and for the first one each lane and each pass of the banks."""
        from ptxgen.layout.draw_access import access_view  # drawings read accesses

        return access_view(self)

    def to_dict(self) -> dict[str, object]:
        """For JSON: one entry a warp, with its lanes."""
        return {
            "expression": self.expression,
            "width": self.width,
            "block": [self.block.x, self.block.y, self.block.z],
            "swizzle": self.swizzle.span,
            "warps": [
                {
                    "warp": w.warp,
                    "sectors": w.sectors,
                    "lines": w.lines,
                    "bytes": w.bytes,
                    "sector_efficiency": w.sector_efficiency,
                    "wavefronts": len(w.wavefronts),
                    "phases": w.phases,
                    "conflict_ways": w.ways,
                    "lanes": [
                        {"lane": a.lane, "index": a.index, "address": a.address, "bank": a.bank,
                         "sector": a.sector}
                        for a in w.lanes
                    ],
                }
                for w in self.warps
            ],
        }  # fmt: skip


def sectors(addresses: Sequence[int], width: int = 4) -> int:
    """32-byte sectors that one request touches; `addresses` are a warp's, in bytes."""
    return warp_access(addresses, width).sectors


def bank_conflict(addresses: Sequence[int], width: int = 4) -> int:
    """The worst bank conflict of one shared-memory request: 1 is free, 32 the worst."""
    return warp_access(addresses, width).ways


def warp_access(
    addresses: Sequence[int], width: int, *, warp: int = 0, indices: Sequence[int] = ()
) -> WarpAccess:
    """The cost of up to 32 byte addresses, one a lane, each of `width` bytes.

    Raises ConfigError where the width is no access size, an address is negative or not a multiple
    of the width, or there is no lane or more than 32.
    """
    broken = _violations(addresses, width)
    if broken:
        raise ConfigError("this is not one warp's access", broken)
    lanes = tuple(
        Lane(lane=i, index=indices[i] if indices else a // width, address=a)
        for i, a in enumerate(addresses)
    )
    return WarpAccess(warp=warp, width=width, lanes=lanes, wavefronts=_wavefronts(lanes, width))


def access(
    expression: str,
    *,
    width: int = 4,
    block: Dim3 | None = None,
    constants: Mapping[str, int] = MappingProxyType({}),
    swizzle: Swizzle | int = 0,
    base: int = 0,
) -> AccessPattern:
    """The accesses of a block of threads (default: one warp) to elements of `width` bytes.

    `expression` gives each thread's element index from tid, lane, warp, tx, ty, tz and the given
    constants. Its byte address is base + index * width, then swizzled. Raises ConfigError.
    """
    shape = block or Dim3(WARP_THREADS)
    mode = swizzle if isinstance(swizzle, Swizzle) else SWIZZLES.get(swizzle) or Swizzle(swizzle)
    taken = [name for name in constants if name in PLACE_NAMES]
    if taken or not 1 <= shape.size <= THREADS_PER_CTA:
        raise ConfigError("no such block of threads", _block_violations(taken, shape))
    index_of = parse(expression, frozenset((*PLACE_NAMES, *constants)))
    warps = []
    for first in range(0, shape.size, WARP_THREADS):
        threads = range(first, min(first + WARP_THREADS, shape.size))
        indices = [index_of({**constants, **_place(tid, shape)}) for tid in threads]
        addresses = [mode.apply(base + i * width) if base + i * width >= 0 else -1 for i in indices]
        warps.append(warp_access(addresses, width, warp=first // WARP_THREADS, indices=indices))
    return AccessPattern(
        expression=expression, width=width, block=shape, swizzle=mode, warps=tuple(warps)
    )


def _place(tid: int, block: Dim3) -> dict[str, int]:
    """A thread's coordinates: threads are counted x first, then y, then z."""
    return {
        "tid": tid,
        "lane": tid % WARP_THREADS,
        "warp": tid // WARP_THREADS,
        "tx": tid % block.x,
        "ty": tid // block.x % block.y,
        "tz": tid // (block.x * block.y),
    }


def _lanes_a_phase(width: int) -> int:
    return min(PASS_BYTES // width, WARP_THREADS)


def _wavefronts(lanes: tuple[Lane, ...], width: int) -> tuple[Wavefront, ...]:
    """Every phase serves each bank's words one a pass, in the order of the first lane to ask."""
    per_phase = _lanes_a_phase(width)
    found: list[Wavefront] = []
    for phase, first in enumerate(range(0, len(lanes), per_phase)):
        wanted: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for lane in lanes[first : first + per_phase]:
            for word in range(lane.word, lane.word + max(width // BANK_BYTES, 1)):
                wanted[word % BANKS][word].append(lane.lane)
        for turn in range(max(map(len, wanted.values()))):
            served = {
                bank: tuple(list(words.values())[turn])
                for bank, words in sorted(wanted.items())
                if turn < len(words)
            }
            found.append(Wavefront(phase=phase, banks=served))
    return tuple(found)


def _violations(addresses: Sequence[int], width: int) -> list[Violation]:
    if width not in WIDTHS:
        return [
            Violation(
                field="width",
                got=f"{width} B",
                rule=f"must be one of {', '.join(map(str, WIDTHS))}",
                why="a thread loads or stores 1, 2, 4, 8 or 16 bytes at a time",
            )
        ]
    if not 1 <= len(addresses) <= WARP_THREADS:
        return [Violation(field="lanes", got=str(len(addresses)), rule="must be 1..32")]
    bad: Callable[[int], bool] = lambda a: a < 0 or a % width != 0  # noqa: E731
    return [
        Violation(
            field=f"address of lane {lane}",
            got=str(address) if address >= 0 else "negative",
            rule=f"must be a multiple of {width} B, and not negative",
            why="a misaligned access traps",
            fix="change the expression, the base or the width",
        )
        for lane, address in enumerate(addresses)
        if bad(address)
    ][:1]


def _block_violations(taken: list[str], block: Dim3) -> list[Violation]:
    broken = [
        Violation(field=name, got="a constant", rule="already names a thread's place", fix="rename")
        for name in taken
    ]
    if not 1 <= block.size <= THREADS_PER_CTA:
        broken.append(
            Violation(
                field="block", got=f"{block.size} threads", rule=f"must be 1..{THREADS_PER_CTA}"
            )
        )
    return broken
