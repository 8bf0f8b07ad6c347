"""The status page, from views made by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

from msgspec.structs import replace as replace_struct

from fleet_operations.overview import Overview, ServiceView
from forums.overview import Boards, BoardView, ForumSites
from forums.overview.boards import WatchedForum
from forums.state.keys import ForumState
from monitoring.forums.pages import board_why
from monitoring.pages.views import Reading, overview
from redis_components.frontier.holds import Hold, HoldKind
from tests.unit.monitoring.metrics.test_metrics import BOARDS, CRAWL, CRAWLER, NOW, SITES, VIEW, viewed
from workers.state.beats import BeatView
from workers.state.nodes import NodeRecord
from workers.state.registry import CrawlerState, ErrorRecord
from workers.state.rolls import Roll, RollState

EVIL = "<script>alert('x')</script>&\""


def _board(watched: WatchedForum) -> BoardView:
    return BoardView(watched=watched, now=NOW)


def _with_boards(*boards: BoardView) -> Overview:
    held = {one.watched.site: one.hold for one in boards if one.hold}
    return replace(VIEW, sites=replace(SITES, boards=Boards([one.watched for one in boards], NOW, held=held)))


def page(view: Overview, source: str) -> str:
    """The page without rows and samples; it reads nothing else."""
    client: Any = None
    return overview(Reading(client=client, source=source, view=view))


class _Page(HTMLParser):
    """The text and the tags of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data: str) -> None:
        if "style" not in self.tags[-1:]:
            self.text += f"{data} "


def test_it_shows_services_crawlers_queues_and_errors() -> None:
    error = ErrorRecord(at=NOW - 300, where="trawl.store_items", what="the database is locked")
    node = NodeRecord(name="worker@host", capacity=4, taken=2, beat_at=NOW - 1, draining=True)
    shown = _Page(page(replace(VIEW, errors=(error,), nodes=(node,)), "redis://:***@redis:6379/0")).text
    for part in (
        "Redis answers",
        "forum_list",
        "1 of 22",
        "running",
        "4711",
        "18.5",
        "2 s ago",
        "5 min ago",
        "database is locked",
        "worker@host",
        "draining",
        "2 of 4",
    ):
        assert part in shown, part


def test_what_is_held_is_shown_with_since_when_by_whom_and_why_and_nothing_where_nothing_is() -> None:
    shown = _Page(page(VIEW, "redis"))
    assert "site demo paused 60 s ops@host <they asked>" in " ".join(shown.text.split())
    assert "Held" not in _Page(page(replace(VIEW, held=()), "redis")).text


def test_a_beat_that_is_missing_or_silent_is_an_alarm() -> None:
    for beats, said in (
        (BeatView(leader=None, waiting=(), silent_s=90.0), "none leads, nothing was sent for 90 s"),
        (BeatView(leader="host:1", waiting=(), silent_s=90.0), "host:1 leads, but nothing was sent for 90 s"),
        (BeatView(leader="host:1", waiting=(), silent_s=1.0), None),
    ):
        shown = _Page(page(replace(VIEW, beats=beats), "redis")).text
        assert said in shown if said else "beat:" not in shown


def test_a_board_that_went_stale_is_a_problem_but_not_where_its_site_is_held() -> None:
    stale = _Page(page(VIEW, "redis")).text
    assert "stale: shop/f2 (the first is due for 7 min; a gap is open)" in stale
    assert "a gap is open in shop/f2" in stale
    paused = replace_struct(_board(BOARDS[1]), hold=Hold(word=HoldKind.PAUSE, at=NOW))
    assert "stale:" not in _Page(page(_with_boards(paused), "redis")).text
    assert "gap" not in _Page(page(_with_boards(_board(BOARDS[0])), "redis")).text


def test_boards_are_shown_those_first_that_wait_longest() -> None:
    shown = " ".join(_Page(page(VIEW, "redis")).text.split())
    assert "from published to stored half within 5 s" in shown
    assert shown.index("shop/f2 stale") < shown.index("demo/f1 failing")
    many = (_board(replace_struct(BOARDS[0], forum=f"f{number}")) for number in range(30))
    assert "The 12 stalest of 30 boards" in _Page(page(_with_boards(*many), "redis")).text
    assert "Boards" not in _Page(page(_with_boards(), "redis")).text


