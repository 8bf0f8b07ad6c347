"""Decides which item streams a consumer of the fleet may read: only those of services that declare it.

A spider declares its consumer by the attribute `item_consumer`. Without one its items are for the user to consume, and nothing of
the fleet reads, trims or drops them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from redis_components.admin.crawl_records import CrawlRecord
from redis_components.errors import ConfigError
from redis_components.keys import CrawlKeys
from workers.application import application
from workers.process.config_digest import settings_module

NO_CONSUMER = "none"
"""Consumer of a service whose items no consumer of the fleet takes, even if its spider declares one."""
_TRAWLS_PROJECT = "workers.settings"


def consumer_of(spider: object) -> str:
    """Return the consumer that a spider (or its class) declares; "" for none. Raises ConfigError for an unknown consumer."""
    declared = getattr(spider, "item_consumer", "")
    if declared and declared not in (known := application().consumers()):
        name = getattr(spider, "name", spider)
        raise ConfigError(
            f"{name}: item_consumer = {declared!r:.100} does not exist; known: {', '.join(map(repr, known)) or 'none'};"
            " leave it out to consume the items yourself"
        )
    return declared or ""


def streams_of(
    consumer: str, records: Mapping[str, CrawlRecord], services: Iterable[str], environment: Mapping[str, str] = os.environ
) -> dict[str, CrawlKeys]:
    """Return the crawls whose item stream this consumer may touch, by service.

    Crawls that declare it count, in the fleet or not. A stream shared with a service that does not declare it is left alone. Of
    `services` that have never had a crawler, only the application's spiders count, and only where the project is Trawl's: in
    another project a spider of that name may be anything.
    """
    declared = {name: one.keys for name, one in records.items() if one.consumer == consumer and not one.redis}
    own = application().consumers().get(consumer, ())
    if own and settings_module(environment) == _TRAWLS_PROJECT:
        never_ran = [name for name in services if name in own and name not in records]
        declared |= {name: CrawlKeys.for_spider(name) for name in never_ran}
    foreign = {one.keys.items for name, one in records.items() if name not in declared and not one.redis}
    found: dict[str, CrawlKeys] = {}
    for name, keys in declared.items():
        if keys.items not in foreign and keys.items not in {one.items for one in found.values()}:
            found[name] = keys
    return found
