"""What templates may use besides their numbers: spellings of numbers, and register lists."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import jinja2


class HoleError(ValueError):
    """A hole was filled with something that has no meaning in PTX."""


def whole(value: object) -> str | int:
    """The value itself if it is text or an integer; else raises HoleError."""
    if isinstance(value, str):
        return value
    if isinstance(value, jinja2.Undefined):
        str(value)  # raises UndefinedError with Jinja's own message
    if not isinstance(value, bool):
        try:
            return operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise HoleError(
        f"a hole was filled with {value!r} ({type(value).__name__}); only text and integers may "
        "appear in PTX. Compute it in Python, or format it with a filter such as f32"
    )


def _integer(value: object) -> int:
    number = whole(value)
    if isinstance(number, str):
        raise HoleError(f"a number was expected, not the text {number!r}")
    return number


def hexadecimal(value: int, digits: int = 0) -> str:
    """0x40, or 0x0040 with digits=4."""
    number = _integer(value)
    if number < 0:
        raise HoleError(f"{number} has no hexadecimal spelling in PTX; mask it to its width first")
    return f"0x{number:0{digits}x}"


def f32(value: float) -> str:
    """A PTX f32 immediate with the exact bits of the nearest f32: 1.0 -> 0f3f800000."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise HoleError(f"f32 takes a number, not {value!r}")
    return "0f" + struct.pack(">f", value).hex()


def comma(value: int) -> str:
    """Thousands separators for comments: 196608 -> 196,608."""
    return f"{_integer(value):,}"


def pad(value: object, width: int) -> str:
    """Left-aligned text of at least `width` columns, for tables in comments."""
    return f"{whole(value)!s:<{width}}"


def reg_list(name: str, first: int, count: int, step: int = 1) -> str:
    """A register list: reg_list("acc", 0, 2) -> {%acc0, %acc1}."""
    return "{" + ", ".join(f"%{name}{first + i * step}" for i in range(count)) + "}"


FILTERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"hex": hexadecimal, "f32": f32, "comma": comma, "pad": pad, "whole": whole}
)
FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"range": range, "reg_list": reg_list}
)
