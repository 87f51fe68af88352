"""Registers: what a kernel starts with, and how setmaxnreg moves them between roles.

A CTA owns a pool of `entry * threads` registers. A role that needs few gives some back (dec), a
role that needs many takes them (inc) and *blocks until they are there*: a split that asks for more
than the pool holds never returns, and ptxas does not check it. PTX ISA 9.7.19.5 (setmaxnreg).

ptxas chooses the entry count from `.reqntid` and `.minnctapersm`; without both it ignores
setmaxnreg:

    cap   = 65,536 / (threads rounded up to a warpgroup) / min CTAs, rounded down to 8, at most 255
    entry = min(cap, the smallest inc immediate)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from ptxgen.errors import ConfigError, Violation
from ptxgen.isa.arch import (
    CTAS_PER_SM,
    REGISTERS_PER_SM,
    REGISTERS_PER_THREAD,
    SETMAXNREG_MAX,
    SETMAXNREG_MIN,
    SETMAXNREG_STEP,
    THREADS_PER_CTA,
    THREADS_PER_SM,
    WARPGROUP_THREADS,
)
from ptxgen.layout.rounding import align_down, align_up
from ptxgen.models.record import Bars, Record, in_range
from ptxgen.view import Row, Table

Change: TypeAlias = Literal["dec", "inc"]

# What one role keeps besides its accumulators: ptxas 13.0 refuses (C7602) an m64n256 f32 wgmma, 128
# accumulators, below 154 registers.
WGMMA_OVERHEAD_REGISTERS = 26
PRODUCER_REGISTERS = 40  # an elected lane that issues TMA fits; tried first by `split`
CONSUMER_REGISTERS_MAX = 240  # above, a single consumer would only take what it cannot use


def entry_registers(threads: int, min_ctas: int = 1, smallest_inc: int | None = None) -> int:
    """Registers per thread that ptxas gives a kernel with setmaxnreg.

    256 threads -> 255, 384 -> 168, 512 -> 128, 640 -> 96, 768 -> 80, 1024 -> 64; 256 threads with
    two CTAs an SM -> 128. `smallest_inc` is the least setmaxnreg.inc immediate, if there is any.
    Raises ConfigError where `threads` or `min_ctas` are out of range.
    """
    if not 1 <= threads <= THREADS_PER_CTA or min_ctas < 1:
        raise ConfigError(
            "no entry register count",
            [
                Violation(
                    field="threads",
                    got=f"{threads} (min_ctas={min_ctas})",
                    rule=f"must be 1..{THREADS_PER_CTA} threads and at least one CTA an SM",
                )
            ],
        )
    cap = align_down(
        REGISTERS_PER_SM // (align_up(threads, WARPGROUP_THREADS) * min_ctas), SETMAXNREG_STEP
    )
    counts = [cap, REGISTERS_PER_THREAD]
    return min(counts if smallest_inc is None else [*counts, smallest_inc])


def accumulator_registers(rows: int, n: int, bits: int = 32) -> int:
    """Registers per thread that hold a [rows, n] accumulator of one warpgroup.

    `bits` is 32 for f32 and s32, 16 for f16 (two elements a register). 64 x 256 f32 -> 128.
    """
    return align_up(rows * n * bits // 32, WARPGROUP_THREADS) // WARPGROUP_THREADS


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A group of warpgroups that execute the same setmaxnreg.

    `registers` is the count per thread afterwards. `accumulators` of them hold wgmma results,
    `fragments` what wgmma reads.
    """

    name: str
    warpgroups: int
    registers: int
    change: Change
    accumulators: int = 0
    fragments: int = 0

    @property
    def holds(self) -> str:
        """What the registers hold beside addresses and descriptors, in words."""
        more = f" and {self.fragments} fragments" if self.fragments else ""
        return f"{self.accumulators} accumulators{more}"

    @property
    def threads(self) -> int:
        return self.warpgroups * WARPGROUP_THREADS

    @property
    def total(self) -> int:
        """Registers of all threads of the role."""
        return self.threads * self.registers

    @property
    def instruction(self) -> str:
        """The PTX that makes the change."""
        return f"setmaxnreg.{self.change}.sync.aligned.u32 {self.registers};"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterPool(Record):
    """The register split of one CTA, itemised. `str()` prints the table."""

    roles: tuple[Role, ...]
    min_ctas: int = 1

    @property
    def threads(self) -> int:
        return sum(role.threads for role in self.roles)

    @property
    def entry(self) -> int:
        """Registers per thread at entry, as ptxas will choose them."""
        incs = [role.registers for role in self.roles if role.change == "inc"]
        return entry_registers(self.threads, self.min_ctas, min(incs, default=None))

    @property
    def supply(self) -> int:
        """Registers that the CTA owns: the entry count, as allocated, x threads."""
        return align_up(self.entry, SETMAXNREG_STEP) * self.threads

    @property
    def demand(self) -> int:
        """Registers that all roles hold after their setmaxnreg."""
        return sum(role.total for role in self.roles)

    @property
    def equation(self) -> str:
        """`128 x 40 + 256 x 232 = 64,512 of 384 x 168 = 64,512`."""
        terms = " + ".join(f"{r.threads} x {r.registers}" for r in self.roles)
        per_thread = align_up(self.entry, SETMAXNREG_STEP)
        return f"{terms} = {self.demand:,} of {self.threads} x {per_thread} = {self.supply:,}"

    def violations(self) -> tuple[Violation, ...]:
        """Every broken rule: value range and step, direction, accumulators, and the pool itself."""
        broken = [v for role in self.roles for v in _value_violations(role)]
        if broken:
            return tuple(broken)
        entry = self.entry
        broken += [v for role in self.roles for v in _role_violations(role, entry)]
        if self.demand > self.supply:
            worst = max(self.roles, key=lambda role: role.total)
            spare = self.supply - (self.demand - worst.total)
            most = align_down(spare // worst.threads, SETMAXNREG_STEP)
            broken.append(
                Violation(
                    field=f"{worst.name}_registers",
                    got=str(worst.registers),
                    rule="the roles must not hold more registers than the CTA owns",
                    why=f"{self.equation}: setmaxnreg.inc would wait for ever",
                    fix=f"use {worst.name}_registers<={most}"
                    if most >= SETMAXNREG_MIN
                    else "lower every role",
                )
            )
        return tuple(broken)

    def notes(self) -> tuple[str, ...]:
        """Warnings: an increase from a pool that the roles do not use up exactly.

        24/232/232 of 3 x 168 has been reported to hang although it asks for less than there is, so
        only exact sums are known to be safe. Where no role grows beyond the entry count, nothing
        waits and there is no warning.
        """
        if self.demand < self.supply and any(role.registers > self.entry for role in self.roles):
            return (f"{self.supply - self.demand:,} registers are left over: {self.equation}",)
        return ()

    def bars(self) -> Bars:
        roles: dict[str, float] = {role.name: role.total for role in self.roles}
        return Bars(unit="registers", values={**roles, "owned": self.supply})

    def headline(self) -> Mapping[str, float | str]:
        return {
            "entry": self.entry,
            "demand": self.demand,
            "supply": self.supply,
            "legal": "no" if self.violations() else "yes",
            **{role.name: role.registers for role in self.roles},
        }

    def table(self) -> Table:
        rows = [
            Row(
                (r.name, str(r.threads), str(r.registers), f"{r.total:,}"),
                f"{r.instruction}" + f"  {r.holds}" * bool(r.accumulators),
            )
            for r in self.roles
        ]
        broken = self.violations()
        if not any(v.field.endswith("_warpgroups") for v in broken):
            rows.append(Row(("entry", str(self.threads), str(self.entry), f"{self.supply:,}")))
        return Table(
            columns=("role", "threads", "registers", "total"),
            rows=tuple(rows),
            notes=(
                *(f"note: {note}" for note in self.notes() if not broken),
                *(line for v in broken for line in str(v).splitlines()),
            ),
        )


def _value_violations(role: Role) -> Iterator[Violation]:
    regs = role.registers
    if regs % SETMAXNREG_STEP or not SETMAXNREG_MIN <= regs <= SETMAXNREG_MAX:
        nearest = min(max(align_up(regs, SETMAXNREG_STEP), SETMAXNREG_MIN), SETMAXNREG_MAX)
        yield Violation(
            field=f"{role.name}_registers",
            got=str(regs),
            rule=f"must be a multiple of {SETMAXNREG_STEP} in {SETMAXNREG_MIN}..{SETMAXNREG_MAX}",
            why="setmaxnreg takes no other immediate",
            fix=f"use {nearest}",
        )
    if role.warpgroups < 1:
        yield Violation(
            field=f"{role.name}_warpgroups",
            got=str(role.warpgroups),
            rule="must be at least 1",
            why="all four warps of a warpgroup execute one setmaxnreg",
        )


def _role_violations(role: Role, entry: int) -> Iterator[Violation]:
    # inc never falls below the entry count: ptxas lowers the entry to the smallest inc.
    if role.change == "dec" and role.registers > entry:
        yield Violation(
            field=f"{role.name}_registers",
            got=str(role.registers),
            rule=f"setmaxnreg.dec must not exceed the entry count, {entry}",
            why="ptxas stops with C7406",
            fix=f"use {role.name}_registers<={align_down(entry, SETMAXNREG_STEP)}",
        )
    needed = role.accumulators + role.fragments + WGMMA_OVERHEAD_REGISTERS
    if role.accumulators and role.registers < needed:
        yield Violation(
            field=f"{role.name}_registers",
            got=str(role.registers),
            rule=f"must be at least {align_up(needed, SETMAXNREG_STEP)} with {role.holds}",
            why=f"{role.accumulators + role.fragments} + {WGMMA_OVERHEAD_REGISTERS} for addresses "
            "and descriptors; less would spill or serialise wgmma",
            fix="use a smaller tile a warpgroup, or more consumer warpgroups",
        )


def split(consumers: int, *, producers: int = 1, min_ctas: int = 1) -> tuple[int, int]:
    """(producer, consumer) registers per thread for a producer/consumer CTA, in warpgroups.

    The first producer count from 40 downwards (then upwards) that uses the pool exactly:
    1 consumer -> (40, 240), 2 -> (40, 232), 3 -> (32, 160), 4 -> (32, 112). One consumer is capped
    at 240: it has them from the start, and the producer only gives some back.
    """
    groups = producers + consumers
    entry = entry_registers(groups * WARPGROUP_THREADS, min_ctas)
    supply = align_up(entry, SETMAXNREG_STEP) * groups
    for producer in _producer_candidates(align_down(entry, SETMAXNREG_STEP)):
        rest = supply - producers * producer
        if rest >= consumers * CONSUMER_REGISTERS_MAX:
            return producer, CONSUMER_REGISTERS_MAX
        if rest % (consumers * SETMAXNREG_STEP) == 0:
            return producer, rest // consumers
    raise AssertionError("an even split of the pool is always exact")


def _producer_candidates(entry: int) -> Sequence[int]:
    down = range(min(PRODUCER_REGISTERS, entry), SETMAXNREG_MIN - 1, -SETMAXNREG_STEP)
    upwards = range(PRODUCER_REGISTERS + SETMAXNREG_STEP, entry + 1, SETMAXNREG_STEP)
    return (*down, *upwards)


def producer_consumer(
    *,
    consumers: int,
    producer_registers: int,
    consumer_registers: int,
    producers: int = 1,
    accumulators: int = 0,
    fragments: int = 0,
    min_ctas: int = 1,
) -> RegisterPool:
    """The pool of the usual two roles; the counts of warpgroups are `producers` and `consumers`."""
    return RegisterPool(
        roles=(
            Role(name="producer", warpgroups=producers, registers=producer_registers, change="dec"),
            Role(
                name="consumer",
                warpgroups=consumers,
                registers=consumer_registers,
                change="inc",
                accumulators=accumulators,
                fragments=fragments,
            ),
        ),
        min_ctas=min_ctas,
    )


def register_pool(
    *,
    consumers: Annotated[int, "consumer warpgroups"] = 2,
    producers: Annotated[int, "producer warpgroups"] = 1,
    producer_registers: Annotated[int, "registers a producer thread keeps; 0: an exact split"] = 0,
    consumer_registers: Annotated[int, "registers a consumer thread takes; 0: an exact split"] = 0,
    accumulators: Annotated[int, "accumulator registers of a consumer thread"] = 0,
    min_ctas: Annotated[int, "CTAs that share an SM"] = 1,
) -> RegisterPool:
    """The setmaxnreg split of a producer/consumer CTA, and every rule that it breaks.

    Raises ConfigError for more warpgroups than a CTA holds.
    """
    groups = THREADS_PER_CTA // WARPGROUP_THREADS
    in_range(
        "no such CTA",
        ("consumers", consumers, 1, groups),
        ("producers", producers, 1, groups),
        ("consumers + producers", consumers + producers, 2, groups),
        ("min_ctas", min_ctas, 1, CTAS_PER_SM),
        (
            "threads x min_ctas",
            (consumers + producers) * WARPGROUP_THREADS * min_ctas,
            1,
            THREADS_PER_SM,
        ),
    )
    even = split(consumers, producers=producers, min_ctas=min_ctas)
    return producer_consumer(
        consumers=consumers,
        producers=producers,
        producer_registers=producer_registers or even[0],
        consumer_registers=consumer_registers or even[1],
        accumulators=accumulators,
        min_ctas=min_ctas,
    )
