"""PTX numbers and constant expressions (PTX ISA 4.5).

Integer constants are 64-bit; the operators are those of C. A float cannot take part in an
expression except under unary minus.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

from .ast import Immediate

MASK64 = (1 << 64) - 1

# Binding strength of the binary operators, weakest first, as in C.
PRECEDENCE: Mapping[str, int] = MappingProxyType(
    {
        "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6,
        "<": 7, ">": 7, "<=": 7, ">=": 7, "<<": 8, ">>": 8,
        "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
    }
)  # fmt: skip


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


BINARY: Mapping[str, Callable[[int, int], int]] = MappingProxyType(
    {
        "||": lambda a, b: int(bool(a) or bool(b)),
        "&&": lambda a, b: int(bool(a) and bool(b)),
        "|": lambda a, b: a | b,
        "^": lambda a, b: a ^ b,
        "&": lambda a, b: a & b,
        "==": lambda a, b: int(a == b),
        "!=": lambda a, b: int(a != b),
        "<": lambda a, b: int(a < b),
        ">": lambda a, b: int(a > b),
        "<=": lambda a, b: int(a <= b),
        ">=": lambda a, b: int(a >= b),
        "<<": lambda a, b: a << b,
        ">>": lambda a, b: a >> b,
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "/": _quotient,
        "%": lambda a, b: a - b * _quotient(a, b),
    }
)
UNARY: Mapping[str, Callable[[int], int]] = MappingProxyType(
    {"-": lambda a: -a, "+": lambda a: a, "~": lambda a: ~a, "!": lambda a: int(not a)}
)

_SIGN_BIT: Mapping[str, int] = MappingProxyType({"f32": 1 << 31, "f64": 1 << 63})


def number(text: str) -> Immediate:
    """One literal: decimal, 0x, 0b, octal, each with an optional U; 0f, 0d; decimal floats."""
    head = text[:2].lower()
    if head == "0f":
        return Immediate(int(text[2:], 16), "f32", text)
    if head == "0d":
        return Immediate(int(text[2:], 16), "f64", text)
    digits = text.rstrip("U")
    if head in ("0x", "0b"):
        return Immediate(int(digits, 16 if head == "0x" else 2), "int", text)
    if digits.isdigit():
        octal = len(digits) > 1 and digits[0] == "0"
        return Immediate(int(digits, 8 if octal else 10), "int", text)
    return Immediate(int.from_bytes(struct.pack("<d", float(digits)), "little"), "f64", text)


def unary(operator: str, operand: Immediate) -> Immediate:
    """Apply a unary operator; minus on a float flips its sign bit."""
    text = f"{operator}{operand.text}"
    if operand.kind == "int":
        return Immediate(UNARY[operator](operand.value), "int", text)
    kind: Literal["f32", "f64"] = operand.kind
    if operator == "-":
        return Immediate(operand.value ^ _SIGN_BIT[kind], kind, text)
    if operator == "+":
        return operand
    raise ValueError(f"{operator} does not apply to the float {operand.text}")


def binary(operator: str, left: Immediate, right: Immediate) -> Immediate:
    """Apply a binary operator to two integer constants."""
    if left.kind != "int" or right.kind != "int":
        raise ValueError(f"{left.text} {operator} {right.text}: only integers can be combined")
    if operator in ("/", "%") and right.value == 0:
        raise ValueError(f"{left.text} {operator} {right.text}: division by zero")
    if operator in ("<<", ">>") and not 0 <= right.value < 64:
        raise ValueError(f"{left.text} {operator} {right.text}: a shift must be within 0..63")
    value = BINARY[operator](left.value, right.value)
    return Immediate(value, "int", f"({left.text} {operator} {right.text})")
