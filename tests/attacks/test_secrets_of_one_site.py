"""A site's login goes to the places that its file trusts, and nothing of another place is stored as its own."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from forums.breaker.probe import probe
from forums.raw_pages.reparse import reparse
from forums.sites import load_site
from forums.sites.http.fetch import FetchFailed
from forums.storage import Database
from tests.attacks.two_sites import SECRET, STOLEN, TwoSites, fetch
from tests.support.processes import wait_until
from tests.support.watched_site import Page
from workers.raw_pages import RawPage, RawStore
from workers.state.holds import Breakers


def test_no_redirect_row_task_or_stored_request_takes_a_login_to_another_site_or_brings_its_text_back(sites: TwoSites) -> None:
    sites.declare()
    sites.post("/own")
    sites.task("own", f"{sites.mine.url}/own")
    statuses = (301, 302, 303, 307, 308)
    for status in statuses:
        sites.mine.redirect(f"/away/{status}", f"{sites.other.url}/stolen", status)
        sites.task(f"r{status}", f"{sites.mine.url}/away/{status}")
    sites.mine.redirect("/round", "/away/302")
    sites.task("round", f"{sites.mine.url}/round")
    user_at = sites.other.url.replace("http://", f"http://127.0.0.1:{sites.mine.port}@")
    sites.mine.redirect("/user-at", f"{user_at}/stolen")
    sites.task("user-at", f"{sites.mine.url}/user-at")
    sites.task("task", f"{sites.other.url}/stolen")
    sites.post("/with-comments", replies=5)
    comments = {"comments": [{"id": "c1", "body": "own"}], "next": f"{sites.other.url}/stolen/comments"}
    sites.mine.pages["/comments/long"] = Page(comments)
    sites.task("long", f"{sites.mine.url}/with-comments")
    sites.store(f"{sites.other.url}/stolen")
    sites.store(f"{sites.other.url}/stolen", redirect_urls=[f"{sites.mine.url}/own"])
    sites.store(f"{sites.mine.url}/own", proxy=sites.other.url)
    log = sites.crawl()
    assert sites.other.asked == [], log
    assert STOLEN not in sites.in_redis()
    assert SECRET not in sites.in_redis()
    assert "own text of /own" in sites.texts()
    assert sites.mine.headers_at("/own")["authorization"] == f"Bearer {SECRET}"
    reasons = sites.dead()
    assert len(reasons) == len(statuses) + 6, reasons  # the stored one with a history is asked for where that began
    assert all(sites.mine.url in reason and sites.other.url in reason for reason in reasons), "both places are named"


def test_no_row_or_next_link_of_a_list_takes_a_login_to_another_site(sites: TwoSites) -> None:
    sites.declare()
    sites.post("/own")
    rows = [
        {"id": "own", "title": "own", "url": f"{sites.mine.url}/own", "replies": 0},
        {"id": "away", "title": "away", "url": f"{sites.other.url}/stolen", "replies": 0},
    ]
    sites.mine.pages["/list/f"] = Page({"threads": rows, "next": f"{sites.other.url}/stolen/list"})
    sites.scan()
    log = sites.crawl("forum_list") + sites.crawl()
    assert sites.other.asked == [], log
    assert STOLEN not in sites.in_redis()
    assert sites.texts() == ["own text of /own"]
    assert len(sites.dead()) == 1
    (scan,) = [item for item in sites.items("forum_list") if item["kind"] == "scan"]
    assert (scan["outcome"], sites.other.url in scan["reason"]) == ("failed", True)


def test_a_redirect_of_robots_txt_reaches_no_other_site(sites: TwoSites) -> None:
    sites.declare()
    sites.post("/own")
    sites.mine.redirect("/robots.txt", f"{sites.other.url}/stolen")
    sites.task("own", f"{sites.mine.url}/own")
    log = sites.crawl()
    assert sites.other.asked == [], log
    assert sites.texts() == ["own text of /own"]


def test_a_place_that_is_also_allowed_gets_no_login_unless_the_file_says_so(sites: TwoSites) -> None:
    sites.declare(top=f'also_allowed = ["{sites.other.url}"]')
    sites.mine.redirect("/moved", f"{sites.other.url}/its-own")
    sites.other.pages["/its-own"] = Page({"title": "t", "body": "text of the second place", "replies": 0})
    sites.task("moved", f"{sites.mine.url}/moved")
    sites.crawl()
    assert sites.texts() == ["text of the second place"]
    assert sites.other.paths() == ["/robots.txt", "/its-own"]
    assert SECRET not in sites.other.said()
    assert SECRET not in fetch(f"{sites.mine.url}/moved", site=load_site("mine")).text
    assert SECRET not in sites.other.said()

    sites.declare(top=f'also_allowed = ["{sites.other.url}"]\nsend_headers_to = ["{sites.other.url}/"]')
    sites.task("moved-again", f"{sites.mine.url}/moved")
    sites.crawl()
    headers = sites.other.headers_at("/its-own")
    assert (headers["authorization"], headers["cookie"]) == (f"Bearer {SECRET}", f"session={SECRET}")
    assert SECRET not in sites.in_redis()


def test_a_cookie_that_a_site_sets_is_sent_nowhere(sites: TwoSites) -> None:
    sites.declare(top=f'also_allowed = ["{sites.other.url}"]', login="")
    sites.mine.redirect("/moved", f"{sites.other.url}/its-own", **{"Set-Cookie": "sid=SET-BY-THE-FIRST; Path=/"})
    sites.mine.redirect("/back", "/own", **{"Set-Cookie": "sid=SET-BY-THE-FIRST; Path=/"})
    sites.post("/own")
    sites.other.pages["/its-own"] = Page({"title": "t", "body": "second place", "replies": 0})
    sites.task("moved", f"{sites.mine.url}/moved")
    sites.task("back", f"{sites.mine.url}/back")
    sites.crawl(COOKIES_ENABLED=True)
    assert sorted(sites.texts()) == ["own text of /own", "second place"]
    assert "SET-BY-THE-FIRST" not in sites.other.said()
    assert "cookie" not in sites.mine.headers_at("/own")


def test_a_site_that_sends_every_page_elsewhere_is_held_and_nothing_of_it_is_lost(sites: TwoSites) -> None:
    sites.declare(in_a_row=3)
    for number in range(6):
        sites.mine.redirect(f"/t/{number}", f"{sites.other.url}/stolen")
        sites.task(f"t{number}", f"{sites.mine.url}/t/{number}")
    sites.mine.redirect("/list/f", f"{sites.other.url}/stolen/list")
    breakers = Breakers(sites.client)
    with sites.crawler() as log:
        wait_until(lambda: "mine" in breakers.open_ones(), lambda: f"the breaker opens: {log()}", 60)
    opened = breakers.open_ones()["mine"]
    assert opened.cause == "elsewhere"
    assert sites.mine.url in opened.reason
    assert sites.other.url in opened.reason
    assert sites.dead() == [], "they wait until the site is well again"
    with pytest.raises(FetchFailed, match="at no place of site 'mine'"):
        asyncio.run(probe(load_site("mine"), "thread"))
    with pytest.raises(FetchFailed, match="at no place of site 'mine'"):
        fetch(f"{sites.other.url}/stolen", site=load_site("mine"))
    assert sites.other.asked == []


def test_what_a_browser_brings_from_another_place_is_not_stored(sites: TwoSites) -> None:
    sites.declare()
    sites.post("/own")
    sites.task("own", f"{sites.mine.url}/own")
    sites.task("jump", f"{sites.mine.url}/jump?{sites.other.url}/stolen")
    sites.crawl(DOWNLOAD_HANDLERS='{"http": "tests.support.own_browser.Browser"}')
    assert set(sites.other.paths()) == {"/stolen"}, "the browser was there"
    assert SECRET not in sites.other.said()
    assert sites.texts() == ["own text of /own"]
    assert STOLEN not in sites.in_redis()
    (reason,) = sites.dead()
    assert f"{sites.mine.url}/jump" in reason
    assert sites.other.url in reason


def test_a_raw_page_that_a_redirect_brought_from_elsewhere_is_not_read_again_as_the_sites(
    sites: TwoSites, tmp_path: Path
) -> None:
    sites.declare()
    asked = {"kind": "thread", "forum": "f", "thread": "t", "number": 1, "url": f"{sites.mine.url}/own"}
    body = json.dumps({"title": STOLEN, "body": STOLEN}).encode()
    store = RawStore(tmp_path / "raw", rounds=lambda *_: None)
    for url in (f"{sites.other.url}/stolen", f"{sites.mine.url}/own"):
        store.keep(
            RawPage(
                site="mine",
                page=asked,
                url=url,
                request_url=f"{sites.mine.url}/own",
                status=200,
                headers=((b"content-type", b"application/json"),),
                body=body,
                fetched_at="2026-11-22T00:00:00.000+00:00",
            )
        )
    store.close()
    with Database.from_url(f"sqlite:///{tmp_path / 'trawl.sqlite'}") as database:
        report = reparse(database, tmp_path / "raw", load_site("mine"))
    assert (report.items, sum(report.faults.values())) == (1, 1)
    assert sites.other.url in next(iter(report.faults))
