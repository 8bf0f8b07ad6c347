"""The task `crawl_once`: a small crawl inside the worker."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import redis
from billiard.process import current_process
from celery import states

from redis_components.connection import connect
from redis_components.errors import TrawlError
from redis_components.server.printable import in_words
from workers.node.host import NODE
from workers.process.exit_kinds import OnceOutcome
from workers.process.heartbeat import Heartbeat
from workers.state.history import Run, RunBy, Runs
from workers.state.keys import FleetKeys
from workers.state.registry import Renewal

from .app import app

CANCEL_TTL_S = 4000  # longer than the longest crawl
LOOK_S = 1.0  # between checks for a cancellation


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
    hour. Returns the fields of `workers.process.exit_kinds.OnceResult`; `kept` holds the first `items` items, at most 1,000
    and 1 MiB.

    `cancel_crawl(task_id)` stops it gracefully; `app.control.revoke(task_id, terminate=True)` does the same in a prefork worker,
    and takes its result. Raises ConfigError for what cannot be crawled so, NoRoom where the node has no process to spare.
    """
    from workers.node.crawl_once import OnceOrder, ReactorHung  # not before a fork: it brings Twisted
    from workers.node.crawl_once import crawl_once as crawl

    order = OnceOrder(spider=spider, arguments=arguments or {}, settings=settings or {}, timeout_s=timeout, items=items)
    with NODE.room(self.request.hostname, "once").place() as place:
        if place is None:
            raise NoRoom(
                f"{self.request.hostname} runs {NODE.once} small crawls already and keeps its other processes for the fleet's "
                "tasks: send it again later, or start a worker for them (celery -A tasks worker -Q once) and send it there "
                "(crawl_once.apply_async(..., queue='once'))"
            )
        with _RunLink(self.request.id, order.spider, self.request.hostname) as link:
            try:
                result = crawl(order, cancelled=link.cancelled)
            except ReactorHung as error:
                link.ended(OnceOutcome.HUNG, str(error))
                if current_process().name == "MainProcess":  # a worker of threads: it cannot be replaced from here
                    raise
                raise SystemExit(str(error)) from error  # the pool makes a new process
            link.ended(result.outcome, result.error or result.reason, pages=result.pages, items=result.items)
            return asdict(result)


def cancel_crawl(task_id: str) -> None:
    """Stop a `crawl_once` gracefully: pages in flight finish, and its result is `cancelled`. A queued one never starts."""
    connect().set(FleetKeys().cancelled(task_id), "1", ex=CANCEL_TTL_S)
    if app.AsyncResult(task_id).state == states.PENDING:  # of a running one, Celery 5.6 would make the result "revoked"
        app.control.revoke(task_id)


class _RunLink:
    """Link between a crawl and Redis, in a thread: records the run in the history, and receives its cancellation."""

    def __init__(self, task_id: str, spider: str, node: str) -> None:
        self._key = FleetKeys().cancelled(task_id)
        now = time.time()
        self._run = Run(id=f"once-{task_id}", spider=spider, by=RunBy.ONCE, node=node, pid=os.getpid(), started_at=now)
        self._client: redis.Redis = connect()
        self._runs = Runs(self._client)
        self._heartbeat = Heartbeat(lambda: Renewal(held=not self._client.exists(self._key)), period_s=LOOK_S)

    def cancelled(self) -> bool:
        """Return True if the crawl was cancelled, or this node is being shut down."""
        return self._heartbeat.lost or NODE.drain.is_set()

    def ended(self, outcome: str, reason: str | None, *, pages: int = 0, items: int = 0) -> None:
        """Record the end, once; without it the crawl was cut off."""
        self._run = replace(self._run, ended_at=time.time(), outcome=outcome, reason=reason, pages=pages, items=items)

    def _record(self) -> Callable[[], object]:
        run = self._run
        return lambda: self._runs.add(run)

    def __enter__(self) -> _RunLink:
        self._heartbeat.start()
        self._heartbeat.errand(self._record())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if self._run.ended_at is None:
            by_celery = error is not None and not isinstance(error, TrawlError)  # SystemExit, SoftTimeLimitExceeded
            revoked = isinstance(error, SystemExit)  # its number has no meaning for the user
            why = "its task was revoked, or its worker shut down cold" if revoked or error is None else in_words(error)
            self.ended(OnceOutcome.CANCELLED if by_celery else OnceOutcome.CRASHED, why)
        self._heartbeat.errand(self._record())
        self._heartbeat.stop()
