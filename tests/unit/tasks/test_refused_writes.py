"""What a worker's log has of a write that Redis does not take."""

from __future__ import annotations

import logging
import sys

import pytest
import redis

from tasks.refusing_broker import in_one_line

REFUSED = "MISCONF Errors writing to the AOF file: No space left on device"
WARNED = f"""trace.py:809: RuntimeWarning: Exception raised outside body: server:ResponseError:
  Traceback (most recent call last):
    File "trace.py", line 606, in trace_task
  redis.exceptions.ResponseError: {REFUSED}
  warn(RuntimeWarning(
"""


def record(name: str, text: str, error: Exception | None = None) -> logging.LogRecord:
    raised = None
    if error is not None:
        try:
            raise error
        except Exception:
            raised = sys.exc_info()
    return logging.LogRecord(name, logging.ERROR, "pool.py", 1, "%s", (text,), raised)


@pytest.mark.parametrize(
    "told",
    [
        record("celery.pool", "Pool callback raised exception", redis.ResponseError(REFUSED)),
        record("celery.pool", "", redis.ResponseError(f"Command # 1 (SETEX task 3600 ...) of pipeline caused error: {REFUSED}")),
        record("py.warnings", WARNED),
    ],
    ids=["main process", "in a pipeline", "process of the pool"],
)
def test_it_is_one_line_with_the_reason(told: logging.LogRecord) -> None:
    assert in_one_line(told)
    assert logging.Formatter().format(told) == f"a task's result is lost, Redis does not take it: {REFUSED}"


def test_a_binding_that_is_not_renewed_is_one_line_with_the_reason() -> None:
    told = record("kombu.transport.redis", "will retry", redis.ResponseError("NOREPLICAS Not enough good replicas to write."))
    assert in_one_line(told)
    assert logging.Formatter().format(told) == "will retry: NOREPLICAS Not enough good replicas to write."


@pytest.mark.parametrize(
    "told",
    [
        record("celery.pool", "Pool callback raised exception", ValueError("ours")),
        record("py.warnings", "outside body: ValueError"),
    ],
    ids=["main process", "process of the pool"],
)
def test_every_other_failure_keeps_its_traceback(told: logging.LogRecord) -> None:
    before = logging.Formatter().format(told)
    assert in_one_line(told)
    assert logging.Formatter().format(told) == before
