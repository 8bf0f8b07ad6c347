"""The configuration of a crawl from settings and spider: its keys, and the configuration of its frontier."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from redis_components import connection, defaults
from redis_components.dupefilter import filter_of
from redis_components.errors import ConfigError
from redis_components.frontier import messages
from redis_components.frontier.config import FrontierConfig
from redis_components.keys import CrawlKeys
from redis_components.server.names import check_one_slot, crawl_name, namespace_of
from redis_components.setting_values import item_groups, number_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

_owners: WeakKeyDictionary[Crawler, str] = WeakKeyDictionary()


def name_owner(crawler: Crawler, owner: str) -> None:
    """Keep the leases of this crawl under `owner`: a supervisor that knows the name can end them at once.

    Before the crawl begins, and never the same name for two crawls, whether in one process or in two. A crawl without it gets
    another name.
    """
    _owners[crawler] = owner


def keys_of(crawler: Crawler) -> CrawlKeys:
    """Return the keys of this crawler's spider, by the settings' patterns. Raises ConfigError."""
    spider = crawler.spider or crawler.spidercls
    keys = crawl_keys(crawler.settings, crawl_name(spider))
    start_keys = getattr(crawler.spider, "start_keys", ())  # the spider has put them into the namespace
    if not start_keys:
        return keys
    fed = keys.start_urls if keys.start_urls != start_keys[0] else ""
    return replace(keys, start_urls=start_keys[0], more_start_urls=start_keys[1:], fed_start_urls=fed)


def crawl_keys(settings: BaseSettings, spider: str) -> CrawlKeys:
    """Return the keys of the spider named `spider`, by namespace and patterns in `settings`. Raises ConfigError."""
    return CrawlKeys.for_spider(
        spider,
        namespace=namespace_of(settings),
        requests=settings.get("SCHEDULER_QUEUE_KEY", defaults.SCHEDULER_QUEUE_KEY),
        dupefilter=settings.get("SCHEDULER_DUPEFILTER_KEY", defaults.SCHEDULER_DUPEFILTER_KEY),
        start_urls=settings.get("REDIS_START_URLS_KEY", defaults.START_URLS_KEY),
        items=settings.get("REDIS_ITEMS_KEY", defaults.PIPELINE_KEY),
        stats=settings.get("STATS_KEY", defaults.STATS_KEY),
        item_groups=item_groups(settings),
    )


def config_of(crawler: Crawler) -> FrontierConfig:
    """Return the configuration of this crawl's frontier; our Scheduler completes it for its queue and dupefilter. Raises
    ConfigError.
    """
    if error := getattr(crawler.spider, "setup_error", None):
        raise error
    settings = crawler.settings
    feeds = getattr(crawler.spidercls, "feeds", None)
    keys, next_keys = keys_of(crawler), crawl_keys(settings, feeds) if feeds else None
    _check_distinct(keys)
    if connection.is_cluster(settings):
        check_one_slot(
            [*messages.all_keys(keys, next_keys), *keys.turn_keys], "REDIS_NAMESPACE", f"'{{{crawl_name(crawler.spidercls)}}}'"
        )
    return FrontierConfig(
        keys=keys,
        next_keys=next_keys,
        owner=_owners.get(crawler) or f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}",
        ends_on_lasting_errors=crawler not in _owners,  # a crawler of a fleet waits until the fault is mended
        turn_by=getattr(crawler.spidercls, "turn_by", ""),
        newest_fields=tuple(getattr(crawler.spidercls, "newest_fields", ())),
        most_fed=number_of(settings, "SCHEDULER_MAX_FED_TASKS", FrontierConfig.most_fed),
        filter=filter_of(settings),
        quota=settings.get("SCHEDULER_QUOTA") or "",
        concurrency=number_of(settings, "CONCURRENT_REQUESTS", defaults.REDIS_CONCURRENT_REQUESTS),
        max_prefetch=number_of(settings, "SCHEDULER_MAX_PREFETCH", FrontierConfig.max_prefetch),
        max_attempts=number_of(settings, "SCHEDULER_MAX_ATTEMPTS", FrontierConfig.max_attempts),
        max_page_age_s=number_of(settings, "SCHEDULER_MAX_PAGE_AGE", FrontierConfig.max_page_age_s),
        ttl_s=number_of(settings, "SCHEDULER_OWNER_TTL", FrontierConfig.ttl_s),
        fsync_window_s=number_of(settings, "SCHEDULER_FSYNC_WINDOW", FrontierConfig.fsync_window_s),
        max_items=number_of(settings, "REDIS_ITEMS_MAX_WAITING", FrontierConfig.max_items),
        max_item_mb=number_of(settings, "REDIS_ITEMS_MAX_MB", FrontierConfig.max_item_mb),
    )


def _check_distinct(keys: CrawlKeys) -> None:
    used: dict[str, str] = {}
    for what, key in (
        ("the queue", keys.requests),
        ("the dupefilter", keys.dupefilter),
        ("items", keys.items),
        ("stats", keys.stats),
        *(("start tasks", key) for key in (keys.start_urls, *keys.more_start_urls)),
    ):
        if key in used:
            raise ConfigError(f"{key} is set as the key of both {used[key]} and {what}: give each another one")
        used[key] = what
