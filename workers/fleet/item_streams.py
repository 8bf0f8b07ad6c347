"""Item streams of services: where the items of each go, who takes them, and what every group has acknowledged leaves Redis."""

from __future__ import annotations

from collections.abc import Mapping

import redis

from redis_components.crawl_admin.item_group import tend
from redis_components.fleet.crawl_records import CrawlRecords
from redis_components.fleet.services import Services
from redis_components.keys import CrawlKeys
from workers.process.item_targets import is_target

from .service_file import services_in_file


def tend_streams(client: redis.Redis) -> None:
    """Tend the stream of each crawl that was recorded with groups in this Redis. Raises `redis.RedisError`."""
    crawls = {one.keys.items: one.keys for one in CrawlRecords(client).all().values() if one.keys.item_groups and not one.redis}
    for keys in crawls.values():
        tend(client, keys)


def declared_targets(client: redis.Redis) -> dict[str, str]:
    """Return where the items of each service go that declares it, and those of each group of a service: `books/files`.

    Raises ConfigError and `redis.RedisError`.
    """
    declared = services_in_file() | Services(client).all()
    found = {name: one.consumer for name, one in declared.items()}
    found |= {f"{name}/{group}": target for name, one in declared.items() for group, target in one.groups.items()}
    return {name: target for name, target in found.items() if is_target(target)}


def without_consumer(client: redis.Redis, keys: Mapping[str, CrawlKeys]) -> list[str]:
    """Return the names in `declared_targets` whose items no consumer takes at the moment; `keys`: of each service's crawl."""
    named = {name: (keys.get(name.partition("/")[0]), name.partition("/")[2]) for name in declared_targets(client)}
    locks = {name: one.group_writer(group) if group else one.writer() for name, (one, group) in named.items() if one}
    with client.pipeline(transaction=False) as pipe:
        for lock in locks.values():
            pipe.exists(lock)
        return [name for name, runs in zip(locks, pipe.execute(), strict=True) if not runs]
