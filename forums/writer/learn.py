"""Hook of the writer that updates rates and gaps of forums, the known forums, and the request ledger from stored items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import msgspec
import redis

from forums.freshness import Observation, observe
from forums.state.forum_states import ForumState, ForumStates
from forums.state.request_ledger import Ledger, Purpose, Spending
from forums.storage import Check, Forum, Item, Scan
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
