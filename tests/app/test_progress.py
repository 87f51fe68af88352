"""Progress bars: on a terminal only, on stderr only, and never between an item and its user."""

from __future__ import annotations

import io
import sys

import pytest

from ptxgen.app.progress import track

pytestmark = pytest.mark.unit


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_silent_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(track(range(3), "counting")) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("items", [range(3), iter(range(3))], ids=["sized", "unsized"])
def test_a_terminal_sees_a_bar(items, monkeypatch, capsys) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    seen = []
    for item in track(items, "counting", total=3):
        seen.append(item)
        print("result", item)
    assert seen == [0, 1, 2]
    assert "counting" in screen.getvalue()
    assert "3/3" in screen.getvalue()
    assert screen.getvalue().rstrip("\n").endswith("\x1b[2K")  # wiped
    assert capsys.readouterr().out == "result 0\nresult 1\nresult 2\n"  # a pipe, whole


def test_an_error_in_the_loop_passes_and_leaves_no_bar(monkeypatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(ZeroDivisionError):
        list(1 / item for item in track([0], "counting"))
    monkeypatch.undo()
    assert list(track([1], "again")) == [1]
