"""Seeding of due forums, named forums, and single posts: the next scan of each forum of a site within its request budget, and the
outcomes of seeding, a kind for programs and a sentence for people.

The budget is divided: new threads come first, then scans; work that may wait has a separate share (`rechecking.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

import redis

from forums import FORUM_LIST
from forums.environment import Scheduling
from forums.freshness import DAY_S, IntervalBounds, intervals
from forums.records.stored import INDEX, NO_FORUMS, RECENT, ForumTask
from forums.records.tasks_and_items import encode
from forums.sites import Site, SiteError, load_all, load_site
from forums.sites.http.politeness import write_limits
from forums.state.database_state import DatabaseClaim, removed_sites
from forums.state.keys import ForumFleetKeys, ForumState, ForumStates, Ledger, Spent
from forums.state.removed_sites import readmit_if_new
from forums.state.site_faults import note_faults
from redis_components.errors import ConfigError
from redis_components.frontier.holds import why_not_seeded
from redis_components.keys import keys_in
from redis_components.server.untrusted_values import server_time
from redis_components.start_tasks import seeding
from redis_components.start_tasks.seeding import Seed, Seeding, SeedOutcome
from workers.state.keys import FleetKeys


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


def of_seeding(seeding: Seeding, now: float) -> Outcome:
    """Return the outcome of a seeding; `now` is Redis's time."""
    match seeding.outcome:
        case SeedOutcome.SEEDED:
            return SEEDED
        case SeedOutcome.PENDING:
            return Outcome(kind=OutcomeKind.PENDING, sentence=f"pending since {_clock(seeding.at, now)}")
        case SeedOutcome.EARLY:
            return Outcome(kind=OutcomeKind.EARLY, sentence=f"not due until {_clock(seeding.at, now)}")
        case SeedOutcome.FULL:
            return Outcome(kind=OutcomeKind.FULL, sentence=f"over the limit of {seeding.at:.0f} pending forums")


def _clock(at: float, now: float) -> str:
    """Format the time, with the date if it is not near."""
    form = "%H:%M:%S UTC" if abs(at - now) < 12 * 3600 else "%Y-%m-%d %H:%M UTC"
    return datetime.fromtimestamp(at, UTC).strftime(form)


SCANS_AT_LEAST = 0.1
"""Share of the budget for scans, however many threads wait to be fetched."""


def over(site: Site, spent: Spent) -> str:
    """Return why nothing more is sent, for people."""
    whole, left = site.scan_budget_per_hour, _kept(site, spent) - spent.later
    kept = f", {left:.0f} are kept for checks and history" if left > 0 and spent.total < whole else ""
    return f"{spent.compared(whole)}{kept}"


def for_scans(site: Site, spent: Spent) -> float:
    """Return the requests an hour for list pages: the rest after the threads of the last hour and the share of waiting work."""
    whole = site.scan_budget_per_hour
    return max(whole - spent.detail - _kept(site, spent), whole * SCANS_AT_LEAST)


def scans_now(site: Site, spent: Spent) -> float:
    """Return the requests that may be spent on list pages now; 0 if the last hour was over the budget."""
    whole = site.scan_budget_per_hour
    room = whole - spent.total - max(_kept(site, spent) - spent.later, 0.0)
    return max(room, whole * SCANS_AT_LEAST - spent.scan, 0.0)


def share_of(site: Site) -> float:
    """Return the requests an hour for work that may wait."""
    return site.scan_budget_per_hour * site.schedule.backfill_share


def _kept(site: Site, spent: Spent) -> float:
    """Return the requests an hour that scans leave to waiting work. Without this a site with more forums than its budget has
    scans for would never check a thread.
    """
    return share_of(site) if site.schedule.recheck_days or spent.later else 0.0


INDEX_S = DAY_S / 4
"""Interval of the pages that list a site's forums."""
DEEP_S = DAY_S
DEEP_SHARE = 0.05
"""Minimum interval of deep scans, and their maximum share of the budget."""
GAP_SCANS = 4
"""Deep scans that try to close a gap; after them the forum is scanned as usual, and the gap stays reported."""


@dataclass(frozen=True, kw_only=True)
class Due:
    """The next scan of a forum."""

    forum: str
    task: ForumTask
    at: float  # epoch s
    interval_s: float
    cost: float  # list pages, by estimate

    def overdue(self, now: float) -> float:
        """Return how long it is due, in intervals; negative if it is not due."""
        return (now - self.at) / max(self.interval_s, 1e-3)


def watched(site: Site, found: Mapping[str, ForumState]) -> list[str]:
    """Return the forums of a site: those in its file, then those from its index that `discover` admits; with RECENT and INDEX if
    the site has these pages. `found` by forum.
    """
    rules = site.discover
    recent = [RECENT] if site.pages.recent is not None else []
    if rules is None:
        return [*recent, *site.forums]
    more = [forum for forum, state in found.items() if state.found_at is not None and forum not in site.forums]
    kept = [forum for forum in more if rules.lets_in(forum, found[forum].name)]
    return [INDEX, *recent, *site.forums, *sorted(kept)]


