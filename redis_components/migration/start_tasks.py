"""Start tasks of scrapy-redis. Ours have the same form, but scrapy-redis sent every field that it did not know as data of a form,
and ours refuses such fields by name. They can be moved into `formdata`, which means the same.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import redis

from redis_components.errors import BadStartTask
from redis_components.server.scripts import script
from redis_components.start_tasks.format import read

from .members import kind_of, size_of

BATCH = 500
MOST_LOOKED_AT = 10_000
"""Tasks of each key that are read where none shall be changed."""


@dataclass(kw_only=True)
class StartTasksReport:
    """The start tasks in one start key."""

    key: str
    waiting: int = 0
    looked_at: int = 0
    convertible: int = 0  # with fields that scrapy-redis would send as a form
    converted: int = 0
    refused: Counter[str] = field(default_factory=Counter)  # by the reason with which a crawler would set them aside


def converted(data: bytes) -> bytes | None:
    """Return the task with its form in `formdata`; None for one that is fine. Raises BadStartTask for other faults."""
    try:
        read(data)
    except BadStartTask:
        try:
            fields = json.loads(data)
            known = {"url": fields.pop("url"), "method": fields.pop("method", "GET"), "meta": fields.pop("meta", {})}
        except (ValueError, AttributeError, LookupError, TypeError):  # no JSON, no object, no url
            fields = None
        if not fields:
            raise
        mended = json.dumps({**known, "formdata": fields}, ensure_ascii=False).encode()
        read(mended)
        return mended
    return None


def look_or_convert(client: redis.Redis, key: str, *, convert: bool) -> StartTasksReport:
    """Read what waits in `key`; with `convert` rewrite what needs it. May be repeated; producers may go on meanwhile."""
    kind = kind_of(client, key)
    report = StartTasksReport(key=key, waiting=size_of(client, key, kind))
    for place, tasks in _batches(client, key, kind):
        changes: list[str | bytes | int] = []
        for offset, data in enumerate(tasks):
            try:
                mended = converted(data)
            except BadStartTask as refusal:
                report.refused[str(refusal)] += 1
                continue
            if mended is not None:
                changes += (place + offset if kind == "list" else "", data, mended)
        report.looked_at += len(tasks)
        report.convertible += len(changes) // 3
        if changes and convert:
            report.converted += int(script("import_start_tasks")(client, {"start_tasks": key}, {"changes": changes}))
        elif not convert and report.looked_at >= MOST_LOOKED_AT:
            break
    return report


def _batches(client: redis.Redis, key: str, kind: str) -> Iterator[tuple[int, list[bytes]]]:
    """Yield all tasks, in batches with their place in a list; from a set or zset one may come twice."""
    if kind == "list":
        place = 0
        while True:
            tasks: Any = client.lrange(key, place, place + BATCH - 1)
            if not tasks:
                return
            yield place, list(tasks)
            place += len(tasks)
    cursor: Any = None
    while kind in ("set", "zset") and cursor != 0:
        scan: Any = client.sscan if kind == "set" else client.zscan
        cursor, found = scan(key, cursor or 0, count=BATCH)
        yield 0, [one if kind == "set" else one[0] for one in found]
