"""Jobs: finite crawls of a service's spider, shared by several crawlers of the fleet, with an end and a result.

    job = start(client, JobOrder(service="books", crawlers=4, arguments={"category": "x"}))
    advance(client, registry)     # `reconcile_fleet`: ends the jobs that are over; returns those that changed

A job is over when a crawler has come to the end of the crawl (Redis has proved to it that nothing is ready, leased or on its
way), no other one is left, and the queue is empty. A crawler that dies before that is launched again, as one of a service.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any

import redis

from fleet_operations.seed_urls import schemes_of
from redis_components import defaults
from redis_components.admin.inspector import CrawlSnapshot, snapshot, total_of
from redis_components.errors import ConfigError, did_you_mean
from redis_components.keys import CrawlKeys, CrawlRecord, CrawlRecords
from redis_components.server.names import LONGEST, fleet_namespace, is_name, service_name
from redis_components.server.untrusted_values import server_time
from redis_components.start_tasks.seeding import push_urls
from workers.environment.declaration import check_size
from workers.environment.variables import Fleet
from workers.fleet.sizes import check_service, consumer_word, service_in
from workers.state.jobs import FINISHED, Job, JobFigures, Jobs, JobState, expire_later, keep_keys, let_expire
from workers.state.keys import FleetKeys
from workers.state.registry import Registry, SlotView
from workers.state.services import ServiceRecord, as_texts

MOST_ENDED = 1000
"""Records of jobs that are over; older ones go before their time."""
MOST_URLS = 1000
CANCELLED = "cancelled"
PAUSED, REPLACED = "paused", "another job took its place"
"""Reasons of a job that its run has cancelled for a while, and of one that a later job has cancelled."""
MOST_ROUNDS = 3
"""Times that its crawlers may come to an end with something left in the queue, as after leases of a dead one came back."""
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class JobOrder:
    """The crawl that a job orders."""

    service: str
    """A service, or any spider of the nodes' project."""
    crawlers: int = 1
    arguments: Mapping[str, Any] = ()  # type: ignore[assignment]  # of the spider, over those of the service
    settings: Mapping[str, Any] = ()  # type: ignore[assignment]  # Scrapy's, over those of the service
    urls: Sequence[str] = ()
    """Start tasks of a spider that is fed from Redis."""
    project: str = ""
    """Module of the settings of a spider that is not a service; "": the nodes' own project."""
    id: str = ""
    """The end of the job's name; "": a new one."""
    by: str = ""
    task_id: str = ""
    priority: int = 0
    overlap: str = ""
    """A job of a service of which one goes on is left out (`skip`: that one is returned), waits for its end (`queue`), or takes
    its place (`replace`); "": both crawl.
    """


OVERLAPS = ("skip", "queue", "replace")
LOCK_S = 30.0
"""Two rounds of a schedule may be carried out at one time."""


def start(client: redis.Redis, order: JobOrder) -> Job:
    """Start a job; the fleet's nodes launch its crawlers. Raises ConfigError for what cannot be a job."""
    with client.lock(FleetKeys().starting(order.service), timeout=LOCK_S) if order.overlap else nullcontext():
        return _start(client, order)


def _start(client: redis.Redis, order: JobOrder) -> Job:
    service = service_name(order.service)
    check_size(service, order.crawlers)
    if order.crawlers < 1:
        raise ConfigError(f"crawlers = {order.crawlers}: a job needs at least one")
    if order.id and not _ID.fullmatch(order.id):
        raise ConfigError(f"job id {order.id!r:.100}: letters, digits, _ and - are what it may hold, at most 64")
    if len(order.urls) > MOST_URLS:
        raise ConfigError(f"{len(order.urls):,} URLs: a job is started with at most {MOST_URLS:,}; trawl seed-urls gives it more")
    name = f"{service}.{order.id or secrets.token_hex(4)}"
    if not is_name(name):
        raise ConfigError(f"{name!r:.200} is too long: the name of a job has at most {LONGEST} characters")
    if order.overlap and order.overlap not in OVERLAPS:
        raise ConfigError(f"overlap = {order.overlap!r:.100}: must be {', '.join(OVERLAPS)}")
    before = [job for job in Jobs(client).newest(service) if not job.state.ended] if order.overlap else []
    if before and (order.overlap == "skip" or (order.overlap == "queue" and before[0].after)):
        return before[0]
    declared = service_in(client, service) or ServiceRecord(project=order.project)
    arguments, settings = as_texts(dict(order.arguments)), as_texts(dict(order.settings))
    declaration = replace(
        declared,
        spider=declared.spider or service,
        size=order.crawlers,
        arguments={**declared.arguments, **arguments},
        settings={**declared.settings, **settings},
        start_key=defaults.START_URLS_KEY % {"name": name},
        items_key=_items_key(client, service, declared),
        consumer=consumer_word(declared),  # where the items go is the service's; its address may have a password
    )
    check_service(name, {"arguments": declaration.arguments, "settings": declaration.settings}, name)
    job = Job(
        id=name,
        service=service,
        declaration=declaration,
        crawlers=order.crawlers,
        arguments=arguments,
        settings=settings,
        started_at=server_time(client),
        by=order.by,
        task_id=order.task_id,
        priority=order.priority,
        after=before[0].id if before and order.overlap == "queue" else "",
        keep_s=Fleet.read().job_retention_s,
    )
    Jobs(client).check(job)
    _seed(client, job, order.urls)  # before its crawlers look for work
    if not Jobs(client).add(job):
        raise ConfigError(f"there is a job {name} already: take another id")
    for one in before if order.overlap == "replace" else ():
        cancel(client, one.id, reason=REPLACED)
    return job


