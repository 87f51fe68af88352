"""Fields of problems and configs: how they are spelled in a kernel reference, and how rules report.

A problem or config is a frozen dataclass whose fields are made with `option`, so that the command
line, error messages and documentation share one description.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import Field, field, fields
from typing import Any, TypeVar

from ptxgen.errors import ConfigError, KernelReferenceError, Violation

T = TypeVar("T")


def option(default: Any, *, parse: Callable[[str], Any], legal: str, help: str) -> Any:
    """A dataclass field with its spelling (`parse`), its legal values and its meaning in words."""
    return field(default=default, metadata={"parse": parse, "legal": legal, "help": help})


def extents(count: int) -> Callable[[str], tuple[int, ...]]:
    """Reads 128x256x64 as (128, 256, 64)."""

    def parse(text: str) -> tuple[int, ...]:
        parts = text.lower().split("x")
        if len(parts) != count or not all(p.isdigit() for p in parts):
            raise ValueError(
                f"want {count} positive integers joined by x, like {'x'.join(['2'] * count)}"
            )
        return tuple(int(p) for p in parts)

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
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def options(cls: type[Any]) -> dict[str, Field[Any]]:
    """The fields of a problem or config class, by name."""
    return {f.name: f for f in fields(cls)}


def from_text(cls: type[T], values: dict[str, str]) -> T:
    """An instance from the texts of a kernel reference. Raises KernelReferenceError on a bad one."""
    parsed: dict[str, Any] = {}
    for name, text in values.items():
        meta = options(cls)[name].metadata
        try:
            parsed[name] = meta["parse"](text)
        except ValueError as error:
            raise KernelReferenceError(f"{name}={text}: {error}; legal: {meta['legal']}") from None
    return cls(**parsed)


def require(what: str, violations: Iterable[Violation], rules: int) -> None:
    """Raise one ConfigError that lists all the broken rules, or return."""
    broken = tuple(violations)
    if broken:
        raise ConfigError(
            f"{what} cannot run on sm_90a ({len(broken)} of {rules} rules broken)", broken
        )
