"""Integer expressions over a thread's place, as a person types them: `tid*33`, `ty*K + tx ^ 1`.

The text is parsed, never executed: only integers, the names given, operators and min/max/abs pass.
Operators and precedence are Python's. `/` divides like `//` (towards minus infinity; the same as
in C where nothing is negative).
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ptxgen.errors import ConfigError, Violation

_LIMIT = 1 << 63  # larger values are a mistake, and would make shifts and products slow
_SHIFT_MAX = 63

_BINARY: Mapping[type[ast.operator], Callable[[int, int], int]] = MappingProxyType(
    {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.Div: operator.floordiv,
        ast.FloorDiv: operator.floordiv,
        ast.Mod: operator.mod,
        ast.LShift: operator.lshift,
        ast.RShift: operator.rshift,
        ast.BitAnd: operator.and_,
        ast.BitOr: operator.or_,
        ast.BitXor: operator.xor,
    }
)
_UNARY: Mapping[type[ast.unaryop], Callable[[int], int]] = MappingProxyType(
    {ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Invert: operator.invert}
)
_COMPARE: Mapping[type[ast.cmpop], Callable[[int, int], bool]] = MappingProxyType(
    {
        ast.Eq: operator.eq,
        ast.NotEq: operator.ne,
        ast.Lt: operator.lt,
        ast.LtE: operator.le,
        ast.Gt: operator.gt,
        ast.GtE: operator.ge,
    }
)
_FUNCTIONS: Mapping[str, Callable[..., int]] = MappingProxyType(
    {"min": min, "max": max, "abs": abs}
)
_GRAMMAR = "integers, + - * / // % << >> & | ^ ~, comparisons, `a if c else b`, min(), max(), abs()"


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression. Made by `parse`; calling it with the names' values gives an int."""

    source: str
    names: frozenset[str]
    tree: ast.expr

    def __call__(self, values: Mapping[str, int]) -> int:
        """The value. Raises ConfigError for division by zero, huge values and negative shifts."""
        return _evaluate(self.tree, values, self.source)

    def __str__(self) -> str:
        return self.source


def parse(source: str, names: frozenset[str]) -> Expression:
    """The expression in `source`, which may use the given names.

    Raises ConfigError that says which part is not allowed, and what is.
    """
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise _refuse(source, source, f"is not an expression: {reason}") from None
    used: set[str] = set()
    _admit(tree, source, names, used)
    return Expression(source=source, names=frozenset(used), tree=tree)


def _refuse(source: str, part: str, rule: str, fix: str = "") -> ConfigError:
    return ConfigError(
        f"cannot evaluate {source!r}",
        [Violation(field="expression", got=part, rule=rule, fix=fix or f"use {_GRAMMAR}")],
    )


def _admit(node: ast.expr, source: str, names: frozenset[str], used: set[str]) -> None:
    """Walks the tree and raises at the first node that is not in the grammar."""
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            if abs(value) >= _LIMIT:
                raise _refuse(source, str(value), "must be below 2^63")
        case ast.Name(id=name):
            if name not in names:
                known = ", ".join(sorted(names))
                raise _refuse(source, name, "is no known name", f"known names: {known}")
            used.add(name)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            _admit(left, source, names, used)
            _admit(right, source, names, used)
        case ast.UnaryOp(op=unary, operand=operand) if type(unary) in _UNARY:
            _admit(operand, source, names, used)
        case ast.Compare(left=left, ops=[compare], comparators=[right]) if (
            type(compare) in _COMPARE
        ):
            _admit(left, source, names, used)
            _admit(right, source, names, used)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            for part in (test, body, orelse):
                _admit(part, source, names, used)
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as args, keywords=[]) if (
            name in _FUNCTIONS and (len(args) == 1) == (name == "abs")
        ):
            for part in args:
                _admit(part, source, names, used)
        case _:
            text = ast.get_source_segment(source.strip(), node) or ast.unparse(node)
            raise _refuse(source, text, "is not allowed here")


def _evaluate(node: ast.expr, values: Mapping[str, int], source: str) -> int:
    match node:
        case ast.Constant(value=int() as value):
            return value
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(op=unary, operand=operand):
            return _UNARY[type(unary)](_evaluate(operand, values, source))
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _evaluate(left, values, source), _evaluate(right, values, source)
            return _binary(op, a, b, source)
        case ast.Compare(left=left, ops=[compare], comparators=[right]):
            a, b = _evaluate(left, values, source), _evaluate(right, values, source)
            return int(_COMPARE[type(compare)](a, b))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            chosen = body if _evaluate(test, values, source) else orelse
            return _evaluate(chosen, values, source)
        case ast.Call(func=ast.Name(id=name), args=args):
            return _FUNCTIONS[name](*(_evaluate(arg, values, source) for arg in args))
    raise AssertionError(f"_admit let {node} pass")


def _binary(op: ast.operator, a: int, b: int, source: str) -> int:
    what = f"{a} and {b}"
    if isinstance(op, (ast.Div, ast.FloorDiv, ast.Mod)) and b == 0:
        raise _refuse(source, what, "divide by zero", "use a divisor that is never 0")
    if isinstance(op, (ast.LShift, ast.RShift)) and not 0 <= b <= _SHIFT_MAX:
        raise _refuse(source, what, f"shift by {b}; must be 0..{_SHIFT_MAX}", "use a smaller shift")
    value = _BINARY[type(op)](a, b)
    if abs(value) >= _LIMIT:
        raise _refuse(source, what, "give a value of 2^63 or more", "use smaller numbers")
    return value
