"""What every view can do, and views below each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

TEXT_COLUMNS = 120  # where wide grids are cut into panels, unless told otherwise


def count(number: int, thing: str) -> str:
    """`1 lane`, `2 lanes`, `1,024 lanes`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


# How notebooks say that their theme is dark or light: JupyterLab and nbconvert, VS Code, Colab.
_THEMES = """<style>
[data-jp-theme-light=false] .pg-view,.vscode-dark .pg-view,html[theme=dark] .pg-view{
color-scheme:dark}
[data-jp-theme-light=true] .pg-view,.vscode-light .pg-view,html[theme=light] .pg-view{
color-scheme:light}
</style>"""


def in_notebook(html: str) -> str:
    """A fragment that takes the theme of the notebook around it, not of the operating system."""
    return f'{_THEMES}<div class="pg-view">{html}</div>'


class View(ABC):
    """Something to look at. In a notebook its value shows as HTML, in a terminal as text."""

    __slots__ = ()

    @abstractmethod
    def text(self, *, width: int = TEXT_COLUMNS, color: bool = False) -> str:
        """The view as lines of text. `width` is where a wide grid is cut into panels."""

    @abstractmethod
    def html(self) -> str:
        """The view as an HTML fragment without scripts, styles of its own inline."""

    def __str__(self) -> str:
        return self.text()

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> Mapping[str, str]:
        return {"text/plain": str(self), "text/html": in_notebook(self.html())}


class Shown(View):
    """An object that is looked at through a view of its own."""

    __slots__ = ()

    @abstractmethod
    def view(self) -> View:
        """The view."""

    def text(self, *, width: int = TEXT_COLUMNS, color: bool = False) -> str:
        return self.view().text(width=width, color=color)

    def html(self) -> str:
        return self.view().html()


@dataclass(frozen=True, slots=True)
class Stack(View):
    """Views below each other; `gap` stands between them in text."""

    parts: tuple[View, ...]
    gap: str = "\n\n"

    @classmethod
    def of(cls, *parts: View | None) -> Stack:
        """The views given, without those that are None."""
        return cls(tuple(part for part in parts if part is not None))

    def text(self, *, width: int = TEXT_COLUMNS, color: bool = False) -> str:
        return self.gap.join(part.text(width=width, color=color) for part in self.parts)

    def html(self) -> str:
        return "\n".join(f'<div style="margin:0 0 12px">{part.html()}</div>' for part in self.parts)

    def __str__(self) -> str:
        return self.text()
