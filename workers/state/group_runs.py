"""Runs of groups as data: one record for each run, one for each of its members, and what waits and crawls.

To the fleet a member that crawls is a job, called by spider and run: `books.brands-20261129T030000`. `fleet_operations.jobs`
starts, follows and ends runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any

import msgspec
import redis

from redis_components.server.untrusted_values import (
    Amount,
    Count,
    Epoch,
    JsonRecord,
    RecordStore,
    as_text,
    decoded,
    encoded,
    hash_at,
    readable,
)
from workers.state.keys import MOST_WAITING, FleetKeys

SIGNED = "group run"
"""Its records name settings of crawlers."""
MOST_FIELDS = 200
"""Fields of a member's items of which the coverage is kept."""

KEPT_AS = "_runs"
"""Folder among the raw pages, one for all members: that of a job would never be looked at again, and its pages never deleted."""
RUN = "RUN_ID"
"""Scrapy's setting of a member's crawlers with the run's id."""
MEMBER = "RUN_MEMBER"
"""Scrapy's setting of a member's crawlers, in a run that writes files: its name, with which items go to the run's consumer."""
PAGES, URL, FIELDS = "run/pages/", "run/url/", "run/fields/"
"""Beginnings of stats of a member's crawl: pages by status; a page of each fault; items in which a field had a value."""
WALLS, WALL, ELSEWHERE, RAISED, ERROR = "run/walls", "run/wall", "run/elsewhere", "run/raised", "run/error"
LOST = "run/lost_items"
"""Further ones: pages that were walls, and the last one's reason; pages of another host than the one that was asked; callbacks
that raised, and items for which a pipeline did, and the traceback of the first.
"""


class RunState(StrEnum):
    """The state of a run."""

    QUEUED = "queued"  # it begins when the run before it is over
    RUNNING = "running"
    PAUSED = "paused"  # no member crawls; those that did go on where they stopped
    ENDING = "ending"  # it was cancelled, or its deadline is over: members that crawl finish their pages
    FINISHED = "finished"  # each member has a verdict
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """No member crawls or will."""
        return self in (RunState.FINISHED, RunState.CANCELLED)


class Verdict(StrEnum):
    """The outcome of a member of a run."""

    FINE = "fine"
    NOTHING_DUE = "nothing_due"
    UNRESOLVED = "unresolved"
    UNREACHABLE = "unreachable"
    REFUSED = "refused"
    ROBOTS = "robots"
    WALL = "wall"
    MOVED = "moved"
    NO_ITEMS = "no_items"
    FIELD_GONE = "field_gone"
    FEWER_ITEMS = "fewer_items"
    SLOWER = "slower"
    CRASHED = "crashed"
    DEADLINE = "deadline"
    OWN_LIMIT = "own_limit"
    CANCELLED = "cancelled"

    @property
    def sound(self) -> bool:
        """The member did what it should; it is not run again with the failed ones."""
        return self in (Verdict.FINE, Verdict.NOTHING_DUE, Verdict.OWN_LIMIT)


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Bounds that a person sets for members, in place of a comparison with their last runs."""

    items: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Least items; 0: none is fine."""
    seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """Most seconds of the whole crawl."""
    fields: dict[str, Annotated[float, msgspec.Meta(ge=0, le=1)]] = field(default_factory=dict)
    """Least share of the items in which a field has a value."""


@dataclass(frozen=True, kw_only=True)
class Member(JsonRecord):
    """The outcome of one spider in one run, as it is kept; its figures are sums over its crawlers."""

    CUT = True

    spider: str
    verdict: Verdict
    reason: str = ""
    url: str = ""
    """The page that shows it; it is among the kept raw pages of the node that fetched it."""
    traceback: str = ""
    """Of the first callback or pipeline that raised."""
    pages: Count = 0
    """Responses that the spider's callbacks were given."""
    items: Count = 0
    errors: Count = 0
    seconds: Amount = 0.0
    fields: dict[str, float] = field(default_factory=dict)
    """Share of the items in which each field had a value, from 0 to 1."""
    started_at: Epoch = 0.0
    ended_at: Epoch = 0.0
    silenced: str = ""
    """Why its verdict raises no alert: `known broken since 2026-11-02, by ops: new site`."""

    @property
    def alerting(self) -> bool:
        """An operator should look at it."""
        return not self.verdict.sound and not self.silenced and self.verdict is not Verdict.CANCELLED


