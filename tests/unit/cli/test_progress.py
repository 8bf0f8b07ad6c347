"""Progress is shown where a person looks, and nowhere else."""

from __future__ import annotations

import io
import re

import pytest

from cli.views import output
from cli.views.output import progress_bar, working


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Not a fixture: pytest gives each phase of a test another sys.stderr."""
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("TTY_COMPATIBLE", raising=False)
    monkeypatch.setattr(output, "BEFORE_S", 0.0)
    monkeypatch.setattr(output, "EACH_S", 0.0)
    return screen


def seen(screen: Terminal) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue())


def test_a_terminal_shows_how_many_of_how_many_and_is_left_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    with progress_bar("roll", "replaced") as tell:
        tell(1, 8)
        tell(2_345, 8_000)
    assert "roll" in seen(screen)
    assert "2,345 replaced" in seen(screen)
    assert screen.getvalue().rstrip().endswith("\x1b[2K"), "the line is wiped"


def test_what_is_done_soon_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    monkeypatch.setattr(output, "BEFORE_S", 3600.0)
    with progress_bar("export", "rows") as tell:
        tell(1000)
    assert screen.getvalue() == ""


def test_neither_a_pipe_nor_json_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    with progress_bar("export", shown=False) as tell, working("reading", shown=False):
        tell(1000)
    assert screen.getvalue() == ""
    monkeypatch.setattr("sys.stderr", pipe := io.StringIO())
    with progress_bar("export") as tell, working("reading"):
        tell(1000)
    assert pipe.getvalue() == ""


def test_what_takes_long_is_said_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    with working("reading pages of https://forum.example.org/?f[]=1"):
        pass
    assert "reading pages of https://forum.example.org/?f[]=1" in seen(screen)


def test_an_error_wipes_the_line_too(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    with pytest.raises(KeyboardInterrupt), progress_bar("migrate") as tell:
        tell(1, 2)
        raise KeyboardInterrupt
    assert screen.getvalue().rstrip().endswith("\x1b[2K")
