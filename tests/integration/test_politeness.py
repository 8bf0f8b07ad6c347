"""What a site sees of several crawler processes that share its limits: measured at the site's own log."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path

import pytest
import redis

from forums.sites.http.politeness import write_limits
from forums.sites.load import load_file
from redis_components.keys import limits_key
from redis_components.politeness import limits
from redis_components.politeness.limits import BY_FILE, DAY_MS, HOUR_MS, LaneLimits
from tests.support.crawl import Crawl
from tests.support.processes import wait_until
from tests.support.watched_site import Page, WatchedSite

CRAWLERS = 3
MIDDLEWARES = {
    "redis_components.scrapy_glue.retry_after.RetryAfterMiddleware": 555,
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    "redis_components.scrapy_glue.robots.RobotsTxt": 100,
    "redis_components.scrapy_glue.conditional.ConditionalRequests": 940,
}
CONCURRENCY = 8
LATE_S = 2.0
"""Longest time between the lease of a request and its arrival, where the machine has more to do than it can."""


@pytest.fixture
def site() -> Iterator[WatchedSite]:
    with WatchedSite() as watched:
        watched.answer = lambda path: Page("a page")
        yield watched


@pytest.fixture
def crawl(site: WatchedSite, redis_client: redis.Redis, redis_url: str, tmp_path: Path) -> Iterator[Crawl]:
    made = Crawl(site=site.url, redis_url=redis_url, folder=tmp_path, pages=0)
    yield made
    for process in made.processes:
        process.kill()
        process.wait()


def limit(client: redis.Redis, crawl: Crawl, limited: LaneLimits) -> None:
    limits.change(client, crawl.keys.limits, crawl.site.removeprefix("http://"), limited)


def run(crawl: Crawl, site: WatchedSite, pages: int, *, ready: Callable[[], object] = lambda: None, **settings: object) -> None:
    """Several crawlers fetch so many pages, to the end; `ready` is called when they wait for work."""
    for _ in range(CRAWLERS):
        crawl.start(**{"CONCURRENT_REQUESTS": CONCURRENCY, "DOWNLOADER_MIDDLEWARES": json.dumps(MIDDLEWARES)} | settings)
    crawl.wait_for(CRAWLERS)
    ready()
    crawl.seed(*(f"{site.url}/{page}" for page in range(pages)))
    crawl.finish(100)


def test_all_processes_together_keep_the_rate_of_a_site(crawl: Crawl, site: WatchedSite, redis_client: redis.Redis) -> None:
    limit(redis_client, crawl, LaneLimits(rate=10))
    run(crawl, site, 80)
    assert Counter(site.paths()) == {f"/{page}": 1 for page in range(80)}
    assert site.most_within(3.0) <= 10 * (3 + LATE_S) + 1, "80 without the limit"


def test_no_more_requests_are_open_at_a_site_than_it_allows(crawl: Crawl, site: WatchedSite, redis_client: redis.Redis) -> None:
    site.latency_s = 0.03
    limit(redis_client, crawl, LaneLimits(concurrency=2))
    run(crawl, site, 60)
    assert len(set(site.paths())) == len(site.paths()) == 60
    assert site.most_open <= 2


def test_a_quota_is_what_a_site_gets_in_every_window(crawl: Crawl, site: WatchedSite, redis_client: redis.Redis) -> None:
    window_s = 8.0
    limit(redis_client, crawl, LaneLimits(quotas=((30, round(window_s * 1000)),)))
    run(crawl, site, 80)
    assert len(set(site.paths())) == len(site.paths()) == 80
    assert site.most_within(window_s - LATE_S) <= 30, "600 an hour are kept by the same count, with longer buckets"


@pytest.mark.parametrize(
    "words",
    [
        "[schedule]\nrequests_per_hour = 9000\n[politeness]\ndelay_s = 0.05\nconcurrency = 2",
        "[politeness]\nper_hour = 9000\nrate = 20\nconcurrency = 2",
    ],
    ids=["words of the release before", "words"],
)
def test_what_a_site_file_calls_a_rate_a_concurrency_and_an_hour_is_kept_by_all_crawlers(
    crawl: Crawl, site: WatchedSite, redis_client: redis.Redis, tmp_path: Path, words: str
) -> None:
    """The old words were a plan and limits of one process: three crawlers sent three times as much."""
    lane, site.latency_s = crawl.site.removeprefix("http://"), 0.15
    (tmp_path / "one.toml").write_text(
        f'profile = "generic"\nbase_url = "{site.url}"\nforums = ["1"]\n{words}\nlane = "{lane}"\n'
    )
    write_limits(redis_client, [load_file(tmp_path / "one.toml")])
    run(crawl, site, 60)
    assert Counter(site.paths()) == {f"/{page}": 1 for page in range(60)}
    assert site.most_open <= 2
    assert site.most_within(3.0) <= 20 * (3 + LATE_S) + 1
    promised = LaneLimits(rate=20, concurrency=2, quotas=((9000, HOUR_MS),), by=BY_FILE)
    assert limits.read(redis_client, limits_key()) == {lane: promised}


@pytest.mark.parametrize(
    "limited",
    [
        LaneLimits(quotas=((36_000, HOUR_MS), (864_000, DAY_MS))),
        LaneLimits(quotas=((36_000, HOUR_MS),), rate=40, concurrency=3),
    ],
    ids=["quotas alone", "with a rate and so many at a time"],
)
def test_each_request_is_counted_once_where_crawlers_have_few_places(
    crawl: Crawl, site: WatchedSite, redis_client: redis.Redis, limited: LaneLimits
) -> None:
    """What has no place in a crawler is leased by another one; an hour's 36,000 were gone in seconds."""
    crawl.spider, site.latency_s = "few", 0.05
    limit(redis_client, crawl, limited)
    run(crawl, site, 60, DOWNLOAD_DELAY=0.02)
    state = redis_client.hgetall(f"{crawl.keys.limits}:{crawl.site.removeprefix('http://')}")
    counted: Counter[str] = Counter()
    for field, value in state.items():
        window, mark, _ = field.decode().partition(":")
        counted[window] += int(value) if mark else 0
    assert len(set(site.paths())) == len(site.paths()) == 60
    assert {window: counted[str(window)] for _, window in limited.quotas} == {window: 60 for _, window in limited.quotas}
    assert site.most_open <= (limited.concurrency or 2 * CRAWLERS)


