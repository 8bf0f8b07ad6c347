"""Quiet hours as they are written, and as Redis decides by them."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import redis

from redis_components.admin.lanes import LaneCondition, look
from redis_components.errors import ConfigError
from redis_components.frontier.messages import Lease
from redis_components.politeness import limits
from redis_components.politeness.limits import LaneLimits, QuietHours, parse_quiet_hours, quiet_now, written
from redis_components.server.scripts import LUA
from tests.lua.test_lanes import LANE, redis_ms, store, taken
from tests.support.owner import KEYS, Owner

BEFORE_MS = 3000
"""As `BEFORE_QUIET_MS` of `lib/quiet.lua`."""


def test_hours_are_read_as_they_are_shown() -> None:
    for text in ("01:00-06:00 UTC", "23:00-06:30, 12:00-13:00 Europe/Berlin", "20:15-00:00 Etc/GMT+5"):
        assert written(parse_quiet_hours(text)) == text
    assert parse_quiet_hours(" 1:00 - 6:00,18:00-24:00 ") == QuietHours(((60, 360), (1080, 0)), "UTC", ())
    assert parse_quiet_hours("1:00-6:00", "Asia/Tokyo").offsets[0][1] == 9 * 3600
    assert written(QuietHours()) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read"),
        ("at night", "cannot be read"),
        ("01:00", "cannot be read"),
        ("01:00-06:00,", "cannot be read"),
        ("1-6", "cannot be read"),
        ("01:60-02:00", "not between"),
        ("24:00-02:00", "not between"),
        ("01:00-25:00", "not between"),
        ("05:00-05:00", "whole day"),
        ("00:00-24:00", "whole day"),
        ("01:00-06:00 Europe/Nowhere", "not a time zone"),
        ("01:00-06:00 ../../etc/passwd", "not a time zone"),
        ("01:00-06:00 Europe", "not a time zone"),
        (",".join(["01:00-02:00"] * 11), "more than 10"),
    ],
)
def test_what_cannot_be_hours_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        parse_quiet_hours(text)
    assert "\n" not in str(refused.value)


def until_by_redis(client: redis.Redis, hours: QuietHours, moments: list[int]) -> list[int]:
    """When what holds at each moment (ms) ends, as `lib/quiet.lua` says; 0: nothing holds."""
    source = (
        (LUA / "lib" / "quiet.lua").read_text("utf-8")
        + """
        local hours, found = cjson.decode(ARGV[1]), {}
        local limit = { quiet = pairs_of(hours.quiet), offsets = pairs_of(hours.offsets) }
        for place = 2, #ARGV do
          local ms = tonumber(ARGV[place])
          local till = quiet_until(limit, ms)
          local closes = ms + closes_in(limit, ms)
          if not till then assert(not quiet_until(limit, closes - 1) and quiet_until(limit, closes), 'closes') end
          found[#found + 1] = till or 0
        end
        return found"""
    )
    found: Any = client.eval(source, 0, json.dumps({"quiet": hours.hours, "offsets": hours.offsets}), *map(str, moments))
    return [int(one) for one in found]


@pytest.mark.parametrize("text", ["01:00-06:00 UTC", "23:15-06:00, 12:00-12:01 Europe/Berlin", "22:00-21:00 America/St_Johns"])
def test_redis_and_the_operators_clock_agree_in_every_season(redis_client: redis.Redis, text: str) -> None:
    """Moments that are not within an hour of a change of the clocks."""
    hours, zone, dice = parse_quiet_hours(text), ZoneInfo(text.split()[-1]), random.Random(7)
    begin = datetime(datetime.now(UTC).year, 1, 1, tzinfo=UTC)
    moments = [begin + timedelta(seconds=dice.randrange(9 * 365 * 86_400)) for _ in range(2000)]
    steady = [at for at in moments if at.astimezone(zone).utcoffset() == (at + timedelta(days=1)).astimezone(zone).utcoffset()]
    stamps = [round(at.timestamp() * 1000) for at in steady]
    for at, stamp, until in zip(steady, stamps, until_by_redis(redis_client, hours, stamps), strict=True):
        shortly = (at + timedelta(milliseconds=BEFORE_MS)).astimezone(zone)
        minutes = {moment.hour * 60 + moment.minute for moment in (at.astimezone(zone), shortly)}
        is_quiet = any(
            (first - minute) % 1440 == 0 or (minute - first) % 1440 < (last - first) % 1440
            for first, last in hours.hours
            for minute in minutes
        )
        assert bool(until) == is_quiet, at
        now = quiet_now(hours, stamp / 1000)
        if now is not None:
            assert until / 1000 == pytest.approx(stamp / 1000 + now, abs=0.01)


def test_hours_move_with_the_clocks_of_their_zone(redis_client: redis.Redis) -> None:
    """On the day on which clocks go forward, 06:00 in Berlin is an hour earlier than the day before."""
    hours, year = parse_quiet_hours("01:00-06:00 Europe/Berlin"), datetime.now(UTC).year
    winter, summer = (datetime(year, month, 10, tzinfo=ZoneInfo("Europe/Berlin")) for month in (1, 7))
    for day in (winter, summer):
        ends = round(day.replace(hour=6).timestamp() * 1000)
        assert until_by_redis(redis_client, hours, [ends - 1, ends]) == [ends, 0]


@pytest.mark.parametrize("foreign", [[], "x", [["a", 1]], [[1]], [{}], [[1, 2, 3], None]])
def test_foreign_hours_end_nothing(redis_client: redis.Redis, foreign: Any) -> None:
    hours = QuietHours(foreign, "UTC", foreign)
    source = (LUA / "lib" / "quiet.lua").read_text("utf-8")
    script = (
        source + "local it = cjson.decode(ARGV[1]); quiet_until({ quiet = pairs_of(it), offsets = pairs_of(it) }, 1e12) return 1"
    )
    assert redis_client.eval(script, 0, json.dumps(hours.hours)) == 1


def local_time(client: redis.Redis, minute: int, second: float, last: int = 360) -> LaneLimits:
    """Limits with quiet hours from 01:00 to `last`, in a place where it is that time of the day now."""
    now_s = redis_ms(client) / 1000
    east_s = round(minute * 60 + second - now_s % 86_400)
    return LaneLimits(quiet=((60, last),), zone="here", offsets=((0, east_s),))


def leased(client: redis.Redis, limited: LaneLimits, one: Owner) -> list[Lease]:
    limits.change(client, KEYS.limits, LANE, limited)
    one.advance(0.2)
    return taken(one, 0.5)


@pytest.fixture
def crawler(redis_client: redis.Redis) -> Owner:
    one = Owner(redis_client, "one", concurrency=30)
    one.frontier.open()
    one.clock.advance(0.1)
    return one


def test_nothing_is_leased_in_quiet_hours_and_shortly_before_them(redis_client: redis.Redis, crawler: Owner) -> None:
    limits.change(redis_client, KEYS.limits, LANE, LaneLimits(concurrency=5))
    store(crawler, 20)
    for minute, second in ((60, 0), (59, 58), (200, 0), (359, 30)):
        for lease in taken(crawler):
            crawler.frontier.release(lease.id)
        assert leased(redis_client, local_time(redis_client, minute, second), crawler) == []
        assert not crawler.frontier.idle
    [view] = look(redis_client, KEYS.limits, [KEYS], redis_ms(redis_client) / 1000)
    assert (view.condition, view.waiting) == (LaneCondition.QUIET, 20)
    assert view.quiet_s == pytest.approx(30, abs=10)
    assert view.next_s is not None
    assert view.next_s >= view.quiet_s
    redis_client.zadd(KEYS.lanes(), {LANE: 0})  # it is looked at again within 5 s
    assert len(leased(redis_client, local_time(redis_client, 360, 5), crawler)) == 20


def test_what_was_leased_is_given_back_when_quiet_hours_begin(redis_client: redis.Redis, crawler: Owner) -> None:
    """With no rate a request waits in its process for as long as it takes."""
    limits.change(redis_client, KEYS.limits, LANE, local_time(redis_client, 59, 0))
    store(crawler, 20)
    crawler.clock.advance(0.5)
    assert crawler.frontier.take() is not None, "a minute before"
    taken_back: list[int] = []
    crawler.frontier.listeners.limits = lambda: taken_back.append(1)
    assert redis_client.zcard(KEYS.lane(LANE)) == 0
    limits.change(redis_client, KEYS.limits, LANE, local_time(redis_client, 60, 0))  # by Redis's time they have begun
    redis_client.hset(KEYS.limits, "version", crawler.frontier.limits.version)  # and this process has not heard of it
    crawler.clock.advance(45)
    assert redis_client.zcard(KEYS.lane(LANE)) == 0
    crawler.clock.advance(15)
    assert taken_back == [1], "what waits in the downloader, too"
    crawler.clock.advance(0.5)
    assert redis_client.zcard(KEYS.lane(LANE)) == 19