@dataclass(frozen=True, kw_only=True)
class EndedMember(Member):
    """The outcome of one spider, on its way to the database."""

    run: str
    group: str


@dataclass(frozen=True, kw_only=True)
class RunTerms:
    """Terms of the runs of a group, as the group declares them: for runs that begin later, and for those of the same members."""

    timezone: str = "UTC"
    """Of `cron` and `deadline`, by its name in the IANA database."""
    deadline: str = ""
    """Time of the day (`06:00`), or time after the start (`3h`), at which a run ends; "": when all its members are over."""
    at_once: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10
    """Members that crawl at a time."""
    crawlers: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    """Crawlers of each member."""
    project: str = ""
    """Module of the project's Scrapy settings; "": the nodes' own project."""
    memory_mb: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    """Most memory of each crawler; 0: no bound of the group's own."""
    priority: Annotated[int, msgspec.Meta(ge=-100, le=100)] = 0
    """Its members get places before those of groups, jobs and services with a lower one; services have 0."""
    quota: str = ""
    """A quota of `[quotas]`, which groups share."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """Of each spider, as with `-a`."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Scrapy settings of each member, as with `-s`."""
    keep_runs: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 30
    """Runs of which the outcomes and files are kept."""
    files: str = ""
    """Place of the files of its runs: a folder, taken from the data folder, or `s3://BUCKET/PREFIX`; "": their items go
    where those of a service of this name go.
    """
    format: str = "jsonlines"
    """Of the files: jsonlines, csv, parquet, or any of the project's FEED_EXPORTERS; `feeds`: only the project's own FEEDS."""
    key: str = ""
    """Field that is another one in each item: of items with the same value a file has one."""
    bounds: dict[str, Bounds] = field(default_factory=dict)
    """Bounds of members, by name or pattern, in place of comparisons with their last runs."""
    keep_days: Annotated[int, msgspec.Meta(ge=0, le=36_500)] = 0
    """Days after which the files of a run are removed; 0: they are not."""

    def terms(self) -> dict[str, Any]:
        """Return the terms, for another record of them."""
        return {one.name: getattr(self, one.name) for one in fields(RunTerms)}


@dataclass(frozen=True, kw_only=True)
class GroupRun(JsonRecord, RunTerms):
    """One run from its start to its end. Times are Redis's, in epoch seconds."""

    MOST = 1024 * 1024  # with arguments and settings

    id: str
    group: str
    state: RunState = RunState.RUNNING
    reason: str = ""
    started_at: Epoch = 0.0
    ended_at: Epoch | None = None
    deadline_at: Epoch | None = None
    members: Count = 0
    most_crawlers: Count = 0
    """Of all runs of its quota together; 0: any number."""
    counts: dict[str, int] = field(default_factory=dict)
    """Members that are over, by verdict."""
    alerts: dict[str, int] = field(default_factory=dict)
    """Members whose verdict is not sound and not silenced, by verdict."""
    waiting: Count = 0
    """Members that have not begun."""
    waits_for: str = ""
    """The cause for which they wait, where that is not `at_once`."""
    late: Epoch | None = None
    """When the run is forecast to end, where that is after its deadline."""
    late_by: str = ""
    """The member that alone needs so long, with the reason."""
    seconds: Amount = 0.0
    """Of all members that are over."""
    stored_at: Epoch | None = None
    """When the files of all its members and its manifest were written."""
    by: str = ""
    of: str = ""
    """The run whose failed members it runs again."""

    @property
    def alerting(self) -> int:
        """Members that an operator should look at."""
        return sum(self.alerts.values())

    def bounds_of(self, spider: str) -> Bounds:
        """Return the bounds of a member: those of its name, else of the first pattern that fits."""
        found = (one for pattern, one in self.bounds.items() if fnmatchcase(spider, pattern))
        return self.bounds.get(spider) or next(found, Bounds())

    def sentence(self) -> str:
        """Return the run in one line: `finished: 3 members: 2 fine, 1 no_items`."""
        done = ", ".join(f"{number} {verdict}" for verdict, number in sorted(self.counts.items(), key=lambda one: -one[1]))
        reason = f" ({self.reason})" if self.reason else ""
        left = self.members - sum(self.counts.values())
        more = f"{', ' if done else ''}{left} to go" if left else ""
        return f"{self.state}{reason}: {self.members} members: {done}{more}"


