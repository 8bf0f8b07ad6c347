"""robots.txt over all processes: one fetches it, the others wait; what it asks for slows the lane of its site."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from redis_components.politeness import limits, robots_cache
from redis_components.politeness.limits import LaneLimits
from redis_components.politeness.robots_cache import FileKind, RobotsCache, RobotsFile, readable
from tests.lua.test_lanes import redis_ms, store, taken
from tests.support.owner import KEYS, Owner

ORIGIN, LANE = "https://example.org", "example.org"
FILE = RobotsFile(FileKind.RULES, b"User-agent: *\nDisallow: /private\n", '"7"', "Mon, 23 Nov 2026 00:00:00 GMT")


@pytest.fixture
def one(redis_client: redis.Redis) -> RobotsCache:
    return RobotsCache(redis_client, KEYS, "one")


@pytest.fixture
def other(redis_client: redis.Redis) -> RobotsCache:
    return RobotsCache(redis_client, KEYS, "other")


def expire(client: redis.Redis, origin: str = ORIGIN) -> None:
    """As if the time were over for which the file holds, or a claim."""
    client.hset(KEYS.robots_file(origin), mapping={"until": 1, "claim_until": 1})


def bounds(client: redis.Redis) -> tuple[int, int]:
    """Files that are kept, and whether their bytes are counted rightly."""
    kept = client.zrange(KEYS.robots(), 0, -1)
    sizes = [int(client.hget(KEYS.robots_file(name.decode()), "size") or 0) for name in kept]
    assert int(client.get(KEYS.robots_bytes()) or 0) == sum(sizes)
    return len(kept), sum(sizes)


def test_one_process_fetches_and_the_others_wait_for_it(one: RobotsCache, other: RobotsCache) -> None:
    assert (one.ask(ORIGIN).state, other.ask(ORIGIN).state, one.ask(ORIGIN).state) == ("fetch", "wait", "fetch")
    one.store(ORIGIN, FILE, "")
    told = other.ask(ORIGIN)
    assert (told.state, told.file, round(told.seconds / 3600)) == ("known", FILE, 24)
    assert other.ask(ORIGIN, FILE.version).state == "same"
    changed = FILE._replace(body=b"User-agent: *\nDisallow: /\n")
    one.store(ORIGIN, changed, "")
    assert other.ask(ORIGIN, FILE.version).file == changed, "another file is told to whoever has the former one"


def test_a_process_that_dies_while_it_fetches_delays_the_others_for_a_bounded_time(
    redis_client: redis.Redis, one: RobotsCache, other: RobotsCache
) -> None:
    one.ask(ORIGIN)
    assert other.ask(ORIGIN).seconds <= robots_cache.CLAIM_S
    assert 0 < redis_client.pttl(KEYS.robots_file(ORIGIN)) <= 10_000 * robots_cache.CLAIM_S, "nothing is left of it"
    expire(redis_client)
    assert other.ask(ORIGIN).state == "fetch"
    one.give_up(ORIGIN)
    assert other.ask(ORIGIN).state == "fetch"


def test_after_a_day_the_file_is_confirmed_by_its_validators(redis_client: redis.Redis, one: RobotsCache) -> None:
    one.store(ORIGIN, FILE, "")
    expire(redis_client)
    assert one.ask(ORIGIN, FILE.version)[::2] == ("fetch", FILE)


def test_a_site_that_answers_5xx_is_asked_again_ever_later(redis_client: redis.Redis, one: RobotsCache) -> None:
    told = [one.store(ORIGIN, RobotsFile(FileKind.UNREACHABLE), LANE) for _ in range(12)]
    assert [round(one.seconds) for one in told] == [5, 10, 20, 40, 80, 160, 320, 640, 1280, 1800, 1800, 1800]
    assert [one.failures for one in told] == list(range(1, 13))
    assert one.ask(ORIGIN).failures == 12
    one.store(ORIGIN, FILE, LANE)
    assert one.store(ORIGIN, RobotsFile(FileKind.UNREACHABLE), LANE).failures == 1


def test_the_oldest_files_go_beyond_the_bounds(
    redis_client: redis.Redis, one: RobotsCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(robots_cache, "MOST_ORIGINS", 5)
    for n in range(20):
        one.store(f"http://{n}.example", FILE, "")
        redis_client.zadd(KEYS.robots(), {f"http://{n}.example": redis_ms(redis_client) - 1000 + n})
    assert bounds(redis_client)[0] == 5
    assert one.ask("http://19.example").file == FILE
    assert one.ask("http://3.example").state == "fetch"
    monkeypatch.setattr(robots_cache, "MOST_BYTES", 600)
    one.store("http://20.example", FILE, "")
    assert bounds(redis_client)[1] <= 600
    redis_client.zadd(KEYS.robots(), {"http://20.example": 1})
    one.store("http://21.example", FILE, "")
    assert redis_client.zrange(KEYS.robots(), 0, -1) == [b"http://19.example", b"http://21.example"], "20 is days old"
    one.store("http://21.example", FILE, "")
    assert bounds(redis_client)[0] == 2


@pytest.mark.parametrize(("own", "asked", "counts"), [(None, 2.0, 2.0), (1.0, 2.0, 1.0), (5.0, 2.0, 2.0)])
def test_the_slower_one_of_the_limit_and_what_robots_txt_asks_for_counts(
    redis_client: redis.Redis, one: RobotsCache, own: float | None, asked: float, counts: float
) -> None:
    if own:
        limits.change(redis_client, KEYS.limits, LANE, LaneLimits(rate=own))
    began = redis_ms(redis_client)
    one.store(ORIGIN, FILE._replace(rate=asked), LANE)
    crawler = Owner(redis_client, "crawler", concurrency=30).open()
    assert LANE in crawler.frontier.limits.lanes
    store(crawler, 30)
    told = len(taken(crawler, 1)) + len(crawler.frontier._timed)
    assert told <= 1 + counts * (redis_ms(redis_client) - began + 400) / 1000
    assert float(redis_client.hget(KEYS.lane_state(LANE), "tat") or 0) >= began + 1000 / asked, "its own request counts"
    limits.change(redis_client, KEYS.limits, LANE, None)
    assert LANE in limits.read(redis_client, KEYS.limits), "an operator cannot remove what the site asks for"


def test_of_several_hosts_of_a_lane_the_slowest_counts_until_it_says_otherwise(
    redis_client: redis.Redis, one: RobotsCache
) -> None:
    def rate_after(host: str, rate: float | None) -> float | None:
        one.store(f"https://{host}", FILE._replace(rate=rate), LANE)
        found = redis_client.hget(KEYS.lane_state(LANE), "robots_rate")
        return float(found) if found else None

    assert rate_after("a.example.org", 1.0) == 1.0
    assert rate_after("b.example.org", 2.0) == 1.0
    assert rate_after("c.example.org", 0.5) == 0.5
    assert rate_after("a.example.org", None) == 0.5
    assert rate_after("c.example.org", None) is None
    assert rate_after("c.example.org", 4.0) == 4.0


@pytest.mark.parametrize("field", [{"kind": "odd"}, {"kind": "rules", "body": "no zlib"}, {"kind": "rules", "rate": "x"}])
def test_what_is_not_a_file_is_fetched_again(redis_client: redis.Redis, one: RobotsCache, field: dict[str, Any]) -> None:
    redis_client.hset(KEYS.robots_file(ORIGIN), mapping={"until": 10**14, **field})
    assert one.ask(ORIGIN)[::2] == ("known", None)


def test_the_largest_file_that_is_read_is_kept_whole(one: RobotsCache) -> None:
    body = readable(b"Disallow: /x\n" * 100_000)
    one.store(ORIGIN, FILE._replace(body=body), "")
    told = one.ask(ORIGIN).file
    assert told is not None
    assert told.body == body
