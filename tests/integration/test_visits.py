"""Pages that are fetched outside of a crawl keep the limits of their site, and tell the fleet what it says."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from cli.main import main
from forums.sites.http.fetch import FetchFailed, NotNow, VisitLimits, Visitor
from redis_components.admin import lanes
from redis_components.keys import lane_busy_key, lane_state_key, limits_key
from redis_components.politeness import limits
from redis_components.politeness.limits import HOUR_MS, LaneLimits, LanePermits
from redis_components.server.untrusted_values import server_time
from tests.support.watched_site import Page, WatchedSite

LANE = "example.org"
QUIET = LaneLimits(quiet=((0, 720), (660, 60)))  # at least another hour, at any time of the day


@pytest.fixture
def site() -> Iterator[WatchedSite]:
    with WatchedSite() as watched:
        watched.pages = {"/a": Page("<p>a page</p>"), "/b": Page("<p>another</p>")}
        yield watched


def visit(client: redis.Redis, *urls: str) -> list[int]:
    async def all_of_them() -> list[int]:
        async with Visitor(limits=VisitLimits(LanePermits(client, limits_key()))) as visitor:
            visitor._delay_s = 0.0
            return [(await visitor.get(url)).status for url in urls]

    return asyncio.run(all_of_them())


def lane_of(site: WatchedSite) -> str:
    return site.url.removeprefix("http://")


def test_a_permit_counts_against_every_limit(redis_client: redis.Redis) -> None:
    key = limits_key()
    one, other = LanePermits(redis_client, key), LanePermits(redis_client, key)
    assert one.ask([LANE, "org"]) == (True, 0.0, "")
    for limited in (LaneLimits(rate=0.01), LaneLimits(quotas=((1, HOUR_MS),)), LaneLimits(concurrency=1)):
        limits.change(redis_client, key, "org", limited)
        redis_client.delete(lane_state_key(key, "org"), f"{lane_state_key(key, 'org')}:turns")
        assert one.ask([LANE, "org"]) == (True, 0.0, "org")
        refused = other.ask([LANE, "org"])
        assert not refused.is_granted
        assert refused.wait_s > 0
    one.end("org")
    assert other.ask(["org"]).is_granted
    assert redis_client.zrange(lane_busy_key(key, "org"), 0, 0, withscores=True)[0][1] - 1000 * server_time(redis_client) > 50_000
    limits.change(redis_client, key, "org", QUIET)
    assert not one.ask(["org"]).is_granted


def test_nothing_is_fetched_in_quiet_hours_not_even_robots_txt(redis_client: redis.Redis, site: WatchedSite) -> None:
    limits.change(redis_client, limits_key(), lane_of(site), QUIET)
    with pytest.raises(NotNow, match=r"may not be asked for \d+ min by its limits: trawl limit shows why") as refused:
        visit(redis_client, f"{site.url}/a")
    assert refused.value.wait_s > 0
    assert site.paths() == []


def test_a_site_that_asks_a_visitor_to_wait_is_left_alone_by_all(redis_client: redis.Redis, site: WatchedSite) -> None:
    site.pages["/b"] = Page("busy", 429, {"Retry-After": "600"})
    assert visit(redis_client, f"{site.url}/a", f"{site.url}/b") == [200, 429]
    [state] = [
        one.state for one in lanes.look(redis_client, limits_key(), [], server_time(redis_client)) if one.lane == lane_of(site)
    ]
    assert 500 < state.left_alone_s <= 600
    with pytest.raises(NotNow):
        visit(redis_client, f"{site.url}/a")
    assert site.paths() == ["/robots.txt", "/a", "/b"]


def test_a_turn_is_waited_for(redis_client: redis.Redis, site: WatchedSite) -> None:
    limits.change(redis_client, limits_key(), lane_of(site), LaneLimits(rate=5, concurrency=1))
    assert visit(redis_client, f"{site.url}/a", f"{site.url}/b") == [200, 200]
    robots, first, second = site.times
    assert second - robots >= 0.38
    assert first > robots
    assert redis_client.zcard(lane_busy_key(limits_key(), lane_of(site))) == 0, "each has said that it has ended"


@pytest.mark.parametrize("status", [429, 500, 503])
def test_robots_txt_that_cannot_be_read_forbids_everything(redis_client: redis.Redis, site: WatchedSite, status: int) -> None:
    site.pages["/robots.txt"] = Page("no", status)
    with pytest.raises(FetchFailed, match=f"robots.txt is answered with status {status}"):
        visit(redis_client, f"{site.url}/a")
    assert site.paths() == ["/robots.txt"]


def test_the_delay_of_robots_txt_counts_for_a_stranger(site: WatchedSite) -> None:
    site.pages["/robots.txt"] = Page("User-agent: *\nCrawl-delay: 7\n")

    async def delay_s() -> float:
        async with Visitor(allow_private=True) as visitor:
            assert await visitor._robots_allow(f"{site.url}/a")
            return visitor._delay_s

    assert asyncio.run(delay_s()) == 7


def test_commands_keep_the_limits_of_a_running_fleet(
    redis_client: redis.Redis,
    redis_url: str,
    site: WatchedSite,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    limits.change(redis_client, limits_key(), lane_of(site), QUIET)
    (tmp_path / "one.toml").write_text(f'profile = "generic"\nbase_url = "{site.url}"\nforums = ["a"]\n')
    limits.change(redis_client, limits_key(), "one", QUIET)
    for command in (
        ["read", f"{site.url}/a"],
        ["sites", "new", f"{site.url}/a", "--name", "new"],
        ["sites", "check", "one", "--live"],
    ):
        code = main(command)
        out, error = capfd.readouterr()
        assert code != 0, command
        assert "trawl limit shows why" in out + error, command
    assert site.paths() == []