def cancel(client: redis.Redis, name: str, *, reason: str = CANCELLED) -> Job:
    """End a job: pages in flight are finished, and the rest of the queue is kept for `resume`. Raises ConfigError.

    `reason`: `CANCELLED`, `PAUSED` or `REPLACED`.
    """
    job = find(client, name)

    def ended(now: Job | None) -> Job:
        now = now or job
        return replace(now, state=JobState.ENDING, reason=reason) if now.state is JobState.RUNNING else now

    if (after := Jobs(client).change(job.id, ended)).state is JobState.ENDING:
        client.hdel(FleetKeys().desired(), job.id)  # a size from `trawl scale`
    return after


def resume(client: redis.Redis, name: str) -> Job:
    """Go on with a job that was cancelled, failed, or closed by its spider, where it stopped. Raises ConfigError."""
    jobs = Jobs(client)
    job = find(client, name)
    if not job.state.ended:
        raise ConfigError(f"{job.id} is {job.state}: only a job that is over can be resumed")
    if job.state is JobState.FINISHED and job.reason == FINISHED and not figures(client, job).left:
        raise ConfigError(f"{job.id} is finished and has nothing left: trawl job start does the same once more")
    keep_keys(client, _keys(client, job))
    client.persist(FleetKeys().job_ends(job.id))
    jobs.forget_ends(job.id)
    Registry(client).forget(f"{job.id}/{number}" for number in range(job.crawlers))
    again = replace(job, state=JobState.RUNNING, reason="", ended_at=None, resumed=job.resumed + 1, rounds=0, told=False)
    if jobs.get(job.id) != job or not jobs.swap(again):
        raise ConfigError(f"{job.id} was changed by another client at the same moment: look at it, and try again")
    return again


def find(client: redis.Redis, name: str) -> Job:
    """Return the job of this name, or of this id if only one has it. Raises ConfigError."""
    known = Jobs(client).all()
    if name in known:
        return known[name]
    by_id = [job for job in known.values() if job.id.rpartition(".")[2] == name]
    if len(by_id) != 1:
        which = f"{len(by_id)} jobs have the id {name!r:.100}" if by_id else f"there is no job {name!r:.100}"
        raise ConfigError(f"{which}; trawl job list shows them{did_you_mean(name, known)}")
    return by_id[0]


def figures(client: redis.Redis, job: Job) -> JobFigures:
    """Return the job's figures up to now."""
    return _figures(snapshot(client, job.id, _keys(client, job)))


def job_fields(job: Job) -> dict[str, Any]:
    """Return a job as JSON, for a task, the API and a command."""
    about = {"job": job.id, "service": job.service, "state": str(job.state), "reason": job.reason, "crawlers": job.crawlers}
    return {**about, **asdict(job.figures), "started_at": job.started_at, "ended_at": job.ended_at}


def advance(client: redis.Redis, registry: Registry) -> list[Job]:
    """Take the next step of each job. Returns those that changed, also in their figures, and those that are over and whose task
    has no result yet. Safe to run concurrently.
    """
    jobs, records, crawlers = Jobs(client), CrawlRecords(client).all(), registry.crawlers()
    everything, now = jobs.all(), registry.now()
    changed = []
    for job in everything.values():
        if not job.state.ended:
            views = [view for view in registry.slots({job.id: job.crawlers}, crawlers) if view.spider == job.id]
            after = _after(client, jobs, job, views, records.get(job.id), now)
            if after != job and jobs.swap(after):
                changed.append(after)
    let_expire(client)
    changed += [job for job in everything.values() if job.state.ended and job.task_id and not job.told]
    _forget(client, everything.values(), now)
    return changed


def end(registry: Registry, known: Jobs, job: Job, now: float) -> Job | None:
    """Take the next step of a job with one crawler, as `known` has read it; return it if that ends it."""
    views, record = registry.slots({job.id: 1}, []), CrawlRecords(registry.client).of(job.id)
    after = _after(registry.client, known, job, views, record, now)
    return after if after.state.ended and known.swap(after) else None


def _after(client: redis.Redis, jobs: Jobs, job: Job, views: Sequence[SlotView], record: CrawlRecord | None, now: float) -> Job:
    """Return the job after its next step, with its figures, and do what that step needs in Redis."""
    keys, ends = record.keys if record else CrawlKeys.for_spider(job.id), jobs.ends(job.id)
    done = _figures(snapshot(client, job.id, keys, record=record))
    after = replace(next_step(job, ends, views, done), figures=done)
    if after.state is JobState.RUNNING and ends and not _alive(views):
        jobs.forget_ends(job.id)
        after = replace(after, rounds=job.rounds + 1)
    if after.state.ended:
        after = replace(after, ended_at=now)
        client.hdel(FleetKeys().desired(), job.id)
        expire_later(client, keys, job.keep_s)
    return after


