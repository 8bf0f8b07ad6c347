"""Redis keys of the forum application, one method per key, as in `redis_components/keys/`, and its Lua scripts; the states of
watched forums between two scans with their due times; and the ledger of the requests sent to each site in the last hour, by
purpose, compared with the site's budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import msgspec
import redis

from forums import FORUM_LIST
from redis_components.keys import CrawlKeys, keys_in
from redis_components.server import scripts
from redis_components.server.names import literal
from redis_components.server.untrusted_values import (
    LATEST,
    Amount,
    Count,
    Epoch,
    answers_of,
    as_bytes,
    decoded,
    is_foreign,
    number,
    readable,
    server_time,
    whole,
)
from workers.state.keys import FleetKeys

LUA = Path(__file__).with_name("lua")


def script(name: str) -> scripts.Script:
    """Return the script `forums/state/lua/<name>.lua`, or raise KeyError."""
    return scripts.script(name, LUA)


@dataclass(frozen=True)
class ForumCrawlKeys:
    """Keys of forums' states, below the start key of the crawl that scans their lists."""

    crawl: CrawlKeys

    def marks(self) -> str:
        """HASH: scan marks of each forum (`<site>/<forum>` -> JSON): lower end of the next scan, and the list's first page.

        Written by the writer's hook, removed by `trawl forums forget`; read by the spider `forum_list`.
        """
        return f"{self.crawl.start_urls}:marks"

    def forum_states(self) -> str:
        """HASH: state of each forum for the freshness policy (`<site>/<forum>` -> JSON of `ForumState`), including forums
        named by an index page; `<site>/*` is the index page itself.

        Written by `store_items` after the commit; read by the seeder, `trawl forums` and the exporter.
        """
        return f"{self.crawl.start_urls}:forums"

    def forum_dues(self) -> str:
        """HASH: due time of each forum by that policy (`<site>/<forum>` -> epoch seconds, Redis).

        Written by the seeder; read by `trawl forums` and the exporter: a time far in the past is a stale board.
        """
        return f"{self.crawl.start_urls}:dues"


class ForumFleetKeys(FleetKeys):
    """The fleet's keys, and the keys of sites' states."""

    def database(self) -> str:
        """HASH: ids of databases: `known`, the database of the thread records, and `written`, the one that the fleet stores
        into, with its `place` and when (`at`); `refused` and `refused_at`, a writer's that was another one.

        Written by `store_items`, `trawl db move` and `trawl forums forget --all`; read by these, `trawl up` and `trawl status`.
        """
        return f"{self.prefix}:database"

    def wrong_sites(self) -> str:
        """HASH: sites with an invalid file (site -> the error, in one line), as the seeder last found them.

        Written by the seeder; read by it, to log each error once, and by `trawl status`.
        """
        return f"{self.prefix}:wrong_sites"

    def checked_files(self) -> str:
        """HASH: digest of the site file by which a page of a kind was checked first (`<site>/<kind>` -> 12 hex digits).

        Written and read by the forum spiders.
        """
        return f"{self.prefix}:checked_files"

    def delays(self) -> str:
        """HASH: delays of posts and comments from publication to the database (`<site>|<upper bound in s, or inf>` -> number,
        `<site>|sum` -> seconds).

        Written by `store_items` after the commit; read by the exporter.
        """
        return f"{self.prefix}:delays"

    def probing(self) -> str:
        """STRING with TTL: lock of the one process that probes sites now. Written and read by `probe_sites`."""
        return f"{self.prefix}:probing"

    def publishing(self, output: str) -> str:
        """STRING with TTL: lock of the one process that sends events to this output now. Written and read by `publish_events`."""
        return f"{self.prefix}:publishing:{output}"

    def output_troubles(self) -> str:
        """HASH: failing outputs of the rules file (name -> error, in one line).

        Written by `publish_events`; read by `trawl status`.
        """
        return f"{self.prefix}:output_troubles"

    def alarms(self, output: str) -> str:
        """STRING: alarms of an output with `alarms = true`, sent or waiting (JSON, by the problem's identity).

        Written and read by `notify_alarms`.
        """
        return f"{self.prefix}:alarms:{output}"

    def alerts(self) -> str:
        """HASH: alerts made at run time (number -> JSON with the filter, the receiver's address, the site and the time).

        Written by `trawl alert`; read by `publish_events` in each round, and by it.
        """
        return f"{self.prefix}:alerts"

    def event_stream(self, output: str) -> str:
        """STREAM: events of an output of the kind `stream` in the rules file (id = position in the log, `event` -> JSON), up to
        its `max_length`.

        Written by `publish_events`; read by consumer groups outside of Trawl.
        """
        return f"{self.prefix}:events:{output}"

    def spent(self, site: str) -> str:
        """HASH with TTL: requests sent to a site, by purpose and time (`<purpose>|<start of five minutes, epoch s>` ->
        number), of the last hours; `scan`, `detail`, `check`, `backfill`.

        Written by `spend.lua` when scans and checks are stored; read by the seeder, `trawl forums` and the exporter.
        """
        return f"{self.prefix}:spent:{site}"

    def budgets(self) -> str:
        """HASH: request budget of each site (site -> requests an hour).

        Written by the seeder from the site files; read by the exporter.
        """
        return f"{self.prefix}:budgets"

    def counted(self, site: str) -> str:
        """ZSET with TTL: scans and checks whose requests are in the hash before (score = their end, epoch s), so that none
        counts twice; of the last hours.

        Written and read by `spend.lua`.
        """
        return f"{self.prefix}:spent:{site}:counted"


