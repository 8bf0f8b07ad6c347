"""The breaker of a host without a site file: a crawl of links meets a wall, goes on elsewhere, and has all of it in the end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from msgspec.structs import replace

from forums.raw_pages.reparse import read_pages
from redis_components.admin.inspector import snapshot
from tests.support.crawl import Crawl
from tests.support.processes import stays, wait_until
from tests.support.watched_site import Page, WatchedSite
from workers.breaker import probe_sites
from workers.raw_pages import RawPage
from workers.state.holds import Breakers

PAGES = 60
WATCHED = json.dumps({"workers.breaker.hosts.HostWatch": 561})
WATCHED_AND_KEPT = json.dumps({"workers.breaker.hosts.HostWatch": 561, "workers.raw_pages.any_spider.KeepRawPages": 562})


@pytest.fixture
def crawl(redis_url: str, tmp_path: Path) -> Iterator[Crawl]:
    """Its pages are those of the test's sites; no process is left."""
    begun = Crawl(site="", redis_url=redis_url, folder=tmp_path, pages=PAGES)
    yield begun
    for process in begun.processes:
        process.kill()
        process.wait()


def test_a_host_behind_a_wall_is_left_alone_tried_again_and_nothing_of_it_is_lost(
    crawl: Crawl, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_FLEET", "links=1")
    breakers = Breakers(redis_client)
    with WatchedSite() as ill, WatchedSite() as well:
        host = ill.url.removeprefix("http://")
        ill.answer = lambda path: Page("<p>Members only", 403)
        well.answer = lambda path: Page("<p>A page")
        with crawl.kept_open():
            crawl.seed(json.dumps({"url": f"{ill.url}/0", "meta": {"handle_httpstatus_list": [403]}}))
            crawler = crawl.start(DOWNLOADER_MIDDLEWARES=WATCHED, CONCURRENT_REQUESTS=8)
            wait_until(lambda: crawl.items() == [0], lambda: f"a status that is asked for is a page\n{crawl.log()}", 60)
            pages = range(1, PAGES + 1)
            crawl.seed(*(f"{ill.url}/{page}" for page in pages), *(f"{well.url}/{page}" for page in pages))
            wait_until(lambda: host in breakers.open_ones(), lambda: f"the breaker opens\n{crawl.log()}", 60)
            opened = breakers.open_ones()[host]
            assert (opened.cause, opened.reason, opened.kind, opened.excerpt) == (
                "refused",
                "refused (HTTP 403)",
                "host",
                "Members only",
            )
            wait_until(lambda: len(well.asked) == PAGES, lambda: f"the other host is crawled\n{crawl.log()}", 60)
            shot = lambda: snapshot(redis_client, "links")  # noqa: E731
            wait_until(lambda: shot().parked + shot().parked_tasks == PAGES, lambda: f"all of it waits: {shot()}", 60)
            asked = len(ill.asked)
            stays(lambda: len(ill.asked) == asked, "nobody asks it", 0.5, every_s=0.1)

            assert probe_sites(redis_client) == {}, "its time has not come"
            ill.answer = well.answer
            assert breakers.put(host, replace(breakers.open_ones()[host], next_probe_at=0.0))
            assert probe_sites(redis_client) == {host: "tried again"}
            wait_until(lambda: len(crawl.items()) == 2 * PAGES + 1, lambda: f"all of it is fetched\n{crawl.log()}", 60)
        crawl.finish()
        closed = breakers.get(host)
        assert closed is not None
        assert (closed.is_open, closed.step) == (False, 1), "what opens again is left alone for longer"
        assert crawl.items() == sorted([0, *pages, *pages])
        assert (shot().parked + shot().parked_tasks, shot().dead, crawler.returncode) == (0, 0, 0)


def test_one_page_that_is_refused_is_the_spiders_after_some_tries_and_the_others_are_kept_as_they_came(
    crawl: Crawl, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path))
    with WatchedSite() as site:
        site.answer = lambda path: Page("<p>No", 403 if path == "/7" else 200)
        crawl.seed(*(f"{site.url}/{page}" for page in range(1, 21)))
        old = tmp_path / "raw" / "links" / "2026-01-01"
        old.mkdir(parents=True)
        crawl.start(DOWNLOADER_MIDDLEWARES=WATCHED_AND_KEPT, RAW_PAGES_KEEP_DAYS=2)
        crawl.finish()
        assert crawl.items() == [page for page in range(1, 21) if page != 7]
        assert site.paths().count("/7") == 3
        assert "Ignoring response <403" in crawl.log()
        assert Breakers(redis_client).all() == {}
        kept = [page for page in read_pages(tmp_path / "raw", "links") if isinstance(page, RawPage)]
        assert sorted(page.url for page in kept) == sorted(f"{site.url}/{page}" for page in range(1, 21) if page != 7)
        assert {page.body for page in kept} == {b"<p>No"}
        assert redis_client.hget(crawl.keys.stats, "raw/kept") == b"19"
        assert not old.exists()
