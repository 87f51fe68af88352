"""Fields of problems and configs, how a kernel reference spells them, and rules as data.

A problem or config is a frozen dataclass whose fields are made with `option`, so that the command
line, error messages and documentation share one description. A family's rules are one table of
`Rule`; validation, tuner and documentation read the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import Any, Generic, TypeVar

from ptxgen.errors import ConfigError, KernelReferenceError, Violation

T = TypeVar("T")


def option(default: Any, *, parse: Callable[[str], Any], legal: str, help: str) -> Any:
    """A dataclass field with its spelling (`parse`), its legal values and its meaning in words."""
    return field(default=default, metadata={"parse": parse, "legal": legal, "help": help})


def extents(*counts: int) -> Callable[[str], tuple[int, ...]]:
    """Reads 128x256x64 as (128, 256, 64); `counts` are the lengths that it may have."""

    def parse(text: str) -> tuple[int, ...]:
        parts = text.lower().split("x")
        if len(parts) not in counts or not all(p.isdecimal() for p in parts):
            numbers = " or ".join(map(str, counts))
            examples = " or ".join("x".join(["2"] * count) for count in counts)
            raise ValueError(f"want {numbers} positive integers joined by x, like {examples}")
        return tuple(int(p) for p in parts)

    return parse


def one_of(*words: str) -> Callable[[str], str]:
    """Reads one of the given words."""

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"want {' or '.join(words)}")
        return text

    return parse


def integer(*words: str) -> Callable[[str], int | str]:
    """Reads an integer, or one of the given words."""

    def parse(text: str) -> int | str:
        if text in words:
            return text
        try:
            return int(text)
        except ValueError:
            raise ValueError(" or ".join(["want an integer", *words])) from None

    return parse


def spell(value: object) -> str:
    """A field's value as it is written in a kernel reference."""
    return "x".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def options(cls: type[Any]) -> dict[str, Field[Any]]:
    """The fields of a problem or config class, by name."""
    return {f.name: f for f in fields(cls)}


def from_text(cls: type[T], values: dict[str, str]) -> T:
    """An instance from the texts of a kernel reference. Raises KernelReferenceError."""
    parsed: dict[str, Any] = {}
    for name, text in values.items():
        meta = options(cls)[name].metadata
        try:
            parsed[name] = meta["parse"](text)
        except ValueError as error:
            raise KernelReferenceError(f"{name}={text}: {error}; legal: {meta['legal']}") from None
    return cls(**parsed)


def to_text(part: Any) -> str:
    """A problem or config as `from_text` and a kernel reference have it: what is not the default.

    >>> to_text(GemmConfig(tile=(128, 128), stages=4))
    'tile=128x128'
    """
    values = ((name, getattr(part, name), field) for name, field in options(type(part)).items())
    return ",".join(f"{name}={spell(x)}" for name, x, field in values if x != field.default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Generic[T]):
    """One rule of the hardware: `check` yields what breaks it, and a legal choice.

    `text` says it in words. `needs` names the rules without which its numbers mean nothing; it is
    skipped where one of them is broken.
    """

    name: str
    text: str
    check: Callable[[T], Iterator[Violation]]
    needs: tuple[str, ...] = ()


def violations(rules: Sequence[Rule[T]], subject: T) -> tuple[Violation, ...]:
    """What is wrong with `subject`: every broken rule, in the order of the table."""
    found: list[Violation] = []
    holding: set[str] = set()
    for rule in rules:
        if not holding.issuperset(rule.needs):
            continue
        broken = tuple(rule.check(subject))
        found += broken
        if not broken:
            holding.add(rule.name)
    return tuple(found)


def require(what: str, rules: Sequence[Rule[T]], subject: T) -> None:
    """Raise one ConfigError that lists every broken rule, or return."""
    broken = violations(rules, subject)
    if broken:
        raise ConfigError(
            f"{what} cannot run on sm_90a ({len(broken)} of {len(rules)} rules broken)", broken
        )
