"""Loads the project and the spider of a service, in a separate process, and says what would prevent it from crawling.

`run_module.py workers.crawler.check_service`, with the crawler's command line: a line of JSON with `wrong` and `warnings`.
"""

from __future__ import annotations

import inspect
import json
import sys
import traceback
from collections.abc import Sequence

from scrapy import Spider
from scrapy.settings import Settings
from scrapy.spiderloader import get_spider_loader
from scrapy.utils.misc import load_object

from redis_components.errors import TrawlError, did_you_mean
from redis_components.pipelines import RedisPipeline
from redis_components.setting_values import item_groups
from workers.process.item_consumers import consumer_of
from workers.process.options import CrawlerOptions, parse, received

from .__main__ import load_settings
from .crawl_record import check_consumer, check_metrics
from .service_spider import ServiceSpider

_COMPONENTS = ("SCHEDULER", "DUPEFILTER_CLASS", "STATS_CLASS")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was found; 0 in any case."""
    options = received(parse(arguments))
    try:
        found = {"wrong": "", "warnings": check(options)}
    except TrawlError as error:
        found = {"wrong": str(error), "warnings": []}
    except Exception as error:  # code of a project: the innermost line of it is what has to be mended
        last = traceback.extract_tb(error.__traceback__)[-1]
        found = {"wrong": f"{type(error).__name__}: {error} ({last.filename}, line {last.lineno})", "warnings": []}
    sys.stdout.write("\n" + json.dumps(found) + "\n")
    return 0


def check(options: CrawlerOptions) -> list[str]:
    """What should be known of a service that can crawl. Raises what its project raises, ConfigError for what is wrong."""
    settings = load_settings(options)
    loader, name = get_spider_loader(settings), options.loads or options.spider
    if name not in loader.list():
        known = sorted(loader.list())
        there = f"there are {', '.join(known)}" if known else f"SPIDER_MODULES = {settings.getlist('SPIDER_MODULES')} has none"
        raise TrawlError(f'unknown spider {name!r}: {there}{did_you_mean(name, known)}; name it with spider = "..."')
    spider = ServiceSpider(loads=options.loads, consumer=options.consumer).named(options.spider, loader.load(name))
    consumer = consumer_of(spider)
    check_metrics(settings, spider)
    spider.update_settings(settings)
    groups = item_groups(settings)
    check_consumer(spider.name, consumer, groups)
    for setting in _COMPONENTS:
        load_object(settings[setting])
    for path in settings.getdict("ITEM_PIPELINES"):
        pipeline = load_object(path)
        if groups and isinstance(pipeline, type) and issubclass(pipeline, RedisPipeline):
            pipeline.check_groups()
    _check_arguments(spider, options)
    return list(_warnings(settings))


def _check_arguments(spider: type[Spider], options: CrawlerOptions) -> None:
    try:
        inspect.signature(spider).bind(**options.arguments)
    except TypeError as error:
        raise TrawlError(f"arguments: {spider.__name__} cannot be made with {sorted(options.arguments)}: {error}") from None


def _warnings(settings: Settings) -> list[str]:
    found = []
    if not str(settings["SCHEDULER"]).startswith("redis_components."):
        found.append(
            "its queue is not in Redis, so a crawler that dies loses it and each crawler crawls everything:"
            ' SCHEDULER = "redis_components.scheduler.Scheduler"'
        )
    if not any("RedisPipeline" in str(path) for path in settings.getdict("ITEM_PIPELINES")):
        found.append(
            "its items go to no item stream, so trawl consume sees none:"
            ' ITEM_PIPELINES = {"redis_components.pipelines.RedisPipeline": 300}'
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
