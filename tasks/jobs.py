"""Tasks for the work of crawlers: start URLs, crawls that end, runs of groups, and small crawls inside of the worker."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

import redis
from billiard.process import current_process
from celery.exceptions import Ignore
from kombu.exceptions import OperationalError

from fleet_operations.jobs import jobs, runs
from redis_components.connection import connect
from redis_components.errors import ConfigError, TrawlError
from redis_components.start_tasks.seeding import Pushed
from workers.crawler.orders import check_settings
from workers.node.host import NODE
from workers.state.jobs import Job, Jobs, JobState
from workers.targets import check_place, parse_target

from .app import app

logger = logging.getLogger(__name__)


@app.task(name="trawl.seed_urls", ignore_result=False)
def seed_urls(
    service: str,
    urls: Sequence[str | dict[str, Any]],
    unique: bool = False,
    unless_in: str = "",
    table: str = "",
    key: str = "url",
) -> dict[str, Any]:
    """Queue URLs for the crawlers of any service: `["https://…", {"url": "https://…", "meta": {"page": 1}}]`, in this order.

    The fields are those of a start task (docs/start-tasks.md). `unique`: fetch nothing that the crawl's dupefilter
    knows; it does not know what was queued without `unique`, and all are counted as queued. Returns
    `{"queued": 2, "known": 0, "waiting": 17, "refused": {"3": "it is neither a URL …"}}`, where positions begin at 1. Where as
    many tasks wait as may (`max_waiting`), those that fit are queued, and the rest is refused: `{"12-99": "no room for 88: …"}`.
    `unless_in`: a database, such as `postgresql://…` or `sqlite:///PATH` in the data folder; URLs that have a row there, in
    `table` (by default the service's name) with this `key`, are left out.
    Raises ConfigError for an unknown service and for `urls` that are not a list, OnHold where the service is being drained.
    """
    from fleet_operations import seed_urls as seeding

    if not isinstance(urls, (list, tuple)):
        raise ConfigError(f'urls = {urls!r:.100}: must be a list of URLs or objects, as in ["https://example.org/"]')
    target = parse_target(unless_in) if unless_in else None
    if target and target.kind.has_rows:
        check_place(target, "named by a task", "use trawl seed-urls --unless-in")
    seeded = seeding.seed_urls(connect(), service, urls, unique=unique, unless_in=target, table=table, key=key)
    *_, done = Pushed(), *seeded
    if done.no_room:
        logger.warning("seed_urls: %s: %s", service, done.no_room_sentence())
    return {"queued": done.queued, "known": done.known, "waiting": done.waiting, "refused": done.reasons()}


PROGRESS = "PROGRESS"


class JobFailed(TrawlError):
    """The crawlers of a job cannot run, or died again and again; the message has the reason, `trawl logs` shows more."""


@app.task(bind=True, name="trawl.crawl", ignore_result=False)
def crawl(
    self: Any,
    service: str,
    arguments: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
    crawlers: int = 1,
    urls: Sequence[str] = (),
    id: str = "",
    overlap: str = "",
) -> dict[str, Any]:
    """`crawl.delay("books", {"category": "x"}, crawlers=4)`: a separate crawl, shared by several crawlers, that ends.

    It takes no process of a worker: the task is PROGRESS with the figures while the fleet's nodes crawl, and SUCCESS with
    `{"job", "state", "reason", "pages", "items", "errors", …}` when the whole crawl is over, also when it was cancelled. It is
    FAILURE (JobFailed) where its crawlers cannot run. `settings` are those that a task may set (`workers.crawler.orders`);
    `urls` are start tasks of a spider that is fed from Redis. `overlap`: where a job of the service goes on, `skip` returns that
    one, `queue` waits for its end, `replace` cancels it, "" crawls at the same time. Raises ConfigError for what cannot be a job.
    """
    check_settings(settings or {})
    direct = bool(self.request.called_directly)
    order = jobs.JobOrder(
        service=service,
        crawlers=crawlers,
        arguments=arguments or {},
        settings=settings or {},
        urls=_urls(urls),
        id=id,
        by=str(getattr(self.request, "origin", None) or "a task"),
        task_id="" if direct else self.request.id,
        overlap=overlap,
    )
    job = jobs.start(connect(), order)
    if direct or job.task_id != self.request.id:
        return jobs.job_fields(job)
    self.update_state(state=PROGRESS, meta=jobs.job_fields(job))
    raise Ignore  # `reconcile_fleet` stores the result


@app.task(name="trawl.cancel_job", ignore_result=False)
def cancel_job(job: str) -> dict[str, Any]:
    """End a job, by its name or id, or by the id of the task `crawl`; pages in flight are finished. Raises ConfigError."""
    client = connect()
    by_task = [one.id for one in Jobs(client).open().values() if one.task_id == job]
    return jobs.job_fields(jobs.cancel(client, by_task[0] if by_task else job))


def send_results(client: redis.Redis, changed: Iterable[Job]) -> None:
    """Give the tasks of these jobs their progress, or their result; a result that could not be given is given next time."""
    for job in changed:
        if not job.task_id or job.told:
            continue
        try:
            _send_result(job)
        except (OperationalError, redis.RedisError, OSError, RuntimeError) as error:
            logger.warning("the task of %s did not get its state: %s", job.id, error)
            continue
        if job.state.ended and (now := (store := Jobs(client)).get(job.id)) == job and now is not None:
            store.swap(replace(now, told=True))


def _send_result(job: Job) -> None:
    result = jobs.job_fields(job)
    if not job.state.ended:
        app.backend.store_result(job.task_id, result, PROGRESS)
        _event(job, "task-crawling", result=job.sentence())
    elif job.state is JobState.FAILED:
        app.backend.mark_as_failure(job.task_id, JobFailed(job.sentence()))
        _event(job, "task-failed", exception=f"JobFailed({job.sentence()!r})", traceback="")
    else:
        app.backend.mark_as_done(job.task_id, result)
        _event(job, "task-succeeded", result=job.sentence(), runtime=(job.ended_at or job.started_at) - job.started_at)


def _event(job: Job, kind: str, **fields: Any) -> None:
    known = {"uuid": job.task_id, "name": "trawl.crawl", "args": repr((job.service,)), "kwargs": repr(job.arguments)}
    with app.events.default_dispatcher(hostname="jobs@fleet") as dispatcher:
        dispatcher.send(kind, retry=False, received=job.started_at, started=job.started_at, **known, **fields)


def _urls(urls: object) -> tuple[str, ...]:
    if not isinstance(urls, list | tuple) or not all(isinstance(url, str) for url in urls):
        raise ConfigError(f"urls = {urls!r:.100}: must be a list of URLs")
    return tuple(urls)


@app.task(name="trawl.run_group", ignore_result=False)
def run_group(group: str, spiders: Sequence[str] = ()) -> dict[str, Any]:
    """`run_group.delay("brands")`: start a run of a group that `trawl.toml` declares, or of `spiders` among its members.

    Returns `{"run": "brands-20261129T030000", "state": "running", "members": 40}`; where `overlap` is `skip` and its last
    run goes on, that one. Raises ConfigError for an unknown group, and for one without members.
    """
    if not isinstance(spiders, list | tuple) or not all(isinstance(one, str) for one in spiders):
        raise ConfigError(f"spiders = {spiders!r:.100}: must be a list of names")
    run = runs.start(connect(), runs.order(group, only=spiders, by="a task"))
    return {"run": run.id, "group": run.group, "state": str(run.state), "members": run.members}


class NoRoom(TrawlError):
    """This node has no process to spare for another small crawl; the message names the fix."""


@app.task(bind=True, name="trawl.crawl_once", ignore_result=False)
def crawl_once(
    self: Any,
    spider: str,
    arguments: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
    timeout: float = 60.0,
    items: int = 0,
) -> dict[str, Any]:
    """`crawl_once.delay("news", {"section": "world"}, timeout=60, items=100)`: crawl with an ordinary spider, in the worker.

    The crawl uses a queue in memory, apart from the fleet's, and ends when the spider is done. `arguments` are the spider's;
    `settings` are numbers and switches of Scrapy's settings (see `workers.node.crawl_once`); `timeout` is in seconds, at most an
    hour. Returns the fields of `workers.node.crawl_once.OnceResult`; `kept` holds the first `items` items, at most 1,000
    and 1 MiB.

    `app.control.revoke(task_id, terminate=True)` stops it in a prefork worker, and takes its result. Raises ConfigError for what
    cannot be crawled so, NoRoom where the node has no process to spare.
    """
    from workers.node import crawl_once as small  # not before a fork: it brings Twisted

    order = small.OnceOrder(spider=spider, arguments=arguments or {}, settings=settings or {}, timeout_s=timeout, items=items)
    with NODE.room(self.request.hostname, "once").place() as place:
        if place is None:
            raise NoRoom(
                f"{self.request.hostname} runs {NODE.once} small crawls already and keeps its other processes for the fleet's "
                "tasks: send it again later, or start a worker for them (celery -A tasks worker -Q once) and send it there "
                "(crawl_once.apply_async(..., queue='once'))"
            )
        try:
            return asdict(small.crawl_once(order, cancelled=NODE.drain.is_set))
        except small.ReactorHung as error:
            if current_process().name == "MainProcess":
                raise  # one of threads cannot be replaced
            raise SystemExit(str(error)) from error  # the pool makes a new process
