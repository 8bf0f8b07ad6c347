"""A write that Redis refuses is one line in a worker's log.

Where Redis refuses (its disk is full) or is away while a task ends, Celery prints a traceback in the pool's process, as a
warning, and a second one in the main process. The fleet needs none of these results: a client that waits for one is informed
when the wait is over. Kombu prints one each second at which it cannot renew the bindings of its queues, and tries again.
"""

from __future__ import annotations

import logging
import re

import redis

_KOMBU = "kombu.transport.redis"
LOGGERS = (
    _KOMBU,
    "py.warnings",
    "celery.pool",
    "multiprocessing",
)  # `billiard` has the last name, which Celery replaces by the other
_REFUSED = re.compile(r"^[^\S\n]*redis\.exceptions\.\w+: (.*)$", re.MULTILINE)


def keep_short() -> None:
    """Call it in a worker."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        if in_one_line not in logger.filters:
            logger.addFilter(in_one_line)


def in_one_line(record: logging.LogRecord) -> bool:
    """Replace the traceback of such a record by one line; a filter of logging that drops nothing."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, redis.RedisError):
        why = str(error)
    elif record.name == "py.warnings" and "outside body" in (text := record.getMessage()) and (found := _REFUSED.findall(text)):
        why = found[-1]
    else:
        return True
    what = record.getMessage() if record.name == _KOMBU else "a task's result is lost, Redis does not take it"
    record.msg, record.args = "%s: %s", (what, " ".join(why.rpartition("caused error: ")[2].split()))
    record.exc_info = record.exc_text = None
    return True
