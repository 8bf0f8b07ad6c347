"""The pages below the overview, from a real Redis and a real database."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest
import redis
from scrapy.http import HtmlResponse, Request

from fleet_operations.overview import Overview, problems
from forums.storage import Database, parse
from forums.storage.history import RunHistory
from monitoring.forums import pages as of_forums
from monitoring.pages import runs, views
from monitoring.pages.routes import SharedPages
from monitoring.pages.views import NotThere, Reading
from redis_components.keys import CrawlKeys
from tests.support.items import at, forum, post, wire
from tests.unit.monitoring.metrics.test_metrics import CRAWL, CRAWLER, NOW, VIEW, viewed
from workers.raw_pages.store import RawPage, RawStore
from workers.state.group_runs import EndedMember, GroupRun, GroupRuns, Member, RunState, Verdict, newest_of_groups
from workers.state.history import Run, RunBy, Runs
from workers.state.nodes import NodeRecord

EVIL = "<script>alert('x')</script>\x1b[2J\u202e\""


class _Text(HTMLParser):
    """Text and tags of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.tags, self.links = "", list[str](), list[str]()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name == "href"]

    def handle_data(self, data: str) -> None:
        self.text += f"{data} "


@pytest.fixture(autouse=True)
def no_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRAWL_DATABASE_URL", f"sqlite:///{tmp_path}/none.db")
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path))


def reading(client: redis.Redis, view: Overview = VIEW) -> Reading:
    return Reading(client=client, source="redis", view=view)


def bury(client: redis.Redis, spider: str, url: str, reason: str) -> None:
    head = {"at_ms": 1, "kind": "l", "score": "0", "reason": reason}
    client.rpush(CrawlKeys.for_spider(spider).dead(), f"{json.dumps(head)}\n{json.dumps({'url': url})}")


def test_a_site_says_which_page_opened_its_breaker_and_what_stood_there(redis_client: redis.Redis) -> None:
    shown = _Text(of_forums.site(reading(redis_client), "demo"))
    breaker = VIEW.sites.breakers["demo"]
    for part in ("broken", breaker.reason, breaker.url, breaker.excerpt):
        assert part in shown.text, part
    assert "does not exist yet" in shown.text, "without a database the rest is there"
    with pytest.raises(NotThere, match="no site 'demo2' is watched"):
        of_forums.site(reading(redis_client), "demo2")


def test_a_site_says_how_much_of_each_board_is_stored(redis_client: redis.Redis) -> None:
    with Database.from_url() as database:
        items = (post("p1", fetched_at=at(1)), post("p2", fetched_at=at(1)), forum("f1", threads=60))
        assert database.write([parse(wire(one)) for one in items]) == []
    shown = " ".join(_Text(of_forums.site(reading(redis_client), "demo")).text.split())
    assert re.search(r" f1 .* 2 60 2 scans failed", shown), shown


def test_a_crawler_shows_the_end_of_its_log_and_a_foreign_one_where_it_is(redis_client: redis.Redis, tmp_path: Path) -> None:
    assert "trawl logs forum_list/0" in _Text(views.crawler(reading(redis_client), "forum_list/0")).text
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "forum_list-0.log").write_text(f"2026-01-02 03:04:05 ERROR engine: {EVIL}\nlast words\n")
    html = views.crawler(reading(redis_client), "forum_list/0")
    assert "last words" in html
    assert "<script>" not in html
    assert "\x1b" not in html
    with pytest.raises(NotThere):
        views.crawler(reading(redis_client), "../../etc/passwd")


def test_a_process_that_goes_on_has_no_end_on_the_pages_of_its_crawler_and_service(redis_client: redis.Redis) -> None:
    Runs(redis_client).add(Run(id="forum_list/0#1.1", spider="forum_list", by=RunBy.FLEET, number=0, pid=4711, started_at=NOW))
    for html in (views.crawler(reading(redis_client), "forum_list/0"), views.service(reading(redis_client), "forum_list")):
        assert "None is stored" not in _Text(html).text


def test_dead_letters_are_shown_with_payload_and_reason_and_all_of_it_is_text(redis_client: redis.Redis) -> None:
    bury(redis_client, CRAWL.spider, f"javascript:{EVIL}", f"HTTP 503 {EVIL}")
    dead = replace(VIEW.services[0], crawl=replace(CRAWL, dead=1))
    html = views.dead(reading(redis_client, replace(VIEW, services=(dead,))))
    shown = _Text(html)
    assert "HTTP 503 <script>" in shown.text
    assert "javascript:<script>" in shown.text
    assert "script>alert" not in html
    assert not any(link.startswith("javascript") for link in shown.links)
    assert not {"\x1b", "\u202e"} & set(html)


