"""Start tasks for any service, from URLs or fields: checked one by one, and appended to its start key in batches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec
import redis

from redis_components.errors import BadStartTask
from redis_components.keys import CrawlKeys

from .format import WEB, read
from .seeding import CHUNK


@dataclass(kw_only=True)
class Pushed:
    """The outcome of pushing tasks."""

    queued: int = 0
    refused: dict[int, str] = field(default_factory=dict)
    """Position (the first is 1) -> the fault."""
    waiting: int = 0
    """Tasks in the start key after the last batch."""


def push_urls(
    client: redis.Redis,
    keys: CrawlKeys,
    tasks: Iterable[str | bytes | Mapping[str, Any]],
    *,
    unique: bool = False,
    first: int = 1,
    schemes: Collection[str] = WEB,
) -> Iterator[Pushed]:
    """Append start tasks in the order given; yields what became of them so far after each batch of at most `CHUNK`.

    A task is a URL, or the fields of `StartTask` as a mapping or as JSON text. One that is wrong is refused and named, the
    others go on. `unique`: all are queued, and the crawl's dupefilter leaves out what it knows when a crawler takes them
    (`dont_filter` is false; else start tasks are always fetched and not remembered, as in scrapy-redis). In a start key that is
    a sorted set the task's `priority` is its score. URLs have one of `schemes`. `first` is the position of the first task.
    Raises `redis.RedisError`: what was yielded is queued, the batch after it wholly or not at all, as far as Redis still could
    answer.
    """
    rest, done, at = iter(tasks), Pushed(), first
    while batch := list(islice(rest, CHUNK)):
        good: list[tuple[bytes, int]] = []
        for place, one in enumerate(batch, at):
            try:
                good.append(encoded(one, unique=unique, schemes=schemes))
            except BadStartTask as error:
                done.refused[place] = str(error)
        at += len(batch)
        if good:
            done.waiting = _push(client, keys.start_tasks(), good)
        done.queued += len(good)
        yield done


def encoded(task: str | bytes | Mapping[str, Any], *, unique: bool = False, schemes: Collection[str] = WEB) -> tuple[bytes, int]:
    """Return the text of a start task and its priority. Raises BadStartTask."""
    if isinstance(task, Mapping):
        try:
            task = msgspec.json.encode(dict(task))
        except (TypeError, ValueError) as error:
            raise BadStartTask(f"it cannot be written as JSON: {error}") from None
    elif not isinstance(task, (str, bytes)):
        raise BadStartTask(f"{task!r:.100} is neither a URL nor an object with the field url")
    text = (task.encode() if isinstance(task, str) else task).strip()
    checked = read(text)
    if (scheme := checked.url.partition(":")[0].lower()) not in schemes:
        fetched = ", ".join(sorted(schemes))
        raise BadStartTask(f"{checked.url[:100]!r}: its crawlers fetch {fetched}, not {scheme}; DOWNLOAD_HANDLERS opens it")
    if unique:
        fields = msgspec.json.decode(text) if text.startswith(b"{") else {"url": checked.url}
        text = msgspec.json.encode(fields | {"dont_filter": False})
    return text, checked.priority


def _push(client: redis.Redis, key: str, tasks: Sequence[tuple[bytes, int]]) -> int:
    """Append to a list, add to a set or a sorted set: by the key's type, a list where there is none; return its size."""
    kind = client.type(key)
    with client.pipeline(transaction=True) as pipe:
        if kind == b"set":
            pipe.sadd(key, *(text for text, _ in tasks))
            pipe.scard(key)
        elif kind == b"zset":
            pipe.zadd(key, {text: float(priority) for text, priority in tasks})
            pipe.zcard(key)
        else:
            pipe.rpush(key, *(text for text, _ in tasks))
            pipe.llen(key)
        return int(pipe.execute()[-1])
