"""The screen of `trawl up` on a terminal of 80 columns, and its lines elsewhere."""

from __future__ import annotations

import io
import re
import threading
from dataclasses import replace

import pytest

from cli.commands.up import _welcome
from cli.processes import FlowerAccess, PageAccess, node_services
from cli.views import up_screen
from cli.views.fleet_screen import calm_line
from cli.views.tables import SafeConsole
from cli.views.up_screen import UpLog, UpScreen
from fleet_operations.overview import Overview, calm
from forums.overview.model import ForumSites
from redis_components.admin.health import Problem
from redis_components.frontier.holds import Hold, HoldKind
from tests.support.processes import wait_until
from tests.unit.cli.test_fleet_screen import NOW, service
from workers.state.holds import Held


def terminal(width: int = 80) -> SafeConsole:
    return SafeConsole(file=io.StringIO(), width=width, height=24, force_terminal=True, color_system=None)


def text_of(console: SafeConsole) -> str:
    assert isinstance(console.file, io.StringIO)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", console.file.getvalue())


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    monkeypatch.setenv("TRAWL_REDIS_URL", "redis://:secret@127.0.0.1:29585/0")
    monkeypatch.delenv("TRAWL_API_ACT_TOKEN", raising=False)
    monkeypatch.delenv("TRAWL_FLOWER_AUTH", raising=False)
    return _welcome({"forum_list": 1, "forum_detail": 2}, FlowerAccess.on(5555), PageAccess.on(9410))


def test_every_address_and_password_stays_whole_at_80_columns(rows: list[tuple[str, str]]) -> None:
    console = terminal()
    screen = UpScreen(console)
    screen._rows = rows
    troubles = (Problem(what=" ".join(["something"] * 20), fix="trawl doctor"),)
    screen._view = Overview(now=NOW, services=(service(),), troubles=troubles)
    console.print(screen)
    shown = text_of(console)
    assert max(map(len, shown.splitlines())) <= 80
    assert len(shown.splitlines()) <= 24
    words = {word for _, text in rows for word in text.split()}
    assert [word for word in words if word not in shown.split()] == [], "no word is broken"
    assert "secret" not in shown
    assert re.search(r"http://127\.0\.0\.1:9410/login\?token=[\w-]{16,}  \(logged in\)", shown)
    assert "problem  something something" in shown
    assert "trawl doctor" in " ".join(shown.split())


def test_a_screen_keeps_what_the_fleet_did_last_and_prints_alerts_alone(rows: list[tuple[str, str]]) -> None:
    console = terminal()
    screen = UpScreen(console)
    screen.line("trawl", "before")
    with screen.running(rows, Overview):
        screen.line("worker", "[2026-11-29 06:40:31: INFO/MainProcess] launched crawler 7")
        screen.line("worker", "alert 1: gpu | new post at demo by ida: A card | http://127.0.0.1/t/1")
        screen.line("exporter", "alert 2: paint | test post at trawl by trawl: Test of an alert")
        screen.line("trawl", "worker ended (SIGKILL); starting it again")
        live = text_of(console)
    screen.line("trawl", "everything is stopped")
    shown = text_of(console)
    assert shown.startswith("before\n")
    assert "alert 1: gpu | new post at demo by ida" in live
    assert "alert 2: paint | test post" in live, "the test of an alert that was made on the page"
    assert "launched crawler" not in shown
    assert re.search(r"last     \d\d:\d\d:\d\dZ worker ended \(SIGKILL\)", shown)
    assert shown.rstrip().endswith("everything is stopped")


def test_nothing_is_well_that_does_nothing_or_is_held() -> None:
    forums, fleet = service(), Held(hold=Hold(word=HoldKind.PAUSE, at=NOW, by="ops", reason=""))
    states = {
        "all is well": Overview(now=NOW, services=(forums, replace(service(), name="books")), sites=ForumSites()),
        "nothing is watched yet: trawl watch ADDRESS": Overview(now=NOW, services=(forums,), sites=ForumSites()),
        "the fleet is paused": Overview(now=NOW, services=(forums,), sites=ForumSites(), held=(fleet,)),
    }
    assert [calm(view) for view in states.values()] == list(states)
    for words, view in states.items():
        console = terminal()
        console.print(calm_line(calm(view)))
        assert f"{words[0].upper()}{words[1:]}." in text_of(console)


def test_the_figures_are_read_while_it_is_shown(rows: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up_screen, "LOOK_S", 0.01)
    seen = threading.Event()

    def look() -> Overview:
        seen.set()
        return Overview(now=NOW, services=(replace(service(), pages_per_s=41.5),))

    console = terminal()
    screen = UpScreen(console)
    with screen.running(rows, look):
        assert seen.wait(30), "the thread reads"
        wait_until(lambda: screen._view, "it has what was read", 30)
    assert "41.5 pages/s" in text_of(console)


def test_lines_on_a_terminal_break_between_words_and_into_a_pipe_not_at_all() -> None:
    text = "in another terminal: trawl seed, then trawl status --watch, which shows what needs attention and the queues"
    console = terminal()
    UpLog(console).line("trawl", text)
    lines = text_of(console).splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join(line.partition("│ ")[2].strip() for line in lines) == text
    pipe = SafeConsole(file=io.StringIO(), width=200)
    UpLog(pipe).line("trawl", text * 3)
    assert text_of(pipe).count("\n") == 1


def test_the_token_of_the_page_is_new_each_time_and_in_no_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_REDIS_URL", "redis://127.0.0.1:29585/0")
    monkeypatch.delenv("TRAWL_API_ACT_TOKEN", raising=False)
    one, two = PageAccess.on(9410), PageAccess.on(9410)
    assert one.token != two.token
    exporter = next(found for found in node_services(FlowerAccess.on(5555), one) if found.name == "exporter")
    assert exporter.environment["TRAWL_API_ACT_TOKEN"] == one.token
    assert not any(one.token in word for word in exporter.command)
    monkeypatch.setenv("TRAWL_API_ACT_TOKEN", "t" * 24)
    given = PageAccess.on(9410)
    assert given.link == "http://127.0.0.1:9410/", "who gave it knows it, and it must not get into a journal"
    assert "TRAWL_API_ACT_TOKEN" in dict(_welcome({}, FlowerAccess.on(5555), given))["page"]
