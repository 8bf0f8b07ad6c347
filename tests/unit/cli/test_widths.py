"""Each view at each width, compared with what stands in `screens/`: `UPDATE_SCREENS=1 pytest tests/unit/cli/test_widths.py`
writes them again.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console, RenderableType

from cli.commands.dead import ITEMS, REQUESTS
from cli.commands.forums import _Forum, forums_table
from cli.commands.history import COLUMNS
from cli.commands.schedule import COLUMNS as SCHEDULE
from cli.views.fleet_screen import FleetScreen
from cli.views.fleet_tables import in_trouble_first, node_columns
from cli.views.tables import Column, FittedTable, SafeConsole, echo_indented, figure
from fleet_operations.overview import Overview, ServiceView
from forums.overview import Boards, BoardView, ForumSites
from forums.overview.boards import WatchedForum
from forums.state.keys import ForumState
from redis_components.admin.dead_letters import DeadEntry, DeadKind, Entry
from redis_components.admin.inspector import CrawlSnapshot
from redis_components.frontier.holds import Hold, HoldKind
from workers.state.beats import BeatView
from workers.state.history import Run, RunBy
from workers.state.holds import Breaker, BreakerState, Held
from workers.state.nodes import NodeRecord
from workers.state.registry import CrawlerRecord, CrawlerState, ErrorRecord

WIDTHS = (60, 80, 100, 120, 200)
SCREENS = Path(__file__).with_name("screens")
NOW = 1_800_000_000.0
NODE = NodeRecord(
    name="celery@crawl-7.example.net",
    services=("forum_list", "forum_detail"),
    capacity=8,
    taken=8,
    version="0.1.0",
    started_at=NOW - 90_000,
    beat_at=NOW - 1,
)
GONE_NODE = replace(NODE, name="celery@other", beat_at=NOW - 60)


def _crawler(service: str, number: int, state: CrawlerState = CrawlerState.RUNNING, **more: Any) -> CrawlerRecord:
    fields = {
        "pid": 4_194_300 - number,
        "node": NODE.name,
        "beat_at": NOW - 1,
        "pages_per_s": 123.4,
        "in_flight": 16,
        "rss_bytes": 312 << 20,
        "restarts": number,
        "last_exit": "drained" if number else None,
    }
    return CrawlerRecord(**{"spider": service, "number": number, "state": state, **fields, **more})  # type: ignore[arg-type]


def _service(
    name: str, desired: int, crawlers: tuple[CrawlerRecord, ...], held: tuple[Held, ...] = (), **sizes: int
) -> ServiceView:
    stats = {"downloader/response_count": "12345678", "item_scraped_count": "98765432"}
    return ServiceView.of(replace(CrawlSnapshot(spider=name), stats=stats, **sizes), desired, crawlers, held, NOW)


def _well() -> Overview:
    crawlers = (_crawler("forum_list", 0), *(_crawler("forum_detail", number) for number in range(7)))
    return Overview(
        now=NOW,
        services=(
            _service("forum_list", 1, crawlers, ready=12, leased=8),
            _service("forum_detail", 7, crawlers, start_tasks=120_000, ready=2_222_222, leased=112, items=1_500),
        ),
        crawlers=crawlers,
        nodes=(NODE,),
        beats=BeatView(leader="crawl-7.example.net:4711", waiting=(), silent_s=0.2),
    )


def _in_trouble() -> Overview:
    crawlers = (
        _crawler("forum_list", 0),
        *(_crawler("forum_detail", number) for number in range(30)),
        _crawler("forum_detail", 30, beat_at=NOW - 400),
        _crawler(
            "forum_detail",
            31,
            CrawlerState.CRASH_LOOPING,
            note="crashed (exit code 1); 6 failures in a row",
            error="RuntimeError: the proxy's key has run out",
            log="\n".join(f"line {number} of its log" for number in range(9)),
        ),
    )
    held = (
        Held(hold=Hold(word=HoldKind.PAUSE, at=NOW - 90, by="ops@desk", reason="they asked us to"), site="board.example.org"),
    )
    broken = Breaker(
        state=BreakerState.OPEN,
        cause="login",
        reason="a login page instead of a list",
        since=NOW - 3600,
        url="https://forum.example.com/latest?page=1",
        excerpt="Please log in to continue",
        next_probe_at=NOW + 60,
        probes=2,
        last_probe="HTTP 403",
    )
    stale = WatchedForum(
        site="shop.example.com",
        forum="announcements",
        state=ForumState(tried_at=NOW - 9000, scanned_at=NOW - 9000, gap_at=NOW - 9000),
        due_at=NOW - 8000,
    )
    return replace(
        _well(),
        services=(
            _service("forum_list", 1, crawlers, held, ready=12),
            _service("forum_detail", 32, crawlers, held, start_tasks=120_000, ready=2_222_222, dead=3, bad_items=12, items=1_500),
        ),
        crawlers=crawlers,
        held=held,
        nodes=tuple(replace(NODE, name=f"celery@crawl-{n}.example.net", beat_at=NOW - (60 if n == 6 else 1)) for n in range(8)),
        sites=ForumSites(breakers={"forum.example.com": broken}, boards=Boards([stale], NOW)),
        errors=tuple(ErrorRecord(at=NOW - 60 * n, where="trawl.store_items", what="the database is locked") for n in range(9)),
        dead_messages=2,
    )


def _forums() -> RenderableType:
    def one(forum: str, **state: Any) -> _Forum:
        watched = WatchedForum(site="forum.example.com", forum=forum, state=ForumState(**state), due_at=NOW + 45)
        return _Forum(board=BoardView(watched=watched, now=NOW), per_hour=1234.5)

    times = {"tried_at": NOW - 30, "scanned_at": NOW - 30, "newest_at": NOW - 8}
    failing = one(
        "support", name="Support and questions", errors=3, reason="HTTP 503 of https://forum.example.com/support", **times
    )
    return forums_table([failing, one("news", name="新闻", **times), one("a-board-with-a-rather-long-name", **times)])


def _history() -> RenderableType:
    def run(number: int, outcome: str | None, code: int | None, reason: str | None) -> Run:
        started = NOW - 3600 * number
        return Run(
            id=f"forum_detail/{number}#1.1",
            spider="forum_detail",
            number=number,
            by=RunBy.FLEET,
            token=1,
            node=NODE.name,
            pid=4711,
            started_at=started,
            ended_at=started + 44 * 60,
            outcome=outcome,
            exit_code=code,
            reason=reason,
            pages=1_234_567,
            items=7_654_321,
            peak_rss_bytes=412 << 20,
        )

    killed = run(1, "killed", -9, "the kernel ended it: out of memory (cgroup limit 512 MiB), 38 pages were in flight")
    return FittedTable(COLUMNS, [killed, run(12, "drained", 0, None)])


def _entry(kind: DeadKind, at_s: float, reason: str, payload: bytes) -> DeadEntry:
    return DeadEntry(place=0, sha="", at_s=at_s, kind=kind, reason=reason, score="0", key="", payload=payload)


def _dead() -> RenderableType:
    url = "https://forum.example.com/threads/why-does-my-crawler-stop.123456/page-17?order=date"
    reason = "HTTP 503 Service Unavailable, tried 6 times within 40 min"
    entries = [
        ("forum_detail", _entry(DeadKind.REQUEST, NOW - 5000, reason, json.dumps({"url": url}).encode())),
        ("forum_list", _entry(DeadKind.LIST_TASK, NOW - 90_000, "not JSON", b"rubbish")),
    ]
    return FittedTable(REQUESTS.columns(NOW), entries)


def _refused() -> RenderableType:
    item = Entry(place=0, sha="", at_s=NOW - 60, reason="views: '12k' is no whole number", payload=b'{"id": "1", "views": "12k"}')
    return FittedTable(ITEMS.columns(NOW), [("forum_detail", item)])


def _schedule() -> RenderableType:
    def row(entry: str, task: str, **more: Any) -> dict[str, Any]:
        fields = {"every_s": 10.0, "cron": None, "args": [], "kwargs": {}, "enabled": True, "origin": "default", "refused": None}
        times = {"last_sent": "x", "sent_s_ago": 3.0, "next_due": "y", "due_in_s": 7.0}
        return {"entry": entry, "task": task, **fields, **times, **more}

    nightly = row("nightly", "trawl.seed_forums", cron="0 3 * * *", kwargs={"site": "demo", "force": True}, origin="redis")
    odd = {"entry": "odd", "refused": "no such task"}
    return FittedTable(SCHEDULE, [row("reconcile_fleet", "trawl.reconcile_fleet"), nightly, odd])


VIEWS: dict[str, Callable[[], RenderableType]] = {
    "status": lambda: FleetScreen(_well(), "redis://127.0.0.1:6379/0"),
    "status-in-trouble": lambda: FleetScreen(_in_trouble(), "redis://127.0.0.1:6379/0"),
    "status-short": lambda: FleetScreen(_well(), "redis://127.0.0.1:6379/0", everything=False),
    "status-short-in-trouble": lambda: FleetScreen(_in_trouble(), "redis://127.0.0.1:6379/0", everything=False),
    "nodes": lambda: FittedTable(
        node_columns(NOW), in_trouble_first([NODE, replace(NODE, name="celery@other", beat_at=NOW - 60)], NOW)
    ),
    "forums": _forums,
    "history": _history,
    "dead": _dead,
    "dead-items": _refused,
    "schedule": _schedule,
}


def drawn(view: RenderableType, width: int) -> str:
    """The text as a terminal of that width shows it."""
    console = SafeConsole(file=io.StringIO(), width=width, height=24, color_system=None, force_terminal=False)
    console.print(view)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times of runs are shown in the zone of who looks."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_as_it_was_last_approved(name: str, width: int) -> None:
    text, file = drawn(VIEWS[name](), width), SCREENS / f"{name}-{width}.txt"
    if os.environ.get("UPDATE_SCREENS"):
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", VIEWS)
def test_no_line_is_wider_than_the_terminal_and_no_heading_upright(name: str, width: int) -> None:
    lines = drawn(VIEWS[name](), width).splitlines()
    assert [line for line in lines if len(line) > width] == []
    assert not re.search(r"(^\s*\S{1,2}\s*$\n?){3}", "\n".join(lines), re.MULTILINE)


def test_problems_come_first_and_rows_that_are_left_out_are_counted() -> None:
    lines = drawn(VIEWS["status-short-in-trouble"](), 80).splitlines()
    assert lines[2].startswith("✗ ")
    assert any("more" in line for line in lines)
    assert [line for line in lines if line.startswith("forum_detail/31 ")], (
        "a crawler in trouble is shown before those that are not"
    )


def test_columns_leave_by_their_rank_and_a_text_without_room_stands_below() -> None:
    columns = (
        Column(name="name"),
        figure("first", rank=1),
        figure("second", rank=2),
        Column(name="why", least=10, rank=3, below=True),
    )
    rows = [("a", "1,000,000", "2,000,000", "because of that")]

    def heads(width: int) -> list[str]:
        return drawn(FittedTable(columns, rows), width).splitlines()[0].split()

    assert heads(60) == ["name", "first", "second", "why"]
    assert heads(30) == ["name", "first", "second"]
    assert drawn(FittedTable(columns, rows), 30).splitlines()[2] == "  because of that"
    assert heads(20) == ["name", "first"]
    assert heads(8) == ["name"]


def test_text_of_others_neither_acts_nor_shifts_columns() -> None:
    table = FittedTable((Column(name="name"), figure("n")), [("\x1b[2J", "1"), ("two\nlines", "2"), ("漢字", "3")])
    lines = drawn(table, 40).splitlines()
    assert lines[1:] == ["\\x1b[2J     1", "two\\nlines  2", "漢字        3"]


def test_rows_that_are_left_out_are_counted() -> None:
    rows = [(str(number),) for number in range(5)]
    assert drawn(FittedTable((Column(name="n"),), rows, most=2), 40).splitlines() == ["n", "0", "1", "and 3 more"]


@pytest.mark.parametrize("name", [name for name in VIEWS if name != "demo"])
def test_lines_do_not_end_with_spaces(name: str) -> None:
    console = SafeConsole(file=io.StringIO(), width=200, color_system=None, force_terminal=False)
    console.print(VIEWS[name]())
    assert isinstance(console.file, io.StringIO)
    assert not [line for line in console.file.getvalue().splitlines() if line.rstrip() != line]


def test_a_text_beside_its_head_continues_below_itself_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    echo_indented("ok    versions  ", "Trawl 0.1.0, Python 3.11.7, Scrapy 2.19.0, 队列没有丢失任何请求 and more")
    lines = terminal.getvalue().splitlines()
    assert len(lines) > 2
    assert all(line.startswith(" " * 16) for line in lines[1:])
    assert max(cell_len(line) for line in lines) <= 40
    monkeypatch.setattr("sys.stdout", pipe := io.StringIO())
    echo_indented("ok    versions  ", "word " * 40)
    assert len(pipe.getvalue().splitlines()) == 1


class Terminal(io.StringIO):
    """Somebody looks."""

    def isatty(self) -> bool:
        return True


def test_a_plain_console_can_show_it_too() -> None:
    console = Console(file=io.StringIO(), width=60)
    console.print(VIEWS["status"]())