_AT_ONCE = 1000


class ForumState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):  # gc: 10,000 set off the collector
    """One forum between two scans. Times are epoch seconds. The sums of the estimates decay, so they need no history."""

    scanned_at: Epoch | None = None  # start of the last scan that did not fail
    tried_at: Epoch | None = None  # start of the last scan, finished or not
    deep_at: Epoch | None = None  # start of the last deep scan
    newest_at: Epoch | None = None  # high-water mark: newest activity that any scan saw
    gap_at: Epoch | None = None  # start of the first scan that did not reach the threads of the scan before
    gap_from: Epoch | None = None  # the gap's older end: the high-water mark before it
    gap_scans: Count = 0  # scans since then, including the first
    errors: Count = 0  # consecutive failed scans
    reason: str | None = None  # of the last failure, or of the gap
    wall: str | None = None  # why guests see the first pages only of its threads
    events: Amount = 0.0  # changes seen, decayed
    exposure: Amount = 0.0  # seconds in which they were seen, decayed in the same way
    burst_events: Amount = 0.0  # changes with a short memory
    burst_exposure: Amount = 0.0
    carried: Count = 0  # changes seen by failed scans, for the next one to count
    pages: Amount = 1.0  # list pages of a scan, smoothed
    name: str | None = None  # from the site's index page
    found_at: Epoch | None = None  # when the index page last listed it; None: it is in the site file
    first_at: Epoch | None = None  # start of the first scan that did not fail; None: not scanned, or before this was noted

    @property
    def is_learning(self) -> bool:
        """True after one scan: its changes are not counted between two scans yet."""
        return self.scanned_at is not None and self.scanned_at == self.first_at


class ForumStates:
    """States of forums by `<site>/<forum>`. One process at a time writes states (it holds the writer's lock), and one at a time
    writes due times. Methods raise `redis.RedisError` when Redis does not answer.
    """

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._keys = ForumCrawlKeys(keys_in(client, FORUM_LIST))

    def read(self, ids: Iterable[str]) -> dict[str, ForumState]:
        """Return the states of these forums; a new state for a missing or unreadable one."""
        names = list(ids)
        found = _values(self._client, self._keys.forum_states(), names)
        return {name: state_or_fresh(text) for name, text in zip(names, found, strict=True)}

    def write(self, states: Mapping[str, ForumState]) -> None:
        """Store these states."""
        if states:
            encoded = {name: msgspec.json.encode(state) for name, state in states.items()}
            self._client.hset(self._keys.forum_states(), mapping=cast("dict[Any, Any]", encoded))

    def all(self, site: str | None = None) -> dict[str, ForumState]:
        """Return all known forums, or those of a site, in the order of their ids. Read in steps."""
        return readable(self.raw_states(site), lambda _, text: state_or_fresh(text))

    def raw_dues(self, site: str | None = None) -> dict[bytes, bytes]:
        """Return the due times as stored, read in steps."""
        return self._scan(self._keys.forum_dues(), site)

    def raw_states(self, site: str | None = None) -> dict[bytes, bytes]:
        """Return the states as stored, read in steps."""
        return self._scan(self._keys.forum_states(), site)

    def _scan(self, key: str, site: str | None) -> dict[bytes, bytes]:
        """Read a hash in steps; return {} if the key has another type."""
        match = None if site is None else f"{literal(f'{site}/')}*"
        try:
            return {as_bytes(k): as_bytes(v) for k, v in self._client.hscan_iter(key, match=match, count=_AT_ONCE)}
        except redis.ResponseError as error:
            if is_foreign(error):
                return {}
            raise

    def store_dues(self, dues: Mapping[str, float], now: float, *, whole: bool) -> None:
        """Store due times; a never scanned forum (0) is due since it was first watched. `whole`: these are all forums."""
        key, known = self._keys.forum_dues(), readable(self.raw_dues(), lambda _, raw: number(raw))
        texts = {name: f"{at or min(known.get(name, now), now):.3f}" for name, at in dues.items()}
        gone = [name for name in known if name not in dues] if whole else []
        with self._client.pipeline(transaction=False) as pipe:
            if texts:
                pipe.hset(key, mapping=cast("dict[Any, Any]", texts))
            if gone:
                pipe.hdel(key, *gone)
            pipe.execute()


