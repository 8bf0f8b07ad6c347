"""`python -m redis_components.embedded status|stop`."""

from __future__ import annotations

import json

from tests.support.embedded_user import Terminal


def test_status_tells_what_runs_and_does_not_start_it(terminal: Terminal) -> None:
    data = terminal.place.root.parent
    before = terminal.run("status")
    assert (before.returncode, before.stdout) == (0, f"no embedded Redis runs for {data}\n")
    assert terminal.run("status", "--json").stdout == "null\n"
    user = terminal.joined()
    during = json.loads(terminal.run("status", "--json").stdout)
    assert (during["url"], during["pid"]) == (user.url(), terminal.state().pid)
    assert user.url() in terminal.run("status").stdout


def test_status_says_when_commands_would_use_another_server(terminal: Terminal) -> None:
    terminal.environment["TRAWL_REDIS_URL"] = "redis://h:1/0"
    assert "TRAWL_REDIS_URL is set" in terminal.run("status").stdout


def test_stop_ends_it_at_once_and_the_next_who_asks_starts_it_again(terminal: Terminal) -> None:
    user = terminal.joined()
    user.client().set("a", "x")
    before = terminal.state()
    stopped = terminal.run("stop")
    assert (stopped.returncode, stopped.stdout) == (0, "stopped\n")
    assert terminal.place.state() is None
    assert terminal.keepers() == []
    assert user.client().get("a") == b"x"
    assert terminal.state().url == before.url


def test_stop_with_nothing_to_stop_says_so(terminal: Terminal) -> None:
    assert terminal.run("stop").stdout.startswith("no embedded Redis runs")
    terminal.joined().leave()
    assert terminal.run("stop").stdout == "stopped\n"
    assert terminal.run("stop").stdout.startswith("no embedded Redis runs")


def test_wrong_use_is_exit_code_2(terminal: Terminal) -> None:
    assert terminal.run("start").returncode == 2
    assert terminal.run().returncode == 2
