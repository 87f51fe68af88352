"""Who knows what: clocks of warps and of asynchronous work, joined at synchronisation only.

An *agent* is anything whose accesses are ordered among themselves: a warp, or a chain of
asynchronous work (the copies that complete on one mbarrier, the wgmma groups of a warpgroup, the
bulk groups of a thread). An access is (agent, epoch). A warp has *seen* an access once its clock
holds at least that epoch for that agent.

    seen     what is ordered before the warp's next access
    via      the part of it that the async proxy sees too in shared memory, and via_global in global
             memory: fence.proxy.async copies seen to them
    narrow   what would have been seen, had a release or an acquire named a wider scope

Agents of the async proxy have odd numbers. Their completion is signalled by mbarriers and waits,
whatever the scope of the arrival that passes it on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SCOPES = {"cta": 0, "cluster": 1, "gpu": 2, "gl": 2, "sys": 3}
CTA, CLUSTER, GPU = 0, 1, 2


def is_async(agent: int) -> bool:
    """Whether an agent works through the async proxy."""
    return bool(agent & 1)


def _raise_to(mine: dict[int, int], other: dict[int, int]) -> None:
    for agent, epoch in other.items():
        if mine.get(agent, 0) < epoch:
            mine[agent] = epoch


@dataclass(slots=True)
class Clock:
    """One agent's knowledge, or what a synchronisation object passes on."""

    seen: dict[int, int] = field(default_factory=dict)
    via: dict[int, int] = field(default_factory=dict)
    via_global: dict[int, int] = field(default_factory=dict)
    narrow: dict[int, int] = field(default_factory=dict)

    def copy(self) -> Clock:
        return Clock(dict(self.seen), dict(self.via), dict(self.via_global), dict(self.narrow))

    def join(self, other: Clock) -> None:
        """Know all that `other` knows."""
        _raise_to(self.seen, other.seen)
        _raise_to(self.via, other.via)
        if other.via_global:
            _raise_to(self.via_global, other.via_global)
        if other.narrow:
            _raise_to(self.narrow, other.narrow)

    def join_narrow(self, other: Clock) -> None:
        """Learn of asynchronous work only; the rest would have taken a wider scope."""
        asynchronous = {a: e for a, e in other.seen.items() if a & 1}
        _raise_to(self.seen, asynchronous)
        _raise_to(self.narrow, other.seen)
        _raise_to(self.narrow, other.narrow)

    def has(self, agent: int, epoch: int) -> bool:
        return self.seen.get(agent, 0) >= epoch


@dataclass(frozen=True, slots=True)
class Place:
    """Where a thread runs, as scopes see it: numbers of its CTA and its cluster."""

    cta: int
    cluster: int


@dataclass(slots=True)
class SyncPoint:
    """What has been released at one object: a clock for each place and scope of a release."""

    parts: dict[tuple[Place, int], Clock] = field(default_factory=dict)

    def release(self, place: Place, scope: int, clock: Clock) -> None:
        part = self.parts.get((place, scope))
        if part is None:
            self.parts[place, scope] = clock.copy()
        else:
            part.join(clock)

    def merge(self, other: SyncPoint) -> None:
        """Add what another point holds, and empty it."""
        for (place, scope), clock in other.parts.items():
            self.release(place, scope, clock)
        other.parts.clear()

    def acquire(self, place: Place, scope: int, clock: Clock) -> None:
        """Pass on what releases made for a scope that reaches from there to here, and back."""
        for (source, wide), part in self.parts.items():
            if source == place:
                needed = CTA
            elif source.cluster == place.cluster:
                needed = CLUSTER
            else:
                needed = GPU
            if wide >= needed and scope >= needed:
                clock.join(part)
            else:
                clock.join_narrow(part)
