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
# What a word of code does: an empty role is a word like any other.
Role: TypeAlias = Literal[
    "", "tensor", "tma", "mbarrier", "opcode", "directive", "label", "comment"
]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ink:
    """The colour of words on a light page, on a dark one, and on a terminal (an ANSI code)."""

    light: str
    dark: str
    ansi: str
    style: str = ""

    def css(self) -> str:
        """light-dark() follows the page's color-scheme, which is what the reader set."""
        return f"color:light-dark({self.light},{self.dark});{self.style}"


_BOLD = "font-weight:600"
INKS: Mapping[Role, Ink] = MappingProxyType(
    {
        "tensor": Ink(light="#8250df", dark="#d2a8ff", ansi="1;35", style=_BOLD),
        "tma": Ink(light="#0550ae", dark="#79c0ff", ansi="1;34", style=_BOLD),
        "mbarrier": Ink(light="#953800", dark="#ffa657", ansi="1;33", style=_BOLD),
        "opcode": Ink(light="#24292f", dark="#e6edf3", ansi="1"),
        "directive": Ink(light="#57606a", dark="#9ea7b3", ansi="36"),
        "label": Ink(light="#116329", dark="#7ee787", ansi="32"),
        "comment": Ink(light="#59636e", dark="#9198a1", ansi="2"),
    }
)


def role_css(parent: str) -> str:
    """Rules for elements of class `role` inside elements that the selector `parent` names."""
    return "".join(f"{parent} .{role}{{{ink.css()}}}" for role, ink in INKS.items())


def role_ansi(text: str, role: Role) -> str:
    """The text in the ink of a role for a terminal."""
    return f"\x1b[{INKS[role].ansi}m{text}{_RESET}" if role and text else text


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
