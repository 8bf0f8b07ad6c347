"""Records in the audit the tasks by which a user changes something, and the commands of Celery's remote control, which Flower's
pages use; not the tasks that beat sends and that maintain the fleet.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import redis
from celery.exceptions import Ignore

from redis_components.connection import connect
from workers.fleet.holds import who
from workers.state.audit import Act, append, without_secrets

logger = logging.getLogger(__name__)

OF_OPERATORS = frozenset(
    f"trawl.{name}"
    for name in (
        *("scale_fleet", "roll_fleet", "pause_fleet", "drain_fleet", "stop_fleet", "resume_fleet"),
        *("pause_site", "drain_site", "resume_site", "crawl_once"),
        *("seed_forums", "rescan_forum", "refresh_posts", "backfill", "seed_urls", "crawl", "cancel_job"),
    )
)

REMOTE = frozenset(
    (
        *("shutdown", "revoke", "revoke_by_stamped_headers", "terminate", "rate_limit", "time_limit"),
        *("pool_grow", "pool_shrink", "pool_restart", "autoscale", "add_consumer", "cancel_consumer"),
    )
)
"""Commands of remote control that change a worker; Flower repeats others every few seconds."""


def note_remote(worker: str, method: str, arguments: Mapping[str, Any] | None) -> None:
    """Record a command to a worker before it is executed: after a shutdown the worker could not."""
    if method in REMOTE:
        given = (f"{name}={value}" for name, value in (arguments or {}).items() if value not in (None, ""))
        what = (method, *without_secrets(list(given)[:20]), f"worker={worker}")
        _keep(Act(at=time.time(), by="remote control (Flower, or a program)", what=what, outcome="heard"))


@contextmanager
def audited(task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[None]:
    """Record that this task ran, when it is an operator's, and its outcome. `task`: a bound Celery task."""
    outcome = "failed"
    try:
        yield
        outcome = "done"
    except Ignore:  # its result comes later
        outcome = "done"
        raise
    finally:
        if task.name in OF_OPERATORS:
            given = (*args, *(f"{name}={value}" for name, value in kwargs.items()))
            by = str(getattr(task.request, "origin", None) or who())  # `gen123@host` of who sent it; itself where it was called
            act = Act(at=time.time(), by=by[:200], what=(task.name, *without_secrets(given[:20])), outcome=outcome)
            _keep(act)


def _keep(act: Act) -> None:
    try:
        append(connect(), act)
    except redis.RedisError as error:
        logger.warning("the audit does not have %s by %s, %s: %s", act.what[0], act.by, act.outcome, error)
