"""Where the items of a service are: as its crawlers have recorded it, with the consumer groups that it declares now."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import redis

    from redis_components.keys import CrawlKeys


def item_keys(client: redis.Redis, service: str) -> CrawlKeys:
    """Raises ConfigError and `redis.RedisError`."""
    from redis_components import defaults
    from redis_components.fleet.crawl_records import CrawlRecords
    from redis_components.keys import CrawlKeys
    from workers.fleet.sizes import service_in

    record, declared = CrawlRecords(client).of(service), service_in(client, service)
    items = (declared.items_key if declared else "") or defaults.PIPELINE_KEY
    keys = record.keys if record else CrawlKeys.for_spider(service, items=items)
    named = tuple(declared.groups) if declared else ()
    return replace(keys, item_groups=tuple(dict.fromkeys((*keys.item_groups, *named))))
