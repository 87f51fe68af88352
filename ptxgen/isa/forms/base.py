"""The shape of the table: a form, its operands, how it is proved, and its expansion into cases.

    Form(id="shl", text="shl.{type} {d}, {a}, {b};", axes={"type": ("b16", "b32", "b64")},
         writes="d:{type}", reads="a:{type} b:u32~shift", macro="bits.shl(type, d, a, b)")

`text` and the operand lists are `str.format` texts over the axes; operand names in `text` stand for
registers. An operand list is `name:type`, with `*n` for a vector of n registers and `~domain` for
the values that are tried. A type `@space` is the address of this thread's own 64-byte cell there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from ptxgen.isa.forms.gaps import REFUSED

Axis: TypeAlias = str | int
Axes: TypeAlias = Mapping[str, Axis]
Version: TypeAlias = tuple[int, int]
Newer: TypeAlias = Mapping[tuple[str, Axis], tuple[Version, str]]  # (axis, value) -> what it needs

# What "agrees with the H200" means for a form: the same bits; values within the form's bound; or
# that it ran at all (clocks, hints, prefetches).
Semantic: TypeAlias = Literal["bits", "ulp", "runs"]

VERSIONS: tuple[Version, ...] = (
    *((6, minor) for minor in range(6)),
    *((7, minor) for minor in range(9)),
    *((8, minor) for minor in range(9)),
    (9, 0),
)
OLDEST, NEWEST = VERSIONS[0], VERSIONS[-1]

# Chips in the order in which features appeared, each with the `.version` that introduced its name.
TARGETS: Mapping[str, Version] = {
    "sm_70": (6, 0), "sm_75": (6, 3), "sm_80": (7, 0), "sm_86": (7, 1), "sm_89": (7, 8),
    "sm_90": (7, 8), "sm_90a": (8, 0),
}  # fmt: skip
_CHIPS = tuple(TARGETS)

CELL_BYTES = 64  # of the cell behind an `@space` operand; each thread has one


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A register operand, or (`count` not None) a brace-enclosed vector of `count` registers."""

    name: str
    role: Literal["write", "read", "update"]
    type: str
    count: int | None = None
    domain: str = ""

    @property
    def registers(self) -> tuple[str, ...]:
        if self.count is None:
            return (f"%{self.name}",)
        return tuple(f"%{self.name}{i}" for i in range(self.count))

    @property
    def spelled(self) -> str:
        text = ", ".join(self.registers)
        return text if self.count is None else f"{{{text}}}"

    @property
    def space(self) -> str:
        """The state space of an address operand, or ""."""
        return self.type[1:] if self.type.startswith("@") else ""

    @property
    def bits(self) -> int:
        """Of one register. An address in `.shared` has 32, any other 64; a predicate has 1."""
        if self.space:
            return 32 if self.space == "shared" else 64
        if self.type == "pred":
            return 1
        base, _, packed = self.type.partition("x")
        width = {"e4m3": 8, "e5m2": 8, "tf32": 32, "bf16": 16}.get(base)
        return (width or int(base.lstrip("usbf"))) * int(packed or 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How a case is executed alone: what comes before and after it in its kernel.

    `before` and `after` are PTX lines over the axes and operand names; `sees` lists further
    registers, written there, whose values belong to the result. `scratch` declares registers
    ("b32 %x, %y"). `guard` is the predicate that the instruction runs under, `%lane0` for thread 0.

    The lines may use `%thread`, `%smem` (u32, the base of `shared` bytes of shared memory, which
    hold inputs unless `inputs` is "" and are part of the result where `dump` is set), `%gmem` (u64,
    the base of the threads' global cells, always part of the result) and `%tmap` (u64).
    """

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    sees: str = ""
    scratch: tuple[str, ...] = ()
    globals: tuple[str, ...] = ()  # module-scope declarations
    directives: tuple[str, ...] = ()  # of the entry
    threads: int = 32
    cluster: int = 1
    guard: str = ""
    shared: int = 0  # an `@shared` operand asks for its cells by itself
    dump: bool = True
    inputs: str = "bytes"  # the domain of the bytes of cells and shared memory
    tensor: TensorImage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorImage:
    """The global array behind `%tmap` and its tensor map. Texts are formatted over the axes."""

    dtype: str
    shape: tuple[int, ...]  # outermost axis first
    box: tuple[int, ...]
    swizzle: int = 0
    use: Literal["load", "store", "reduce"] = "load"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """How far an approximation may be from the exact value: any of these is near enough.

    `ulp` units in the last place, an `absolute` error, or one `relative` to the value.
    """

    ulp: int = 2
    absolute: float = 0.0
    relative: float = 0.0


def always(axes: Axes) -> bool:
    """Every combination."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One row of the table.

    `legal` says which combinations of the axes ptxas accepts, `cover` which of those the table
    tries (all of them by default). `ptx` and `target` are the least that assemble; `newer` raises
    them for single axis values: {("scope", ".cluster"): ((7, 8), "sm_90")}. `derive` computes
    further names for the texts. `macro` is a Jinja expression over axes and operands that emits the
    same text; its first word names the file in ptx_templates/lib.
    """

    id: str
    text: str
    macro: str
    axes: Mapping[str, tuple[Axis, ...]] = field(default_factory=dict)
    legal: Callable[[Axes], bool] = always
    cover: Callable[[Axes], bool] = always
    derive: Callable[[Axes], Axes] | None = None
    writes: str = ""
    reads: str = ""
    updates: str = ""
    ptx: Version = OLDEST
    target: str = "sm_70"
    newer: Newer = field(default_factory=dict)
    semantic: Semantic = "bits"
    bound: Bound | Callable[[Axes], Bound] = Bound()  # of `semantic` "ulp"
    run: Run | Callable[[Axes], Run] = Run()
    refused: str = ""  # why the emulator does not execute it

    @property
    def family(self) -> str:
        """The macro file, which is also how ISA.md groups the rows."""
        return self.macro.partition(".")[0]

    def combinations(self) -> Iterator[dict[str, Axis]]:
        """Every combination of the axes, legal or not."""
        for values in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))

    def cases(self) -> tuple[Case, ...]:
        """The combinations that are tried, in the order of the axes."""
        return tuple(
            self.case(axes) for axes in self.combinations() if self.legal(axes) and self.cover(axes)
        )

    def case(self, axes: Axes) -> Case:
        """One combination, with its text. Legality is not asked."""
        names = {**axes, **(self.derive(axes) if self.derive else {})}
        operands = tuple(
            operand
            for role, listed in (
                ("write", self.writes), ("update", self.updates), ("read", self.reads)
            )
            for operand in parse_operands(listed.format_map(names), role)
        )  # fmt: skip
        spelled = {o.name: o.spelled for o in operands}
        values = [str(v).strip(".:") for v in axes.values()]
        ptx, target = self._least(axes)
        return Case(
            id=":".join([self.id, ".".join(v for v in values if v) or "-"]) if values else self.id,
            form=self,
            axes=axes,
            names={**names, **spelled},
            operands=operands,
            text=self.text.format_map({**names, **spelled}),
            ptx=ptx,
            target=target,
        )

    def _least(self, axes: Axes) -> tuple[Version, str]:
        ptx, target = self.ptx, self.target
        for (axis, value), (version, chip) in self.newer.items():
            if axes[axis] == value:
                ptx, target = max(ptx, version), max(target, chip, key=_CHIPS.index)
        return max(ptx, TARGETS[target]), target


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A form with all its axes fixed. `names` are the axes and the spelled operands."""

    id: str
    form: Form
    axes: Axes
    names: Axes
    operands: tuple[Operand, ...]
    text: str
    ptx: Version
    target: str

    @property
    def refused(self) -> str:
        """Why the emulator does not execute this case, or ""."""
        return self.form.refused or next(
            (why for pattern, why in REFUSED.items() if fnmatchcase(self.id, pattern)), ""
        )

    @property
    def bound(self) -> Bound:
        bound = self.form.bound
        return bound if isinstance(bound, Bound) else bound(self.axes)

    @property
    def run(self) -> Run:
        run = self.form.run
        return run if isinstance(run, Run) else run(self.axes)


def parse_operands(listed: str, role: str) -> Iterator[Operand]:
    """The operands of one list: `d:f32*4 a:u32~shift`."""
    for word in listed.split():
        name, _, rest = word.partition(":")
        rest, _, domain = rest.partition("~")
        type_, star, count = rest.partition("*")
        yield Operand(
            name=name,
            role=role,  # type: ignore[arg-type]
            type=type_,
            count=int(count) if star else None,
            domain=domain,
        )


def version_before(version: Version) -> Version | None:
    """The `.version` just below, or None for the oldest."""
    index = VERSIONS.index(version)
    return VERSIONS[index - 1] if index else None


def target_before(target: str) -> str | None:
    """The chip just below, or None for the oldest."""
    index = _CHIPS.index(target)
    return _CHIPS[index - 1] if index else None
