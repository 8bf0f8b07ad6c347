"""Sites of the forum crawl at one moment, read from Redis: boards, files, budgets, and the writer of their posts; and
their problems, each with its next step, which depend on an `Overview` alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import redis

from fleet_operations.consumers.declared import streams_of
from fleet_operations.overview.model import Overview, SiteFault, SiteSample, SitesView
from fleet_operations.overview.problems import named
from fleet_operations.overview.reader import Reading, SitesReader
from forums import FORUM_DETAIL, FORUM_LIST
from forums.records import FORUM_WRITER
from forums.state.database_state import (
    ANOTHER_DATABASE,
    DatabaseClaim,
    DelayHistogram,
    PublicationDelays,
)
from forums.state.keys import TRIAL_PER_DAY, Ledger, Spent
from forums.state.site_faults import RULES_FILE, output_troubles, wrong_files
from redis_components.admin.health import Problem
from redis_components.frontier.holds import why_not_seeded
from redis_components.keys import CrawlKeys, keys_in
from redis_components.politeness.limits import BY_TRIAL
from redis_components.server.printable import span
from workers.state.keys import FleetKeys

from .boards import Boards, BoardState, BoardView, fails, watched

if TYPE_CHECKING:
    from fleet_operations.overview import Overview


class BoardTally(NamedTuple):
    """Numbers of boards of one site."""

    boards: int
    with_gap: int
    failing: int
    stale: int


@dataclass(frozen=True, kw_only=True)
class ForumSites(SitesView):
    """The sites of the forum crawl."""

    wrong_files: Mapping[str, str] = field(default_factory=dict)  # errors of site files, by site
    boards: Boards = field(default_factory=lambda: Boards((), 0.0))  # by id
    spent: Mapping[str, Spent] = field(default_factory=dict)  # site -> requests of the last hour
    budgets: Mapping[str, float] = field(default_factory=dict)  # site -> allowed requests an hour
    delays: Mapping[str, DelayHistogram] = field(default_factory=dict)  # site -> from publication to the database
    writer_lag_s: float | None = None  # since the oldest item that waits for the forum writer was fetched; None: not known
    output_troubles: Mapping[str, str] = field(default_factory=dict)  # output of events -> its error
    another_database: bool = False  # the last written database is not that of the thread records
    refused_database: str | None = None  # refusal of a writer with another database than the fleet's

    @property
    def faults(self) -> Sequence[SiteFault]:
        """Site files that are wrong, unless the site's breaker reports it."""
        reported = {site: one.reason for site, one in self.breakers.items()}
        return [
            SiteFault(site, "wrong file", f"not seeded: {reason}")
            for site, reason in self.wrong_files.items()
            if reported.get(site) != reason
        ]

    @property
    def stored(self) -> int:
        """Posts and comments whose time of publication is known."""
        return sum(sum(one.counts) for one in self.delays.values())

    def samples(self, now: float) -> Mapping[str, SiteSample]:
        """Return what was stored of each site, and the age of the last scan of its stalest board."""
        sites = {name: SiteSample(stored=sum(one.counts)) for name, one in self.delays.items()}
        oldest: dict[str, float] = {}
        for one in self.boards.watched:
            if (at := one.state.scanned_at) is not None:
                oldest[one.site] = min(at, oldest.get(one.site, at))
        for name in self.names:
            stored = sites[name].stored if name in sites else 0
            sites[name] = SiteSample(stored=stored, stale_s=max(0.0, round(now - oldest.get(name, now))))
        return sites

    def problems(self, view: Overview) -> Iterable[Problem]:
        """Return the problems of files, boards, the database and outputs."""
        return site_problems(self, view)

    def idle(self, view: Overview) -> str:
        """Return the command that watches the first forum, where no board is watched and no other service has crawlers."""
        wanted = {one.name for one in view.services if view.wanted(one)}
        is_idle = not len(self.boards) and FORUM_LIST in wanted and wanted <= {FORUM_LIST, FORUM_DETAIL}
        return "nothing is watched yet: trawl watch ADDRESS" if is_idle else ""

    def details(self) -> Mapping[str, object]:
        """Return wrong files as `trawl status --json` shows them."""
        return {"wrong_files": dict(self.wrong_files), "another_database": self.another_database}

    @cached_property
    def stale(self) -> tuple[BoardView, ...]:
        """Boards that are overdue without a hold of their site, the most overdue first."""
        return tuple(sorted(self.boards.stale(), key=lambda one: one.watched.due_at))

    @cached_property
    def tallies(self) -> Mapping[str, BoardTally]:
        """Numbers of boards by watched site: all, with a gap, failing, stale."""
        ill = self.boards.ill
        gaps = Counter(one.site for one in ill if one.state.gap_at is not None)
        failing = Counter(one.site for one in ill if fails(one))
        stale = Counter(one.watched.site for one in self.stale)
        boards = self.boards.by_site
        return {site: BoardTally(boards[site], gaps[site], failing[site], stale[site]) for site in sorted(boards)}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the watched sites."""
        return tuple(self.tallies)


NO_SITES = ForumSites()


def forum_sites(view: Overview) -> ForumSites:
    """Return the sites of the forum crawl; none where Redis did not answer."""
    return view.sites if isinstance(view.sites, ForumSites) else NO_SITES


WRITER_LATE_S = 300.0


def site_problems(sites: ForumSites, view: Overview) -> Iterator[Problem]:
    """Yield all problems of the sites, their boards, their database and the outputs of events."""
    yield from _database(sites)
    for site, reason in sites.wrong_files.items():
        if site not in sites.breakers or sites.breakers[site].reason != reason:
            yield Problem(what=f"site {site} is not scanned, its file is wrong: {reason}", fix=f"trawl sites check {site}")
    if trial := [one.lane for one in sites.lanes if one.limits.by == BY_TRIAL]:
        what = f"sites do not learn whom they can ask, and get {TRIAL_PER_DAY:,} requests a day until they do: {named(trial)}"
        yield Problem(what=what, fix="User-Agent under [headers] of the file, or USER_AGENT in the settings", grave=False)
    yield from _boards(sites, view)
    yield from _outputs(sites)


def _database(sites: ForumSites) -> Iterator[Problem]:
    if sites.refused_database is not None:
        what = f"a writer has another database than the fleet, {sites.refused_database}, and stores nothing"
        yield Problem(what=what, fix="set its TRAWL_DATABASE_URL to the fleet's, or: trawl db move")
    if sites.another_database:
        yield Problem(what=ANOTHER_DATABASE, fix="")
    if (sites.writer_lag_s or 0.0) >= WRITER_LATE_S:
        what = f"the oldest item has waited for {span(sites.writer_lag_s or 0.0)} to be stored"
        yield Problem(what=what, fix="is there a worker with -Q control, and does the database answer? trawl doctor")


def _boards(sites: ForumSites, view: Overview) -> Iterator[Problem]:
    if stale := sites.stale:
        late = view.now - stale[0].watched.due_at
        why = f"; {stale[0].why}" if stale[0].why else ""
        what = f"stale: {named(one.name for one in stale)} (the first is due for {span(late)}{why})"
        yield Problem(what=what, fix="trawl forums")
    ill = sites.boards.ill_ones()
    failing = [one for one in ill if one.word == BoardState.FAILING]
    if failing:
        worst = max(failing, key=lambda one: one.state.errors)
        of = "" if len(failing) == 1 else f"{worst.name}: "
        what = f"the last scan failed: {named(one.name for one in failing)} ({of}{worst.why})"
        fix = f"trawl why URL of its list; trawl sites check {worst.watched.site}; trawl forums has the others"
        yield Problem(what=what, fix=fix, grave=False)
    gaps = [one for one in ill if one.state.gap_at is not None]
    if gaps:
        what = f"a gap is open in {named(one.name for one in gaps)}: threads may be missing until a deeper scan has run"
        yield Problem(what=what, fix="trawl forums", grave=False)


def _outputs(sites: ForumSites) -> Iterator[Problem]:
    for name, why in sites.output_troubles.items():
        if name == RULES_FILE:
            reason = " ".join(why.split())
            yield Problem(
                what=f"no output gets events or alarms, the rules file is wrong: {reason}", fix="mend it (docs/events.md)"
            )
            continue
        yield Problem(what=f"output {name} {why}", fix="trawl events list", grave=False)


class ForumSitesReader(SitesReader):
    """Reader of the forum crawl's sites; the list service, which feeds the other, is shown first."""

    first = FORUM_LIST
    parts = (
        *SitesReader.parts,
        *("database", "outputs", "site files", "boards", "requests", "budgets", "delays", "writer"),
    )

    def read(self, reading: Reading, site: str | None = None) -> ForumSites:
        """Read the sites, or one of them; what belongs to a whole fleet only where its crawls were read."""
        client, now, part = self._client, reading.now, reading.part
        boards = part("boards", partial(watched, client, site)) or []
        sites = sorted({one.site for one in boards})
        spent = part("requests", lambda: Ledger(client).spent(sites, now)) or {}
        budgets = part("budgets", lambda: Ledger(client).budgets(sites)) or {}
        wrong = part("site files", lambda: wrong_files(client)) or {}
        held = part("pauses", lambda: why_not_seeded(client, FleetKeys(), keys_in(client, FORUM_LIST), FORUM_LIST, sites)) or {}
        claim, writer = DatabaseClaim(client), streams_of(FORUM_WRITER, reading.records, reading.names)
        base = self.base(reading, sites)
        return ForumSites(
            breakers=base.breakers,
            lanes=base.lanes,
            wrong_files=wrong,
            boards=Boards(boards, now, held=held, wrong=wrong, over=_over(budgets, spent)),
            spent=spent,
            budgets=budgets,
            delays=part("delays", PublicationDelays(client).read) or {},
            writer_lag_s=part("writer", lambda: writer_lag(client, writer.values(), now)) if writer else None,
            output_troubles=part("outputs", lambda: output_troubles(client)) or {},
            another_database=part("database", claim.is_another) or False,
            refused_database=part("database", claim.refused),
        )