def test_every_page_escapes_hostile_names(redis_client: redis.Redis) -> None:
    crawler = replace(CRAWLER, spider=EVIL, node=EVIL, note=EVIL)
    view = replace(viewed(crawler, crawl=replace(CRAWL, spider=EVIL)), nodes=(NodeRecord(name=EVIL, beat_at=NOW),))
    one = reading(redis_client, view)
    pages = [views.service(one, EVIL), views.crawler(one, crawler.name), of_forums.events(one)]
    for html in [*pages, of_forums.sites(one), runs.jobs(one)]:
        assert "<script>" not in html
        assert not {"\x1b", "\u202e"} & set(html)
    assert f"/crawler/{quote(crawler.name)}" in _Text(pages[0]).links


def test_without_redis_every_page_says_so(redis_client: redis.Redis) -> None:
    away = reading(redis_client, Overview(failure="Redis at redis is not running: start it"))
    pages = [
        of_forums.sites(away),
        of_forums.site(away, "x"),
        views.service(away, "x"),
        views.crawler(away, "x/0"),
    ]
    for html in [*pages, views.dead(away), of_forums.events(away), runs.jobs(away)]:
        assert "is not running: start it" in html


def test_a_page_is_made_once_for_all_who_look(redis_client: redis.Redis) -> None:
    shared, made = SharedPages(), list[int]()
    for _ in range(50):
        shared.get("/", lambda: (str(made.append(1)), 200))
    assert len(made) == 1
    for number in range(500):
        shared.get(number, lambda: ("", 404))
    assert len(shared._pages) == 200, "whoever asks for names that there are not does not fill the memory"


def test_the_page_that_was_kept_of_a_verdict_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path))
    store = RawStore(tmp_path / "raw")
    for job in ("books.g-1", "cars.g-1"):
        response = HtmlResponse("http://a/x", body=f"of {job}".encode(), request=Request("http://a/x"))
        store.keep(RawPage.of(response, "_runs", {"kind": "page", "job": job}, "2026-11-29T03:00:00+00:00"))
    store.close()
    member = Member(spider="books", verdict=Verdict.MOVED, url="http://a/x", started_at=1795921200.0, ended_at=1795921200.0)
    assert runs.kept_page("g-1", member) == "of books.g-1"
    assert runs.kept_page("g-2", member) == runs.kept_page("g-1", replace(member, url="")) == ""


def test_the_verdicts_of_a_groups_nights_are_a_table_whose_bad_ones_come_first(redis_client: redis.Redis, tmp_path: Path) -> None:
    known = GroupRuns(redis_client)
    for night, verdicts in enumerate([("fine", "fine", "moved"), ("fine", "no_items", "moved")]):
        run = GroupRun(id=f"brands-{night}", group="brands", state=RunState.FINISHED, started_at=NOW - 90_000 + night, members=3)
        members = [
            Member(
                spider=spider, verdict=Verdict(verdict), url="javascript:alert(1)" if spider == "books" else f"http://a/{spider}"
            )
            for spider, verdict in zip(("apples", "books", "cars"), verdicts, strict=True)
        ]
        members[2] = replace(members[2], silenced="known broken since May")
        assert known.add(run, dict.fromkeys(("apples", "books", "cars"), "m"))
        known.end(run, [replace(one, reason=EVIL if one.spider == "books" else "") for one in members])
        assert known.swap(
            replace(known.all()[run.id], counts=dict.fromkeys(verdicts, 1), alerts={"no_items": verdicts.count("no_items")})
        )
    html = runs.jobs(reading(redis_client))
    text = re.sub(r"\s+", " ", _Text(html).text)
    assert text.index("books") < text.index("apples") < text.index("cars")
    assert "no_items" in text
    assert "known broken since May" in text
    assert "<script>alert" not in html
    assert not [link for link in _Text(html).links if link.startswith("javascript")]
    assert "/run/brands-1/books" in _Text(html).links
    page = runs.run(reading(redis_client), "brands-1")
    assert "books" in _Text(page).text
    member = runs.run(reading(redis_client), "brands-1/books")
    assert "javascript:alert(1)" in _Text(member).text
    assert not [link for html in (page, member) for link in _Text(html).links if link.startswith("javascript")]
    assert "<script>alert" not in page + member
    with Database.from_url(f"sqlite:///{tmp_path}/none.db") as database:
        nights = [
            EndedMember(
                run=f"brands-old-{n}",
                spider="books",
                group="brands",
                verdict=Verdict.FINE,
                pages=n,
                items=777,
                seconds=1.0,
                fields={"name": 0.5},
                started_at=NOW - n * 86_400,
                ended_at=NOW - n * 86_400,
            )
            for n in range(10, 100)
        ]
        RunHistory(database).write_members(nights)
    assert "highest 777" in runs.run(reading(redis_client), "brands-1/books"), "months of them, of which Redis knows two nights"
    for name in ("brands-7", "brands-1/none", "brands-1/../x"):
        with pytest.raises(NotThere):
            runs.run(reading(redis_client), name)
    found = [one for one in problems(replace(VIEW, runs=tuple(newest_of_groups(known.newest())))) if "brands" in one.what]
    assert [one.what for one in found] == ["run brands-1: 1 member needs a look (1 no_items)"]
    assert found[0].fix.startswith("trawl runs show brands-1")
