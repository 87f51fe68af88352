"""What every calculator returns: an itemised, frozen record, and many of them side by side.

A record's fields are what was asked, its properties what follows. `str()` prints its table,
`to_dict()` gives fields and properties for JSON, a notebook shows HTML, and `plot()` draws it where
matplotlib is installed (`pip install ptxgen[plot]`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from ptxgen.errors import ConfigError, ToolMissing, Violation
from ptxgen.isa.arch import CHIPS, Chip
from ptxgen.isa.dtypes import DType
from ptxgen.isa.dtypes import dtype as dtype_row
from ptxgen.view import Row, Shown, Table, View

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Named values of one unit."""

    unit: str
    values: Mapping[str, float]


ANY = float("inf")  # no upper bound in `in_range`


class Record(Shown):
    """Base of the records. A subclass is a frozen dataclass with slots."""

    __slots__ = ()

    @abstractmethod
    def table(self) -> Table:
        """The record as a table."""

    @abstractmethod
    def headline(self) -> Mapping[str, float | str]:
        """The few results to compare when one input varies; the first one is what a plot shows."""

    @abstractmethod
    def bars(self) -> Bars:
        """The terms to compare in a plot, all of one unit."""

    def view(self) -> View:
        return self.table()

    def plot(self, axes: Axes | None = None) -> Axes:
        """The terms as bars, on the matplotlib axes given or on new ones.

        Raises ToolMissing where matplotlib is not installed.
        """
        ax = plot_axes(axes)
        bars = self.bars()
        drawn = ax.barh(list(bars.values), list(bars.values.values()))
        ax.bar_label(drawn, fmt=lambda value: number(float(value)), padding=3)
        ax.margins(x=0.15)
        ax.invert_yaxis()
        ax.set_xlabel(bars.unit)
        ax.set_title(self.table().title)
        return ax

    def to_dict(self) -> dict[str, Any]:
        """Fields and properties, nested records included, as plain data."""
        plain = as_data(self)
        assert isinstance(plain, dict)
        return plain


