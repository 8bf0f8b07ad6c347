"""The consumer groups of an item stream, as they are at the moment: the items left to each, and its consumers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import redis

from redis_components.admin.crawl_records import CrawlRecords
from redis_components.keys import CrawlKeys
from redis_components.server.replies import as_text


@dataclass(frozen=True, kw_only=True)
class ConsumerState:
    """One consumer of a group."""

    name: str
    pending: int  # items that it was given and has not acknowledged
    idle_s: float  # since it last asked for items


@dataclass(frozen=True, kw_only=True)
class GroupState:
    """One consumer group."""

    name: str
    declared: bool  # the service names it; another one keeps items in Redis just the same
    waiting: int | None  # items that it was not given yet; None: not known to Redis
    pending: int  # items that its consumers were given and have not acknowledged
    oldest_s: float | None  # age of its oldest item that is pending; None: there is none
    consumers: tuple[ConsumerState, ...]


def is_stream(client: redis.Redis, keys: CrawlKeys) -> bool:
    """Return True if the items are a Redis stream at the moment."""
    return as_text(client.type(keys.item_stream())) == "stream"


def group_names(client: redis.Redis, keys: CrawlKeys) -> list[str]:
    """Return the names of the existing groups."""
    found: Any = client.xinfo_groups(keys.item_stream()) if is_stream(client, keys) else []
    return [as_text(one["name"]) for one in found]


def forget(client: redis.Redis, service: str, group: str) -> None:
    """Destroy a group of the service's item stream, and take it out of the crawl's record, by which the fleet makes it again."""
    records = CrawlRecords(client)
    record = records.of(service)
    keys = record.keys if record else CrawlKeys.for_spider(service)
    if record and group in keys.item_groups:
        left = tuple(one for one in keys.item_groups if one != group)
        records.write(replace(record, keys=replace(keys, item_groups=left)))
    client.xgroup_destroy(keys.item_stream(), group)


def group_states(client: redis.Redis, keys: CrawlKeys, now: float, *, most: int | None = None) -> list[GroupState]:
    """Return the groups of the item stream, by name; none where it is a list. `now` is Redis's time in epoch s. `most` bounds
    their number, the declared ones first.
    """
    if not is_stream(client, keys):
        return []
    found: Any = client.xinfo_groups(keys.item_stream())
    chosen = sorted(found, key=lambda one: (as_text(one["name"]) not in keys.item_groups, as_text(one["name"])))[:most]
    with client.pipeline(transaction=False) as pipe:
        for group in chosen:
            pipe.xinfo_consumers(keys.item_stream(), group["name"])
            pipe.xpending(keys.item_stream(), group["name"])
        answers = iter(pipe.execute())
    return sorted((_state(keys, group, next(answers), next(answers), now) for group in chosen), key=lambda one: one.name)


def _state(
    keys: CrawlKeys, group: dict[str, Any], consumers: list[dict[str, Any]], pending: dict[str, Any], now: float
) -> GroupState:
    name, oldest = as_text(group["name"]), pending["min"]
    return GroupState(
        name=name,
        declared=name in keys.item_groups,
        waiting=group.get("lag"),
        pending=int(group["pending"]),
        oldest_s=max(0.0, now - int(as_text(oldest).partition("-")[0]) / 1000) if oldest else None,
        consumers=tuple(
            ConsumerState(name=as_text(one["name"]), pending=int(one["pending"]), idle_s=int(one["idle"]) / 1000)
            for one in consumers
        ),
    )
