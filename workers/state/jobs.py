"""Finite crawls: a job has a service's spider, its own keys, some crawlers, and an end.

To the fleet a job is one more service, called by the job's id, such as `books.3fa2c1d0`: slots, logs, pauses and metrics of jobs
are those of services. `fleet_operations.jobs.jobs` starts, follows and ends them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from os.path import commonprefix

import redis

from redis_components.keys import CrawlKeys
from redis_components.server.names import literal
from redis_components.server.untrusted_values import (
    Count,
    Epoch,
    JsonRecord,
    RecordStore,
    Size,
    as_text,
    hash_at,
    number,
    readable,
)
from workers.state.keys import FleetKeys

from .services import ServiceRecord

SIGNED = "job"
MOST_REASON = 2_000  # characters
FINISHED = "finished"
"""Scrapy's reason of a crawl that had nothing left to do."""


class JobState(StrEnum):
    """The state of a job."""

    RUNNING = "running"  # its crawlers crawl, or wait for room on a node
    ENDING = "ending"  # its end is decided (`reason`), its crawlers finish their pages
    FINISHED = "finished"  # it is over; `reason` is Scrapy's finish reason
    CANCELLED = "cancelled"  # a user ended it; what was left in its queue is kept for a while
    FAILED = "failed"  # its crawlers cannot run, or die again and again; the same is kept

    @property
    def ended(self) -> bool:
        """Nothing of the job runs any more."""
        return self not in (JobState.RUNNING, JobState.ENDING)


@dataclass(frozen=True, kw_only=True)
class JobFigures:
    """The totals of a job up to now, summed over its crawlers, those that died included."""

    pages: Count = 0  # responses received
    items: Count = 0
    errors: Count = 0  # lines of level ERROR or above in the crawlers' logs
    dead: Count = 0  # requests and start tasks that were given up
    left: Count = 0  # requests and start tasks that wait, or are at work


@dataclass(frozen=True, kw_only=True)
class Job(JsonRecord):
    """One job from its start to its end. Times are Redis's, in epoch seconds."""

    MOST = 1024 * 1024  # with its arguments and settings
    LATER = 16_384  # bytes of it that are kept free for its end

    id: str
    service: str
    declaration: ServiceRecord = field(default_factory=ServiceRecord)
    """The launch of its crawlers: the service as it was declared at the start, with what the job changes."""
    crawlers: Size = 1
    arguments: dict[str, str] = field(default_factory=dict)
    """As given for the job, for people."""
    settings: dict[str, str] = field(default_factory=dict)
    state: JobState = JobState.RUNNING
    started_at: Epoch = 0.0
    ended_at: Epoch | None = None
    reason: str = ""
    after: str = ""
    """The job for whose end it waits."""
    priority: int = 0
    """Its crawlers get places before those of jobs and services with a lower one; services have 0."""
    figures: JobFigures = field(default_factory=JobFigures)
    """As of its end, or of the last look at it."""
    resumed: Count = 0
    by: str = ""
    rounds: Count = 0
    """Number of times that its crawlers came to an end although something was left in its queue."""
    task_id: str = ""
    """Of the task `crawl` whose result this is; "": of no task."""
    told: bool = False
    """That task has its result."""
    keep_s: float = 0.0
    """Seconds for which its keys and its record are kept after its end."""

    def sentence(self) -> str:
        """Return the job in one line: `finished (finished): 50 pages, 50 items, 0 errors`."""
        one = self.figures
        reason = f" ({self.reason})" if self.reason and self.reason != self.state else ""
        more = f", {one.dead} given up" if one.dead else ""
        left = f", {one.left} left" if one.left else ""
        counts = ((one.pages, "page"), (one.items, "item"), (one.errors, "error"))
        counted = ", ".join(f"{number} {noun}{'' if number == 1 else 's'}" for number, noun in counts)
        return f"{self.state}{reason}: {counted}{more}{left}"


