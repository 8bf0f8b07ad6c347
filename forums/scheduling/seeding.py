"""Seeding of due forums, named forums, and single posts, and its outcomes: a kind for programs and a sentence for people."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import get_args

import redis

from forums import FORUM_DETAIL, FORUM_LIST
from forums.environment import Scheduling
from forums.records.stored import NEWEST_FIELDS, NO_FORUMS, ForumTask, Part, PostTask
from forums.records.tasks_and_items import encode, thread_id
from forums.sites import Site, SiteError, load_all, load_site
from forums.state.database_state import DatabaseClaim, removed_sites
from forums.state.forum_states import ForumStates, Ledger, Spent
from forums.state.removed_sites import readmit_if_new
from forums.state.site_faults import note_wrong_files, wrong_files
from redis_components.admin.inspector import keys_in
from redis_components.errors import ConfigError
from redis_components.frontier.holds import why_not_seeded
from redis_components.server.untrusted_values import server_time
from redis_components.start_tasks import seeding
from redis_components.start_tasks.seeding import NamedTask, Seed, Seeding, SeedOutcome
from workers.fleet.holds import refuse_if_draining
from workers.state.keys import FleetKeys

from . import seed_plan
from .seed_plan import Due, plan, watched, write_limits


class OutcomeKind(Enum):
    """Kind of the outcome."""

    SEEDED = "its start task is in the queue"
    PENDING = "it waits or is being scanned already"
    EARLY = "it is not due yet"
    OVER_BUDGET = "its site's requests of this hour are spent"
    FULL = "too many forums are pending"
    HELD = "its site or the service is paused, draining or stopped"
    UNKNOWN = "no site has it"
    AMBIGUOUS = "several sites have it"
    BROKEN_FILE = "its site's file cannot be read"

    @property
    def is_refused(self) -> bool:
        """True if the operator must correct its name or its site's file."""
        return self in (OutcomeKind.UNKNOWN, OutcomeKind.AMBIGUOUS, OutcomeKind.BROKEN_FILE)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Outcome for one forum."""

    kind: OutcomeKind
    sentence: str


SEEDED = Outcome(kind=OutcomeKind.SEEDED, sentence="seeded")


def sentences(outcomes: Mapping[str, Outcome]) -> dict[str, str]:
    """Return the sentences by forum, as tasks return them and `--json` prints them."""
    return {forum: outcome.sentence for forum, outcome in outcomes.items()}


def nothing_seeded(outcomes: Mapping[str, Outcome]) -> str:
    """Return how to scan now where nothing was seeded because nothing is due; "" otherwise."""
    kinds = {one.kind for one in outcomes.values()}
    if OutcomeKind.SEEDED in kinds or not kinds & {OutcomeKind.EARLY, OutcomeKind.OVER_BUDGET}:
        return ""
    return "Nothing was queued, since no board is due: `trawl seed --force` scans all of them now, `trawl seed FORUM` one."


def pending_since(since: float, now: float) -> Outcome:
    """Return the outcome for a forum that is pending since `since` (epoch s of Redis)."""
    return Outcome(kind=OutcomeKind.PENDING, sentence=f"pending since {_clock(since, now)}")


def too_early(due: float, now: float) -> Outcome:
    """Return the outcome for a forum that is due later."""
    return Outcome(kind=OutcomeKind.EARLY, sentence=f"not due until {_clock(due, now)}")


def of_seeding(seeding: Seeding, now: float) -> Outcome:
    """Return the outcome of a seeding; `now` is Redis's time."""
    match seeding.outcome:
        case SeedOutcome.SEEDED:
            return SEEDED
        case SeedOutcome.PENDING:
            return pending_since(seeding.at, now)
        case SeedOutcome.EARLY:
            return too_early(seeding.at, now)
        case SeedOutcome.FULL:
            return Outcome(kind=OutcomeKind.FULL, sentence=f"over the limit of {seeding.at:.0f} pending forums")


def _clock(at: float, now: float) -> str:
    """Format the time, with the date if it is not near."""
    form = "%H:%M:%S UTC" if abs(at - now) < 12 * 3600 else "%Y-%m-%d %H:%M UTC"
    return datetime.fromtimestamp(at, UTC).strftime(form)


logger = logging.getLogger(__name__)

_NAMED_AT_MOST = 10  # forums that an error lists