class _Stamp(msgspec.Struct):
    """Time of the fetch of an item: a post, comment or forum; or a scan or check."""

    fetched_at: datetime | None = None
    finished_at: datetime | None = None


_decoder = msgspec.json.Decoder(_Stamp)


def writer_lag(client: redis.Redis, streams: Iterable[CrawlKeys], now: float) -> float:
    """Return the seconds from the fetch of the oldest waiting item until `now` (epoch s, Redis); 0.0 if none waits.

    Unreadable items have no age: the writer refuses them. Raises `redis.RedisError`.
    """
    with client.pipeline(transaction=False) as pipe:
        for keys in streams:
            pipe.lindex(keys.item_stream(), 0)
        heads: list[Any] = pipe.execute()
    return max((now - at for at in map(_fetched_at, filter(None, heads)) if 0 < at < now), default=0.0)


def _fetched_at(payload: bytes | str) -> float:
    try:
        stamp = _decoder.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return 0.0
    moment = stamp.fetched_at or stamp.finished_at
    return moment.timestamp() if moment and moment.tzinfo else 0.0


def _over(budgets: Mapping[str, float], spent: Mapping[str, Spent]) -> dict[str, str]:
    """Return the sites whose hourly budget is spent, with the figures."""
    return {
        site: spent[site].compared(budget) for site, budget in budgets.items() if site in spent and spent[site].total >= budget
    }
