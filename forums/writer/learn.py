"""Hooks of the writer: rates and gaps of forums, the known forums and the request ledger, records of threads and marks of
forums, from stored items, for the next scans.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec
import redis
from sqlalchemy import func, select

from forums.freshness import Observation, observe
from forums.spiders.scan_marks import keep_marks
from forums.state import thread_records
from forums.state.forum_states import FORUM_DETAIL, FORUM_LIST, ForumState, ForumStates
from forums.state.request_ledger import Ledger, Purpose, Spending
from forums.state.thread_records import ThreadRecord
from forums.state.writer_figures import PublicationDelays
from forums.storage import Check, Comment, Database, Forum, Item, Post, Scan, scans
from redis_components.admin.crawl_records import keys_in
from workers.state.registry import Registry

MOST_FORUMS = 10_000
"""Limit of a site's forums from its index: each one costs every round of seeding, also the rounds of other sites."""
_PURPOSES = {"check": Purpose.CHECK, "backfill": Purpose.BACKFILL}


def learn(client: redis.Redis, items: Sequence[Item]) -> None:
    """Update the state of forums and budgets from these items. Called after their commit. Idempotent.

    Raises `redis.RedisError`; nothing is lost then, because the batch comes again.
    """
    scans = sorted((one for one in items if isinstance(one, Scan)), key=lambda scan: scan.started_at)
    forums = [one for one in items if isinstance(one, Forum)]
    states = ForumStates(client)
    _learn_states(states, [scan for scan in scans if scan.mode != "back"], _within_bounds(client, states, forums))
    checks = [_of_check(one) for one in items if isinstance(one, Check)]
    Ledger(client).add([*(_of_scan(one) for one in scans), *checks])


def _within_bounds(client: redis.Redis, states: ForumStates, forums: Sequence[Forum]) -> list[Forum]:
    """Return the forums without new ones above the limit of their site, which are reported as errors."""
    known = states.read(dict.fromkeys(map(_id, forums)))
    new = [one for one in forums if known[_id(one)].found_at is None]
    room = {site: MOST_FORUMS - len(states.raw_states(site)) for site in {one.site for one in new}}
    left_out: Counter[str] = Counter()
    for one in {_id(forum): forum for forum in new}.values():
        room[one.site] -= 1
        left_out[one.site] += room[one.site] < 0
    for site, number in left_out.items():
        if number:
            message = f"its index names more than {MOST_FORUMS:,} forums: {number:,} more are not watched; narrow [discover]"
            Registry(client).report_error(f"site {site}", message)
    full = {site for site, number in left_out.items() if number}
    return [one for one in forums if one.site not in full or known[_id(one)].found_at is not None]


def _learn_states(states: ForumStates, scans: Sequence[Scan], forums: Sequence[Forum]) -> None:
    known = states.read(dict.fromkeys([*(f"{one.site}/{one.forum_id}" for one in scans), *map(_id, forums)]))
    changed: dict[str, ForumState] = {}
    for forum in forums:
        before = changed.get(_id(forum)) or known[_id(forum)]
        seen = max(forum.fetched_at.timestamp(), before.found_at or 0.0)
        changed[_id(forum)] = msgspec.structs.replace(before, name=forum.name, found_at=seen)
    for scan in scans:
        name = f"{scan.site}/{scan.forum_id}"
        changed[name] = observe(changed.get(name) or known[name], observation(scan))
    states.write({name: state for name, state in changed.items() if state != known[name]})


def observation(scan: Scan) -> Observation:
    """Convert a scan's report for the policy."""
    return Observation(
        at=scan.started_at.timestamp(),
        events=scan.new + scan.changed,
        threads=scan.threads,
        pages=scan.pages,
        mode="scan" if scan.mode == "recent" else scan.mode,
        outcome=scan.outcome,
        whole=scan.stopped == "end",
        newest_at=_epoch(scan.newest_at),
        oldest_at=_epoch(scan.oldest_at),
        reason=scan.reason,
    )