def plan(site: Site, states: Mapping[str, ForumState], spent: Spent, now: float) -> list[Due]:
    """Return the next scan of each forum of `states` (which may have INDEX and RECENT)."""
    limits = IntervalBounds(min_s=site.schedule.min_interval_s, max_s=site.schedule.max_interval_s)
    forums = {forum: state for forum, state in states.items() if forum not in NO_FORUMS}
    recent = {forum: state for forum, state in states.items() if forum == RECENT}
    waits = intervals(forums, for_scans(site, spent), now=now, limits=limits, recent=recent)
    deep_s = max(DEEP_S, len(forums) * site.limits.pages_per_scan / (DEEP_SHARE * site.scan_budget_per_hour / 3600))
    dues = [_due(site, forum, state, waits[forum], deep_s, limits) for forum, state in forums.items()]
    for forum, state in recent.items():
        task, at = ForumTask(site=site.name, forum=forum, mode="recent"), (state.tried_at or 0.0) + waits[forum]
        dues.append(Due(forum=forum, task=task, at=at, interval_s=max(waits[forum], limits.min_s), cost=max(1.0, state.pages)))
    if INDEX in states:
        dues.append(_index(site, states[INDEX], limits))
    return dues


def _due(site: Site, forum: str, state: ForumState, wait_s: float, deep_s: float, limits: IntervalBounds) -> Due:
    task, cost = ForumTask(site=site.name, forum=forum), max(1.0, state.pages)
    if state.gap_at is not None and state.gap_scans <= GAP_SCANS:
        task, cost = (
            ForumTask(site=site.name, forum=forum, mode="deep"),
            float(min(site.limits.deep_pages, 2 * site.limits.pages_per_scan)),
        )
        wait_s = limits.clamp(limits.min_s if state.gap_scans <= 1 else wait_s * 2**state.gap_scans)
    elif state.deep_at is not None and (state.tried_at or 0.0) + wait_s > state.deep_at + max(deep_s, 4 * wait_s):
        task = ForumTask(site=site.name, forum=forum, mode="deep", pages=site.limits.pages_per_scan)
        cost = float(site.limits.pages_per_scan)
    return Due(forum=forum, task=task, at=(state.tried_at or 0.0) + wait_s, interval_s=max(wait_s, limits.min_s), cost=cost)


def _index(site: Site, state: ForumState, limits: IntervalBounds) -> Due:
    wait_s = min(limits.clamp(INDEX_S) * 2 ** min(state.errors, 30), limits.max_s)
    task = ForumTask(site=site.name, forum=INDEX, mode="index")
    return Due(forum=INDEX, task=task, at=(state.tried_at or 0.0) + wait_s, interval_s=wait_s, cost=1.0)


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
    check_names(forums)
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
    check_names(forums)
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


def _log_wrong(client: redis.Redis, wrong: Mapping[str, SiteError]) -> None:
    """Log each error of a site file once in the fleet, whichever process finds it: beat seeds every few seconds."""
    now = {name: error.in_a_line for name, error in wrong.items()}
    known = note_faults(client, ForumFleetKeys().wrong_sites(), now)
    for name, reason in now.items():
        if known.get(name) != reason:
            logger.error("site %s is not seeded: %s", name, reason)
    for name in known.keys() - wrong.keys():
        logger.info("the file of site %s is right again, or gone", name)


def watched_forums(client: redis.Redis, site: Site) -> list[str]:
    """Return the forums of a site, as `watched`, by their stored states."""
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
            ids = {f"{one.name}/{forum}": forum for forum in watched_forums(client, one)}
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
        room = {one.name: scans_now(one, self.spent[one.name]) for one in self.sites}
        for name in pending:
            room[name.partition("/")[0]] -= 1
        dues = [(one, self.dues[one.name][forum]) for one, forum in wanted]
        for one, due in sorted(dues, key=lambda of: -of[1].overdue(self.now)):
            name = f"{one.name}/{due.forum}"
            if one.name in held:
                report[name] = Outcome(kind=OutcomeKind.HELD, sentence=str(held[one.name]))
            elif name in pending:
                report[name] = of_seeding(Seeding(outcome=SeedOutcome.PENDING, at=pending[name]), self.now)
            elif not force and due.at > self.now:
                report[name] = of_seeding(Seeding(outcome=SeedOutcome.EARLY, at=due.at), self.now)
            elif not force and room[one.name] < 1:
                report[name] = Outcome(kind=OutcomeKind.OVER_BUDGET, sentence=over(one, self.spent[one.name]))
            else:
                room[one.name] -= due.cost
                chosen.append((name, (tasks or {}).get(name, due.task), one.schedule.min_interval_s))
        ends = seed_scans(client, chosen, force=force)
        return report | {name: of_seeding(end, self.now) for name, end in ends.items()}

    def _unclear(self, homes: Sequence[Site]) -> Outcome:
        if homes:
            sentence = f"several sites have it ({', '.join(one.name for one in homes)}): name the site"
            return Outcome(kind=OutcomeKind.AMBIGUOUS, sentence=sentence)
        known = "; ".join(f"{one.name} has {some(list(self.dues[one.name]))}" for one in self.sites) or "there is no site file"
        return Outcome(kind=OutcomeKind.UNKNOWN, sentence=f"unknown forum: {known}")


def check_names(forums: Sequence[str] | None) -> None:
    """Raise ConfigError for anything but a list of names."""
    if isinstance(forums, str) or (forums is not None and not all(isinstance(forum, str) for forum in forums)):
        raise ConfigError(f'forums = {forums!r}: must be a list of names, as in ["f1", "f2"]')


def some(forums: Sequence[str]) -> str:
    """Return the first ten names, for people."""
    named = ", ".join(forums[:_NAMED_AT_MOST])
    return named if len(forums) <= _NAMED_AT_MOST else f"{named} and {len(forums) - _NAMED_AT_MOST} more"