def test_what_a_middleware_or_robots_txt_refuses_is_not_counted(
    crawl: Crawl, site: WatchedSite, redis_client: redis.Redis
) -> None:
    """The quota of a site is for what it gets: 20 of the 40 that a crawler leases."""
    site.answer = lambda path: Page("User-agent: *\nDisallow: /1" if path == "/robots.txt" else "a page")
    limit(redis_client, crawl, LaneLimits(quotas=((36_000, HOUR_MS),)))
    middlewares = {**MIDDLEWARES, "tests.support.link_spiders.DropOdd": 800}
    crawl.start(DOWNLOADER_MIDDLEWARES=json.dumps(middlewares), ROBOTSTXT_OBEY=True)
    crawl.wait_for(1)
    crawl.seed(*(f"{site.url}/{page}" for page in range(40)))
    crawl.finish(100)
    state = redis_client.hgetall(f"{crawl.keys.limits}:{crawl.site.removeprefix('http://')}")
    assert sorted(site.paths()) == sorted(["/robots.txt", *(f"/{page}" for page in range(0, 40, 2) if page // 10 != 1)])
    assert sum(int(value) for field, value in state.items() if b":" in field) == len(site.paths())


def test_a_site_is_shared_by_the_crawls_that_have_work_for_it(
    crawl: Crawl, site: WatchedSite, redis_client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """One crawler has ten pages, and three of another crawl take every time that is free: lists and details of a forum."""
    (tmp_path / "few").mkdir()
    lists = Crawl(site=site.url, redis_url=redis_url, folder=tmp_path / "few", pages=0, spider="few")
    limit(redis_client, crawl, LaneLimits(rate=10))
    lists.start(DOWNLOADER_MIDDLEWARES=json.dumps(MIDDLEWARES))
    try:
        with lists.kept_open():
            lists.wait_for(1)  # it may be the slower one to start
            run(crawl, site, 40, ready=lambda: lists.seed(*(f"{site.url}/list{page}" for page in range(10))))
        lists.finish(100)
    finally:
        for process in lists.processes:
            process.kill()
            process.wait()
    last = max(place for place, path in enumerate(site.paths()) if path.startswith("/list"))
    assert last < 25, "the last of all where who asks first gets each time"


@pytest.mark.parametrize(
    ("latency_s", "settings"),
    [
        (0.0, {"DOWNLOAD_DELAY": 0.25}),
        (0.1, {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.5, "AUTOTHROTTLE_TARGET_CONCURRENCY": 0.5}),
        (0.25, {"CONCURRENT_REQUESTS": 1}),
        (0.25, {"CONCURRENT_REQUESTS_PER_DOMAIN": 1}),
    ],
    ids=["delay", "AutoThrottle", "one at a time", "one at a time of a host"],
)
def test_a_rate_is_kept_and_used_where_crawlers_are_slower_than_it(
    crawl: Crawl, site: WatchedSite, redis_client: redis.Redis, latency_s: float, settings: dict[str, object]
) -> None:
    """Each sends four requests a second at most. A request that had to wait for that was late, and was given back for ever."""
    site.latency_s = latency_s
    limit(redis_client, crawl, LaneLimits(rate=8))
    middlewares = {**MIDDLEWARES, "tests.support.link_spiders.CountNoPlace": 950}
    run(crawl, site, 40, DOWNLOADER_MIDDLEWARES=json.dumps(middlewares), **settings)
    assert Counter(site.paths()) == {f"/{page}": 1 for page in range(40)}
    assert site.most_within(3.0) <= 8 * (3 + LATE_S) + 1
    no_place = int(redis_client.hget(crawl.keys.stats, "test/no_place") or 0)
    assert no_place <= 20, "34 to 39 where a crawler leases more than it can send; 6 on a busy machine"


@pytest.mark.parametrize("said", ["seconds", "date"])
def test_after_a_retry_after_only_what_was_in_flight_arrives(crawl: Crawl, site: WatchedSite, said: str) -> None:
    told: list[float] = []
    wait_s = 10  # a crawler of a busy machine needs seconds to hear of it; this is half of the time

    def answer(path: str) -> Page:
        if len(site.times) >= 60 and not told:
            told.append(time.monotonic())
            now = time.time()
            after = str(wait_s) if said == "seconds" else formatdate(now + wait_s + 1, usegmt=True)
            return Page("too many", 429, {"Retry-After": after, "Date": formatdate(now, usegmt=True)})
        return Page("a page")

    site.answer, site.latency_s = answer, 0.05
    run(crawl, site, 300)
    wait_until(lambda: bool(told), "the site has said so", 1)
    after = [at - told[0] for at in site.times if at > told[0]]
    assert [at for at in after if wait_s / 2 < at < wait_s - 0.1] == [], "0 but those in flight"
    assert [at for at in after if at > wait_s] != [], "what was leased before, too"
    assert sorted(Counter(site.paths()).values()) == [1] * 299 + [2], "the refused page is fetched again, no other one"
    assert "Retrying" not in crawl.log()
    assert "Gave up" not in crawl.log()


def test_a_request_with_a_time_is_not_sent_before(crawl: Crawl, site: WatchedSite) -> None:
    crawl.spider = "later"
    run(crawl, site, 1)
    begun, page = site.times[site.paths().index("/0")], site.times[site.paths().index("/later")]
    assert page - begun >= 2.9


def test_robots_txt_is_fetched_once_by_all_crawlers_and_its_delay_is_the_limit_of_the_site(
    crawl: Crawl, site: WatchedSite, redis_client: redis.Redis
) -> None:
    busy = [Page("not now", 503)]
    rules = "User-agent: *\nDisallow: /1\nCrawl-delay: 0.05\nRequest-rate: 100/1\n"

    def answer(path: str) -> Page:
        if path == "/robots.txt":
            return busy.pop() if busy else Page(rules, headers={"ETag": '"7"'})
        return Page("a page")

    site.answer, site.latency_s = answer, 0.05
    run(crawl, site, 60, ROBOTSTXT_OBEY=True)
    asked = Counter(site.paths())
    assert asked.pop("/robots.txt") == 2, "it was busy when the first crawler asked"
    assert asked == {f"/{page}": 1 for page in range(60) if not str(page).startswith("1")}
    assert site.paths()[:2] == ["/robots.txt", "/robots.txt"], "5xx: nothing is allowed"
    assert site.most_within(2.0) <= 20 * (2 + LATE_S) + 1
    key = f"{crawl.keys.limits}:{site.url.removeprefix('http://')}"
    assert redis_client.hget(key, "robots_rate") == b"20.0"


def test_a_page_that_has_not_changed_is_sent_once_and_one_that_was_lost_again(
    crawl: Crawl, site: WatchedSite, redis_client: redis.Redis
) -> None:
    """Page 3 is not understood by the spider, and page 4 has changed meanwhile."""
    crawl.spider = "broken"
    crawled: list[int] = []

    def answer(path: str) -> Page:
        tag = f'"{path}-{len(crawled) if path == "/4" else 0}"'
        if site.headers_at(path).get("if-none-match") == tag:
            return Page("", 304, {"ETag": tag})
        return Page(f"page {path}", headers={"ETag": tag})

    site.answer = answer
    for _ in range(2):
        crawl.start(DOWNLOADER_MIDDLEWARES=json.dumps(MIDDLEWARES), CONDITIONAL_REQUESTS=True)
        crawl.seed(*(f"{site.url}/{page}" for page in range(6)))
        crawl.finish(100)
        crawled.append(len(site.asked))
    again = {path: headers.get("if-none-match") for path, headers in site.asked[6:]}
    assert again == {f"/{page}": None if page == 3 else f'"/{page}-0"' for page in range(6)}
    assert sorted(crawl.items()) == [0, 1, 2, 4, 4, 5]
    assert redis_client.hget(crawl.keys.stats, "conditional/unchanged") == b"4"
    assert redis_client.hlen(crawl.keys.validators()) == 5
