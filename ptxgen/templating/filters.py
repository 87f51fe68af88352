"""Filters and functions that templates may use: number spellings and register lists, nothing else."""

from __future__ import annotations

import struct

import jinja2


def hexadecimal(value: int, digits: int = 0) -> str:
    """0x40, or 0x0040 with digits=4."""
    return f"0x{value:0{digits}x}"


def f32(value: float) -> str:
    """A PTX f32 immediate with the exact bits: 1.0 -> 0f3f800000."""
    return "0f" + struct.pack(">f", value).hex()


def reg_list(name: str, first: int, count: int, step: int = 1) -> str:
    """A register list: reg_list("acc", 0, 2) -> {%acc0, %acc1}."""
    return "{" + ", ".join(f"%{name}{first + i * step}" for i in range(count)) + "}"


def comma(value: int) -> str:
    """Thousands separators for comments: 196608 -> 196,608."""
    return f"{value:,}"


def pad(value: object, width: int) -> str:
    """Left-aligned text of at least `width` columns, for tables in comments."""
    return f"{value!s:<{width}}"


def install(env: jinja2.Environment) -> None:
    """Make the functions above available in templates."""
    env.filters.clear()
    env.filters.update(hex=hexadecimal, f32=f32, comma=comma, pad=pad)
    env.globals["reg_list"] = reg_list