def _id(forum: Forum) -> str:
    return f"{forum.site}/{forum.id}"


def _epoch(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _of_scan(scan: Scan) -> Spending:
    purpose = {"backfill": Purpose.BACKFILL, "back": Purpose.CHECK}.get(scan.mode, Purpose.SCAN)
    name = f"{scan.forum_id} {scan.mode} {scan.started_at.timestamp():.3f}"
    return Spending(
        site=scan.site, name=name, purpose=purpose, ended_at=scan.finished_at.timestamp(), requests=max(1, scan.pages)
    )


def _of_check(check: Check) -> Spending:
    return Spending(
        site=check.site,
        name=f"thread {check.id} {check.started_at.timestamp():.3f}",
        purpose=_PURPOSES.get(check.mode, Purpose.DETAIL),
        ended_at=check.finished_at.timestamp(),
        requests=check.requests,
    )


logger = logging.getLogger(__name__)


def remember(client: redis.Redis, items: Sequence[Item]) -> None:
    """Store the records and marks that follow from these stored items. Idempotent.

    A refusal by Redis is logged and ignored: without a record a scan reads more and loses nothing.
    """
    try:
        thread_records.keep(client, keys_in(client, FORUM_DETAIL), _records(items))
        keep_marks(client, keys_in(client, FORUM_LIST), [item for item in items if isinstance(item, Scan)])
    except redis.ResponseError as error:
        logger.warning("Redis does not keep what is stored of threads and forums, so that scans read more: %s", error)


def _records(items: Iterable[Item]) -> dict[str, ThreadRecord]:
    """Return the records of successful readings; failed ones leave the former record."""
    return {
        f"{item.site}/{item.listed_as or item.id}": ThreadRecord(
            token=item.token or "",
            comments=item.comments if item.total is None else item.total,
            last_page=0 if item.gone else max(1, item.last_page),
            last_comment=item.last_comment_id,
            cursor=item.cursor,
            hour=_hour(item.started_at),
            listed=item.listed,
            short=item.short,
            own=item.id if item.listed_as else None,
            asked=item.asked if item.gone else None,
            told_at=_told_at(item),
        )
        for item in items
        if isinstance(item, Check) and (item.reason is None or item.gone)
    }


def _told_at(item: Check) -> int | None:
    """Return the start of a reading that saw more than its list row showed, or that had no list row."""
    more = item.listed is not None and item.reply_count is not None and item.listed > item.reply_count
    return int(item.started_at.timestamp()) if item.token is None or more else None


def _hour(moment: datetime) -> int:
    return int(moment.timestamp() // 3600)


HISTORY_S = 7 * 86_400.0  # items older than this when stored are left out: a board was added, or a backfill runs


class Lateness:
    """Counts the delays of one database's new posts and comments."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._watched: dict[str, datetime] = {}  # site -> when its first scan began

    def count(self, client: redis.Redis, new: Sequence[Item], now: datetime | None = None) -> None:
        """Count these items, stored `now`. Items published before the first scan of their site are left out, since they could
        not be read in time.

        Raises `redis.RedisError`, StorageError.
        """
        stored_at, found = now or datetime.now(UTC), defaultdict[str, list[float]](list)
        for item in new:
            if not isinstance(item, Post | Comment) or item.created_at is None:
                continue
            late = max(0.0, (stored_at - item.created_at).total_seconds())
            since = self._since(item.site)
            if since is not None and item.created_at >= since and late < HISTORY_S:
                found[item.site].append(late)
        if found:
            PublicationDelays(client).add(found)

    def _since(self, site: str) -> datetime | None:
        if site not in self._watched:
            ((first,),) = self._database.stream(select(func.min(scans.c.started_at)).where(scans.c.site == site))
            if first is None:
                return None
            self._watched[site] = first if first.tzinfo else first.replace(tzinfo=UTC)
        return self._watched[site]
