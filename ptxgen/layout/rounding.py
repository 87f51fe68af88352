"""Rounding to a unit, the one piece of arithmetic that every layout needs."""

from __future__ import annotations


def align_up(value: int, unit: int) -> int:
    """The least multiple of `unit` (> 0) that is not below `value`."""
    return -(-value // unit) * unit


def align_down(value: int, unit: int) -> int:
    """The greatest multiple of `unit` (> 0) that is not above `value`."""
    return value // unit * unit
