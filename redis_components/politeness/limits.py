"""Limits of lanes: how often and how many at a time requests are sent to a site, by all processes together; its quiet hours.

A request belongs to the first lane that has limits of: its `meta["lane"]`, its `meta["site"]`, `host:port` of its URL, the
host, and the host's parent domains. Limits hold for all crawls of a namespace.

Quiet hours are text: `01:00-06:00, 12:00-13:30 Europe/Berlin`. Redis decides by its own clock (`lua/lib/quiet.lua`), and has no
time zones: it gets the zone's offsets for ten years.
"""

from __future__ import annotations

import math
import os
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import msgspec
import redis

from redis_components.errors import ConfigError
from redis_components.frontier.holds import names_of
from redis_components.keys import lane_busy_key, lane_state_key, limits_key
from redis_components.server.scripts import script
from redis_components.server.untrusted_values import decoded, encoded

if TYPE_CHECKING:
    from tldextract import TLDExtract


MINUTES = 1440
YEARS = 10
MOST_HOURS = 10
_HOURS = re.compile(r"(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})")
_EXAMPLE = 'write "01:00-06:00" or "23:00-06:00, 12:00-13:30 Europe/Berlin"'


class QuietHours(NamedTuple):
    """`hours`: (first minute, minute after the last) of the day; over midnight where the first is the later one. `offsets`: from
    when on (ms since 1970) `zone` is so many seconds east of UTC.
    """

    hours: tuple[tuple[int, int], ...] = ()
    zone: str = "UTC"
    offsets: tuple[tuple[int, int], ...] = ()


def parse_quiet_hours(text: str, zone: str = "UTC") -> QuietHours:
    """Parse quiet hours; `zone` holds where the text names none. Raises ConfigError."""
    times, _, named = text.strip().rpartition(" ")
    if not any(sign.isalpha() for sign in named):
        times, named = text, zone
    hours = tuple(_hours(one.strip(), text) for one in times.split(","))
    if len(hours) > MOST_HOURS:
        raise ConfigError(f"quiet hours {text!r}: more than {MOST_HOURS}")
    try:
        return QuietHours(hours, named, _offsets(named, datetime.now(UTC).year - 1))
    except (KeyError, ValueError, OSError) as error:
        raise ConfigError(f"quiet hours {text!r}: {named!r} is not a time zone: {_EXAMPLE}") from error


def quiet_now(hours: QuietHours, now: float) -> float | None:
    """Return the seconds for which they last from `now` (epoch s); None where they do not hold. The twin of `quiet_until` in
    `lib/quiet.lua`, without the seconds before them in which nothing is leased any more.
    """
    east_s = next((east for at, east in reversed(hours.offsets) if now * 1000 >= at), 0)
    minute = (now + east_s) / 60 % MINUTES
    lasting = ((last - first) % MINUTES - (minute - first) % MINUTES for first, last in hours.hours)
    return max((minutes * 60 for minutes in lasting if minutes > 0), default=None)


def written(hours: QuietHours) -> str:
    """Return the text that `parse_quiet_hours` reads; "" for none."""
    if not hours.hours:
        return ""
    times = ", ".join(f"{first // 60:02}:{first % 60:02}-{last // 60:02}:{last % 60:02}" for first, last in hours.hours)
    return f"{times} {hours.zone}"


def _hours(one: str, text: str) -> tuple[int, int]:
    found = _HOURS.fullmatch(one)
    if found is None:
        raise ConfigError(f"quiet hours {text!r} cannot be read: {_EXAMPLE}")
    from_hour, from_minute, to_hour, to_minute = map(int, found.groups())
    first, last = from_hour * 60 + from_minute, to_hour * 60 + to_minute
    if from_minute > 59 or to_minute > 59 or first >= MINUTES or last > MINUTES:
        raise ConfigError(f"quiet hours {text!r}: {one} is not between 00:00 and 24:00")
    if first == last % MINUTES:
        raise ConfigError(f"quiet hours {text!r}: {one} is the whole day; trawl pause --site SITE stops a site")
    return first, last % MINUTES


