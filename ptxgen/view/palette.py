"""Tones: what a cell's colour says, as a name, and its colours on paper and on a terminal.

An int is one of eight hues that tell neighbours apart (it wraps around). The names carry meaning:

    plain   nothing special          mark   look here         good   it holds
    muted   absent, unused           bad    it does not hold
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

Tone: TypeAlias = int | Literal["plain", "muted", "mark", "good", "bad"]

_DARK_INK = "#15181c"
_RESET = "\x1b[0m"


@dataclass(frozen=True, slots=True, kw_only=True)
class Colours:
    """`fill` and `ink` as CSS colours. No own ink means the colour of the surrounding text."""

    fill: str
    ink: str = "currentColor"
    opacity: float = 1.0


# Pastels of similar lightness: dark ink has a contrast above 9:1 on each, on any page.
HUES = tuple(
    Colours(fill=fill, ink=_DARK_INK)
    for fill in (
        "#a9cdf0", "#fbcf9a", "#b4dfae", "#f4b5c9", "#cdc1ee", "#efe397", "#98d9d2", "#d8c5ae",
    )
)  # fmt: skip

_NAMED: Mapping[str, Colours] = MappingProxyType(
    {
        "plain": Colours(fill="none"),
        "muted": Colours(fill="#808080", opacity=0.18),
        "mark": Colours(fill="#1d4f9e", ink="#ffffff"),
        "good": Colours(fill="#176b34", ink="#ffffff"),
        "bad": Colours(fill="#a8201a", ink="#ffffff"),
    }
)


def colours(tone: Tone) -> Colours:
    """The colours of a tone; hue numbers wrap around."""
    return HUES[tone % len(HUES)] if isinstance(tone, int) else _NAMED[tone]


def ansi(text: str, tone: Tone) -> str:
    """The text in a tone for a terminal (24-bit colours); plain text stays as it is."""
    if tone == "plain":
        return text
    if tone == "muted":
        return f"\x1b[2m{text}{_RESET}"
    pair = colours(tone)
    return f"\x1b[38;2;{_rgb(pair.ink)};48;2;{_rgb(pair.fill)}m{text}{_RESET}"


def _rgb(colour: str) -> str:
    return ";".join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))