def test_a_board_always_has_a_reason_for_its_age() -> None:
    def why(due_in: float, **state: float) -> str:
        watched = WatchedForum(site="demo", forum="f1", state=ForumState(**state), due_at=NOW + due_in)  # type: ignore[arg-type]
        return board_why(_board(watched))

    assert why(0) == "its first scan is due"
    assert why(20, tried_at=NOW - 40, events=5.0, exposure=3600.0) == "is scanned every 60 s: about 5 changes an hour"
    assert why(20, tried_at=NOW - 40, events=1.0, exposure=3600.0) == "is scanned every 60 s: about 1 change an hour"
    assert why(-30, tried_at=NOW - 90) == "its next scan has been due for 30 s: changes rarely"
    assert why(-30, tried_at=NOW - 90, errors=2) == "2 scans failed"


def test_every_value_from_redis_is_escaped() -> None:
    evil = Overview(
        now=NOW,
        services=(ServiceView.of(replace(CRAWL, spider=EVIL), 1, (), (), NOW, fault=EVIL),),
        crawlers=(replace(CRAWLER, spider=EVIL, node=EVIL, last_exit=EVIL, note=EVIL, error=EVIL),),
        errors=(ErrorRecord(at=NOW, where=EVIL, what=EVIL),),
        nodes=(NodeRecord(name=EVIL, services=(EVIL,)),),
        unreadable={EVIL: EVIL},
        sites=ForumSites(boards=Boards([WatchedForum(site=EVIL, forum=EVIL, state=ForumState(name=EVIL), due_at=NOW)], NOW)),
    )
    html = page(evil, EVIL)
    assert "<script>" not in html
    assert _Page(html).text.count(EVIL) >= 12


def test_it_loads_nothing_of_others_and_asks_again_also_without_scripts() -> None:
    html = page(VIEW, "redis://redis:6379/0")
    assert all(re.match(r"/(?!/)|#main$", link) for link in _Page(html).links), "none leads to another host"
    assert {"/service/forum_list", "/live.js"} <= set(_Page(html).links)
    assert '<noscript><meta http-equiv="refresh"' in html
    assert "url(" not in html
    assert "@import" not in html


def test_when_redis_is_away_it_says_why_and_shows_no_table() -> None:
    shown = _Page(page(Overview(failure="Redis at redis://redis:6379/0 is not running: start it"), "redis://redis:6379/0"))
    assert "Redis is away" in shown.text
    assert "is not running: start it" in shown.text
    assert "table" not in shown.tags


def test_a_crawler_that_is_gone_is_shown_without_its_last_figures() -> None:
    shown = _Page(page(viewed(replace(CRAWLER, beat_at=NOW - 7200)), "")).text
    assert "gone" in shown
    assert "2 h ago" in shown
    assert "18.5" not in shown
    assert "4711" not in shown


def test_a_crawler_tells_why_it_was_given_up() -> None:
    given_up = replace(
        CRAWLER,
        state=CrawlerState.REFUSED,
        note="refused",
        error="unknown spider",
        last_exit="exit code 2",
        last_exit_at=NOW - 180,
    )
    shown = _Page(page(viewed(given_up), "")).text
    assert "refused · unknown spider · before: exit code 2, 3 min ago, 2025-12-31 23:57:00 UTC" in shown


def test_an_empty_fleet_says_what_to_do() -> None:
    shown = _Page(page(viewed(), "")).text
    assert "celery -A tasks worker" in shown
    assert "0 of 22" in shown


def test_a_roll_is_shown_while_it_is_under_way_and_when_it_has_failed() -> None:
    roll = Roll(id="r1", services=("forum_list",), reason="replaces forum_list/0 & more")
    html = page(replace(VIEW, roll=roll), "redis")
    assert '<p class="alarm wait">roll rolling: 0 of 0 replaced, replaces forum_list/0 &amp; more</p>' in html
    html = page(replace(VIEW, roll=replace(roll, state=RollState.FAILED)), "redis")
    assert '<li class="bad">roll failed' in html
    assert "roll " not in _Page(page(replace(VIEW, roll=replace(roll, state=RollState.DONE)), "redis")).text


def test_in_a_narrow_window_each_cell_has_the_name_of_its_column() -> None:
    html = page(VIEW, "redis")
    css = html.partition("@media (max-width: 600px)")[2].partition("</style>")[0]
    tables = re.findall(r'<table style="([^"]*)"><thead><tr>(.*?)</tr>', html)
    assert len(tables) > 4
    for style, head in tables:
        names = re.findall(r"<th[^>]*>([^<]*)</th>", head)
        assert style == "".join(f"--c{number}:'{name}';" for number, name in enumerate(names, 1))
        assert f"td:nth-child({len(names)})::before {{ content: var(--c{len(names)}); }}" in css
