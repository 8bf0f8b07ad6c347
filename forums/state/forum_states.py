"""What is known of each forum, and when it is due: written by the writer's hook and the seeder, read by everybody who looks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec
import redis

from forums.state.keys import ForumCrawlKeys
from forums.state.services import FORUM_LIST
from redis_components.fleet.crawl_records import keys_in
from redis_components.keys import CrawlKeys
from redis_components.server.replies import as_bytes, beginning_with
from redis_components.server.stored_values import Amount, Count, Epoch, decoded, is_foreign, number, readable

_AT_ONCE = 1000


class ForumState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):  # gc: 10,000 set off the collector
    """One forum between two scans. Times are epoch seconds. The sums of the estimates decay, so they need no history."""

    scanned_at: Epoch | None = None  # start of the last scan that did not fail
    tried_at: Epoch | None = None  # start of the last scan, finished or not
    deep_at: Epoch | None = None  # start of the last deep scan
    newest_at: Epoch | None = None  # high-water mark: newest activity that any scan saw
    gap_at: Epoch | None = None  # since when it is known that a scan did not reach what the one before it had seen
    gap_from: Epoch | None = None  # the gap's older end: the high-water mark before it
    gap_scans: Count = 0  # scans since then, the first of them included
    errors: Count = 0  # scans that failed, one after the other
    reason: str | None = None  # of the last failure, or of the gap
    events: Amount = 0.0  # changes seen, old ones counting less
    exposure: Amount = 0.0  # seconds in which they were seen, decayed in the same way
    burst_events: Amount = 0.0  # the same with a short memory
    burst_exposure: Amount = 0.0
    carried: Count = 0  # changes that failed scans have seen, for the next one to count
    pages: Amount = 1.0  # list pages that a scan costs, smoothed
    name: str | None = None  # as the site's index page has it
    found_at: Epoch | None = None  # when the index page last had it; None: listed in the site file


class WatchedForum(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A forum, and when it is due by the policy (epoch s)."""

    site: str
    forum: str
    state: ForumState
    due_at: float

    @property
    def waits_from(self) -> float:
        """When its scan is due; after one the time of that, until the seeder has said when the next one is due (epoch s)."""
        return max(self.due_at, self.state.tried_at or 0.0)

    def overdue_s(self, now: float) -> float:
        """Since when its scan is to come."""
        return max(0.0, now - self.waits_from)

    def is_stale(self, now: float) -> bool:
        """Whether it is overdue for five minutes, and for longer than it was to wait."""
        return self.overdue_s(now) > max(STALE_S, self.due_at - (self.state.tried_at or self.due_at))


STALE_S = 300.0


class ForumStates:
    """The states of forums by `<site>/<forum>`. Methods raise `redis.RedisError` when Redis does not answer.

    One process at a time writes states (it holds the writer's lock), one at a time writes due times.
    """

    def __init__(self, client: redis.Redis, keys: CrawlKeys | None = None) -> None:
        self._client = client
        self._keys = ForumCrawlKeys(keys or keys_in(client, FORUM_LIST))

    def read(self, ids: Iterable[str]) -> dict[str, ForumState]:
        """The states of these forums; a fresh one where nothing, or nothing readable, is known."""
        names = list(ids)
        found = self._read(names) if names else []
        return {name: state_or_fresh(text) for name, text in zip(names, found, strict=True)}

    def _read(self, names: list[str]) -> list[bytes | None]:
        try:
            return cast("list[bytes | None]", self._client.hmget(self._keys.forum_states(), names))
        except redis.ResponseError as error:
            if is_foreign(error):
                return [None] * len(names)
            raise

    def write(self, states: Mapping[str, ForumState]) -> None:
        """Keep these states."""
        if states:
            encoded = {name: msgspec.json.encode(state) for name, state in states.items()}
            self._client.hset(self._keys.forum_states(), mapping=cast("dict[Any, Any]", encoded))

    def all(self, site: str | None = None) -> dict[str, ForumState]:
        """Every forum that is known, or those of a site, in the order of their ids. Read in steps."""
        return readable(self.raw_states(site), lambda _, text: state_or_fresh(text))

    def dues(self, site: str | None = None) -> dict[str, float]:
        """When each forum that is watched is due by the policy (epoch s), by id in their order; of all sites, or of one."""
        return readable(self.raw_dues(site), due_of)

    def raw_dues(self, site: str | None = None) -> dict[bytes, bytes]:
        """The same as it stands in Redis."""
        return paired(self.flat_dues(site))

    def raw_states(self, site: str | None = None) -> dict[bytes, bytes]:
        """The states as they stand in Redis, read in steps."""
        return paired(self.flat_states(site))

    def flat_dues(self, site: str | None = None) -> list[bytes]:
        """The same as `raw_dues`, as Redis tells it: name, value, name, value; while names stay, in the same order."""
        return self._scan(self._keys.forum_dues(), site)

    def flat_states(self, site: str | None = None) -> list[bytes]:
        """The same of `raw_states`."""
        return self._scan(self._keys.forum_states(), site)

    def _scan(self, key: str, site: str | None) -> list[bytes]:
        """A hash in steps; nothing where the key has another type."""
        pattern = () if site is None else ("MATCH", beginning_with(f"{site}/"))
        try:
            cursor, found = 0, []
            while True:
                # `no_values` is redis-py's option for a list as the answer: a dict of 10,000 takes it three times as long
                reply = self._client.execute_command("HSCAN", key, cursor, *pattern, "COUNT", _AT_ONCE, no_values=True)  # type: ignore[no-untyped-call]
                cursor, some = reply
                found += some
                if not cursor:
                    return found if isinstance(next(iter(found), b""), bytes) else [as_bytes(one) for one in found]
        except redis.ResponseError as error:
            if is_foreign(error):
                return []
            raise

    def say_when_due(self, dues: Mapping[str, float], now: float, *, whole: bool) -> None:
        """Say when forums are due; one that was never scanned (0) since it was first watched. `whole`: these are all forums."""
        key, known = self._keys.forum_dues(), self.dues()
        texts = {name: f"{at or min(known.get(name, now), now):.3f}" for name, at in dues.items()}
        gone = [name for name in known if name not in dues] if whole else []
        with self._client.pipeline(transaction=False) as pipe:
            if texts:
                pipe.hset(key, mapping=cast("dict[Any, Any]", texts))
            if gone:
                pipe.hdel(key, *gone)
            pipe.execute()


def due_of(name: str, raw: bytes) -> float:  # noqa: ARG001 - the form of what reads a field
    """When a forum is due (epoch s). Raises ValueError."""
    return number(raw)


def state_of(name: str, raw: bytes) -> ForumState:  # noqa: ARG001 - as above
    """What is known of a forum. Raises ValueError."""
    return decoded(raw, ForumState)


def state_or_fresh(text: bytes | None) -> ForumState:
    """A state that nobody can read is as good as none: the forum is scanned at once, and a new one is written."""
    try:
        return decoded(text, ForumState) if text else ForumState()
    except ValueError:
        return ForumState()


def paired(flat: list[bytes]) -> dict[bytes, bytes]:
    """The fields of a hash from names and values in turn."""
    return dict(zip(flat[::2], flat[1::2], strict=True))
