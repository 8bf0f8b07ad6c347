"""Limits of lanes: how often and how many at a time requests are sent to one site, by all processes together.

A request belongs to the first lane that has limits of: its `meta["lane"]`, its `meta["site"]`, `host:port` of its URL, the
host, and the host's parent domains. Limits hold for all crawls of a namespace.
"""

from __future__ import annotations

import math
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import urlsplit

import msgspec
import redis

from redis_components.errors import ConfigError
from redis_components.frontier.holds import names_of
from redis_components.keys import lane_busy_key, lane_state_key, limits_key
from redis_components.server.scripts import script
from redis_components.server.untrusted_values import decoded, encoded, server_time

from .quiet_hours import QuietHours, parse_quiet_hours, written

if TYPE_CHECKING:
    from tldextract import TLDExtract


VERSION = "version"
BY_FILE, BY_TRIAL, BY_CONFIG = "the site file", "no contact is named", "trawl.toml"
"""The `by` of limits that no operator has set."""
FROM_FILES = frozenset({"", BY_FILE, BY_TRIAL, BY_CONFIG})
MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
LONGEST_NAME = 255
_MOST = 1e15
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

    def as_dict(self, lane: str, left_alone_s: float) -> dict[str, Any]:
        """Return a lane's limits for programs; `left_alone_s`: the time for which its site asked to be left alone."""
        return {
            "site": lane,
            "rate": self.rate,
            "burst": self.burst if self.rate else None,
            "concurrency": self.concurrency,
            "weight": self.weight,
            "per_minute": self.within(MINUTE_MS),
            "per_hour": self.within(HOUR_MS),
            "per_day": self.within(DAY_MS),
            "quiet": written(self.quiet_hours) or None,
            "left_alone_s": round(left_alone_s, 1),
            "by": self.by,
        }

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


class LaneState(NamedTuple):
    """The constraints on a lane at a moment, in addition to its limits."""

    left_alone_s: float
    """Its site asked for it; 0.0: it did not."""
    refusals: int
    """By 429 or 503, without half an hour of peace between."""
    refused_s: float
    """Since when."""
    slowed: float | None
    """Requests per second to which complaints have lowered it; None: there were none lately."""
    robots: float | None
    """Requests per second that its robots.txt asks for."""


_NOTHING = LaneState(left_alone_s=0.0, refusals=0, refused_s=0.0, slowed=None, robots=None)
STATE_FIELDS = (
    *("until", "asked", "refusals", "refused_since"),
    *("slowed", "slowed_at", "slowed_top", "slowed_return"),
    *("robots_rate", "robots_at"),
)
PEACE_S, RETURN_S = 1800, 20
"""As in `lib/pacing.lua`."""


def state_of(client: redis.Redis, key: str, lane: str, now: float) -> LaneState:
    """Return the state of a lane at `now` (epoch s of Redis); a value that is not a number counts as none."""
    values: Any = client.hmget(lane_state_key(key, lane), STATE_FIELDS)
    return state_from(values, now)


def as_dicts(client: redis.Redis, key: str, only: str | None = None) -> list[dict[str, Any]]:
    """Return the limits of every lane, or of one, for programs: with the time for which it asked to be left alone."""
    now = server_time(client)
    found = {lane: one for lane, one in read(client, key).items() if only in (None, lane)}
    return [one.as_dict(lane, state_of(client, key, lane, now).left_alone_s) for lane, one in found.items()]


def state_from(values: Sequence[bytes | None], now: float) -> LaneState:
    """Return the state of a lane from the values of STATE_FIELDS."""
    if not any(values):  # as of most
        return _NOTHING
    until, asked, refusals, since, slowed, slowed_at, top, return_s, robots, robots_at = map(_number, values)
    is_refusing = max(until, asked) / 1000 > now - PEACE_S
    is_slowed = slowed > 0 and slowed_at / 1000 > now - PEACE_S
    return LaneState(
        left_alone_s=max(0.0, until / 1000 - now),
        refusals=int(refusals) if is_refusing else 0,
        refused_s=max(0.0, now - since / 1000) if is_refusing and since else 0.0,
        slowed=_recovered(slowed, now - slowed_at / 1000, top, return_s or RETURN_S) if is_slowed else None,
        robots=robots if robots > 0 and robots_at / 1000 > now - 2 * DAY_MS / 1000 else None,
    )


def _recovered(slowed: float, seconds: float, top: float, return_s: float) -> float:
    """Return the recovered rate, as `slowed_rate` of `lib/pacing.lua`."""
    gap, left = max(top - slowed, 0.1 * top), 1 - max(0.0, seconds) / max(1.0, return_s)
    return max(slowed, float(top - gap * left**3))


def _number(value: bytes | None) -> float:
    try:
        number = float(value or 0)
    except ValueError:
        return 0.0
    return number if abs(number) < _MOST else 0.0  # "nan" and "inf" are none


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