@cache
def _offsets(zone: str, year: int) -> tuple[tuple[int, int], ...]:
    """Return the offsets from the beginning of `year` on: the same for each day of a year, so that an unchanged site file gives
    the same. Raises KeyError, ValueError or OSError for an unknown time zone.
    """
    place = ZoneInfo(zone)
    found, known = [], None
    for day in range(365 * YEARS):
        begin = datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=day)
        if (east := _east_s(place, begin)) != known:
            at = begin if known is None else _changed_at(place, begin)
            found.append((round(at.timestamp() * 1000), east))
            known = east
    return () if found == [(found[0][0], 0)] else tuple(found)


def _east_s(place: ZoneInfo, at: datetime) -> int:
    offset = at.astimezone(place).utcoffset()
    return round(offset.total_seconds()) if offset else 0


def _changed_at(place: ZoneInfo, day: datetime) -> datetime:
    """Return the time within the day before `day` at which its offset began, to the minute."""
    early, late, wanted = 0, MINUTES, _east_s(place, day)
    while late - early > 1:
        middle = (early + late) // 2
        if _east_s(place, day - timedelta(minutes=MINUTES - middle)) == wanted:
            late = middle
        else:
            early = middle
    return day - timedelta(minutes=MINUTES - late)


VERSION = "version"
BY_FILE, BY_TRIAL, BY_CONFIG = "the site file", "no contact is named", "trawl.toml"
"""The `by` of limits that no operator has set."""
FROM_FILES = frozenset({"", BY_FILE, BY_TRIAL, BY_CONFIG})
MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
LONGEST_NAME = 255
_ASKED = ("until", "step", "refusals", "slowed", "slowed_at", "slowed_top", "slowed_return")


