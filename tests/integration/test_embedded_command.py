"""The embedded server looked at, and stopped, from a process that is none of its users."""

from __future__ import annotations

from tests.support.embedded_user import Terminal


def test_status_returns_what_runs_and_does_not_start_it(terminal: Terminal) -> None:
    shown = "state = embedded.status()\nprint(state and (state.url, state.pid))"
    assert terminal.run(shown).stdout == "None\n"
    user = terminal.joined()
    assert terminal.run(shown).stdout == f"{(user.url(), terminal.state().pid)}\n"


def test_stop_ends_it_at_once_and_the_next_who_asks_starts_it_again(terminal: Terminal) -> None:
    user = terminal.joined()
    user.client().set("a", "x")
    before = terminal.state()
    assert terminal.run("print(embedded.stop())").stdout == "True\n"
    assert terminal.place.state() is None
    assert terminal.keepers() == []
    assert user.client().get("a") == b"x"
    assert terminal.state().url == before.url


def test_stop_without_a_server_returns_false(terminal: Terminal) -> None:
    assert terminal.run("print(embedded.stop())").stdout == "False\n"
    terminal.joined()
    assert terminal.run("print(embedded.stop(), embedded.stop())").stdout == "True False\n"