def _values(client: redis.Redis, key: str, fields: list[str]) -> list[bytes | None]:
    """Return the values of these fields; None for each if the key has another type."""
    with client.pipeline(transaction=False) as pipe:
        pipe.hmget(key, fields or [""])
        return (answers_of(pipe)[0] or [None] * len(fields))[: len(fields)]


def state_or_fresh(text: bytes | None) -> ForumState:
    """Parse a forum's state; a new state if it is unreadable, so that the forum is scanned at once."""
    try:
        return decoded(text, ForumState) if text else ForumState()
    except ValueError:
        return ForumState()


TRIAL_PER_DAY = 1000
"""Requests: enough to see that a site file is right."""
TRIAL_RATE = 2.0
"""Requests per second where the file has none: without a rate those of a day would be spread over the day."""

SLOT_S = 300
MOST_REQUESTS = 1e15  # of a budget
WINDOW_S = 3600
KEEP_S = 2 * WINDOW_S


class Purpose(StrEnum):
    """Purpose of requests."""

    SCAN = "scan"  # list pages
    DETAIL = "detail"  # new and changed threads
    CHECK = "check"  # checks of threads for edits and deletions
    BACKFILL = "backfill"  # history


@dataclass(frozen=True, kw_only=True)
class Spending:
    """Cost of one finished scan or check. `name` identifies it within its site."""

    site: str
    name: str
    purpose: Purpose
    ended_at: float  # epoch s
    requests: int


@dataclass(frozen=True, kw_only=True)
class Spent:
    """Requests of the last hour, by purpose."""

    scan: float = 0.0
    detail: float = 0.0
    check: float = 0.0
    backfill: float = 0.0

    def on(self, purpose: Purpose) -> float:
        """Return the requests for one purpose."""
        return float(getattr(self, purpose))

    @property
    def live(self) -> float:
        """Return the requests for new posts."""
        return self.scan + self.detail

    @property
    def later(self) -> float:
        """Return the requests for work that may wait."""
        return self.check + self.backfill

    @property
    def total(self) -> float:
        return self.live + self.later

    def compared(self, budget: float) -> str:
        """Return `over budget: 36 of 60 requests in the last hour`, for people."""
        return f"over budget: {self.total:.0f} of {budget:.10g} requests in the last hour"


class Ledger:
    """Requests and budgets in Redis. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._keys = ForumFleetKeys()

    def add(self, spendings: Iterable[Spending]) -> int:
        """Add these costs; return how many were not counted before."""
        by_site: dict[str, list[str | float]] = {}
        for one in spendings:
            by_site.setdefault(one.site, []).extend((one.name, one.purpose, f"{one.ended_at:.3f}", one.requests))
        return sum(
            script("spend")(
                self._client,
                {"spent": self._keys.spent(site), "counted": self._keys.counted(site)},
                {"slot_s": SLOT_S, "keep_s": KEEP_S, "entries": entries},
            )
            for site, entries in by_site.items()
        )

    def store_budgets(self, budgets: Mapping[str, float]) -> None:
        """Store the request budget of each site."""
        if budgets:
            self._client.hset(self._keys.budgets(), mapping={site: f"{n:.10g}" for site, n in budgets.items()})

    def budgets(self, sites: Iterable[str]) -> dict[str, float]:
        """Return the stored budgets of these sites."""
        names = list(sites)
        found = _values(self._client, self._keys.budgets(), names)
        known = {site.encode(): text for site, text in zip(names, found, strict=True) if text is not None}
        return readable(known, lambda _, raw: number(raw, 0.0, MOST_REQUESTS))

    def spent(self, sites: Iterable[str], now: float | None = None) -> dict[str, Spent]:
        """Return the requests of each site in the hour before `now` (epoch s of Redis)."""
        names = list(sites)
        moment = server_time(self._client) if now is None else now
        with self._client.pipeline(transaction=False) as pipe:
            for site in names:
                pipe.hgetall(self._keys.spent(site))
            return {site: _spent(fields or {}, moment) for site, fields in zip(names, answers_of(pipe), strict=True)}


def spent_of(name: str, raw: bytes) -> tuple[Purpose, int, float]:
    """Parse purpose, start of the slot (epoch s), and number of requests. Raises ValueError."""
    return *_slot_of(name), number(raw, 0.0, 1e12)


@lru_cache(maxsize=1024)
def _slot_of(name: str) -> tuple[Purpose, int]:
    """Parse a field's name, cached because all sites have the same few names."""
    purpose, _, slot = name.partition("|")
    return Purpose(purpose), whole(slot, 0, round(LATEST))


def _spent(fields: Mapping[bytes, bytes], now: float) -> Spent:
    """Sum the slots of the window, the oldest by its part within the window."""
    sums = dict.fromkeys(Purpose, 0.0)
    for field, count in fields.items():
        try:
            purpose, slot, requests = spent_of(field.decode(), count)
        except ValueError:
            continue
        within = (slot + SLOT_S - (now - WINDOW_S)) / SLOT_S
        sums[purpose] += requests * min(max(within, 0.0), 1.0)
    return Spent(**{str(purpose): amount for purpose, amount in sums.items()})