class LaneLimits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The limits of one lane. None: no limit."""

    rate: float | None = None
    """Requests per second."""
    burst: int = 1
    """Requests that may be sent at once after a pause, without waiting for the rate."""
    concurrency: int | None = None
    """Requests at work at a time."""
    weight: int = 1
    """Requests that come at one turn, where lanes take turns."""
    quotas: tuple[tuple[int, int], ...] = ()
    """(requests, window in ms): so many in every window of that length, wherever it begins."""
    quiet: tuple[tuple[int, int], ...] = ()
    """Hours in which nothing is sent: (first minute, minute after the last) of the day in `zone`."""
    zone: str = "UTC"
    offsets: tuple[tuple[int, int], ...] = ()
    """Of `zone`: (from, ms since 1970; seconds east of UTC), in order. Redis knows no time zones."""
    by: str = ""
    """The user (user@host) or task that has set them."""

    @classmethod
    def of(
        cls,
        *,
        rate: float | None = None,
        burst: int = 1,
        concurrency: int | None = None,
        weight: int = 1,
        per_hour: int | None = None,
        per_day: int | None = None,
        quiet: str | None = None,
        zone: str = "UTC",
        by: str = "",
    ) -> Self:
        """Make the limits; `zone`: of quiet hours that name none. Raises ConfigError for a value that cannot be a limit."""
        for name, value, lowest, highest in (
            ("rate", rate, 1e-5, 1e4),
            ("burst", burst, 1, 10_000),
            ("concurrency", concurrency, 1, 10_000),
            ("weight", weight, 1, 100),
            ("per hour", per_hour, 1, 10**9),
            ("per day", per_day, 1, 10**9),
        ):
            if value is not None and not lowest <= value <= highest:
                shown = f"{value:g}" if abs(value) < 1e300 else "a number"  # whole numbers have no end
                raise ConfigError(f"{name} = {shown} is out of range: from {lowest:g} to {highest:g}")
        quotas = tuple((n, window) for n, window in ((per_hour, HOUR_MS), (per_day, DAY_MS)) if n is not None)
        hours = QuietHours() if quiet is None else parse_quiet_hours(quiet, zone)
        own = cls(rate=rate, burst=burst, concurrency=concurrency, weight=weight, quotas=quotas, by=by)
        return msgspec.structs.replace(own, quiet=hours.hours, zone=hours.zone, offsets=hours.offsets)

    @property
    def quiet_hours(self) -> QuietHours:
        """`quiet`, `zone` and `offsets` in one."""
        return QuietHours(self.quiet, self.zone, self.offsets)

    def within(self, window_ms: int) -> int | None:
        """Return the requests in every window of that length; None: any number."""
        return next((n for n, window in self.quotas if window == window_ms), None)


class KnownLimits:
    """The lanes that have limits, as this process knows them."""

    def __init__(self) -> None:
        self.version = ""
        self.lanes: frozenset[str] = frozenset()

    def learn(self, fields: Mapping[bytes, bytes]) -> None:
        """Take over a new version of the limits."""
        self.version = fields.get(VERSION.encode(), b"").decode("utf-8", "replace")
        self.lanes = frozenset(name.decode("utf-8", "replace") for name in fields if name != VERSION.encode())

    def add(self, lane: str) -> None:
        """Add a lane that other processes do not know yet."""
        self.lanes |= {lane}

    def lane_of(self, meta: Mapping[str, Any], url: str) -> str:
        """Return the lane whose limits hold for a request; "" for none."""
        if not self.lanes:
            return ""
        return next((name for name in lane_names(meta, url) if name in self.lanes), "")


def lane_names(meta: Mapping[str, Any], url: str) -> Iterator[str]:
    """Yield the lanes that a request may belong to, the nearest first."""
    yield from (name for name in (meta.get("lane"), meta.get("site")) if isinstance(name, str) and name)
    yield from names_of(None, url)


def default_lane(meta: Mapping[str, Any], url: str) -> str:
    """Return the lane of a request whose site has no limits yet: the one that it names, else its registered domain, else
    `host:port` or host. "" where the URL has no host.
    """
    names = list(lane_names(meta, url))
    if not names:
        return ""
    if not is_name(names[0]):
        return ""
    if not needs_suffixes(meta, url):
        return names[0]
    domain = _suffixes()(url).top_domain_under_public_suffix
    return domain if domain in names else names[0]


def needs_suffixes(meta: Mapping[str, Any], url: str) -> bool:
    """Return True if `default_lane` needs the public suffix list: the request names no lane, and the host has letters."""
    if any(isinstance(name, str) and name for name in (meta.get("lane"), meta.get("site"))):
        return False
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:  # brackets without an address
        return False
    return host.rpartition(".")[2][:1].isalpha()


def load_suffixes() -> None:
    """Load the public suffix list, 0.1 s of processor time: in a thread, before an urgent answer of a site."""
    _suffixes()("")


@cache
def _suffixes() -> TLDExtract:
    """Return the public suffix list that comes with the package. Loaded late: it brings an HTTP client, a twentieth
    of a start.
    """
    from tldextract import TLDExtract

    return TLDExtract(suffix_list_urls=(), cache_dir=None)


def is_name(lane: str) -> bool:
    """Return True if a lane may have this name."""
    return 0 < len(lane) <= LONGEST_NAME and lane != VERSION and not any(ord(sign) < 33 or sign in "@|" for sign in lane)


def check_name(lane: str) -> None:
    """Raise ConfigError for a name that no lane can have."""
    if not is_name(lane):
        raise ConfigError(f"{lane!r} is not a site, host or domain: write it without spaces, '@' and '|'")


def read(client: redis.Redis, key: str) -> dict[str, LaneLimits]:
    """Return the limits of all lanes at `key` (`CrawlKeys.limits`); a lane with unreadable ones has none."""
    found = {}
    fields: dict[bytes, bytes] = client.hgetall(key)  # type: ignore[assignment]  # decode_responses is not set
    for name, raw in sorted(fields.items()):
        lane = name.decode("utf-8", "backslashreplace")
        if lane == VERSION:
            continue
        found[lane] = _limits_of(raw)
    return found


@lru_cache(maxsize=4096)  # they seldom change, and are read again and again
def _limits_of(raw: bytes) -> LaneLimits:
    try:
        return decoded(raw, LaneLimits)
    except ValueError:
        return LaneLimits()


def change(client: redis.Redis, key: str, lane: str, limits: LaneLimits | None) -> None:
    """Set the limits of a lane, or with None remove them and end a wait that its site asked for: what waits in it is sent as if
    it had none, or at the rate that its robots.txt asks for. Every crawler obeys with its next exchange. Raises ConfigError for a
    name that no lane can have.
    """
    check_name(lane)
    asked = limits is None and client.hexists(lane_state_key(key, lane), "robots_rate")
    with client.pipeline() as pipe:
        if asked:
            pipe.hset(key, lane, msgspec.json.encode(LaneLimits()))
        elif limits is None:
            pipe.hdel(key, lane)
        if limits is None:
            pipe.hdel(lane_state_key(key, lane), *_ASKED)
        else:
            pipe.hset(key, lane, encoded(limits, f"limits of {lane}"))
        pipe.hincrby(key, VERSION, 1)
        pipe.execute()


def write(
    client: redis.Redis, known: Mapping[str, LaneLimits], wanted: Mapping[str, LaneLimits | None], over: Iterable[str]
) -> list[str]:
    """Set these limits where the `known` ones are by a source in `over`, or there are none; return the changed lanes. None: the
    source limits the lane no more. A delay that the site asked for stays. Raises ConfigError as `change`.
    """
    changed = []
    for lane, limits in wanted.items():
        now = known.get(lane)
        if (now is None or now.by in over) and now != limits and (limits is not None or (now is not None and now.by)):
            change(client, limits_key(), lane, limits or LaneLimits())
            changed.append(lane)
    return changed


KEEP_S = 60.0
"""Seconds for which a request counts as at work if its process died without reporting its end."""


class Permit(NamedTuple):
    """Permission to send a request `wait_s` from now; else none may be sent before that time. `lane` "": no limits."""

    is_granted: bool
    wait_s: float
    lane: str


class LanePermits:
    """Asks the limits at `key` (`keys.limits_key`). Its methods block, and raise `redis.RedisError`."""

    def __init__(self, client: redis.Redis, key: str) -> None:
        self._client = client
        self._key = key
        self._claim = f"visit|{os.getpid()}-{uuid.uuid4().hex[:8]}"

    def ask(self, names: Iterable[str]) -> Permit:
        """Ask for one request of the first of these lanes that has limits; `end` it."""
        args = {"claim": self._claim, "keep_ms": round(KEEP_S * 1000), "names": [name for name in names if is_name(name)]}
        state, ms, lane = script("lane_permit")(self._client, {"limits": self._key}, args)
        return Permit(state != b"wait", int(ms) / 1000, lane.decode())

    def end(self, lane: str) -> None:
        """Free the place of a request that has ended."""
        self._client.zrem(lane_busy_key(self._key, lane), self._claim)

    def refused(self, lane: str, seconds: float | None) -> None:
        """Leave the site of `lane` alone for `seconds`, as it asked; None: it gave no time."""
        args = {"lane": lane, "ms": math.ceil((seconds or 0.0) * 1000)}
        script("lane_refused")(self._client, {"limits": self._key}, args)


SHORTEST_S, LONGEST_S = 1.0, 86_400.0


def retry_after_s(text: str | None, date: str | None = None) -> float | None:
    """Return the seconds to wait, given as a number or as a date (by the site's own clock where it sends the header `Date`),
    between a second and a day; None where there is none, or none that can be read.
    """
    text = (text or "").strip()
    if text.isascii() and text.isdigit():
        return min(max(float(text[:12]), SHORTEST_S), LONGEST_S)
    at, now = http_date(text), http_date(date or "")
    if at is None:
        return None
    return min(max(at - (time.time() if now is None else now), SHORTEST_S), LONGEST_S)


def http_date(text: str) -> float | None:
    """Return the epoch seconds of a header's date; None for another text."""
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
