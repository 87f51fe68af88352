"""PTX text to tokens: one compiled regular expression, one match a token.

Blank space and comments are matched together with the token that follows them. Three things that
would cost many tokens, or that end with the line and not with `;`, are single tokens: a vector of
plain words `{%a, %b, ...}` (a wgmma names up to 128 registers), `.loc`/`.file` lines, and whole
`.section { ... }` bodies.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from ptxgen.errors import PtxSyntaxError

_BLANK = r"(?:\s+|//[^\n]*|/\*.*?\*/)*"
_WORD = r"[A-Za-z_$%][\w$]*(?:(?:\.|::)[\w$]+)*"
_NUMBER = (
    r"0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|0[bB][01]+U?"
    r"|\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+U?"
)
_VECTOR = r"\{\s*[\w%$.]+(?:\s*,\s*[\w%$.]+)*\s*\}"

_TOKEN = re.compile(
    rf"{_BLANK}(?:"
    rf"(?P<word>{_WORD})"
    r"|(?P<unclosed>/\*)"
    r"|(?P<punct><<|>>|<=|>=|==|!=|&&|\|\||[,;:\[\]()+\-*/%&|^~!?<>=@}])"
    rf"|(?P<vector>{_VECTOR})"
    r"|(?P<open>\{)"
    rf"|(?P<number>{_NUMBER})"
    r"|(?P<raw>\.(?:loc|file)\b[^\n]*|\.section\s+[\w.]+\s*\{[^}]*\}|@@DWARF[^\n]*)"
    r"|(?P<dot>\.[A-Za-z_]\w*(?:::\w+)*)"
    r'|(?P<string>"[^"\n]*")'
    r"|(?P<end>\Z)"
    r"|(?P<bad>.))",
    re.DOTALL,
)


class Token(NamedTuple):
    """One token; `start` and `end` are character offsets in the source."""

    kind: str  # word punct vector open number raw dot string end
    text: str
    start: int
    end: int


def tokenize(source: str) -> list[Token]:
    """All tokens of `source`, ending with one of kind "end".

    Raises PtxSyntaxError at the first character that starts no PTX token.
    """
    tokens: list[Token] = []
    append = tokens.append
    for match in _TOKEN.finditer(source):
        kind = match.lastgroup
        assert kind is not None
        start, end = match.span(kind)
        append(Token(kind, source[start:end], start, end))
        if kind in ("bad", "unclosed", "end"):
            break
    last = tokens[-1]
    if last.kind == "unclosed":
        raise Lines(source).error("this comment is never closed with */", last.start)
    if last.kind == "bad":
        raise Lines(source).error(f"{last.text!r} does not start a PTX token", last.start)
    return tokens


def closing(source: str, start: int) -> int:
    """Offset behind the `)` that closes the `(` at offset `start`. Comments do not count."""
    depth = 0
    for match in _TOKEN.finditer(source, start):
        text = match["punct"]
        depth += (text == "(") - (text == ")")
        if not depth:
            return match.end()
    raise Lines(source).error("this ( is never closed with )", start)


class Lines:
    """Character offset to line number, and errors that show the line."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._starts = [0, *(m.end() for m in re.finditer("\n", source))]

    def number(self, offset: int) -> int:
        """1-based line of a character offset."""
        return bisect_right(self._starts, offset)

    def text(self, line: int) -> str:
        return self.source.splitlines()[line - 1] if self.source else ""

    def error(self, message: str, offset: int) -> PtxSyntaxError:
        line = self.number(min(offset, max(len(self.source) - 1, 0)))
        return PtxSyntaxError(message, line=line, source=self.text(line))