def as_data(value: object) -> Any:
    """A value as plain data: dataclasses become dicts of their fields and public properties."""
    if isinstance(value, Chip):
        return value.name
    if isinstance(value, DType):
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        names = [f.name for f in fields(value)]
        names += [
            name
            for cls in reversed(type(value).__mro__)
            for name, member in vars(cls).items()
            if isinstance(member, property) and not name.startswith("_") and name not in names
        ]
        return {name: as_data(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(k): as_data(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_data(v) for v in value]
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep(Record):
    """Records of one calculator over the values of one input (or of several, row by row)."""

    name: str
    axes: tuple[str, ...]
    points: tuple[tuple[Any, ...], ...]  # the inputs' values, one tuple a record
    records: tuple[Record, ...]

    def headline(self) -> Mapping[str, float | str]:
        return self.records[0].headline()

    def table(self) -> Table:
        names = tuple(self.headline())
        return Table(
            title=self.name,
            columns=(*self.axes, *names),
            left=frozenset(
                i
                for i, value in enumerate((*self.points[0], *self.headline().values()))
                if isinstance(value, str)
            ),
            rows=tuple(
                Row(
                    (
                        *(number(v) for v in point),
                        *(number(record.headline()[name]) for name in names),
                    )
                )
                for point, record in zip(self.points, self.records, strict=True)
            ),
        )

    def bars(self) -> Bars:
        name = next(iter(self.headline()))
        values = [record.headline()[name] for record in self.records]
        return Bars(
            unit=name,
            values={
                ", ".join(map(str, point)): value
                for point, value in zip(self.points, values, strict=True)
                if isinstance(value, (int, float))
            },
        )

    def to_dict(self) -> dict[str, Any]:
        rows = zip(self.points, self.records, strict=True)
        return {
            "axes": list(self.axes),
            "rows": [
                {**dict(zip(self.axes, point, strict=True)), **record.to_dict()}
                for point, record in rows
            ],
        }

    def plot(self, axes: Axes | None = None) -> Axes:
        """The first result of the headline against the input; bars where several inputs vary."""
        x = [point[0] for point in self.points]
        if len(self.axes) > 1 or not all(isinstance(v, (int, float)) for v in x):
            return Record.plot(self, axes)
        ax = plot_axes(axes)
        name = next(iter(self.headline()))
        ax.plot(x, [record.headline()[name] for record in self.records], marker="o")
        ax.set_xlabel(self.axes[0])
        ax.set_ylabel(name)
        ax.set_title(self.name)
        return ax


def plot_axes(axes: Axes | None) -> Axes:
    """The axes given, or new ones. Raises ToolMissing where matplotlib is not installed."""
    if axes is not None:
        return axes
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ToolMissing(
            "plots need matplotlib, which is not installed: pip install 'ptxgen[plot]'"
        ) from None
    _, new = pyplot.subplots()
    return new


def number(value: object) -> str:
    """A number as people read it: grouped integers, four significant digits, else plain text."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    if value.is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def chip_row(name: str) -> Chip:
    """The chip of that name. Raises ConfigError with the names there are."""
    try:
        return CHIPS[name]
    except KeyError:
        known = ", ".join(CHIPS)
        raise ConfigError(
            "unknown chip", [Violation(field="chip", got=name, rule=f"must be one of {known}")]
        ) from None


def element(name: str) -> DType:
    """The dtype of any accepted spelling. Raises ConfigError with the names there are."""
    try:
        return dtype_row(name)
    except KeyError as error:
        raise ConfigError(
            "unknown dtype", [Violation(field="dtype", got=name, rule=error.args[0])]
        ) from None


def tensor_rate(chip: Chip, dtype: DType) -> int:
    """Tensor-core FLOP per clock and SM for a dtype (f32 operands are tf32: half of 16 bits).

    Raises ConfigError where the chip's tensor cores do not take the dtype.
    """
    rate = {
        "bf16": chip.f16_flop_per_clk_sm,
        "f16": chip.f16_flop_per_clk_sm,
        "f32": chip.f16_flop_per_clk_sm // 2,
        "e4m3": chip.f8_flop_per_clk_sm,
        "e5m2": chip.f8_flop_per_clk_sm,
        "s8": chip.f8_flop_per_clk_sm,
        "u8": chip.f8_flop_per_clk_sm,
    }.get(dtype.name, 0)
    if not rate:
        raise ConfigError(
            f"no tensor-core rate of {chip.title}",
            [
                Violation(
                    field="dtype",
                    got=dtype.name,
                    rule="must be one that its tensor cores multiply, with a known rate",
                    fix="use bf16, f16 or f32 (tf32)"
                    + (", e4m3, e5m2, s8, u8" if chip.f8_flop_per_clk_sm else ""),
                )
            ],
        )
    return rate


def in_range(headline: str, *checks: tuple[str, float, float, float]) -> None:
    """Raises one ConfigError for all (field, value, least, most) that are out of range."""
    broken: Sequence[Violation] = [
        Violation(
            field=field,
            got=number(value),
            rule=_range_rule(least, most),
        )
        for field, value, least, most in checks
        if not least <= value <= most
    ]
    if broken:
        raise ConfigError(headline, broken)


def _range_rule(least: float, most: float) -> str:
    if least == most:
        return f"must be {number(least)}"
    if most == ANY:
        return f"must be at least {number(least)}"
    return f"must be {number(least)}..{number(most)}"


def one_of(field: str, value: str, choices: Sequence[str]) -> None:
    """Raises ConfigError unless the value is one of the choices."""
    if value not in choices:
        raise ConfigError(
            f"unknown {field}",
            [Violation(field=field, got=value, rule=f"must be one of {', '.join(choices)}")],
        )