class Jobs(RecordStore[Job]):
    """The jobs of one fleet, by id. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        self._keys = FleetKeys()
        super().__init__(client, self._keys.jobs(), Job, signed=SIGNED)

    def newest(self, service: str = "") -> list[Job]:
        """Return the jobs, or those of a service, the newest first."""
        found = [job for job in self.all().values() if service in ("", job.service)]
        return sorted(found, key=lambda job: job.started_at, reverse=True)

    def open(self) -> dict[str, Job]:
        """Return the jobs that are not over."""
        return {name: job for name, job in self.all().items() if not job.state.ended}

    def check(self, job: Job) -> bytes:
        """Return the line of a new one. Raises ConfigError for one that is too large."""
        return self.encoded(job.id, job, spare=Job.LATER)

    def add(self, job: Job) -> bool:
        """Add a new job; False, and change nothing, where there is one with its id. Raises ConfigError."""
        line = self.check(job)
        return bool(self._client.hsetnx(self._keys.jobs(), job.id, line))

    def swap(self, job: Job) -> bool:
        """Put the job in the place of the one that `all` or `get` has read; False if it has changed meanwhile."""
        return self.put(job.id, replace(job, reason=job.reason[:MOST_REASON]))

    def forget(self, job: Job) -> None:
        """Drop its record."""
        with self._client.pipeline() as pipe:
            pipe.hdel(self._keys.jobs(), job.id)
            pipe.delete(self._keys.job_ends(job.id))
            pipe.execute()

    def crawler_ended(self, name: str, number: int, reason: str) -> None:
        """Record that the crawler of this slot has come to the end of its crawl; it is not launched again."""
        self._client.hset(self._keys.job_ends(name), str(number), reason)

    def ends(self, name: str) -> dict[int, str]:
        """Return the finish reasons of the crawlers that came to an end, by slot."""
        found = self._client.hgetall(self._keys.job_ends(name))
        return {int(number): as_text(reason) for number, reason in found.items() if len(number) < 10 and number.isdigit()}

    def forget_ends(self, name: str) -> None:
        """Forget the ends of its crawlers, so that all its slots are wanted again."""
        self._client.delete(self._keys.job_ends(name))


_SCAN = 1000


def _prefix_of(keys: CrawlKeys) -> str:
    return keys.requests.removesuffix(":requests")


def expire_later(client: redis.Redis, keys: CrawlKeys, keep_s: float) -> None:
    """Let the keys of a crawl that is over expire after `keep_s` seconds, from the next `let_expire` on."""
    client.hset(FleetKeys().expiring(), _prefix_of(keys), repr(keep_s))


def keep_keys(client: redis.Redis, keys: CrawlKeys) -> None:
    """Let the keys of a crawl stay after all."""
    client.hdel(FleetKeys().expiring(), _prefix_of(keys))
    with client.pipeline(transaction=False) as pipe:
        for key in client.scan_iter(match=f"{literal(_prefix_of(keys))}:*", count=_SCAN):
            pipe.persist(key)
        pipe.execute()


def let_expire(client: redis.Redis) -> None:
    """Let the keys of crawls that are over expire; not their items, which are the service's, nor what crawls share.

    One look through all keys for all of them: of a thousand jobs each would look through those of all others.
    """
    ended = readable(hash_at(client, FleetKeys().expiring()), lambda _, raw: number(raw, 0.0, 1e9))
    if not ended:
        return
    with client.pipeline(transaction=False) as pipe:
        for key in client.scan_iter(match=f"{literal(commonprefix(list(ended)))}*", count=_SCAN):  # noqa: RUF071 - characters
            parts = as_text(key).split(":")
            prefixes = (":".join(parts[:length]) for length in range(1, len(parts)))
            if (keep_s := next((ended[one] for one in prefixes if one in ended), None)) is not None:
                pipe.expire(key, int(keep_s))
        pipe.hdel(FleetKeys().expiring(), *ended)
        pipe.execute()
