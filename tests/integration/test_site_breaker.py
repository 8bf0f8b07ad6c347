"""The life of a breaker, with real crawlers: one site puts up a wall, the other is crawled as if nothing had happened, and in the
end everything of both is there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis

from demo.forum.process import ForumProcess
from forums.raw_pages.reparse import read_pages
from forums.scheduling.seeding import seed, sentences
from redis_components.admin.inspector import snapshot
from redis_components.keys import CrawlKeys
from tests.support import warm_start
from tests.support.demo_sites import declare
from tests.support.processes import stays, wait_until
from tests.support.scrapy_command import crawl_command
from workers.breaker import close_breaker, probe_sites
from workers.raw_pages import RawPage, raw_dir
from workers.state.holds import Breaker, Breakers, FleetHolds

ROOT = Path(__file__).parents[2]
SPIDERS = ("forum_list", "forum_detail")
LISTS = CrawlKeys.for_spider("forum_list")
BREAKER = "\n[breaker]\nin_a_row = 3\nprobe_s = 0.1\nprobe_max_s = 0.5\n"


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where site files are, for this process and those that it starts."""
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path / "sites"))
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "sites").mkdir()
    return tmp_path / "sites"


@contextmanager
def crawlers(redis_url: str, folder: Path) -> Iterator[Callable[[], str]]:
    """Both services, with what they said."""
    environment = {**os.environ, "TRAWL_REDIS_URL": redis_url}
    logs = [folder / f"{spider}.log" for spider in SPIDERS]
    processes = []
    for spider, log in zip(SPIDERS, logs, strict=True):
        with log.open("wb") as out:
            command = crawl_command(spider)
            processes.append(warm_start.Popen(command, cwd=ROOT, env=environment, stderr=out))
    try:
        yield lambda: "\n".join(log.read_text()[-3000:] for log in logs)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(60)


def items_of(client: redis.Redis, site: str) -> list[dict[str, Any]]:
    """What was scraped of a site."""
    streams = [CrawlKeys.for_spider(spider).item_stream() for spider in SPIDERS]
    items = [json.loads(item) for stream in streams for item in client.lrange(stream, 0, 100_000)]
    return [item for item in items if item["site"] == site]


def stored(client: redis.Redis, site: str) -> set[tuple[str, str]]:
    return {(item["kind"], item["id"]) for item in items_of(client, site) if item["kind"] in ("post", "comment")}


def is_quiet(client: redis.Redis, spider: str) -> bool:
    """Nothing is ready or at work: what there is, is parked."""
    shot = snapshot(client, spider)
    return not (shot.ready or shot.leased or shot.start_tasks or shot.leased_tasks)


def truth(forum: ForumProcess) -> set[tuple[str, str]]:
    told = forum.truth()
    return {("post", one) for one in told["posts"]} | {("comment", one) for one in told["comments"]}


