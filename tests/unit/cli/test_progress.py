"""Progress is shown where a person looks, and nowhere else."""

from __future__ import annotations

import io
import re

import pytest

from cli.views.output import working


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
    return screen


def seen(screen: Terminal) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue())


def test_a_terminal_shows_how_many_of_how_many_and_is_left_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    with working("roll", "replaced") as report:
        report(2_345, 8_000)
    assert "roll: 2,345 of 8,000 replaced" in seen(screen)
    assert screen.getvalue().rstrip().endswith("\x1b[2K"), "the line is wiped"


def test_neither_a_pipe_nor_json_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    with working("export", shown=False) as report:
        report(1000)
    assert screen.getvalue() == ""
    monkeypatch.setattr("sys.stderr", pipe := io.StringIO())
    with working("export") as report:
        report(1000)
    assert pipe.getvalue() == ""


def test_what_takes_long_is_said_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    with working("reading pages of https://forum.example.org/?f[]=1"):
        pass
    assert "reading pages of https://forum.example.org/?f[]=1" in seen(screen)


def test_an_error_wipes_the_line_too(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    with pytest.raises(KeyboardInterrupt), working("migrate") as report:
        report(1, 2)
        raise KeyboardInterrupt
    assert screen.getvalue().rstrip().endswith("\x1b[2K")