def seed(
    client: redis.Redis, forums: Sequence[str] | None = None, site: str | None = None, force: bool = False
) -> dict[str, Outcome]:
    """Seed the named forums, or without names all that are due by the policy and within their site's budget.

    `site` may be left out if only one site has the forums. Named forums are seeded now, and with `force` all forums,
    regardless of due times and budget. A pending forum is never seeded twice; one that is paused, draining or stopped is not
    seeded before it is resumed.

    Returns "<site>/<forum>" -> outcome; "<site>/*" is the index page that lists a site's forums, "<site>/+" the page of its
    newest messages, "<site>/?" a site whose file cannot be read.
    Raises SiteError for an unknown site, ConfigError for bad arguments.
    """
    _check_names(forums)
    look = _Snapshot.at(client, site)
    if forums is None:
        if site is None:
            _log_wrong(client, look.wrong)
        every = [(one, forum) for one in look.sites for forum in look.dues[one.name]]
        broken = {
            f"{name}/?": Outcome(kind=OutcomeKind.BROKEN_FILE, sentence=error.in_a_line) for name, error in look.wrong.items()
        }
        return broken | look.seed(client, every, force=force)
    wanted, unclear = look.homes(forums, site)
    return unclear | look.seed(client, wanted, force=True)


def rescan(client: redis.Redis, forums: Sequence[str], site: str | None = None, depth: int | None = None) -> dict[str, Outcome]:
    """Scan forums deep now: exactly `depth` list pages, else down to the last complete scan. Returns as `seed`."""
    _check_names(forums)
    if depth is not None and depth < 1:
        raise ConfigError(f"depth = {depth!r}: must be a number of list pages, from 1")
    look = _Snapshot.at(client, site)
    wanted, unclear = look.homes(forums, site)
    deep = {
        f"{one.name}/{forum}": ForumTask(site=one.name, forum=forum, mode="deep", pages=depth)
        for one, forum in wanted
        if forum not in NO_FORUMS
    }
    return unclear | look.seed(client, wanted, force=True, tasks=deep)


def seed_scans(
    client: redis.Redis, scans: Sequence[tuple[str, ForumTask, float]], *, force: bool = False
) -> dict[str, seeding.Seeding]:
    """Seed scans by their ids, each at most once in its number of seconds (with `force` now); return the results by id."""
    if not scans:
        return {}
    if DatabaseClaim(client).holder() is None:
        _recall_threads(client)
    seeds = [Seed(id=name, data=encode(task), wait_s=wait_s) for name, task, wait_s in scans]
    ends = seeding.seed(client, keys_in(client, FORUM_LIST), seeds, max_pending=Scheduling.read().max_pending, force=force)
    return {one.id: end for one, end in zip(seeds, ends, strict=True)}


def _recall_threads(client: redis.Redis) -> None:
    """Put the records of stored threads back before a scan looks for them: Redis has forgotten them, or nothing is stored yet."""
    from forums.storage.database import Database  # SQLAlchemy
    from forums.storage.errors import StorageError

    try:
        database = Database.from_url()
        try:
            database.recall(client)
        finally:
            database.close()
    except StorageError as error:
        logger.warning("known threads may be fetched again: %s", error)


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
    return seeding.push_named(client, keys_in(client, FORUM_DETAIL), named, NEWEST_FIELDS)


def _log_wrong(client: redis.Redis, wrong: Mapping[str, SiteError]) -> None:
    """Log each error of a site file once in the fleet, whichever process finds it: beat seeds every few seconds."""
    known = wrong_files(client)
    now = {name: error.in_a_line for name, error in wrong.items()}
    note_wrong_files(client, known, now)
    for name, reason in now.items():
        if known.get(name) != reason:
            logger.error("site %s is not seeded: %s", name, reason)
    for name in known.keys() - wrong.keys():
        logger.info("the file of site %s is right again, or gone", name)


def homes_of(client: redis.Redis, site: Site, forums: Sequence[str] | None) -> tuple[list[str], dict[str, Outcome]]:
    """Return the requested forums of a site (None: all), and the outcomes of unknown ones."""
    _check_names(forums)
    known = [forum for forum in _watched(client, site) if forum not in NO_FORUMS]
    if forums is None:
        return known, {}
    unknown = Outcome(kind=OutcomeKind.UNKNOWN, sentence=f"unknown forum: {site.name} has {_some(known)}")
    strange = {f"{site.name}/{forum}": unknown for forum in forums if forum not in known}
    return [forum for forum in dict.fromkeys(forums) if forum in known], strange


def _watched(client: redis.Redis, site: Site) -> list[str]:
    found = ForumStates(client).all(site.name) if site.discover else {}
    return watched(site, {name.removeprefix(f"{site.name}/"): state for name, state in found.items()})


