"""The code blocks of README.md, so that tests can hold each of them to the truth."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block: its language (empty for plain text) and what is in it."""

    language: str
    text: str


def text() -> str:
    return README.read_text(encoding="utf-8")


def blocks() -> list[Block]:
    return [Block(m[1], m[2]) for m in _FENCE.finditer(text())]


def python_with_output() -> list[tuple[str, str]]:
    """(code, output) of every python block that a plain block follows."""
    found = blocks()
    return [
        (code.text, shown.text)
        for code, shown in pairwise(found)
        if code.language == "python" and not shown.language
    ]


def sessions() -> list[tuple[list[str], str]]:
    """(words after `ptxgen`, what was printed) of every `$ ptxgen ...` example."""
    examples = []
    for block in blocks():
        for part in re.split(r"^\$ ptxgen ", block.text, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            examples.append((shlex.split(command), printed.partition("\n\n")[0].rstrip("\n")))
    return examples


def block_with(needle: str) -> str:
    """The one block that holds this text."""
    (found,) = [block.text for block in blocks() if needle in block.text]
    return found