class GroupRuns(RecordStore[GroupRun]):
    """The runs of one fleet, by id. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        self._keys = FleetKeys()
        super().__init__(client, self._keys.group_runs(), GroupRun, signed=SIGNED)

    def newest(self, group: str = "") -> list[GroupRun]:
        """Return the runs, or those of a group, the newest first."""
        found = [run for run in self.all().values() if group in ("", run.group)]
        return sorted(found, key=lambda run: (run.started_at, run.id), reverse=True)

    def add(self, run: GroupRun, modules: Mapping[str, str]) -> bool:
        """Add a run with its members, spiders and their modules in the order of their start; False, and change nothing, where
        there is one with its id. Raises ConfigError.
        """
        line = self.encoded(run.id, run)
        with self._client.pipeline() as pipe:
            pipe.watch(self._keys.group_runs())  # type: ignore[no-untyped-call]
            if pipe.hexists(self._keys.group_runs(), run.id):
                return False
            pipe.multi()
            pipe.zadd(self._keys.run_waiting(run.id), {spider: place for place, spider in enumerate(modules)})
            pipe.hset(self._keys.run_modules(run.id), mapping=modules)  # type: ignore[arg-type]
            pipe.hset(self._keys.group_runs(), run.id, line)
            try:
                pipe.execute()
            except redis.WatchError:
                return False
        return True

    def modules(self, run: str, spiders: Sequence[str]) -> list[str]:
        """Return the modules of these spiders; "" where it is not known."""
        found: Any = self._client.hmget(self._keys.run_modules(run), list(spiders)) if spiders else []
        return [as_text(one or b"") for one in found]

    def swap(self, run: GroupRun) -> bool:
        """Put the run in the place of the one that `all` has read; False if it has changed meanwhile."""
        return self.put(run.id, run)

    def waiting(self, run: str, number: int = -1) -> list[str]:
        """Return the members that have not begun, the first ones first; at most `number` of them where that is given."""
        found: Any = self._client.zrange(self._keys.run_waiting(run), 0, number - 1 if number >= 0 else -1)
        return [as_text(one) for one in found]

    def crawling(self, run: str) -> dict[str, float]:
        """Return the members that crawl, with the time of their start."""
        found = hash_at(self._client, self._keys.run_crawling(run))
        return readable(found, lambda _, raw: decoded(raw, float))

    def begin(self, run: str, spiders: Sequence[str], now: float, at_once: int) -> list[str]:
        """Take members from those that wait, the first ones, as long as no more than `at_once` crawl; return them. To begin one
        twice has the effect of doing it once.
        """
        waiting, crawling = self._keys.run_waiting(run), self._keys.run_crawling(run)

        def take(pipe: Any) -> list[str]:
            room = max(0, at_once - pipe.hlen(crawling))
            pipe.multi()
            for spider in spiders[:room]:
                pipe.zrem(waiting, spider)
                pipe.hsetnx(crawling, spider, repr(now))
            return [*spiders[:room]]

        transaction: Any = self._client.transaction
        found: list[str] = transaction(take, crawling, value_from_callable=True)
        return found

    def put_back(self, run: str, spiders: Iterable[str]) -> None:
        """Let members that crawled wait again, before all others."""
        with self._client.pipeline() as pipe:
            for spider in spiders:
                pipe.hdel(self._keys.run_crawling(run), spider)
                pipe.zadd(self._keys.run_waiting(run), {spider: -1})
            pipe.execute()

    def end(self, run: GroupRun, members: Iterable[Member]) -> None:
        """Store the outcome of members, which neither wait nor crawl from now on; also for the database."""
        with self._client.pipeline() as pipe:
            for one in members:
                pipe.hset(self._keys.run_members(run.id), one.spider, encoded(one, f"member {one.spider}", cut=True))
                pipe.hdel(self._keys.run_crawling(run.id), one.spider)
                pipe.zrem(self._keys.run_waiting(run.id), one.spider)
                ended = EndedMember(**{**vars(one), "traceback": "", "run": run.id, "group": run.group})
                pipe.rpush(self._keys.ended_members(), encoded(ended, f"member {one.spider}", cut=True))
            pipe.ltrim(self._keys.ended_members(), -MOST_WAITING, -1)
            pipe.execute()

    def over(self, run: str) -> int:
        """Return the number of members that are over."""
        return int(self._client.hlen(self._keys.run_members(run)))

    def members(self, run: str) -> dict[str, Member]:
        """Return the members that are over, by spider."""
        return readable(hash_at(self._client, self._keys.run_members(run)), lambda _, raw: decoded(raw, Member))

    def before(self, run: GroupRun, spiders: Sequence[str], runs: Iterable[GroupRun], number: int = 5) -> dict[str, list[Member]]:
        """Return the outcomes of these members in the last runs of the group before this one, the newest first."""
        older = [one.id for one in runs if one.group == run.group and one.id != run.id and one.started_at <= run.started_at]
        found: dict[str, list[Member]] = {spider: [] for spider in spiders}
        with self._client.pipeline(transaction=False) as pipe:
            for one in older[:number] if spiders else ():
                pipe.hmget(self._keys.run_members(one), list(spiders))
            for answers in pipe.execute():
                for spider, raw in zip(spiders, answers, strict=True):
                    try:
                        found[spider] += [decoded(raw, Member)] if raw else []
                    except ValueError:
                        continue
        return found

    def forget(self, run: str) -> None:
        """Drop a run with the outcomes of its members."""
        with self._client.pipeline() as pipe:
            pipe.hdel(self._keys.group_runs(), run)
            keys = self._keys
            pipe.delete(keys.run_waiting(run), keys.run_modules(run), keys.run_crawling(run), keys.run_members(run))
            pipe.execute()

    def silence(self, spider: str, why: str) -> None:
        """Raise no alert for the verdicts of this member any more; "": raise them again."""
        if why:
            self._client.hset(self._keys.silenced(), spider, why[:500])
        else:
            self._client.hdel(self._keys.silenced(), spider)

    def silenced(self) -> dict[str, str]:
        """Return the members whose verdicts raise no alert, with the reasons."""
        return {as_text(name): as_text(why) for name, why in hash_at(self._client, self._keys.silenced()).items()}


def quota_lane(name: str) -> str:
    """Return the lane (`redis_components.politeness`) that counts the requests of a quota."""
    return f"quotas.{name}"


def newest_of_groups(runs: Iterable[GroupRun]) -> list[GroupRun]:
    """Return the first run of each group; `runs`: the newest first."""
    found: dict[str, GroupRun] = {}
    for run in runs:
        found.setdefault(run.group, run)
    return list(found.values())


def counted(members: Iterable[Member]) -> dict[str, int]:
    """Return the number of members by verdict."""
    found: dict[str, int] = {}
    for one in members:
        found[one.verdict] = found.get(one.verdict, 0) + 1
    return found
