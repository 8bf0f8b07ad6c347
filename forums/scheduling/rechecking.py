"""Scheduling of work that may wait: checks of threads for edits and deletions, and history, all within the share of their
site's budget; and of threads that a user wants to be read again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import redis
from sqlalchemy import ColumnElement, extract, func, literal, select, text, update

from forums import FORUM_DETAIL, FORUM_LIST
from forums.records.stored import NEWEST_FIELDS, NO_FORUMS, ForumTask, Part, PostTask
from forums.records.tasks_and_items import BACKFILL, encode, scan_task, thread_id
from forums.sites import Site, load_all, load_site
from forums.state.keys import Ledger, Spent, script
from forums.storage import Database
from forums.storage.engine import UtcDateTime
from forums.storage.schema.tables import posts
from redis_components.errors import ConfigError
from redis_components.frontier.holds import why_not_seeded
from redis_components.keys import CrawlKeys, keys_in
from redis_components.server.untrusted_values import server_time
from redis_components.start_tasks.seeding import NamedTask, push_named
from workers.fleet.holds import refuse_if_draining
from workers.state.keys import FleetKeys

from .seeding import Outcome, OutcomeKind, check_names, of_seeding, over, seed_scans, share_of, some, watched_forums

CHECKS_AT_LEAST = 0.002
"""Share of the budget for checks on sites with little activity."""
GRANTED_S = 60.0
"""A round may spend the grant of this time, so that requests are spread over the hour; beat sends one every 30 s."""
THREAD_COST = 2.0  # requests, by estimate
WAITING_MOST = 500
"""Tasks in the lane "later" above which none are added."""
LEASE = timedelta(hours=6)
"""A check that was sent and not reported is due again after this time."""
AT_ONCE = 1000
HISTORY = 0.25
"""Share of a round for waiting history, so that a site with constantly due checks reads its history, too."""


def recheck(client: redis.Redis, database: Database, site: str | None = None, force: bool = False) -> dict[str, str]:
    """Send the due checks, and waiting history within the rest of the share; return a summary by site.

    `force` checks up to 1,000 threads of each site now, the ones checked longest ago first, regardless of the budget.
    Raises SiteError, StorageError.
    """
    sites = [load_site(site)] if site else load_all()[0]
    keys, now = keys_in(client, FORUM_DETAIL), server_time(client)
    spent = Ledger(client).spent([one.name for one in sites], now)
    held = why_not_seeded(client, FleetKeys(), keys, FORUM_DETAIL, {one.name for one in sites})
    report = {name: str(hold) for name, hold in held.items()}
    in_turns = int(client.zcard(keys.later_turns()))
    waiting = in_turns + int(client.llen(keys.later_tasks()))
    left: dict[str, int] = {}
    history = client.llen(keys.backlog()) > 0
    for one in sites:
        if one.name in held:
            continue
        free = AT_ONCE if force else min(max(0, WAITING_MOST - waiting), AT_ONCE)
        granted = for_later(one, spent[one.name]) * GRANTED_S / 3600
        room = free if force else min(_threads(later_now(one, spent[one.name]), granted), free)
        moment = datetime.fromtimestamp(now, UTC)
        most = room if force or not history else math.ceil(room * (1 - HISTORY))
        if not force:
            most = min(most, _checks(one, spent[one.name]))
        due = take_due(database, one.name, moment, limit=most, lease=LEASE, force=force)
        if due:
            waiting = in_turns + _send_checks(client, keys, one, due)
        left[one.name] = min(room - len(due), _threads(history_now(one, spent[one.name]), granted))
        may_check = room and (force or checks_now(one, spent[one.name]))
        report[one.name] = f"{len(due)} checks" if may_check else _why_none(one, spent[one.name], waiting)
    moved = _move_history(client, keys, left)
    return report | {name: f"{report[name]}, {number} threads of history" for name, number in moved.items() if number}


def backfill(
    client: redis.Redis, site: str, since: datetime | None = None, forums: Sequence[str] | None = None
) -> dict[str, Outcome]:
    """Scan forums' lists down to `since` (None: to their ends), to find old threads.

    The threads wait in a separate list; `recheck` releases them as fast as the site's `schedule.backfill_share` allows.
    Returns "<site>/<forum>" -> outcome. Raises SiteError, ConfigError.
    """
    if since is not None and since.tzinfo is None:
        raise ConfigError(f"since {since.isoformat()} has no time zone; write it as {since.isoformat()}Z for UTC")
    one = load_site(site)
    wanted, report = homes_of(client, one, forums)
    held = why_not_seeded(client, FleetKeys(), keys_in(client, FORUM_LIST), FORUM_LIST, {one.name})
    if one.name in held:
        waits = Outcome(kind=OutcomeKind.HELD, sentence=str(held[one.name]))
        return report | {f"{one.name}/{forum}": waits for forum in wanted}
    until = since.isoformat() if since else None
    scans = [ForumTask(site=one.name, forum=forum, mode="backfill", since=until) for forum in wanted]
    now = server_time(client)
    ends = seed_scans(client, [(scan_task(one.name, scan.forum, "backfill"), scan, 0.0) for scan in scans], force=True)
    return report | {name.removesuffix(BACKFILL): of_seeding(end, now) for name, end in ends.items()}


def for_later(site: Site, spent: Spent) -> float:
    """Return the requests an hour for waiting work: its share, and half of the unused rest."""
    share = share_of(site)
    return share + max(site.scan_budget_per_hour - share - spent.live, 0.0) / 2


def later_now(site: Site, spent: Spent) -> float:
    """Return the requests that may be spent on waiting work now."""
    return max(min(for_later(site, spent) - spent.later, site.scan_budget_per_hour - spent.total), 0.0)


def for_checks(site: Site, spent: Spent) -> float:
    """Return the requests an hour for checks, in proportion to the requests that find new posts, however large the budget is."""
    return min(
        for_later(site, spent), max(site.schedule.checks_per_request * spent.live, site.scan_budget_per_hour * CHECKS_AT_LEAST)
    )


def checks_now(site: Site, spent: Spent) -> float:
    """Return the requests that may be spent on checks now."""
    return max(min(for_checks(site, spent) - spent.check, later_now(site, spent)), 0.0)


def history_now(site: Site, spent: Spent) -> float:
    """Return the requests that may be spent on history now, which never gets more than the share."""
    return min(max(share_of(site) - spent.backfill, 0.0), later_now(site, spent))


def homes_of(client: redis.Redis, site: Site, forums: Sequence[str] | None) -> tuple[list[str], dict[str, Outcome]]:
    """Return the requested forums of a site (None: all), and the outcomes of unknown ones."""
    check_names(forums)
    known = [forum for forum in watched_forums(client, site) if forum not in NO_FORUMS]
    if forums is None:
        return known, {}
    unknown = Outcome(kind=OutcomeKind.UNKNOWN, sentence=f"unknown forum: {site.name} has {some(known)}")
    strange = {f"{site.name}/{forum}": unknown for forum in forums if forum not in known}
    return [forum for forum in dict.fromkeys(forums) if forum in known], strange


def refresh(client: redis.Redis, posts: Sequence[str], site: str, only: Part | None = None) -> int:
    """Fetch these posts and their comments again, or `only` one of both; return the number of start tasks that wait then.

    A waiting post waits once, and is read whole; a part of it waits apart. While the site or the service is paused the tasks
    wait. Raises SiteError, ConfigError, and OnHold while it is being drained.
    """
    if isinstance(posts, str) or not posts or not all(isinstance(post, str) and post for post in posts):
        raise ConfigError(f'posts = {posts!r}: must be a list of post ids, as in ["p1", "p2"]')
    if only not in (None, *get_args(Part)):
        raise ConfigError(f"only = {only!r:.50}: must be one of {', '.join(get_args(Part))}, or be left out")
    name = load_site(site).name
    refuse_if_draining(client, FORUM_DETAIL, name)
    tasks = [PostTask(site=name, post=post, only=only) for post in posts]
    apart = f"?{only}" if only else ""
    named = [NamedTask(thread_id(name, task.post) + apart, encode(task)) for task in tasks]
    return push_named(client, keys_in(client, FORUM_DETAIL), named, NEWEST_FIELDS)


def _threads(requests: float, granted: float) -> int:
    """Return the number of threads that one round may have read for `requests`, limited by its grant."""
    return math.ceil(min(requests, max(granted, 1.0)) / THREAD_COST)


def _checks(site: Site, spent: Spent) -> int:
    """Return the number of threads that one round may have checked."""
    granted = for_checks(site, spent) * GRANTED_S / 3600
    return _threads(checks_now(site, spent), granted)


def _why_none(site: Site, spent: Spent, waiting: int) -> str:
    if waiting >= WAITING_MOST:
        return f"{waiting} tasks wait in the lane already"
    if spent.total < site.scan_budget_per_hour and spent.later < for_later(site, spent):
        most = for_checks(site, spent)
        return f"{spent.check:.0f} of at most {most:.0f} requests for checks in the last hour (schedule.checks_per_request)"
    most = for_later(site, spent)
    return f"{over(site, spent)}, {spent.later:.0f} of at most {most:.0f} for what may wait"


def _send_checks(client: redis.Redis, keys: CrawlKeys, site: Site, due: Sequence[DueThread]) -> int:
    """Push the checks; return the number of tasks in their lane."""
    names = [thread_id(site.name, thread.id) for thread in due]
    checks = [PostTask(site=site.name, post=one.id, forum=one.forum_id, mode="check", url=one.url) for one in due]
    tasks = [NamedTask(name, encode(check)) for name, check in zip(names, checks, strict=True)]
    return push_named(client, keys, tasks, NEWEST_FIELDS, lane="later")


def _move_history(client: redis.Redis, keys: CrawlKeys, left: dict[str, int]) -> dict[str, int]:
    operands = [operand for site, number in left.items() if number > 0 for operand in (site, number)]
    if not operands:
        return {}
    counts = script("move_later")(client, keys, {"most": AT_ONCE, "sites": operands})
    return dict(zip(operands[::2], counts, strict=True))  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class DueThread:
    """A thread whose check is due."""

    id: str
    forum_id: str | None
    url: str


def take_due(
    database: Database, site: str, now: datetime, *, limit: int, lease: timedelta, force: bool = False
) -> list[DueThread]:
    """Take at most `limit` threads of a site whose check is due at `now` (`force`: the threads checked longest ago), the most
    overdue first, relative to the time between their checks. A thread is due again after `lease`, unless its check is stored
    before that. Raises StorageError.
    """
    if limit < 1:
        return []
    query = select(posts.c.id, posts.c.forum_id, posts.c.url).where(posts.c.site == site)
    if force:
        query = query.where(posts.c.deleted_at.is_(None)).order_by(
            posts.c.checked_at.is_not(None), posts.c.checked_at, posts.c.id
        )
    else:
        query = query.where(posts.c.next_check_at <= now).order_by(_overdue(database.engine.dialect.name, now).desc(), posts.c.id)
    with database.writing() as connection:
        found = [
            DueThread(id=row.id, forum_id=row.forum_id or None, url=row.url) for row in connection.execute(query.limit(limit))
        ]
        if found:
            taken = posts.c.site == site, posts.c.id.in_([one.id for one in found])
            connection.execute(update(posts).where(*taken).values(next_check_at=now + lease))
    return found


def _overdue(dialect: str, now: datetime) -> ColumnElement[float]:
    """Return the time since a thread's last check, as a multiple of its check interval (plus a second, against zero)."""

    def days(moment: Any) -> Any:
        match dialect:
            case "sqlite":
                return func.julianday(moment)
            case "mysql":  # a float: MySQL divides whole numbers to four digits only
                return func.timestampdiff(text("MICROSECOND"), text("'2000-01-01'"), moment) / text("86400e6")
            case _:
                return extract("epoch", moment) / 86_400.0

    checked = days(posts.c.checked_at)
    return (days(literal(now, UtcDateTime)) - checked) / (days(posts.c.next_check_at) - checked + 1 / 86_400)  # type: ignore[no-any-return]