def next_step(job: Job, ends: Mapping[int, str], views: Iterable[SlotView], done: JobFigures) -> Job:
    """Return the next state of a job that is not over. Pure.

    `ends`: the finish reasons of crawlers that came to an end; `views`: its slots; `done`: its figures, with the remaining work.
    """
    slots = list(views)
    alive, given_up = _alive(slots), [view.record for view in slots if view.record and view.record.state.given_up]
    if job.state is JobState.ENDING:
        if alive:
            return job
        cancelled = job.reason in (CANCELLED, PAUSED, REPLACED)
        return replace(job, state=JobState.CANCELLED if cancelled else JobState.FINISHED)
    closed = sorted(reason for reason in ends.values() if reason != FINISHED)
    if closed:  # the spider closed itself: one crawler's decision is the crawl's
        return replace(job, state=JobState.ENDING, reason=closed[0])
    if alive:
        return job
    if ends and not done.left:
        return replace(job, state=JobState.FINISHED, reason=FINISHED)
    if ends and job.rounds >= MOST_ROUNDS:
        why = f"its crawlers finished and left {done.left} requests or start tasks: URLs are for spiders that are fed from Redis"
        return replace(job, state=JobState.FAILED, reason=why)
    if not ends and len(given_up) >= len(slots) > 0:
        last = given_up[0]
        return replace(job, state=JobState.FAILED, reason=f"{last.state}: {last.error or last.note or 'see its log'}")
    return job


def closed_slots(client: redis.Redis, views: Iterable[SlotView]) -> set[tuple[str, int]]:
    """Return the slots of jobs that get no crawler any more: one crawler has proved that the crawl is over."""
    jobs, found = Jobs(client), set[tuple[str, int]]()
    known = list(views)
    running = jobs.open()
    for name, job in running.items():
        if job.after in running:
            found |= {(name, number) for number in range(job.crawlers)}
        elif job.state is JobState.RUNNING and (ends := jobs.ends(name)):
            found |= {(name, number) for number in ends}
            found |= {(name, view.number) for view in known if view.spider == name and not _is_alive(view)}
    return found


def _is_alive(view: SlotView) -> bool:
    return view.token is not None or view.launching_on is not None


def _alive(views: Iterable[SlotView]) -> bool:
    return any(_is_alive(view) for view in views)


def _figures(crawl: CrawlSnapshot) -> JobFigures:
    levels = ("log_count/ERROR", "log_count/CRITICAL")
    return JobFigures(
        pages=total_of(crawl.stats, "response_received_count"),
        items=total_of(crawl.stats, "item_scraped_count"),
        errors=sum(total_of(crawl.stats, level) for level in levels),
        dead=crawl.dead,
        left=crawl.ready
        + crawl.leased
        + crawl.leased_tasks
        + crawl.start_tasks
        + crawl.overflow
        + crawl.parked
        + crawl.parked_tasks,
    )


def _items_key(client: redis.Redis, service: str, declared: ServiceRecord) -> str:
    """Return the pattern of the key that the items of the service go to; "": the project's own setting."""
    record = CrawlRecords(client).of(service)
    if record is None:
        return declared.items_key.replace("%(spider)s", service).replace("%(name)s", service)
    namespace = fleet_namespace()
    return record.keys.items.removeprefix(f"{namespace}:" if namespace else "").replace("%", "%%")


def _seed(client: redis.Redis, job: Job, urls: Sequence[str]) -> None:
    refused: dict[int, str] = {}
    for pushed in push_urls(client, CrawlKeys.for_spider(job.id), urls, schemes=schemes_of(client, job.service)):
        refused |= pushed.refused
    if refused:
        place, reason = min(refused.items())
        keys = CrawlKeys.for_spider(job.id)
        client.delete(keys.start_urls, keys.stats_hash())
        raise ConfigError(f"{urls[place - 1]!r:.200}: {reason}")


def _keys(client: redis.Redis, job: Job) -> CrawlKeys:
    return CrawlRecords(client).keys_of(job.id)


def _forget(client: redis.Redis, jobs: Iterable[Job], now: float) -> None:
    """Drop the records of jobs whose time is over, and the oldest where there are too many."""
    ended = sorted((job for job in jobs if job.ended_at is not None), key=lambda job: job.ended_at or 0.0)
    old = [job for job in ended if now - (job.ended_at or now) > job.keep_s]
    for job in {job.id: job for job in (*old, *ended[: max(0, len(ended) - MOST_ENDED)])}.values():
        forget(client, job)


def forget(client: redis.Redis, job: Job) -> None:
    """Drop the record of a job that is over; the keys of its crawl expire on their own."""
    Jobs(client).forget(job)
    client.hdel(FleetKeys().crawls(), job.id)