def test_a_site_with_a_wrong_file_or_behind_a_wall_is_held_the_other_goes_on_and_in_the_end_all_is_there(
    sites: Path, redis_url: str, redis_client: redis.Redis
) -> None:
    with (
        ForumProcess(seed=5, forums=4, threads=20, comments=3, rate=0) as slip,
        ForumProcess(seed=3, forums=4, threads=8, comments=3, rate=0) as ill,
        ForumProcess(seed=4, forums=4, threads=8, rate=0) as well,
    ):
        right = declare(sites, "slip", slip.url).read_text()
        assert set(sentences(seed(redis_client)).values()) == {"seeded"}
        (sites / "slip.toml").write_text(right.replace("pages_per_scan = 50", "pages_per_scan = 0"))
        with crawlers(redis_url, sites.parent) as said:
            breakers = Breakers(redis_client)
            its_file_is_wrong_and_then_gone(slip, sites / "slip.toml", right, redis_client, said)

            declare(sites, "ill", ill.url, BREAKER)
            declare(sites, "well", well.url, BREAKER + "[raw]\nkeep_days = 1\n")
            ill.control(wall="login", wall_page="comments")
            assert set(sentences(seed(redis_client)).values()) == {"seeded"}
            wait_until(lambda: "ill" in breakers.open_ones(), lambda: f"the breaker opens: {said()}", 90)
            opened = breakers.open_ones()["ill"]
            assert (opened.cause, opened.kind) == ("login", "comments")
            assert opened.excerpt.startswith("Log in You must be logged in")
            wait_until(lambda: stored(redis_client, "well") == truth(well), lambda: f"the other site is crawled: {said()}", 90)
            assert list(breakers.open_ones()) == ["ill"]
            wait_until(lambda: FleetHolds(redis_client).all(SPIDERS), "the site is held, right after the record says so", 60)
            (held,) = FleetHolds(redis_client).all(SPIDERS)
            assert (held.what, held.by_breaker, held.hold.by) == ("site ill", True, "breaker")
            assert sentences(seed(redis_client, site="ill", force=True))["ill/f1"].startswith("paused by breaker: ")
            wait_until(lambda: all(is_quiet(redis_client, spider) for spider in SPIDERS), "pages in flight have ended", 60)
            asked = ill.stats()["total"]
            stays(lambda: ill.stats()["total"] == asked, "nobody asks it", 0.5, every_s=0.1)

            assert probe_sites(redis_client)["ill"].startswith("open: ")
            assert breakers.open_ones()["ill"].step == 1

            ill.control(wall="")
            seen: list[str] = []

            def closed() -> bool:
                seen.extend(probe_sites(redis_client).values())
                return not breakers.open_ones()

            wait_until(closed, lambda: f"probes close it: {seen}", 90)
            assert seen[-1] == "closed"
            wait_until(lambda: stored(redis_client, "ill") == truth(ill), lambda: f"all of it is fetched: {said()}", 90)
        assert "Traceback" not in said()
        kept = {(page.page["thread"], page.fetched_at) for page in read_pages(raw_dir(), "well") if isinstance(page, RawPage)}
        assert {(one["id"], one["fetched_at"]) for one in items_of(redis_client, "well") if one["kind"] == "post"} <= kept
        assert [snapshot(redis_client, spider).dead for spider in SPIDERS] == [1, 0], "the task that was given up"
        assert [snapshot(redis_client, spider).parked for spider in SPIDERS] == [0, 0]
        assert FleetHolds(redis_client).all(SPIDERS) == []


def its_file_is_wrong_and_then_gone(
    forum: ForumProcess, file: Path, right: str, client: redis.Redis, said: Callable[[], str]
) -> None:
    """What is queued of a site waits until its file is right: it is wrong when the crawlers start, gone while they crawl, and at
    last gone for good.
    """
    breakers, site = Breakers(client), file.stem

    def opened() -> Breaker:
        wait_until(lambda: site in breakers.open_ones(), lambda: f"the breaker opens: {said()}", 90)
        return breakers.open_ones()[site]

    def looked() -> str:
        breaker = breakers.get(site)
        assert breaker is not None
        breakers.put(site, msgspec.structs.replace(breaker, next_probe_at=0.0))
        return probe_sites(client)[site]

    breaker = opened()
    assert breaker.cause == "site file"
    assert f"{file}: limits.pages_per_scan = 0" in breaker.reason
    wait_until(lambda: snapshot(client, "forum_list").parked_tasks == 4, lambda: f"its tasks are parked: {said()}", 60)
    assert looked() == f"open: {breaker.reason}"
    forum.control(latency_ms=500)  # a busy machine, too, sees its first post while most of it is still to be read
    file.write_text(right)
    assert looked() == "closed"
    assert breakers.all() == {}

    wait_until(lambda: stored(client, site), lambda: f"it is crawled: {said()}", 60)
    file.unlink()
    forum.control(latency_ms=0)
    assert f"unknown site '{site}'" in opened().reason
    wait_until(lambda: is_quiet(client, "forum_detail"), lambda: f"what waits is parked: {said()}", 60)
    assert snapshot(client, "forum_detail").parked
    file.write_text(right)
    assert looked() == "closed"
    wait_until(lambda: stored(client, site) == truth(forum), lambda: f"all of it is fetched: {said()}", 60)
    assert [snapshot(client, spider).dead for spider in SPIDERS] == [0, 0]

    file.unlink()
    client.rpush(LISTS.start_tasks(), b'{"site": "slip", "forum": "f1"}')
    opened()
    close_breaker(client, site, "closed by ops@host")
    wait_until(lambda: snapshot(client, "forum_list").dead == 1, lambda: f"what waited is given up: {said()}", 60)
    assert f"unknown site '{site}'".encode() in client.lindex(LISTS.dead(), 0)
    assert breakers.open_ones() == {}