@dataclass(frozen=True, kw_only=True)
class _Snapshot:
    """Snapshot of sites, states and budgets for one seeding."""

    now: float
    sites: list[Site]
    spent: Mapping[str, Spent]
    dues: Mapping[str, Mapping[str, Due]]  # site -> forum -> its next scan
    wrong: Mapping[str, SiteError]  # unreadable files, by site

    @classmethod
    def at(cls, client: redis.Redis, site: str | None) -> _Snapshot:
        """Read sites, states and spending, and store when each forum is due."""
        sites, wrong = ([load_site(site)], {}) if site else load_all()
        for removed, at in removed_sites(client).items():
            readmit_if_new(client, removed, at)
        now, states, ledger = server_time(client), ForumStates(client), Ledger(client)
        spent = ledger.spent([one.name for one in sites], now)
        ledger.store_budgets({one.name: one.scan_budget_per_hour for one in sites})
        in_lane = site and any(one.politeness.lane for one in sites)
        write_limits(client, load_all()[0] if in_lane else sites)  # all sites of a lane
        dues = {}
        for one in sites:
            ids = {f"{one.name}/{forum}": forum for forum in _watched(client, one)}
            by_forum = {ids[name]: state for name, state in states.read(ids).items()}
            dues[one.name] = {due.forum: due for due in plan(one, by_forum, spent[one.name], now)}
        watch = {f"{name}/{forum}": due.at for name, of_site in dues.items() for forum, due in of_site.items()}
        states.store_dues(watch, now, whole=site is None and not wrong)
        return cls(now=now, sites=sites, spent=spent, dues=dues, wrong=wrong)

    def homes(self, forums: Iterable[str], site: str | None) -> tuple[list[tuple[Site, str]], dict[str, Outcome]]:
        """Return the site of each named forum (FORUM, or SITE/FORUM as in reports), and the outcomes of names with none or
        several. Raises SiteError if no site file is valid.
        """
        if self.wrong and not self.sites:
            raise next(iter(self.wrong.values()))
        wanted, unclear = [], {}
        for named in dict.fromkeys(forums):
            forum, homes = named, [one for one in self.sites if named in self.dues[one.name]]
            if not homes:
                of_site, _, forum = named.partition("/")
                homes = [one for one in self.sites if one.name == of_site and forum in self.dues[of_site]]
            if len(homes) == 1:
                wanted.append((homes[0], forum))
            else:
                unclear[named if "/" in named else f"{site or '?'}/{named}"] = self._unclear(homes)
        return wanted, unclear

    def seed(
        self,
        client: redis.Redis,
        wanted: Sequence[tuple[Site, str]],
        *,
        force: bool,
        tasks: Mapping[str, ForumTask] | None = None,
    ) -> dict[str, Outcome]:
        """Seed the forums of `wanted` that may be seeded; `tasks` replace the due ones, by id. Returns the outcome of each."""
        report = {f"{one.name}/{forum}": SEEDED for one, forum in wanted}
        keys = keys_in(client, FORUM_LIST)
        held = why_not_seeded(client, FleetKeys(), keys, FORUM_LIST, {one.name for one, _ in wanted})
        pending = seeding.pending(client, keys, list(report), self.now)
        chosen: list[tuple[str, ForumTask, float]] = []
        room = {one.name: seed_plan.scans_now(one, self.spent[one.name]) for one in self.sites}
        for name in pending:
            room[name.partition("/")[0]] -= 1
        dues = [(one, self.dues[one.name][forum]) for one, forum in wanted]
        for one, due in sorted(dues, key=lambda of: -of[1].overdue(self.now)):
            name = f"{one.name}/{due.forum}"
            if one.name in held:
                report[name] = Outcome(kind=OutcomeKind.HELD, sentence=str(held[one.name]))
            elif name in pending:
                report[name] = pending_since(pending[name], self.now)
            elif not force and due.at > self.now:
                report[name] = too_early(due.at, self.now)
            elif not force and room[one.name] < 1:
                over = seed_plan.over(one, self.spent[one.name])
                report[name] = Outcome(kind=OutcomeKind.OVER_BUDGET, sentence=over)
            else:
                room[one.name] -= due.cost
                chosen.append((name, (tasks or {}).get(name, due.task), one.schedule.min_interval_s))
        ends = seed_scans(client, chosen, force=force)
        return report | {name: of_seeding(end, self.now) for name, end in ends.items()}

    def _unclear(self, homes: Sequence[Site]) -> Outcome:
        if homes:
            sentence = f"several sites have it ({', '.join(one.name for one in homes)}): name the site"
            return Outcome(kind=OutcomeKind.AMBIGUOUS, sentence=sentence)
        known = "; ".join(f"{one.name} has {_some(list(self.dues[one.name]))}" for one in self.sites) or "there is no site file"
        return Outcome(kind=OutcomeKind.UNKNOWN, sentence=f"unknown forum: {known}")


def _check_names(forums: Sequence[str] | None) -> None:
    if isinstance(forums, str) or (forums is not None and not all(isinstance(forum, str) for forum in forums)):
        raise ConfigError(f'forums = {forums!r}: must be a list of names, as in ["f1", "f2"]')


def _some(forums: Sequence[str]) -> str:
    named = ", ".join(forums[:_NAMED_AT_MOST])
    return named if len(forums) <= _NAMED_AT_MOST else f"{named} and {len(forums) - _NAMED_AT_MOST} more"
